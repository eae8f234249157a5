"""`python -m corpora stats PATH`: what is in a corpus, counted in one pass."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.progress import track

from corpora.command_line import is_terminal
from corpora.counting import CorpusCounts
from corpora.errors import InputError
from corpora.reading import iter_records
from corpora.record import Record

ABOUT = (
    "Count texts, characters, eojeol, scripts, duplicates and labels of a file or folder, and the "
    "rejections of a clean corpus."
)

_MOST_FREQUENT = 20


@dataclass(kw_only=True)
class Settings:
    """What is counted."""

    path: tyro.conf.Positional[Path]
    """File or folder of texts, or a clean corpus."""
    text_column: str | None = None
    """Column that holds the text; found by its usual name when not given."""
    label_column: str | None = None
    """Column that holds the label; found by its usual name when not given."""
    json: bool = False
    """Print JSON, with all labels, instead of lines for people."""


def main(settings: Settings) -> None:
    """Count and print."""
    records: Iterable[Record] = iter_records(
        settings.path, text_column=settings.text_column, label_column=settings.label_column
    )
    if is_terminal() and not settings.json:
        records = track(records, description="reading", transient=True)
    counts = CorpusCounts()
    for record in records:
        counts.add(record)
    summary = counts.summary()
    rejections = _rejections(settings.path)
    if rejections is not None:
        summary["rejections"] = rejections
    if settings.json:
        print(json.dumps(summary, ensure_ascii=False, indent=2))
    else:
        _print_lines(summary)


def _rejections(path: Path) -> dict[str, int] | None:
    """Texts dropped by reason, most frequent first; None where PATH is not a clean corpus."""
    report = path / "report.json"
    if not report.is_file():
        return None
    try:
        dropped = json.loads(report.read_text(encoding="utf-8"))["dropped"]
        pairs = [(str(reason), int(count)) for reason, count in dropped.items()]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{report}: expected the report of a clean corpus with texts dropped by reason, found "
            f"something else ({error}); clean the corpus again"
        ) from error
    return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


def _print_lines(summary: dict[str, object]) -> None:
    for key, value in summary.items():
        if isinstance(value, dict):
            shown = list(value.items())[:_MOST_FREQUENT]
            print(f"{key}:")
            for name, count in shown:
                number = f"{count:.2%}" if key == "share of characters" else f"{count:,}"
                print(f"  {name}: {number}")
            if len(value) > len(shown):
                print(f"  and {len(value) - len(shown):,} more")
        else:
            print(f"{key}: {value:,}")
