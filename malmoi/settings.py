"""The settings of a command: flags, recipes in TOML, and `--set section.key=value` for one key.

A key is declared once, as a field of a frozen dataclass, its section; the fields of a schema are
sections. The type and the default are those of the field, the string below it says what it is and
where its default comes from, and `Annotated` adds its `Range` and its `Off`. Reading, checking,
`--help` and the recipe that shows all defaults (`as_toml`) go by that. Flags are declared in the
same way. Nothing is imported here that takes long.
"""

import ast
import difflib
import inspect
import json
import math
import textwrap
import tomllib
import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from malmoi.errors import InputError
from malmoi.messages import Flag, Phrase

Precision = Literal["auto", "bf16", "fp32"]
Flags = TypeVar("Flags")
Schema = TypeVar("Schema")
# The name of another recipe, whose values hold where a recipe says nothing.
EXTENDS = "extends"
# How a value that may be left open is left open in TOML, which has no null.
OPEN = ("none", "auto")


@dataclass(frozen=True)
class Range:
    """The numbers that a setting may be; `open` ends are none of them."""

    least: float = -math.inf
    most: float = math.inf
    open: Literal["", "least", "most"] = ""

    def holds(self, value: float) -> bool:
        """Whether the value is one of them; nan and infinity never are."""
        above = value > self.least if self.open == "least" else value >= self.least
        below = value < self.most if self.open == "most" else value <= self.most
        return above and below and math.isfinite(value)

    def __str__(self) -> str:
        low, high = _plain(self.least), _plain(self.most)
        if self.open == "least":
            return f"above {low}" + (f" and at most {high}" if self.most < math.inf else "")
        if self.most == math.inf:
            return f"of at least {low}"
        return f"from {low} to {'below ' * (self.open == 'most')}{high}"


def _plain(number: float) -> str:
    """A number as people write it: 4294967295, 0.5, 1e-09."""
    return f"{number:.0f}" if abs(number) < 1e12 and number == round(number) else f"{number:g}"


class Off(tuple[Any, ...]):
    """Values by which a key asks for nothing, where its default is none of them."""


@dataclass(frozen=True, kw_only=True)
class Given(Generic[Flags, Schema]):
    """What was given to a command, read once: its flags, and the values of all keys.

    Attributes:
        flags: as they were given.
        keys: with defaults where nobody chose.
        chosen: dotted keys that a recipe or `--set` named, whatever value they were given.
        by_hand: those of `chosen` that `--set` named.
    """

    flags: Flags
    keys: Schema
    chosen: frozenset[str]
    by_hand: frozenset[str]

    def value(self, name: str) -> Any:
        """The value of a flag or of a key such as `objective.temperature`."""
        section, _, key = name.rpartition(".")
        return getattr(getattr(self.keys, section) if section else self.flags, key)

    def asks_for(self, name: str) -> bool:
        """Whether somebody wants a flag or a key, and not to be without it."""
        if "." not in name:
            return bool(self.value(name) != settings_of(type(self.flags))[name].default)
        key, value = keys_of(type(self.keys))[name], self.value(name)
        if key.off:
            return value not in key.off
        return name in self.by_hand and not (key.default is value is False)


@dataclass(frozen=True)
class Choice:
    """A value of a flag or a key, and which others belong to it or cannot stand beside it.

    Attributes:
        key: the flag or key.
        value: of the key.
        why: what comes of this value: goes on `objective.name=mlm …`, or `without --quick …`.
        owns: keys that only this value of `key` has.
        lacks: keys that have no effect then; `key=a|b`: these values of it.
    """

    key: str
    value: Any
    why: str
    owns: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.value is None or ("." not in self.key and self.value is False):
            return f"without {shown(self.key)}"
        return shown(self.key, self.value)


