"""A request of another form than the expected one: what is said about it, in one line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from malmoi.errors import InputError

_SHOWN_CHARACTERS = 40
# What pydantic calls the first of several forms that a value may have, behind its place.
_FORMS = ("str", "object")
_SEE_DOCS = "/docs has an example"
_PAIR = ("two texts", 'send ["the first", "the second"]')
# Kind of fault, as pydantic calls it -> what was expected, and what to do.
_EXPECTED = {
    "string_type": ("a text", "send one in quotation marks, or leave it out"),
    "list_type": ("a list", "put it into [ ], one alone too"),
    "tuple_type": _PAIR,
    "dict_type": ("an object", _SEE_DOCS),
    "model_type": ("a JSON object", _SEE_DOCS),
}


def misfit(faults: Sequence[Any]) -> InputError:
    """The error of a request in which pydantic has found faults."""
    return InputError("{fault}", fault=_line_of(faults))


def _line_of(faults: Sequence[Any]) -> str:
    """The first of the faults: what was expected where, what was found, what to do."""
    fault = faults[0]
    kind, place, value = fault["type"], fault["loc"], fault["input"]
    limits = fault.get("ctx") or {}
    expected, advice = _EXPECTED.get(kind, ("", ""))
    found = shown(value)
    if kind == "missing" and place and isinstance(place[-1], int):
        (expected, advice), place = _PAIR, place[:-1]
    elif kind == "missing":
        expected, advice, place = f"the key {place[-1]}", f"add it; {_SEE_DOCS}", place[:-1]
    elif kind == "extra_forbidden":
        expected, advice = "no further key", "leave it out"
        found, place = str(place[-1])[:_SHOWN_CHARACTERS], place[:-1]
    elif kind == "too_long" and limits["field_type"] == "Tuple":
        expected, advice = _PAIR
    elif kind == "too_long":
        expected, found = f"at most {limits['max_length']:,} items", f"{len(value):,}"
        advice = "send them in several requests"
    elif kind == "string_too_long":
        expected, found = f"at most {limits['max_length']:,} characters", f"{len(value):,}"
        advice = "send less of the text"
    elif not expected:
        expected, advice = f"something else ({fault['msg']})", _SEE_DOCS
    where = f" at {_path(place)}" if place else ""
    return " ".join(f"expected {expected}{where}, found {found}; {advice}".split())


def _path(place: Sequence[str | int]) -> str:
    """`texts[3]`."""
    named = [part for part in place if part not in _FORMS]
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in named)[1:]


def shown(value: Any) -> str:
    """A value of a request, short."""
    if isinstance(value, dict):
        return f"an object with {', '.join(map(str, list(value)[:5])) or 'nothing'}"[:200]
    if isinstance(value, str):
        return f"a text of {len(value):,} characters"
    if isinstance(value, list | tuple):
        return f"a list of {len(value):,}"
    return json.dumps(value)[:_SHOWN_CHARACTERS]
