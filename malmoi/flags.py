"""The flags of a command from a dataclass, shown by `--help` in groups."""

import difflib
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, make_dataclass
from dataclasses import field as new_field
from itertools import takewhile
from typing import Annotated, Any, TypeVar, get_args, get_origin

import tyro

from malmoi.errors import InputError
from malmoi.flag_errors import one_line
from malmoi.settings import Range, attribute_docs, check_ranges

Settings = TypeVar("Settings")
# What is in no group of its own is for those who know why they want it.
EXPERT = "expert"


def parse_flags(
    settings_class: type[Settings],
    *,
    program: str | None,
    about: str,
    arguments: Sequence[str] | None,
) -> Settings:
    """Parse flags into the settings, or print the help and exit.

    A class with `HELP_GROUPS`, title -> names of fields, has its help in these groups, in this
    order; the other fields follow as expert options. The title must be an identifier. One with
    `KEYS`, see `malmoi.settings.keys_by_flag`, has a field `set` by which these keys are set; one
    with `KEYS_WITH_FLAG` has fields of the same names, which say what the keys of `SCHEMA` do.

    Raises:
        SystemExit: 0 after `--help`.
        InputError: a flag is unknown, mistyped, missing, malformed or out of its `Range`, or a key
            is given as a flag.
    """
    given = sys.argv[1:] if arguments is None else arguments
    _refuse_keys(settings_class, given)
    _refuse_mistyped(settings_class, given)
    groups: Mapping[str, Sequence[str]] = getattr(settings_class, "HELP_GROUPS", {})
    grouped = _grouped_class(settings_class, groups)
    with one_line(given):
        parsed: Any = tyro.cli(
            grouped,
            prog=program,
            description=about,
            args=arguments,
            config=(tyro.conf.FlagCreatePairsOff,),
        )
    values: dict[str, Any] = {}
    for item in fields(parsed):
        value = getattr(parsed, item.name)
        if item.metadata.get("is_group"):
            values |= {inner.name: getattr(value, inner.name) for inner in fields(value)}
        else:
            values[item.name] = value
    settings = settings_class(**values)
    check_ranges(settings)
    return settings


def _refuse_keys(settings_class: type, arguments: Sequence[str]) -> None:
    """Answer `--temperature 1.2` with `--set objective.temperature=1.2`."""
    keys: Mapping[str, str] = getattr(settings_class, "KEYS", {})
    flags = {item.name for item in fields(settings_class)} if keys else set()
    for place, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        negated = name.removeprefix("no_") in keys and name not in keys
        key = keys.get(name.removeprefix("no_") if negated else name)
        if not flag.startswith("--") or name in flags or key is None:
            continue
        after = arguments[place + 1] if place + 1 < len(arguments) else "--"
        if not equals:
            value = after if not after.startswith("--") else "false" if negated else "true"
        found = argument if equals or after.startswith("--") else f"{argument} {value}"
        raise InputError(
            "expected --set {key}={value}, found {found}: {key} is no flag",
            key=key,
            value=value,
            found=found,
        )


def _refuse_mistyped(settings_class: type, arguments: Sequence[str]) -> None:
    """Answer `--modle` with `--model`, which tyro does only where no other flag is missing."""
    # Without the dashes, which make all flags alike.
    known = {name.removeprefix("--") for name in flag_names(settings_class)}
    for argument in takewhile(lambda argument: argument != "--", arguments):
        name = argument.partition("=")[0].removeprefix("--").replace("_", "-")
        if not argument.startswith("--") or name in known:
            continue
        if near := difflib.get_close_matches(name, known, 1, 0.6):
            raise InputError(
                "expected a flag of this command, found {argument}; did you mean --{nearest}?",
                argument=argument,
                nearest=near[0],
            )


def flag_names(settings_class: type) -> set[str]:
    """How the flags of a command are typed: `--max-length`."""
    hints = typing.get_type_hints(settings_class, include_extras=True)
    names = {"--help"}
    for item in fields(settings_class):
        hint = hints[item.name]
        inside, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if isinstance(inside, type) and is_dataclass(inside):
            names |= flag_names(inside)
        elif tyro.conf.Positional not in extras:
            # What tyro.conf.arg calls it, as `--from`, which no field can be called.
            called = (getattr(extra, "name", None) for extra in extras)
            name = next(filter(None, called), item.name)
            names.add(("--no-" if item.default is True else "--") + name.replace("_", "-"))
    return names