def check_choices(given: Given[Any, Any], choices: Sequence[Choice]) -> None:
    """Refuse the first thing given that has no effect beside a choice.

    Raises:
        InputError: what it is, beside what, and why.
    """
    for choice in choices:
        value = given.value(choice.key)
        if value != choice.value:
            for key in filter(given.asks_for, choice.owns):
                other = "none" if value is None or value is False else shown(choice.key, value)
                raise InputError(
                    "{key} belongs to {choice}, found {other}; give that, or leave it out",
                    key=shown(key),
                    choice=choice,
                    other=other,
                )
            continue
        for name in choice.lacks:
            key, _, values = name.partition("=")
            if str(given.value(key)) in values.split("|") if values else given.asks_for(key):
                off = keys_of(type(given.keys))[key].off if "." in key else ()
                raise InputError(
                    "{choice} {why}, so {said} has no effect; {way_out}",
                    choice=choice,
                    why=choice.why,
                    said=shown(key, given.value(key)) if values else shown(key),
                    way_out=f"take {shown(key, 0)}" if 0 in off else "leave it out",
                )


def check_ranges(settings: Any, section: str = "") -> None:
    """Refuse the first number out of its range: of flags, of a section, or of all of a schema's.

    Raises:
        InputError: the setting, what it may be, and what was found.
    """
    for setting in settings_of(type(settings)).values():
        value = getattr(settings, setting.name)
        name = f"{section}.{setting.name}" if section else setting.name
        if is_dataclass(value):
            check_ranges(value, setting.name)
        if setting.range and value is not None and not setting.range.holds(value):
            raise InputError(
                "expected {name} {range}, found {value}",
                name=shown(name),
                range=setting.range,
                value=_plain(value),
            )


def shown(name: str, value: object = "") -> str:
    """How a user gives a flag or a key, with a value or without: `--seed 7`, `model.dropout=0`."""
    if "." in name:
        value = str(value).lower() if isinstance(value, bool) else value
        if isinstance(value, float) and float(f"{value:g}") == value:
            value = f"{value:g}"
        return f"{name}={value}" if value != "" else name
    flag = f"--{name.replace('_', '-')}"
    return flag if value is True or value == "" else f"{flag} {value}"


