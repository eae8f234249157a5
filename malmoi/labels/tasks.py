"""What the labels of a task mean: `task.toml`, read and checked.

A task is data: names of its labels with what is shown of them, guideline, prompt, and where the
labelled texts are. `docs/reference/task-toml.md` describes the file.
"""

import difflib
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from malmoi.errors import InputError
from malmoi.labels.label_names import normal_label
from malmoi.messages import Phrase
from malmoi.paths import home

TASK_FILE = "task.toml"
_CORPORA = "corpora"
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")
_KEY = re.compile(r"[0-9a-z]")
_TASK_KEYS = ("name", "title", "labels", "guideline", "prompt", "data", "columns")
_LABEL_KEYS = ("name", "title", "meaning", "color", "key", "ratings")
_COLUMN_KEYS = ("text", "label")


@dataclass(frozen=True, kw_only=True)
class LabelDefinition:
    """One label of a task.

    Attributes:
        name: as it stands in the data, spelt as `normal_label` does.
        title: what a person sees, in Korean; the name where the file has none.
        meaning: in one line.
        color: `#rrggbb`, or None.
        key: the digit or small letter that gives the label, or None.
        ratings: lowest and highest rating that stand for the label where texts have ratings only.
    """

    name: str
    title: str
    meaning: str = ""
    color: str | None = None
    key: str | None = None
    ratings: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class TaskDefinition:
    """A task as its file has it.

    Attributes:
        path: the file.
        name: short, for commands: `memos`.
        title: what a person sees.
        labels: two or more, in the order in which they are shown and learnt.
        guideline: Markdown for people, or None.
        prompt: instructions for a chat model, or None; `{labels}` stands for the names.
        data: file or folder of the labelled texts.
        text_column: of the data; None: found by its name.
        label_column: of the data; None: found by its name.
    """

    path: Path
    name: str
    title: str
    labels: tuple[LabelDefinition, ...]
    guideline: str | None
    prompt: str | None
    data: Path
    text_column: str | None
    label_column: str | None

    @property
    def label_names(self) -> list[str]:
        return [label.name for label in self.labels]


def is_task(path: Path) -> bool:
    """Whether `path` is a task file, or a folder with one."""
    return path.name == TASK_FILE if not path.is_dir() else (path / TASK_FILE).is_file()


def read_task(path: Path) -> TaskDefinition:
    """The task of a file, or of the `task.toml` in a folder.

    Raises:
        InputError: there is none, it is no TOML, or something in it is unknown, missing or twice.
    """
    if path.is_dir():
        path = path / TASK_FILE
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(
            "expected a task to read, found {reason}", place=path, reason=error.strerror
        ) from error
    except ValueError as error:  # UnicodeDecodeError, too
        raise InputError("not a task in TOML: {error}", place=path, error=error) from error
    _refuse_unknown(content, _TASK_KEYS, str(path))
    name = _text(content, "name", str(path)) or path.resolve().parent.name
    columns = content.get("columns", {})
    if not isinstance(columns, dict):
        raise InputError(
            "expected a table [columns], found {columns!r}", place=path, columns=columns
        )
    where = f"{path}: columns"
    _refuse_unknown(columns, _COLUMN_KEYS, where)
    return TaskDefinition(
        path=path,
        name=name,
        title=_text(content, "title", str(path)) or name,
        labels=_labels(content.get("labels"), path),
        guideline=_text(content, "guideline", str(path)),
        prompt=_text(content, "prompt", str(path)),
        data=path.parent / (_text(content, "data", str(path)) or ""),
        text_column=_text(columns, "text", where),
        label_column=_text(columns, "label", where),
    )


def own_tasks() -> list[TaskDefinition]:
    """The tasks below `corpora/` of the project (`malmoi.paths.home`), by their folders' names.

    Raises:
        InputError: as `read_task`.
    """
    return [read_task(path) for path in sorted((home() / _CORPORA).glob(f"*/{TASK_FILE}"))]


def task_named(name: str) -> TaskDefinition | None:
    """The project's task of this name, or None.

    Raises:
        InputError: several have it, or as `read_task`.
    """
    return _only(
        [task for task in own_tasks() if task.name == name], Phrase("the name {name}", name=name)
    )


def task_with_labels(labels: Collection[str]) -> TaskDefinition | None:
    """The project's task that has these labels and no others, in any order; None without one.

    Raises:
        InputError: several have them, or as `read_task`.
    """
    wanted = set(labels)
    found = [task for task in own_tasks() if set(task.label_names) == wanted]
    return _only(found, Phrase("the labels {labels}", labels=", ".join(labels)))


