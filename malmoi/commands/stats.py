"""`malmoi stats PATH`: what is in a corpus, counted in one pass."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.progress import track

from malmoi.command_line import is_terminal
from malmoi.errors import InputError
from malmoi.settings import Range
from malmoi.text.corpus.clean_report import report_path
from malmoi.text.corpus.counting import CorpusCounts
from malmoi.text.corpus.sample import draw
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.records import iter_records
from malmoi.text.record import Record

if TYPE_CHECKING:
    from malmoi.text.words import Keywords

ABOUT = (
    "Count texts, characters, eojeol, scripts, duplicates and labels of a file or folder, and the "
    "rejections of a clean corpus; with --keywords, the words that most texts have."
)

_MOST_FREQUENT = 20
# A word in 1% of the texts is counted to 7% (one standard deviation) in that many.
_KEYWORD_TEXTS = 20_000
# Memory stays flat, whatever the texts are: 200 million characters at most.
_KEYWORD_CHARACTERS = 10_000


@dataclass(kw_only=True)
class StatsSettings:
    """What is counted."""

    path: tyro.conf.Positional[Path]
    """File or folder of texts, or a clean corpus."""
    reading: Annotated[ReadOptions, tyro.conf.arg(name="")] = field(default_factory=ReadOptions)
    """How the files are read."""
    label_column: str | None = None
    """Column that holds the label; found by its usual name when not given."""
    keywords: Annotated[int, Range(0)] = 0
    """Show this many of the nouns, verbs and adjectives that stand in most texts, of at
    most 20,000 texts drawn at random (the first 10,000 characters of each)."""
    json: bool = False
    """Print JSON, with all labels, instead of lines for people."""


def main(settings: StatsSettings) -> None:
    records: Iterable[Record] = iter_records(
        settings.path,
        label_column=settings.label_column,
        options=settings.reading,
        notes=ReadingNotes(say=lambda line: print(line, file=sys.stderr)),
    )
    if is_terminal() and not settings.json:
        records = track(records, description="reading", transient=True)
    counts = CorpusCounts()

    def counted() -> Iterator[str]:
        for record in records:
            counts.add(record)
            yield record.text[:_KEYWORD_CHARACTERS]

    drawn = draw(counted(), _KEYWORD_TEXTS if settings.keywords else 0, seed=0)
    summary = counts.summary()
    rejections = _rejections(settings.path)
    if rejections is not None:
        summary["rejections"] = rejections
    keywords = _keywords(drawn, settings) if settings.keywords else None
    if settings.json:
        if keywords is not None:
            summary["keywords"] = asdict(keywords)
        print(json.dumps(summary, ensure_ascii=False, indent=2))
        return
    _print_lines(summary)
    if keywords is not None:
        print(f"keywords of {keywords.texts:,} texts:")
        for keyword in keywords.keywords:
            print(f"  {keyword.word} ({keyword.word_class}): {keyword.texts:,}")


def _keywords(texts: list[str], settings: StatsSettings) -> "Keywords":
    from malmoi.text.words import find_keywords  # loads MeCab, which the counts do not need

    shown: Iterable[str] = texts
    if is_terminal() and not settings.json:
        shown = track(texts, description="keywords", transient=True)
    return find_keywords(shown, settings.keywords)


def _rejections(path: Path) -> dict[str, int] | None:
    """Texts dropped by reason, most frequent first; None where PATH is not a clean corpus."""
    report = report_path(path)
    if not report.is_file():
        return None
    try:
        dropped = json.loads(report.read_text(encoding="utf-8"))["dropped"]
        pairs = [(str(reason), int(count)) for reason, count in dropped.items()]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            "expected the report of a clean corpus with texts dropped by reason, found something "
            "else ({error}); clean the corpus again",
            place=report,
            error=error,
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
