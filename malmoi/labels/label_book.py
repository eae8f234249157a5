"""Choices of labels as they stand in the log: ids, so that a label can be renamed."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.label_names import normal_label
from malmoi.labels.project import TaskKind
from malmoi.labels.projects import read_labels
from malmoi.labels.tables import AuditRow


@dataclass(frozen=True)
class ShownLabel:
    """A label as it was on screen: it may have been renamed since."""

    id: int
    name: str


class LabelBook:
    """The labels of a project by name and by id.

    Attributes:
        kind: whether a text has one of them or any number.
    """

    def __init__(self, access: ProjectAccess, connection: Connection) -> None:
        self._access, self._connection = access, connection
        labels = read_labels(connection, access.project_id)
        self.kind: TaskKind = access.kind(connection)
        self._offered = {label.name: label.id for label in labels if not label.retired}
        self._names: Mapping[int | None, str] = {label.id: label.name for label in labels}

    @property
    def names(self) -> list[str]:
        """Of all labels, in order, retired ones last."""
        return list(self._names.values())

    def choice(self, labels: Collection[str | ShownLabel]) -> str:
        """The ids of labels, sorted, as a JSON list.

        Raises:
            InputError: one is not offered, one is twice, or their number is not that of the kind.
        """
        plain = [
            self._name_now(label) if isinstance(label, ShownLabel) else normal_label(label)
            for label in labels
        ]
        for name in plain:
            if name not in self._offered:
                offered = ", ".join(self._offered)
                raise InputError(
                    "expected a label of {offered}, found {name!r}", offered=offered, name=name
                )
        if len(set(plain)) < len(plain):
            raise InputError("expected each label once, found {plain}", plain=", ".join(plain))
        if self.kind == "single" and len(plain) != 1:
            raise InputError(
                "expected one label, found {count}: {plain}",
                count=len(plain),
                plain=", ".join(plain),
            )
        return json.dumps(sorted(self._offered[name] or 0 for name in plain))

    def _name_now(self, shown: ShownLabel) -> str:
        """What a label that was on screen is called now.

        Raises:
            InputError: its id is another label's; a database that was replaced by a backup gives
                ids anew.
        """
        if (name := self._names.get(shown.id)) == shown.name:
            return shown.name
        changes = select(AuditRow.details).where(
            AuditRow.project_id == self._access.project_id, AuditRow.action == "labels"
        )
        for details in self._connection.scalars(changes):
            before = json.loads(details)["before"]
            if name and any((one["id"], one["name"]) == (shown.id, shown.name) for one in before):
                return name
        raise InputError(
            "expected a label of the project, found {name!r}, which is none now; choose one again",
            name=shown.name,
        )

    def labels(self, choice: str) -> tuple[str, ...]:
        """The names of a choice, in the order of the project."""
        chosen = set(json.loads(choice))
        return tuple(name for identifier, name in self._names.items() if identifier in chosen)
