"""Results that look at every label: computed once, shown with the time since when they hold.

A click asks the store for the visitor's role and for the ids of the newest rows, nothing more. What
is kept is shown until somebody asks for it anew, and then for all that is kept beside it: no two
parts of a page tell of different moments.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import streamlit as st

from malmoi.app.language import say
from malmoi.app.local_time import local_time
from malmoi.app.visit import OpenProject
from malmoi.labels.project_numbers import LastChange, last_change
from malmoi.labels.roles import Role

# Agreement on 50,000 labels holds about 15 MB of text ids (measured).
_MOST_KEPT = 24


Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class _Kept:
    value: Any
    change: LastChange
    computed_at: datetime


class _Results:
    """Those of all visitors of this server; safe from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[object, ...], _Kept] = OrderedDict()
        self._making: dict[tuple[object, ...], threading.Lock] = {}

    def get(self, key: tuple[object, ...]) -> _Kept | None:
        with self._lock:
            return self._kept.get(key)

    def make(
        self, key: tuple[object, ...], change: LastChange, compute: Callable[[], Any]
    ) -> _Kept:
        """Compute; of several visitors who want the same, the first does."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            known = self.get(key)
            if known is not None and known.change == change:
                return known
            made = _Kept(value=compute(), change=change, computed_at=datetime.now(UTC))
            with self._lock:
                self._kept[key] = made
                self._kept.move_to_end(key)
                while len(self._kept) > _MOST_KEPT:
                    self._making.pop(self._kept.popitem(last=False)[0], None)
        return made

    def forget(self, of_what: tuple[object, ...], change: LastChange) -> None:
        """Drop what is kept under keys that begin so, but what holds since `change`."""
        with self._lock:
            for key, known in list(self._kept.items()):
                if key[: len(of_what)] == of_what and known.change != change:
                    del self._kept[key]
                    self._making.pop(key, None)


@st.cache_resource(show_spinner=False)
def _results() -> _Results:
    return _Results()


def forget_results() -> None:
    """Drop all that is kept, of every project: something was erased for good."""
    _results.clear()


def cached_result(
    open_project: OpenProject,
    name: str,
    compute: Callable[[], Result],
    *,
    needed: Role = "annotator",
) -> Result:
    """The result of `compute` as of some moment, with a line that says which.

    Args:
        name: of the result, and of the button that asks for it anew.
        compute: takes long.
        needed: the role that seeing it takes.

    Raises:
        AccessError: the visitor has not this role.
    """
    access = open_project.access
    change = last_change(access, needed)
    # What annotators see is about their own labels.
    whose = None if open_project.allows("reviewer") else access.person.name
    of_what = (str(access.engine.url), access.project_id, whose)
    key = (*of_what, name)
    known = _results().get(key)
    line, again = st.columns([4, 1], vertical_alignment="center")
    if (
        known is not None
        and known.change != change
        and again.button(say("Compute again"), key=f"again-{name}", icon=":material/refresh:")
    ):
        _results().forget(of_what, change)
        known = None
    if known is None:
        with st.spinner(say("Computing…")):
            known = _results().make(key, change, compute)
    said = local_time(known.computed_at).strftime("%m-%d %H:%M")
    line.caption(
        say("As of {said}.", said=said)
        if known.change == change
        else say("As of {said}. Labels or settings have changed since.", said=said)
    )
    value: Result = known.value
    return value