def _only(found: list[TaskDefinition], what: str) -> TaskDefinition | None:
    if len(found) > 1:
        raise InputError(
            "expected one task with {what}, found {places: and }; name the folder of one with "
            "--data, or take the other's task.toml away",
            what=what,
            places=[task.path for task in found],
        )
    return found[0] if found else None


def _labels(entries: Any, path: Path) -> tuple[LabelDefinition, ...]:
    if not isinstance(entries, list) or len(entries) < 2:
        found = f"{len(entries)}" if isinstance(entries, list) else Phrase("none")
        raise InputError(
            'expected at least two labels, such as labels = [{{ name = "긍정" }}, {{ name = "부정" '
            "}}], found {found}",
            place=path,
            found=found,
        )
    labels = tuple(_label(entry, f"{path}: label {n}") for n, entry in enumerate(entries, 1))
    for what, values in (
        ("name", [label.name for label in labels]),
        ("title", [label.title for label in labels]),
        ("color", [label.color and label.color.lower() for label in labels]),
        ("key", [label.key for label in labels]),
    ):
        _refuse_twice(what, values, labels, path)
    _refuse_shared_ratings(labels, path)
    return labels


def _label(entry: Any, where: str) -> LabelDefinition:
    if not isinstance(entry, dict):
        raise InputError(
            'expected a table such as {{ name = "긍정" }}, found {entry!r}',
            place=where,
            entry=entry,
        )
    _refuse_unknown(entry, _LABEL_KEYS, where)
    name = normal_label(_text(entry, "name", where) or "")
    if not name:
        raise InputError("expected a name, found none", place=where)
    where = f"{where} ({name})"
    color, key = _text(entry, "color", where), _text(entry, "key", where)
    if color is not None and not _COLOR.fullmatch(color):
        raise InputError("expected color as #rrggbb, found {color!r}", place=where, color=color)
    if key is not None and not _KEY.fullmatch(key):
        raise InputError(
            "expected key as one of 0 to 9 or a to z, found {key!r}", place=where, key=key
        )
    meaning = _text(entry, "meaning", where) or ""
    if "\n" in meaning:
        raise InputError(
            "expected meaning in one line; the guideline has room for more", place=where
        )
    return LabelDefinition(
        name=name,
        title=_text(entry, "title", where) or name,
        meaning=meaning,
        color=color,
        key=key,
        ratings=_ratings(entry.get("ratings"), where),
    )


def _ratings(value: Any, where: str) -> tuple[int, int] | None:
    if value is None:
        return None
    whole = isinstance(value, list) and all(type(one) is int for one in value)
    if not whole or len(value) != 2 or value[0] > value[1]:
        raise InputError(
            "expected ratings as [lowest, highest], found {value!r}", place=where, value=value
        )
    return value[0], value[1]


def _refuse_twice(
    what: str, values: list[Any], labels: Iterable[LabelDefinition], path: Path
) -> None:
    first: dict[Any, str] = {}
    for value, label in zip(values, labels, strict=True):
        if value is not None and value in first:
            raise InputError(
                "labels {other} and {name} have the same {what} {value!r}; give each its own",
                place=path,
                other=first[value],
                name=label.name,
                what=what,
                value=value,
            )
        first[value] = label.name


def _refuse_shared_ratings(labels: Iterable[LabelDefinition], path: Path) -> None:
    rated = sorted((label.ratings, label.name) for label in labels if label.ratings is not None)
    for (one, name), (other, next_name) in pairwise(rated):
        if other[0] <= one[1]:
            raise InputError(
                "labels {name} and {next_name} share the rating {rating}; a rating stands for one "
                "label",
                place=path,
                name=name,
                next_name=next_name,
                rating=other[0],
            )


def _text(table: Mapping[str, Any], key: str, where: str) -> str | None:
    """A text of the table, None where it has none or an empty one."""
    value = table.get(key, "")
    if not isinstance(value, str):
        raise InputError(
            "expected {key} as a text in quotes, found {value!r}", place=where, key=key, value=value
        )
    return value if value.strip() else None


def _refuse_unknown(table: Mapping[str, Any], known: Collection[str], where: str) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, 2, 0.6)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
            raise InputError("unknown key {key}; {hint}", place=where, key=key, hint=hint)
