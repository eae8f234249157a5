"""What a task of Label Studio says of its text, and a text as a task that Label Studio takes.

"Label Studio JSON format of annotated tasks", docs/source/includes/task_format.md of
HumanSignal/label-studio. Who labelled is an id, or an object with an e-mail address
(label_studio/data_export/serializers.py, CompletedBySerializer). A file with an address or an id
that it does not know is refused whole, and of an annotation it keeps only what it knows
(label_studio/tasks/serializers.py, BaseTaskSerializerBulk). It shows labels only where `from_name`
and `to_name` are tags of the project.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from malmoi.errors import InputError
from malmoi.labels.acts_here import moment
from malmoi.labels.label_column import NUMBERED
from malmoi.labels.label_names import normal_label
from malmoi.labels.label_reader import (
    ImportedAct,
    LabelReader,
    person_of,
    seconds_of,
    without_labels,
)
from malmoi.labels.listed_labels import ANNOTATIONS
from malmoi.labels.project import TaskKind
from malmoi.labels.review import ReviewedText, Vote
from malmoi.labels.tables import AuditRow, TextRow, TextSourceRow
from malmoi.messages import Phrase

_NAME = "label-studio"
# What the audit trail calls an import of labels.
IMPORT_LABELS = "import labels"
# Of the columns of a task, the one that holds those that it came with.
_DATA, _PREDICTIONS = "data", "predictions"
# Ours: who labelled, where that is nobody whom Label Studio could know.
_ANNOTATOR = "annotator"
# Rows that are fetched at a time.
_ROWS = 500
# What stands in a task beside the columns that a text came with.
_OWN_KEYS = {
    *("id", "annotations", "completions", "predictions", "drafts", "meta", "created_at"),
    *("updated_at", "project", "inner_id", "total_annotations", "cancelled_annotations"),
    *("file_upload", "total_predictions", "comment_count", "unresolved_comment_count"),
    *("updated_by", "last_comment_updated_at", "comment_authors"),
}


def annotations_in(cells: Mapping[str, Any]) -> list[Any]:
    """What stands under the first key of annotations that a task has."""
    found = next((cells[key] for key in ANNOTATIONS if key in cells), None)
    return found if isinstance(found, list) else []


def choices_in(cells: Mapping[str, Any]) -> list[str]:
    """The names of the Choices that the annotations of a task have filled in."""
    names = [part.get("from_name") for part in _parts_of_task(cells)]
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))


@dataclass(kw_only=True)
class LabelStudioReader(LabelReader):
    """Reads tasks: each annotation is a vote, a cancelled one a skip, and ground truth a decision.

    Attributes:
        choices: the name of the Choices whose labels are read; None: of all. Where a text has one
            label, a task in which several were filled in needs the name.
        tags: `from_name` and `to_name` of the Choices in which each label was met.
    """

    choices: str | None = None
    has_predictions: bool = False
    all_choices: dict[str, None] = field(default_factory=dict)
    tags: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """See `LabelReader`; other Choices say other things of the same rows."""
        return _NAME if self.choices is None else f"{_NAME}:{self.choices}"

    def read(
        self, cells: Mapping[str, Any], kind: TaskKind, names: Collection[str]
    ) -> Iterator[ImportedAct | InputError]:
        self.has_labels = self.has_labels or any(key in cells for key in ANNOTATIONS)
        self.has_predictions = self.has_predictions or _PREDICTIONS in cells
        self.all_choices.update(dict.fromkeys(choices_in(cells)))
        for label, tags in _tags_in(cells):
            self.tags.setdefault(label, tags)
        yield from self._suggestions(cells)
        for number, one in enumerate(annotations_in(cells)):
            try:
                found = self._act(one, str(number), kind)
            except InputError as error:
                yield error
            else:
                if found is not None:
                    yield found

    def _act(self, one: Any, key: str, kind: TaskKind) -> ImportedAct | None:
        """What an annotation says; None where only other Choices were filled in."""
        if not isinstance(one, dict):
            raise InputError("expected annotations as objects, found something else")
        labels = _chosen(one.get("result"), self.choices)
        cancelled = bool(one.get("was_cancelled"))
        if self.choices is not None and not labels and not cancelled and one.get("result"):
            return None
        filled = {part.get("from_name") for part in _parts(one.get("result"))}
        if kind == "single" and self.choices is None and len(labels) > 1 and len(filled) > 1:
            raise InputError(
                "expected labels of one Choices, found those of {shown}; name one (--label-column)",
                shown=", ".join(sorted(map(str, filled))),
            )
        return ImportedAct(
            key=key,
            annotator=_who(one),
            kind="decision" if one.get("ground_truth") else "skip" if cancelled else "label",
            labels=[] if cancelled and not one.get("ground_truth") else labels,
            seconds=seconds_of(one.get("lead_time")),
            labelled_at=moment(one.get("updated_at") or one.get("created_at")),
        )

    def _suggestions(self, cells: Mapping[str, Any]) -> Iterator[ImportedAct]:
        """What models say of the text, as far as it is labels."""
        predictions = cells.get(_PREDICTIONS)
        for number, one in enumerate(predictions if isinstance(predictions, list) else []):
            if not isinstance(one, dict):
                continue
            try:
                labels = _chosen(one.get("result"), self.choices)
            except InputError:
                labels = []
            score = seconds_of(one.get("score"))
            yield ImportedAct(
                key=f"p{number}",
                annotator=str(one.get("model_version") or _NAME),
                kind="suggestion",
                labels=labels,
                score=None if score is None else min(score, 1.0),
            )

    def kept(self, cells: Mapping[str, Any], text_column: str) -> Mapping[str, Any]:
        """See `LabelReader`: what stands below `data`, and the id of the task."""
        field_of_text = text_column.removeprefix(f"{_DATA}.")
        own = columns_of_task(cells)
        return {name: cell for name, cell in own.items() if name != field_of_text}

    def require_labels(self) -> None:
        """See `LabelReader`; or of which no task has the Choices."""
        if not self.has_labels and not self.has_predictions:
            raise without_labels(_NAME, ANNOTATIONS)
        if self.has_labels and self.choices is not None and self.choices not in self.all_choices:
            raise InputError(
                "expected Choices named {choices!r} in what label-studio exports, found {met}; the "
                "texts come in alone",
                choices=self.choices,
                met=", ".join(self.all_choices) or Phrase("none"),
            )


def _parts_of_task(cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    made = [one for one in annotations_in(cells) if isinstance(one, dict)]
    return [part for one in made for part in _parts(one.get("result"))]


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


def _who(annotation: Mapping[str, Any]) -> str | None:
    who = person_of(annotation.get("completed_by"), NUMBERED)
    return person_of(annotation.get(_ANNOTATOR)) if who is None else who


def columns_of_task(cells: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns with which a text came to Label Studio, and the id of its task there.

    Args:
        cells: of a row; those of anything else than a task stay as they are.
    """
    data = cells.get(_DATA)
    if not isinstance(data, dict) or not {*ANNOTATIONS, _PREDICTIONS} & cells.keys():
        return cells
    return {name: cells[name] for name in ("id",) if name in cells} | data


