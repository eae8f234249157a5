"""Settings beyond the flags: recipes in TOML, and `--set section.key=value` for one of them.

A schema is a frozen dataclass whose fields are sections, each a frozen dataclass of values with
defaults. Nothing is imported here that takes long.
"""

import difflib
import re
import tomllib
import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from malmoi.errors import InputError
from malmoi.messages import Phrase

Precision = Literal["auto", "bf16", "fp32"]
Schema = TypeVar("Schema")
# The name of another recipe, whose values hold where a recipe says nothing.
EXTENDS = "extends"
# How a value that may be left open is left open in TOML, which has no null.
OPEN = ("none", "auto")
# A flag inside a message, and its value where it is clear that one follows.
_FLAG = re.compile(r"(--[a-z][\w-]*(?:\.[\w-]+)*)(?:[ =]([^\s:;,()]+)(?=$|: ))?")


@dataclass(frozen=True, kw_only=True)
class Given(Generic[Schema]):
    """The values of a schema, and which of them somebody chose.

    Attributes:
        values: the schema, with defaults where nobody chose.
        chosen: dotted keys that a recipe or `--set` named, whatever value they were given.
        by_hand: those of `chosen` that `--set` named.
    """

    values: Schema
    chosen: frozenset[str]
    by_hand: frozenset[str]


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
    return values


def fill(
    schema: type[Schema], recipe: Mapping[str, Any], by_hand: Mapping[str, Any], source: str
) -> Given[Schema]:
    """The schema with these values, each checked against its type.

    Args:
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
    made: dict[str, Any] = {}
    hints = get_type_hints(schema)
    for section in fields(schema):  # type: ignore[arg-type]
        inside = {}
        for key, kind in get_type_hints(hints[section.name]).items():
            name = f"{section.name}.{key}"
            for values, place in ((by_hand, "--set"), (recipe, source)):
                if name in values:
                    inside[key] = _typed(values[name], kind, f"{place}: {name}")
                    break
        made[section.name] = hints[section.name](**inside)
    return Given(
        values=schema(**made),
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


def keys_of(schema: type) -> dict[str, Any]:
    """Every dotted key of a schema with its default."""
    hints = get_type_hints(schema)
    return {
        f"{section.name}.{item.name}": item.default
        for section in fields(schema)
        for item in fields(hints[section.name])
        if is_dataclass(hints[section.name])
    }


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


def spell_flags_as_keys(message: str, schema: type, flags: Collection[str]) -> str:
    """A message that advises flags, with `--set section.key` for what is a key here.

    Args:
        message: one that several commands share.
        schema: see the module.
        flags: those of the command; they stay as they are.
    """
    keys = keys_by_flag(schema, {})

    def spell(found: re.Match[str]) -> str:
        key = keys.get(found[1].removeprefix("--").replace("-", "_"))
        if key is None or found[1] in flags:
            return found[0]
        return f"--set {key}={found[2] or ('true' if keys_of(schema)[key] is False else '…')}"

    return _FLAG.sub(spell, message)


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
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
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
