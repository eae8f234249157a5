"""A command line that tyro refuses, in one line instead of its box of five to twelve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from malmoi.errors import InputError

# As tyro calls the kind of a value -> what a person expects there.
_KINDS = {"INT": "a whole number", "FLOAT": "a number"}
_SHOWN_CHARACTERS = 100


@contextmanager
def one_line(arguments: Sequence[str]) -> Iterator[None]:
    """Raise InputError within `tyro.cli` where it would print a box and exit.

    Its hook is no public part of it: a version without, or a fault that is not known here, has the
    box.

    Args:
        arguments: that it is given.
    """
    try:
        from tyro._errors import on_parse_error
    except ImportError:
        yield
        return

    def refuse(event: Any) -> None:
        if line := _line(type(event).__name__, event, arguments):
            raise InputError("{line}; see {program} --help", line=line, program=event.prog)

    with on_parse_error(refuse):
        yield


def _line(kind: str, event: Any, arguments: Sequence[str]) -> str:
    """What was expected and what was found; empty where that is not known."""
    if kind == "MissingArgs":
        missing = [_name(each.arg) for each in event.missing_arguments]
        none = {1: "none", 2: "neither"}.get(len(missing), "none of them")
        beside = f", but {_shown(event.unrecognized_tokens)}" if event.unrecognized_tokens else ""
        return f"expected {' and '.join(missing)}, found {none}{beside}"
    if kind == "UnrecognizedArgs":
        flags = [token for token in event.tokens if token.startswith("-")]
        what = "a flag of this command" if flags else "nothing more"
        return f"expected {what}, found {_shown(flags or event.tokens)}"
    if kind == "InvalidChoice":
        choices = list(event.choices)
        if "None" in choices:  # then tyro has them in no order
            choices = sorted({*choices} - {"None"})
        name = _name(event.argument)
        return f"expected {name} of {', '.join(choices)}, found {_shown([event.value])}"
    if kind == "BadValue" and event.reason == "too_few_values":
        after = "" if event.argument.is_positional() else "a value after "
        return f"expected {after}{_name(event.argument)}, found none"
    if kind == "InstantiationFailure" and event.argument is not None:
        name, given = _name(event.argument), _values(event.argument, arguments)
        expected = _KINDS.get(str(event.argument.lowered.metavar))
        if expected and given:
            return f"expected {expected} for {name}, found {_shown(given)}"
        return f"expected another value for {name}, found {event.message}"
    return ""


def _name(argument: Any) -> str:
    """`--port`, or `MODEL` of what goes without a flag."""
    if argument.is_positional():
        return str(argument.field.intern_name).upper()
    return str(argument.lowered.name_or_flags[-1])


def _values(argument: Any, arguments: Sequence[str]) -> list[str]:
    """What was given for a flag, the last time."""
    for place in range(len(arguments) - 1, -1, -1):
        flag, equals, value = arguments[place].partition("=")
        if flag.replace("_", "-") in argument.lowered.name_or_flags:
            return [value] if equals else list(arguments[place + 1 : place + 2])
    return []


def _shown(tokens: Sequence[str]) -> str:
    return " ".join(tokens)[:_SHOWN_CHARACTERS]