def _tags_in(cells: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each label that a task has, with the tags that it was chosen in."""
    for part in _parts_of_task(cells):
        if "from_name" not in part or "to_name" not in part:
            continue
        chosen = _choices_of(part)
        for name in chosen if isinstance(chosen, list) else ():
            yield normal_label(str(name)), (str(part["from_name"]), str(part["to_name"]))


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
    """The tags of the tasks in a project: as its imports have noted them.

    Of whole tasks, which earlier versions kept, rows are looked at until each label was met.
    """
    by_label: dict[str, tuple[str, str]] = {}
    fields: list[str] = []
    noted = select(AuditRow.details).where(
        AuditRow.project_id == project_id, AuditRow.action == IMPORT_LABELS
    )
    for details in connection.scalars(noted.order_by(AuditRow.id)):
        found = json.loads(details)
        fields += [found["text_field"]] if found.get("text_field") else []
        for label, (source, shown) in found.get("tags", {}).items():
            if label in labels:
                by_label.setdefault(label, (source, shown))
    for cells, text in _tasks(connection, project_id):
        data = cells.get(_DATA)
        if not fields and isinstance(data, dict):
            fields += [name for name, cell in data.items() if cell == text]
        for label, tags in _tags_in(cells):
            if label in labels:
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
    query = (
        select(TextSourceRow.cells, TextSourceRow.text, TextRow.text)
        .join(TextRow, TextRow.id == TextSourceRow.text_id)
        .where(TextRow.project_id == project_id, TextSourceRow.cells.contains('"from_name"'))
        .order_by(TextSourceRow.id)
    )
    for cells, own, text in connection.execute(query, execution_options={"yield_per": _ROWS}):
        yield json.loads(cells), text if own is None else own


def as_task(text: ReviewedText, cells: Mapping[str, Any], tags: Tags) -> dict[str, Any]:
    """A text with its votes, and a reviewer's decision as ground truth.

    Args:
        cells: the columns that it came with, see `columns_of_task`.
        tags: of the project that it goes to.
    """
    data = {name: cell for name, cell in cells.items() if name not in _OWN_KEYS}
    annotations = [_annotation(vote, tags) for vote in text.votes]
    if text.adjudicated is not None:
        decided = Vote(
            annotator=text.reviewer or "",
            labels=text.adjudicated,
            skipped=False,
            flagged=False,
            note="",
            made_at=text.decided_at,
        )
        annotations.append(_annotation(decided, tags) | {"ground_truth": True})
    return {
        "id": text.text_id,
        "data": data | {tags.text_field: text.text},
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
    made = None if vote.made_at is None else vote.made_at.isoformat()
    return {
        **_completed_by(vote.annotator),
        **({} if made is None else {"created_at": made, "updated_at": made}),
        **({} if vote.seconds is None else {"lead_time": vote.seconds}),
        "result": result,
        "was_cancelled": vote.skipped,
        "ground_truth": False,
    }


def _completed_by(annotator: str) -> dict[str, Any]:
    """Without `completed_by`, an annotation becomes that of whoever imports it there."""
    number = annotator.removeprefix(NUMBERED)
    if number != annotator and number.isdecimal():
        return {"completed_by": int(number)}
    if "@" in annotator:
        return {"completed_by": {"email": annotator}}
    return {_ANNOTATOR: annotator}
