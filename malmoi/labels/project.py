"""What a project is: its labels, its settings, its guideline."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, TypedDict

from malmoi.errors import InputError
from malmoi.labels.roles import Role
from malmoi.labels.stored_text import checked, checked_name
from malmoi.labels.tasks import TaskDefinition
from malmoi.messages import Phrase

TaskKind = Literal["single", "multi"]
TextOrder = Literal["plain", "adaptive", "scores", "random"]
KINDS: tuple[TaskKind, ...] = ("single", "multi")
ORDERS: tuple[TextOrder, ...] = ("plain", "adaptive", "scores", "random")
# Okabe and Ito's palette, which colour-blind people can tell apart (https://jfly.uni-koeln.de/color).
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
KEYS = "1234567890abcdefghijklmnopqrstuvwxyz"
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")
_LONGEST_LEASE = 7 * 24 * 3600
# Of two models with one name the folder is a part of what they are called.
_LONGEST_MODEL = 1_000


@dataclass(frozen=True, kw_only=True)
class ProjectLabel:
    """A label that can be chosen.

    Attributes:
        name: as it stands in exports; as `normal_label` spells it.
        title: what a person sees; the name where it is empty.
        meaning: in one line.
        color: `#rrggbb`; None takes the next of `PALETTE`.
        key: the digit or small letter that gives it; None takes the next that is free.
        id: in the database; None for one that is new.
        retired: no longer offered.
    """

    name: str
    title: str = ""
    meaning: str = ""
    color: str | None = None
    key: str | None = None
    id: int | None = None
    retired: bool = False


@dataclass(frozen=True, kw_only=True)
class ProjectSettings:
    """How a project is labelled.

    Attributes:
        annotators_per_text: whose labels a text needs, each given without seeing the others'.
        show_suggestion: whether annotators see what the model would say.
        text_order: by import; at random until there are labels enough for shares and scores
            (`leasing.LABELS_BY_CHANCE`), then by a model's scores with a random share; by scores
            from the beginning; all at random.
        random_share: of the texts handed out in the order of scores, for an honest evaluation.
        lease_seconds: for which a text that was handed out is kept for its annotator.
        model: name of a classifier that suggests labels before there are enough to learn from, and
            after that while it is the better one; None: none. A name, never a path: whoever looks
            for it takes one of the models that are there.

    Raises:
        InputError: a value is out of bounds.
    """

    annotators_per_text: int = 1
    show_suggestion: bool = True
    text_order: TextOrder = "adaptive"
    random_share: float = 0.1
    lease_seconds: int = 600
    model: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.annotators_per_text <= 100:
            raise InputError(
                "expected 1 to 100 annotators per text, found {annotators_per_text}",
                annotators_per_text=self.annotators_per_text,
            )
        if self.text_order not in ORDERS:
            raise InputError(
                "expected an order of {orders}, found {text_order!r}",
                orders=", ".join(ORDERS),
                text_order=self.text_order,
            )
        if not 0 <= self.random_share <= 1:
            raise InputError(
                "expected a random share from 0 to 1, found {random_share}",
                random_share=self.random_share,
            )
        if not 1 <= self.lease_seconds <= _LONGEST_LEASE:
            raise InputError(
                "expected a lease of 1 to {longest:,} seconds, found {lease_seconds:,}",
                longest=_LONGEST_LEASE,
                lease_seconds=self.lease_seconds,
            )
        if self.model is not None:
            checked(self.model, Phrase("the name of a model"))
            if not 1 <= len(self.model) <= _LONGEST_MODEL:
                raise InputError(
                    "expected the name of a model of 1 to {longest:,} characters, found {count:,}",
                    longest=_LONGEST_MODEL,
                    count=len(self.model),
                )


class SettingsChange(TypedDict, total=False):
    """Those of `ProjectSettings` that are to change."""

    annotators_per_text: int
    show_suggestion: bool
    text_order: TextOrder
    random_share: float
    lease_seconds: int
    model: str | None


@dataclass(frozen=True, kw_only=True)
class NewProject:
    """What it takes to make a project.

    Attributes:
        name: unique in the database.
        labels: two or more, in the order in which they are shown; one is enough for `multi`.
        kind: whether a text has one of them or any number.
        guideline: Markdown.
        settings: how it is labelled.

    Raises:
        InputError: a name, colour or key is missing, unknown or twice.
    """

    name: str
    labels: Sequence[ProjectLabel]
    kind: TaskKind = "single"
    guideline: str = ""
    settings: ProjectSettings = field(default_factory=ProjectSettings)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", checked_name(self.name, Phrase("a project")))
        if self.kind not in KINDS:
            raise InputError(
                "expected a kind of {kinds}, found {kind!r}", kinds=", ".join(KINDS), kind=self.kind
            )
        object.__setattr__(self, "labels", complete_labels(self.labels, self.kind))
        checked(self.guideline, Phrase("a guideline"))


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project as it is now.

    Attributes:
        id: the project's.
        name: unique in the database.
        kind: whether a text has one label or any number.
        labels: all, those that are retired last.
        guideline: Markdown of the newest version.
        guideline_version: from 1.
        settings: how it is labelled.
        role: of the person who asked.
        archived_at: None while it is open.
    """

    id: int
    name: str
    kind: TaskKind
    labels: tuple[ProjectLabel, ...]
    guideline: str
    guideline_version: int
    settings: ProjectSettings
    role: Role
    created_by: str
    created_at: datetime
    archived_at: datetime | None

    @property
    def label_names(self) -> list[str]:
        """Those that can be chosen, in order."""
        return [label.name for label in self.offered_labels]

    @property
    def offered_labels(self) -> list[ProjectLabel]:
        """Those that can be chosen."""
        return [label for label in self.labels if not label.retired]

    @property
    def titles(self) -> dict[str, str]:
        """What each label is shown as, by its name; of retired ones, too."""
        return {label.name: label.title for label in self.labels}


