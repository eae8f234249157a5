"""Projects to and from the files of Label Studio (JSON) and doccano (JSON lines).

Label Studio: `malmoi.labels.label_studio`. doccano: text classification as
backend/data_export/pipeline/factories.py and dataset.py of doccano/doccano write it: one object a
line with id, text, the list label, the list Comments, and the other columns beside them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection

from malmoi.errors import InputError
from malmoi.files import file_at_once
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act
from malmoi.labels.exporting import first_sources
from malmoi.labels.final_label_rule import final_label, iter_reviewed
from malmoi.labels.label_studio import (
    acts_of_task,
    as_task,
    choices_in,
    labels_in_task,
    tags_of,
)
from malmoi.labels.labelled_import import (
    FoundActs,
    ImportProgress,
    LabelledImport,
    StoredRow,
    import_with_acts,
)
from malmoi.labels.listed_labels import ANNOTATIONS
from malmoi.labels.projects import read_labels
from malmoi.labels.review import ReviewedText
from malmoi.messages import Phrase
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import Source
from malmoi.text.table_writing import json_line

OtherTool = Literal["label-studio", "doccano"]
# Where the labels of a row stand: in exports of today, and before Label Studio 1.0, doccano 1.0.
_KEYS = {"label-studio": ANNOTATIONS, "doccano": ("label", "labels")}
# Between two reports of progress.
_TEXTS = 1_000
# What each tool writes beside the columns that a text came with.
_OF_TOOL = {
    "label-studio": {
        *(
            "id",
            "annotations",
            "completions",
            "predictions",
            "drafts",
            "meta",
            "created_at",
            "updated_at",
        ),
        *("project", "inner_id", "total_annotations", "cancelled_annotations", "file_upload"),
        *("total_predictions", "comment_count", "unresolved_comment_count", "updated_by"),
        *("last_comment_updated_at", "comment_authors"),
    },
    "doccano": {"id", "label", "Comments"},
}


def import_labelled(
    access: ProjectAccess,
    sources: Sequence[Source],
    tool: OtherTool,
    *,
    text_column: str | None = None,
    annotator: str = "doccano",
    choices: str | None = None,
    progress: ImportProgress | None = None,
    notes: ReadingNotes | None = None,
) -> LabelledImport:
    """Texts with the labels that people gave them elsewhere. Again, it does nothing.

    Of Label Studio, each annotation is the vote of who completed it, a cancelled one a skip, and
    one marked as ground truth a reviewer's decision. doccano does not say who labelled: all is of
    one annotator.

    Args:
        access: of an admin.
        sources: files as the tool exports them.
        tool: which one.
        text_column: of the text; None: `data.text` of Label Studio, `text` of doccano.
        annotator: who labelled in doccano, which exports a file for each user unless they share
            one, and in Label Studio where a task does not say.
        choices: of Label Studio, the name of the Choices whose labels are read; None: of all. Where
            a text has one label, a task in which several were filled in needs the name.
        progress: called with the phase, texts or labels, and the rows done in it so far.
        notes: gets how each file is read.

    Raises:
        InputError: as `import_texts`, or no row has labels where the tool writes them, or
            such Choices.
    """
    column = text_column or ("data.text" if tool == "label-studio" else "text")

    was_met, all_choices = False, dict[str, None]()

    def read(row: StoredRow) -> FoundActs:
        nonlocal was_met
        was_met = was_met or any(key in row.cells for key in _KEYS[tool])
        if tool == "label-studio":
            all_choices.update(dict.fromkeys(choices_in(row.cells)))
            return acts_of_task(row, annotator, choices)
        return _doccano(row, annotator)

    options = ReadOptions(text_column=column)
    # Other Choices say other things of the same rows.
    name = tool if choices is None else f"{tool}:{choices}"
    done = import_with_acts(
        access, sources, options, read, name=name, progress=progress, notes=notes
    )
    if done.texts.rows and not was_met:
        raise InputError(
            "expected labels under {keys: or } in what {tool} exports, found neither; the texts "
            "are imported, their labels are not: import the files as a table, or export them "
            "again with the names of the labels",
            keys=[repr(key) for key in _KEYS[tool]],
            tool=tool,
        )
    if choices is not None:
        _refuse_unmet(choices, all_choices)
    return done


def _refuse_unmet(choices: str, met: Collection[str]) -> None:
    if choices not in met:
        raise InputError(
            "expected Choices named {choices!r} in what label-studio exports, found {met}; the "
            "texts are imported, their labels are not",
            choices=choices,
            met=", ".join(met) or Phrase("none"),
        )


def labels_of_row(
    cells: Mapping[str, Any], tool: OtherTool, choices: str | None = None
) -> list[str]:
    """The labels that a row of an exported file has, whoever gave them; some may be twice.

    Args:
        cells: of the row.
        tool: that wrote it.
        choices: as `import_labelled`.

    Raises:
        InputError: the row is not as the tool writes it.
    """
    return _doccano_labels(cells) if tool == "doccano" else labels_in_task(cells, choices)


def _doccano_labels(cells: Mapping[str, Any]) -> list[str]:
    """An empty list also stands for a text that nobody has labelled."""
    labels = next((cells[key] for key in _KEYS["doccano"] if key in cells), None)
    if isinstance(labels, str):
        labels = [labels]
    if labels is not None and not isinstance(labels, list):
        raise InputError("expected label as a list of names, found {labels!r}", labels=labels)
    return [str(name) for name in labels or ()]


def _doccano(row: StoredRow, annotator: str) -> FoundActs:
    found = FoundActs()
    if names := _doccano_labels(row.cells):
        act = Act(text_id=row.text_id, kind="label", request_id=f"{row.request}:0", labels=names)
        found.acts.append((annotator, act))
    comments = row.cells.get("Comments")
    if isinstance(comments, list) and comments:
        # `_example` puts the name in front, which must not grow with each way round.
        note = "\n".join(str(one).removeprefix(f"{annotator}: ") for one in comments)
        act = Act(text_id=row.text_id, kind="note", request_id=f"{row.request}:1", note=note)
        found.acts.append((annotator, act))
    return found


def export_for(
    access: ProjectAccess,
    path: Path,
    tool: OtherTool,
    *,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write all texts of a project for another tool, labelled or not.

    Args:
        access: of a reviewer.
        path: a JSON file for Label Studio, JSON lines for doccano.
        tool: which one. doccano gets the decided label; Label Studio every vote, and a reviewer's
            decision as ground truth.
        progress: called with the texts written so far.

    Returns:
        How many texts were written.

    Raises:
        InputError: the person is no reviewer.
    """
    written = 0
    with (
        access.reading("reviewer") as connection,
        file_at_once(path) as scratch,
        scratch.open("w", encoding="utf-8") as file,
    ):
        for line in _lines(access, connection, tool):
            if tool == "label-studio":
                file.write("[\n" if not written else ",\n")
            file.write(line)
            if tool == "doccano":
                file.write("\n")
            written += 1
            if progress is not None and not written % _TEXTS:
                progress(written)
        if tool == "label-studio":
            file.write("\n]\n" if written else "[]\n")
    return written


def _lines(access: ProjectAccess, connection: Connection, tool: OtherTool) -> Iterator[str]:
    names = [label.name for label in read_labels(connection, access.project_id)]
    tags = tags_of(connection, access.project_id, names) if tool == "label-studio" else None
    for texts in iter_reviewed(access, connection, labelled_only=False):
        sources = first_sources(connection, [text.text_id for text in texts])
        for text in texts:
            cells = _own_cells(sources.get(text.text_id, ("", "", {}))[2], tool)
            yield json_line(_example(text, cells) if tags is None else as_task(text, cells, tags))


def _own_cells(cells: dict[str, Any], tool: OtherTool) -> dict[str, Any]:
    """The columns of a text, without what the tool itself had written beside them."""
    if tool == "label-studio" and isinstance(cells.get("data"), dict):
        return dict(cells["data"])
    return {name: cell for name, cell in cells.items() if name not in _OF_TOOL[tool]}


def _example(text: ReviewedText, cells: dict[str, Any]) -> dict[str, Any]:
    final = final_label(text)
    labels = [] if final is None else list(final.labels)
    return cells | {"id": text.text_id, "text": text.text, "label": labels, "Comments": text.notes}
