"""What a task of Label Studio says of its text, and a text as a task that Label Studio takes.

"Label Studio JSON format of annotated tasks", docs/source/includes/task_format.md of
HumanSignal/label-studio. Who labelled is an id, or an object with an e-mail address
(label_studio/data_export/serializers.py, CompletedBySerializer). A file with an address or an id
that it does not know is refused whole, and of an annotation it keeps only what it knows
(label_studio/tasks/serializers.py, BaseTaskSerializerBulk). It shows labels only where `from_name`
and `to_name` are tags of the project.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from malmoi.errors import InputError
from malmoi.labels.annotating import Act
from malmoi.labels.label_names import normal_label
from malmoi.labels.labelled_import import FoundActs, StoredRow
from malmoi.labels.listed_labels import ANNOTATIONS
from malmoi.labels.review import ReviewedText, Vote
from malmoi.labels.tables import TextRow, TextSourceRow

# Before the number of somebody whose address a file does not have.
_NUMBERED = "label-studio:"
# Ours: who labelled, where that is nobody whom Label Studio could know.
_ANNOTATOR = "annotator"
# Rows that are fetched at a time.
_ROWS = 500


def labels_in_task(cells: Mapping[str, Any], choices: str | None) -> list[str]:
    """The labels of all annotations; some may be twice.

    Args:
        cells: of a task.
        choices: the name of the Choices whose labels count; None: all.
    """
    return [
        name
        for one in annotations_in(cells)
        if isinstance(one, dict)
        for name in _chosen(one.get("result"), choices)
    ]


def annotations_in(cells: Mapping[str, Any]) -> list[Any]:
    """What stands under the first key of annotations that a task has."""
    found = next((cells[key] for key in ANNOTATIONS if key in cells), None)
    return found if isinstance(found, list) else []


def choices_in(cells: Mapping[str, Any]) -> list[str]:
    """The names of the Choices that the annotations of a task have filled in."""
    names = {
        part["from_name"]: None
        for one in annotations_in(cells)
        for part in _parts(one.get("result") if isinstance(one, dict) else None)
        if isinstance(part.get("from_name"), str)
    }
    return list(names)


def acts_of_task(row: StoredRow, annotator: str, choices: str | None) -> FoundActs:
    """Each annotation is a vote, a cancelled one a skip, and ground truth a decision.

    Args:
        row: of a file.
        annotator: who labelled, where a task does not say.
        choices: the name of the Choices whose labels count; None: all.
    """
    found = FoundActs()
    for number, one in enumerate(annotations_in(row.cells)):
        try:
            _add_annotation(found, row, one, f"{row.request}:{number}", annotator, choices)
        except InputError as error:
            found.wrong.append(error)
    return found


def _add_annotation(
    found: FoundActs,
    row: StoredRow,
    one: Any,
    request_id: str,
    annotator: str,
    choices: str | None,
) -> None:
    if not isinstance(one, dict):
        raise InputError("expected annotations as objects, found something else")
    who, labels = _who(one, annotator), _chosen(one.get("result"), choices)
    cancelled = bool(one.get("was_cancelled"))
    if choices is not None and not labels and not cancelled and one.get("result"):
        # Only other Choices were filled in, which says nothing of these.
        return
    names = {part.get("from_name") for part in _parts(one.get("result"))}
    if row.book.kind == "single" and choices is None and len(labels) > 1 and len(names) > 1:
        shown = ", ".join(sorted(map(str, names)))
        raise InputError(
            "expected labels of one Choices, found those of {shown}; name one (--label-column)",
            shown=shown,
        )
    seconds = one.get("lead_time")
    if one.get("ground_truth"):
        # One that does not fit must not replace one that does.
        row.book.choice(labels)
        found.decision = who, labels, request_id
        return
    act = Act(
        text_id=row.text_id,
        kind="skip" if cancelled else "label",
        request_id=request_id,
        labels=[] if cancelled else labels,
        seconds=float(seconds) if isinstance(seconds, int | float) and seconds >= 0 else None,
    )
    found.acts.append((who, act))


def _parts(result: Any) -> list[dict[str, Any]]:
    """What was chosen, of all that an annotation may hold."""
    return [
        part
        for part in (result if isinstance(result, list) else [])
        if isinstance(part, dict) and part.get("type") == "choices"
    ]


def _chosen(result: Any, choices: str | None) -> list[str]:
    labels: list[str] = []
    for part in _parts(result):
        if choices is not None and part.get("from_name") != choices:
            continue
        if not isinstance(chosen := _choices_of(part), list):
            raise InputError(
                "expected value.choices as a list of names, found {value!r}",
                value=part.get("value"),
            )
        labels += map(str, chosen)
    return labels


def _choices_of(part: Mapping[str, Any]) -> Any:
    value = part.get("value")
    return value.get("choices") if isinstance(value, dict) else None


def _who(annotation: Mapping[str, Any], otherwise: str) -> str:
    completed_by = annotation.get("completed_by")
    if completed_by is None:
        own = annotation.get(_ANNOTATOR)
        return own if isinstance(own, str) and own.strip() else otherwise
    if isinstance(completed_by, dict):
        name = completed_by.get("email") or completed_by.get("id")
    else:
        name = completed_by
    return name if isinstance(name, str) and name.strip() else f"{_NUMBERED}{name}"


@dataclass(frozen=True, kw_only=True)
class Tags:
    """What the project in Label Studio calls its parts, by the tasks that came from it.

    Attributes:
        by_label: `from_name` and `to_name` of the Choices that a label was chosen in.
        otherwise: those of a label that was chosen nowhere.
        text_field: which field of `data` holds the text.
    """

    by_label: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    otherwise: tuple[str, str] = ("label", "text")
    text_field: str = "text"


def tags_of(connection: Connection, project_id: int, labels: Sequence[str]) -> Tags:
    """The tags of the tasks in a project; tasks are looked at until each label was met."""
    by_label: dict[str, tuple[str, str]] = {}
    fields: list[str] = []
    for cells, text in _tasks(connection, project_id):
        data = cells.get("data")
        if not fields and isinstance(data, dict):
            fields += [name for name, cell in data.items() if cell == text]
        for one in annotations_in(cells):
            for part in _parts(one.get("result") if isinstance(one, dict) else None):
                if "from_name" not in part or "to_name" not in part:
                    continue
                tags = str(part["from_name"]), str(part["to_name"])
                for name in _choices_of(part) or ():
                    if (label := normal_label(str(name))) in labels:
                        by_label.setdefault(label, tags)
        if fields and len(by_label) == len(labels):
            break
    return Tags(
        by_label=by_label,
        otherwise=next(iter(by_label.values()), Tags.otherwise),
        text_field=fields[0] if fields else Tags.text_field,
    )


def _tasks(connection: Connection, project_id: int) -> Iterator[tuple[dict[str, Any], str]]:
    """Rows that a task of Label Studio with annotations may be, and their texts."""
    last = 0
    while True:
        query = (
            select(TextSourceRow.id, TextSourceRow.cells, TextSourceRow.text, TextRow.text)
            .join(TextRow, TextRow.id == TextSourceRow.text_id)
            .where(TextRow.project_id == project_id, TextSourceRow.id > last)
            .where(TextSourceRow.cells.contains('"from_name"'))
            .order_by(TextSourceRow.id)
            .limit(_ROWS)
        )
        rows = connection.execute(query).all()
        for _, cells, own, text in rows:
            yield json.loads(cells), text if own is None else own
        if len(rows) < _ROWS:
            return
        last = rows[-1][0]


def as_task(text: ReviewedText, cells: Mapping[str, Any], tags: Tags) -> dict[str, Any]:
    """A text with its votes, and a reviewer's decision as ground truth.

    Args:
        text: with what people said.
        cells: the other fields of its data.
        tags: of the project that it goes to.
    """
    annotations = [_annotation(vote, tags) for vote in text.votes]
    if text.adjudicated is not None:
        decided = Vote(
            annotator=text.reviewer or "",
            labels=text.adjudicated,
            skipped=False,
            flagged=False,
            note="",
        )
        annotations.append(_annotation(decided, tags) | {"ground_truth": True})
    return {
        "id": text.text_id,
        "data": dict(cells) | {tags.text_field: text.text},
        "annotations": annotations,
        "predictions": [],
    }


def _annotation(vote: Vote, tags: Tags) -> dict[str, Any]:
    together: dict[tuple[str, str], list[str]] = {}
    for label in vote.labels:
        together.setdefault(tags.by_label.get(label, tags.otherwise), []).append(label)
    result = [
        {"from_name": source, "to_name": shown, "type": "choices", "value": {"choices": names}}
        for (source, shown), names in together.items()
    ]
    return {
        **_completed_by(vote.annotator),
        "result": result,
        "was_cancelled": vote.skipped,
        "ground_truth": False,
    }


def _completed_by(annotator: str) -> dict[str, Any]:
    """Without `completed_by`, an annotation becomes that of whoever imports it there."""
    number = annotator.removeprefix(_NUMBERED)
    if number != annotator and number.isdecimal():
        return {"completed_by": int(number)}
    if "@" in annotator:
        return {"completed_by": {"email": annotator}}
    return {_ANNOTATOR: annotator}