def recipe_names(folder: Path) -> list[str]:
    """The recipes that can be named: the TOML files of `folder`."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def read_recipe(recipe: str, folder: Path) -> dict[str, Any]:
    """The values of a recipe by dotted keys, those of the recipes that it extends below them.

    Args:
        recipe: a name in `folder`, or the path of a TOML file.
        folder: the recipes that come with a command.

    Raises:
        InputError: no such recipe, no TOML, or recipes that extend each other in a circle.
    """
    return _read(recipe, folder, ())


def _read(recipe: str, folder: Path, below: tuple[str, ...]) -> dict[str, Any]:
    if recipe in below:
        raise InputError(
            "recipes extend each other in a circle: {circle}", circle=" -> ".join((*below, recipe))
        )
    path = folder / f"{recipe}.toml"
    if recipe.endswith(".toml") or not path.is_file():
        path = Path(recipe)
    if not path.is_file():
        names = recipe_names(folder)
        raise InputError(
            "expected a recipe of {names} or a TOML file, found {recipe}{nearest}",
            names=", ".join(names),
            recipe=recipe,
            nearest=_nearest(recipe, names),
        )
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise InputError("not a recipe in TOML: {error}", place=path, error=error) from error
    values: dict[str, Any] = {}
    base = content.pop(EXTENDS, None)
    if base is not None:
        values |= _read(str(base), folder, (*below, recipe))
    for section, inside in content.items():
        if not isinstance(inside, dict):
            raise InputError(
                "expected {section} inside a section such as [objective], found it above the first",
                place=path,
                section=section,
            )
        values |= {f"{section}.{key}": value for key, value in inside.items()}
    return values


def read_assignments(assignments: Sequence[str]) -> dict[str, Any]:
    """`section.key=value` by dotted keys; a value is TOML, or else a string as it stands.

    Raises:
        InputError: something else than `section.key=value`, or one key twice.
    """
    values: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or "." not in key:
            raise InputError(
                "expected --set section.key=value such as objective.temperature=1.2, found "
                "{assignment!r}",
                assignment=assignment,
            )
        if key in values:
            raise InputError("--set {key} is given twice; leave one out", key=key)
        try:
            values[key] = tomllib.loads(f"value = {value}")["value"]
        except ValueError:
            values[key] = value
        if isinstance(values[key], date):
            values[key] = value  # no key takes TOML's dates
    return values


def read_given(
    flags: Flags,
    schema: type[Schema],
    recipe: Mapping[str, Any],
    by_hand: Mapping[str, Any],
    source: str,
) -> Given[Flags, Schema]:
    """Flags and keys as one, each key checked against its type.

    Args:
        flags: as they were parsed.
        schema: see the module.
        recipe: values by dotted keys, see `read_recipe`.
        by_hand: values that hold before those, see `read_assignments`.
        source: of `recipe`, for messages.

    Raises:
        InputError: an unknown key, with the nearest names, or a value of another type.
    """
    known = keys_of(schema)
    for values, place in ((recipe, source), (by_hand, "--set")):
        for key in values:
            if key not in known:
                raise InputError(
                    "unknown key {key}{nearest}",
                    place=place,
                    key=key,
                    nearest=_nearest(key, list(known)),
                )
    read = {key: _typed(recipe[key], known[key].type, f"{source}: {key}") for key in recipe}
    read |= {key: _typed(by_hand[key], known[key].type, f"--set: {key}") for key in by_hand}
    made = {
        name: section.type(
            **{
                key: read[f"{name}.{key}"]
                for key in settings_of(section.type)
                if f"{name}.{key}" in read
            }
        )
        for name, section in settings_of(schema).items()
    }
    return Given(
        flags=flags,
        keys=schema(**made),
        chosen=frozenset({*recipe, *by_hand}),
        by_hand=frozenset(by_hand),
    )


def read_sections(schema: type[Schema], values: Any, source: str) -> Schema:
    """The schema as it was written to JSON by `dataclasses.asdict`, every value checked.

    Args:
        values: the JSON object: a section is an object with exactly the keys of the schema.
        source: of `values`, for messages.

    Raises:
        InputError: a section or a key is missing or unknown, or a value of another type.
    """
    made: dict[str, Any] = {}
    hints = get_type_hints(schema)
    for section in fields(schema):  # type: ignore[arg-type]
        kinds = get_type_hints(hints[section.name])
        inside = values.get(section.name) if isinstance(values, dict) else None
        if not isinstance(inside, dict) or inside.keys() != kinds.keys():
            found = Phrase("none") if not isinstance(inside, dict) else ", ".join(inside)
            raise InputError(
                "expected {name} with {kinds}, found {found}",
                place=source,
                name=section.name,
                kinds=", ".join(kinds),
                found=found,
            )
        made[section.name] = hints[section.name](
            **{
                key: _typed(inside[key], kind, f"{source}: {section.name}.{key}", open_words=())
                for key, kind in kinds.items()
            }
        )
    return schema(**made)


@dataclass(frozen=True)
class Setting:
    """A flag, a key or a section, as it is declared."""

    name: str
    type: Any
    default: Any
    """MISSING where it must be given."""
    range: Range | None
    off: Off


def made_of(declared: type[Flags], values: Mapping[str, Any], source: str) -> Flags:
    """Flags of values that somebody gave by name, each checked against its type.

    Args:
        declared: the flags.
        values: by name; others have their defaults.
        source: for messages.

    Raises:
        InputError: an unknown name, with the nearest ones, or a value of another type.
    """
    known = settings_of(declared)
    for name in values:
        if name not in known:
            raise InputError(
                "unknown key {key}{nearest}",
                place=source,
                key=name,
                nearest=_nearest(name, list(known)),
            )
    return declared(
        **{
            name: _typed(value, known[name].type, f"{source}: {name}", open_words=())
            for name, value in values.items()
        }
    )


def settings_of(declared: type) -> dict[str, Setting]:
    """The fields of flags, of a section or of a schema, by name.

    What a class declares itself comes before what it inherits.
    """
    hints = get_type_hints(declared, include_extras=True)
    own = inspect.get_annotations(declared)
    found = {}
    for item in sorted(fields(declared), key=lambda item: item.name not in own):
        hint = hints[item.name]
        kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        found[item.name] = Setting(
            item.name,
            kind,
            item.default,
            next((extra for extra in extras if isinstance(extra, Range)), None),
            next((extra for extra in extras if isinstance(extra, Off)), Off()),
        )
    return found


def keys_of(schema: type) -> dict[str, Setting]:
    """Every key of a schema, by section and name."""
    return {
        f"{section.name}.{key.name}": key
        for section in settings_of(schema).values()
        for key in settings_of(section.type).values()
    }


def as_toml(schema: type, about: str) -> str:
    """The recipe that shows every key: what it is, what it may be, and its default.

    Args:
        schema: see the module.
        about: what stands at its beginning.
    """
    lines = textwrap.wrap(about, 98, initial_indent="# ", subsequent_indent="# ")
    for section in settings_of(schema).values():
        lines += ["", f"[{section.name}]"]
        helps = attribute_docs(section.type)
        for key in settings_of(section.type).values():
            text = " ".join(helps[key.name].split())
            text += f" {str(key.range).removeprefix('of ').capitalize()}." if key.range else ""
            lines += textwrap.wrap(text, 98, initial_indent="# ", subsequent_indent="# ")
            value = key.default
            if value is None:
                value = "auto" if "auto" in text else "none"
            number = isinstance(value, bool | int | float)
            lines.append(f"{key.name} = {str(value).lower() if number else json.dumps(value)}")
    return "\n".join(lines) + "\n"


def attribute_docs(declared: type) -> dict[str, str]:
    """The string below each attribute of a class and of those it inherits from."""
    docs: dict[str, str] = {}
    for base in reversed(declared.__mro__):
        if not is_dataclass(base):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except OSError:  # typed in, or packed without its source
            continue
        assert isinstance(tree.body[0], ast.ClassDef)
        for statement, after in pairwise(tree.body[0].body):
            if (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                docs[statement.target.id] = after.value.value
    return docs


def keys_by_flag(schema: type, others: Mapping[str, str]) -> dict[str, str]:
    """What each key could be called as a flag: `temperature` and `objective_temperature`.

    For `malmoi.flags.parse_flags`, which answers such a flag with the key.

    Args:
        others: further names, such as `optimizer` for `optimizer.name`.
    """
    keys = list(keys_of(schema))
    last = [key.rpartition(".")[2] for key in keys]
    alone = {word: key for word, key in zip(last, keys, strict=True) if last.count(word) == 1}
    return alone | {key.replace(".", "_"): key for key in keys} | dict(others)


def flag_as_key(flag: Flag, schema: type, flags: Collection[str]) -> str:
    """What a command calls a flag that others have, too: `--set section.key=value` for a key.

    Args:
        flag: that an error advises.
        schema: see the module.
        flags: those of the command, which are called so.
    """
    key = keys_by_flag(schema, {}).get(flag.name.removeprefix("--").replace("-", "_"))
    if key is None or flag.name in flags:
        return flag
    value = "true" if keys_of(schema)[key].default is False else "…"
    return f"--set {key}={flag.value or value}"


def _typed(value: Any, kind: Any, place: str, open_words: Sequence[str] = OPEN) -> Any:
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    if get_origin(kind) in (Union, types.UnionType):
        inner = next(one for one in get_args(kind) if one is not types.NoneType)
        # "none" may be a choice of its own.
        if value is None or (value in open_words and value not in get_args(inner)):
            return None
        return _typed(value, inner, place, open_words)
    if choices:
        if value in choices:
            return value
        raise InputError(
            "expected {choices}, found {value!r}{nearest}",
            place=place,
            choices=", ".join(map(str, choices)),
            value=value,
            nearest=_nearest(str(value), list(map(str, choices))),
        )
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is Path and isinstance(value, str):
        return Path(value)
    if kind is str and not isinstance(value, str | bool | list | dict):
        return str(value)
    if not isinstance(value, get_origin(kind) or kind) or (kind is int and isinstance(value, bool)):
        words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
        raise InputError(
            "expected {kind}, found {value!r}",
            place=place,
            kind=words.get(kind, kind.__name__),
            value=value,
        )
    return value


def _nearest(word: str, names: Sequence[str]) -> str:
    """`; did you mean …?` with the nearest of these names, also by what stands behind the dot."""
    tails = {name.rpartition(".")[2]: name for name in names}
    near = difflib.get_close_matches(word, names, 3, 0.6)
    for found in difflib.get_close_matches(word.rpartition(".")[2], list(tails), 2, 0.7):
        if tails[found] not in near:
            near.append(tails[found])
    return f"; did you mean {' or '.join(near)}?" if near else ""
