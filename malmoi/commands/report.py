"""`malmoi report FILE --model M --output report.html`: what texts say, as a page and a workbook."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from malmoi.errors import InputError
from malmoi.inference.engine import EngineChoice
from malmoi.model_folders import check_classifier
from malmoi.text.reading.options import ReadOptions

if TYPE_CHECKING:
    from malmoi.analysis.report import Report

ABOUT = (
    "Say what texts are about, where it differs and since when: the share of each label with "
    "intervals that hold although a model gave most labels, words and themes. Writes a page that "
    "prints on A4, with pictures for slides, and a workbook beside it."
)
_SHOWN_CHANGES = 5


@dataclass(kw_only=True)
class ReportSettings:
    """What is looked at."""

    file: tyro.conf.Positional[Path]
    """The texts: .csv, .tsv, .xlsx, .jsonl, .json or .parquet, plain, .gz or .zst, or a folder."""
    output: Path
    """Page to write, .html; the workbook, .xlsx, gets the same name."""
    model: str | None = None
    """Gives the labels: name of a run or of a released model, directory, or Hub id. Without one
    there are themes, and the shares of the labels of people."""
    reading: Annotated[ReadOptions, tyro.conf.arg(name="")] = field(default_factory=ReadOptions)
    """How the files are read."""
    label_column: str | None = None
    """Column with labels of people, of texts drawn by chance; empty where nobody has read one."""
    labels: str | None = None
    """Label database of the app (a file or a URL) whose labels of the same texts count instead;
    those of its random sample."""
    project: str | None = None
    """Which project of that database; not needed where there is one only."""
    by: str | None = None
    """Columns whose values are compared, with commas between them, such as 상품명,별점."""
    time: str | None = None
    """Column of dates: shares over time, and what changed in the latest week or month."""
    period: Literal["week", "month"] | None = None
    """Weeks or months; chosen by the span when not given."""
    language: Literal["ko", "en"] = "ko"
    """Of the page and the workbook."""
    engine: EngineChoice = "auto"
    """What computes, as of malmoi predict."""


def main(settings: ReportSettings) -> None:
    """Write both files.

    Raises:
        InputError: an output is there already, or as `malmoi.report`.
    """
    workbook = settings.output.with_suffix(".xlsx")
    _check(settings, workbook)
    from malmoi.analysis.analysing import INSTALL, PACKAGES
    from malmoi.installed import need

    need("malmoi report", *PACKAGES, instead=INSTALL)
    import pandas as pd

    from malmoi.analysis.analysing import report
    from malmoi.free_names import free_name
    from malmoi.progress import shown_progress
    from malmoi.text.reading.notes import ReadingNotes
    from malmoi.text.reading.records import iter_whole_rows
    from malmoi.text.reading.sources import find_all_sources

    sources = find_all_sources([settings.file])
    notes = ReadingNotes(say=lambda line: print(line, flush=True))
    rows = list(iter_whole_rows(sources, settings.reading, keep_blank=True, notes=notes))
    frame = pd.DataFrame([row.cells for row in rows])
    text = free_name("text", set(frame.columns))
    frame[text] = [row.text for row in rows]
    label = settings.label_column
    colors: Mapping[str, str] = {}
    if settings.labels is not None:
        from malmoi.analysis.project_labels import people_labels

        label = free_name("label", set(frame.columns))
        frame[label], colors = people_labels(
            settings.labels, settings.project, frame[text].tolist()
        )
    print(f"{len(frame):,} rows", flush=True)
    with shown_progress("texts") as progress:
        found = report(
            frame,
            text,
            model=settings.model,
            label=label,
            by=[one.strip() for one in (settings.by or "").split(",") if one.strip()],
            time=settings.time,
            period=settings.period,
            engine=settings.engine,
            progress=lambda done, total: progress("labelling", done, total),
        )
    found = found.like(colors)
    _say(found)
    found.save(settings.output, language=settings.language)
    found.save(workbook, language=settings.language)
    print(f"{len(found.originals):,} texts -> {settings.output}, {workbook}")


def _check(settings: ReportSettings, workbook: Path) -> None:
    if settings.output.suffix.lower() not in (".html", ".htm"):
        raise InputError(
            "expected --output with the ending .html, found {output}", output=settings.output
        )
    for path in (settings.output, workbook):
        if path.exists():
            raise InputError(
                "expected a new file for --output, found {path}; delete it or name another",
                path=path,
            )
    if settings.labels is None and settings.project is not None:
        raise InputError(
            "--project {project} is for --labels; give both or neither", project=settings.project
        )
    if settings.labels is not None and settings.label_column is not None:
        raise InputError("expected --labels or --label-column, found both; give one of them")
    if settings.model is not None:
        check_classifier(settings.model)


def _say(found: "Report") -> None:
    """The shares, the first changes, and how far they can be trusted."""
    from malmoi.analysis.page import change_sentence, notes
    from malmoi.analysis.report import rows_of
    from malmoi.messages import language_of

    say = language_of("en")
    whole = found.shares[found.shares["column"] == ""]
    for one in rows_of(whole):
        between = "" if one.low != one.low else f" ({one.low:.1%} to {one.high:.1%})"
        print(f"  {one.label}: {one.share:.1%}{between}")
    for one in rows_of(found.changes.head(_SHOWN_CHANGES)):
        print(f"  {change_sentence(one, say)}")
    for note in notes(found, say):
        print(note)
    if found.encoder is None:
        print("no themes: they need malmoi-vectors (malmoi models get malmoi-vectors)")