def new_project_of_task(task: TaskDefinition) -> NewProject:
    """A project with what a `task.toml` says; its texts are imported separately."""
    named = ("name", "title", "meaning", "color", "key")
    labels = [
        ProjectLabel(**{name: getattr(label, name) for name in named}) for label in task.labels
    ]
    return NewProject(name=task.name, labels=labels, guideline=task.guideline or "")


def complete_labels(labels: Sequence[ProjectLabel], kind: TaskKind) -> tuple[ProjectLabel, ...]:
    """The labels with a name in its one spelling, a title, a colour and a key for each.

    Raises:
        InputError: too few, or a name, colour or key is wrong or twice.
    """
    offered = [label for label in labels if not label.retired]
    fewest = 1 if kind == "multi" else 2
    if len(offered) < fewest:
        raise InputError(
            "expected at least {fewest} labels to choose from, found {count}",
            fewest=fewest,
            count=len(offered),
        )
    named = [replace(label, name=checked_name(label.name, Phrase("a label"))) for label in labels]
    _refuse_twice(Phrase("name"), [label.name for label in named])
    _refuse_twice(Phrase("key"), [label.key for label in named if label.key and not label.retired])
    taken = {label.key for label in named}
    free = [key for key in KEYS if key not in taken]
    colors = [color for color in PALETTE if color not in {label.color for label in named}]
    whole = []
    for place, label in enumerate(named):
        if label.color is not None and not _COLOR.fullmatch(label.color):
            raise InputError(
                "label {name}: expected color as #rrggbb, found {color!r}",
                name=label.name,
                color=label.color,
            )
        if label.key is not None and (len(label.key) != 1 or label.key not in KEYS):
            raise InputError(
                "label {name}: expected key as one of 0 to 9 or a to z, found {key!r}",
                name=label.name,
                key=label.key,
            )
        checked(label.meaning, Phrase("the meaning of {name}", name=label.name))
        color = label.color or (colors.pop(0) if colors else PALETTE[place % len(PALETTE)])
        key = label.key or (free.pop(0) if free and not label.retired else None)
        title = checked(label.title, Phrase("the title of {name}", name=label.name)).strip()
        title = title or label.name
        whole.append(replace(label, title=title, color=color, key=key))
    return tuple(whole)


def _refuse_twice(what: str, values: Sequence[str]) -> None:
    twice = [value for value, count in Counter(values).items() if count > 1]
    if twice:
        raise InputError(
            "labels have the same {what} {twice}; give each its own",
            what=what,
            twice=", ".join(twice),
        )
