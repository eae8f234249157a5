"""What cleaning did to a corpus, in numbers."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from malmoi.text.cleaning.cleaner import CLEANER_VERSION, REASONS, CleaningSettings
from malmoi.text.cleaning.spacing import Analysis
from malmoi.text.duplicates.near import BANDS, HASHES, NearDuplicates

# pandas, pyarrow and Spark pass over files that begin so, and open the folder as one table.
REPORT_NAME = "_report.json"


@dataclass(kw_only=True)
class CleaningReport:
    """How many texts were read and kept, and how many were dropped for which reason.

    Where texts were split, their sentences count as the texts read.

    Attributes:
        settings: the rules about one text.
        near: how near duplicates were found; None if they were not looked for.
        analysis: what was asked of the analyser, and its version; None if it was not used.
        cleaning: version of the rules.
        reading: how each file was read (`malmoi.text.reading.notes`), and what was left out.
        sources: for each source in the order of reading, its texts `read`, `kept` and by reason,
            and `AnalysisCount`s.
    """

    settings: dict[str, Any]
    near: dict[str, Any] | None = None
    analysis: dict[str, Any] | None = None
    cleaning: str = CLEANER_VERSION
    reading: dict[str, Any] | None = None
    sources: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, settings: CleaningSettings, near: NearDuplicates | None, analysis: Analysis
    ) -> "CleaningReport":
        """An empty report of a run with these settings."""
        method = None if near is None else asdict(near) | {"hashes": HASHES, "bands": BANDS}
        # As JSON gives them back: lists for tuples.
        return cls(
            settings=json.loads(json.dumps(asdict(settings))),
            near=method,
            analysis=analysis.describe(),
        )

    @classmethod
    def read_from(cls, directory: Path) -> "CleaningReport":
        """The report of a clean corpus."""
        return cls.from_json(json.loads(report_path(directory).read_text(encoding="utf-8")))

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "CleaningReport":
        """What the report's file holds."""
        sources = {
            name: Counter({key: count for key, count in numbers.items() if key != "dropped"})
            + Counter(numbers["dropped"])
            for name, numbers in found["sources"].items()
        }
        return cls(
            settings=found["settings"],
            near=found["near_duplicates"],
            analysis=found.get("analysis"),  # there was none in early reports
            cleaning=found["cleaning"],
            reading=found.get("reading"),
            sources=sources,
        )

    def count(self, source: str, what: str, number: int = 1) -> None:
        """Add to a source's `read` or `kept` texts or to those dropped for a reason."""
        self.sources.setdefault(source, Counter())[what] += number

    @property
    def read(self) -> int:
        return self._sum("read")

    @property
    def kept(self) -> int:
        return self._sum("kept")

    @property
    def dropped(self) -> dict[str, int]:
        """Texts dropped by reason; every reason is there, those that never occurred as 0."""
        return {reason: self._sum(reason) for reason in REASONS}

    def _sum(self, what: str) -> int:
        return sum(counter[what] for counter in self.sources.values())

    def to_json(self) -> str:
        """The report as it stands in its file; equal for equal inputs and settings."""
        return json.dumps(
            {
                "cleaning": self.cleaning,
                "settings": self.settings,
                "near_duplicates": self.near,
                "analysis": self.analysis,
                "read": self.read,
                "kept": self.kept,
                "dropped": self.dropped,
                **self._analysis_counts(sum(self.sources.values(), Counter())),
                "reading": self.reading,
                "sources": {
                    name: {
                        "read": counter["read"],
                        "kept": counter["kept"],
                        "dropped": {r: counter[r] for r in REASONS if counter[r]},
                        **self._analysis_counts(counter),
                    }
                    for name, counter in self.sources.items()
                },
            },
            ensure_ascii=False,
            indent=2,
        )

    def summary(self) -> str:
        """One line for a person."""
        dropped = ", ".join(f"{count:,} {why}" for why, count in self.dropped.items() if count)
        of = f"{self.read:,} texts"
        if self.analysis and self.analysis["split_sentences"]:
            of = f"{self.read:,} sentences of {self._sum('before_splitting'):,} texts"
        line = f"{self.kept:,} of {of} kept (dropped: {dropped or 'none'})"
        if failed := self._sum("analyser_failed"):
            line += f"; the analyser failed on {failed:,}, which passed unchanged"
        return line

    def _analysis_counts(self, counter: Counter[str]) -> dict[str, int]:
        if self.analysis is None:
            return {}
        counts = {"analyser_failed": counter["analyser_failed"]}
        if self.analysis["split_sentences"]:
            counts["before_splitting"] = counter["before_splitting"]
        return counts


def report_path(directory: Path) -> Path:
    """Where the report of a clean corpus lies, or would lie."""
    return directory / REPORT_NAME