def _grouped_class(settings_class: type, groups: Mapping[str, Sequence[str]]) -> type:
    """A dataclass like `settings_class`, with a dataclass inside for each group."""
    flags = _flags(settings_class)
    titles = {name: title for title, names in groups.items() for name in names}
    if unknown := titles.keys() - flags.keys():
        raise AssertionError(f"HELP_GROUPS of {settings_class.__name__} names no field: {unknown}")
    members: dict[str, list[tuple[str, Any, Any]]] = {title: [] for title in (*groups, EXPERT)}
    parts: list[tuple[str, Any, Any]] = []
    for name, (annotation, field, is_struct) in flags.items():
        if groups and not is_struct:
            members[titles.get(name, EXPERT)].append((name, annotation, field))
        else:
            parts.append((name, annotation, field))
    for title, inside in reversed(members.items()):
        if inside:
            # What must be given comes first; the rest in the order of the group, or of the class.
            order = list(groups.get(title, flags))
            inside.sort(key=lambda one: (_has_default(one[2]), order.index(one[0])))
            group = make_dataclass(title, inside, kw_only=True, namespace={"__doc__": ""})
            made: dict[str, Any] = {"metadata": {"is_group": True}}
            if all(_has_default(one[2]) for one in inside):
                made["default_factory"] = group
            hint: Any = Annotated[group, tyro.conf.OmitArgPrefixes]
            parts.insert(0, (title, hint, new_field(**made)))
    doc = {"__doc__": settings_class.__doc__}
    return make_dataclass(settings_class.__name__, parts, kw_only=True, namespace=doc)


def _flags(settings_class: type) -> dict[str, tuple[Any, Any, bool]]:
    """Name -> annotation with its help, field, and whether it holds flags of its own."""
    hints = typing.get_type_hints(settings_class, include_extras=True)
    helps = attribute_docs(settings_class)
    for key in getattr(settings_class, "KEYS_WITH_FLAG", ()):
        section, _, name = key.partition(".")
        kinds = typing.get_type_hints(settings_class.SCHEMA)  # type: ignore[attr-defined]
        text = attribute_docs(kinds[section])[name]
        # What a recipe leaves open by "auto", a command does by being silent.
        default = getattr(kinds[section], name)
        text += "" if default is None else f" By default {default}, or what the recipe says."
        helps[name] = text.replace("auto: ", "by default ")
    flags: dict[str, tuple[Any, Any, bool]] = {}
    for item in fields(settings_class):
        hint = hints[item.name]
        made = new_field(**_default_of(item))
        if is_dataclass(hint):
            flags[item.name] = (hint, made, True)
            continue
        # Wrapped by the width of the terminal, not where the source has its line ends.
        extra: dict[str, Any] = {"help": " ".join(helps.get(item.name, "").split())}
        if item.default is None:
            extra |= {"help_behavior_hint": "", "metavar": _metavar(hint)}
        elif item.default is False or item.default == ():
            extra |= {"help_behavior_hint": ""}
        flags[item.name] = (Annotated[hint, tyro.conf.arg(**extra)], made, False)
    return flags


def _metavar(hint: Any) -> str | None:
    """How the value of an optional flag is called: as tyro would without the None."""
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        if not any(isinstance(extra, Range) for extra in extras):
            return None
    kinds = [kind for kind in get_args(hint) if kind is not types.NoneType]
    if len(kinds) != 1:
        return None
    choices = get_args(kinds[0])
    return "{" + ",".join(map(str, choices)) + "}" if choices else kinds[0].__name__.upper()


def _default_of(item: Field[Any]) -> dict[str, Any]:
    if item.default is not MISSING:
        return {"default": item.default}
    if item.default_factory is not MISSING:
        return {"default_factory": item.default_factory}
    return {}


def _has_default(field: Any) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING
