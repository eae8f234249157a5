"""The labelling card on a page: its files, and the exchange between browser and store."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import streamlit as st

from app.explanation import for_visitors
from app.labelling.exchange import CardAnswer, answer, hand_out
from app.labelling.messages import read_message
from app.labelling.wording import sentences
from app.labelling.words import words_behind
from app.learning import after_labels
from app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotator_view import TextCounts, count_own_labels, text_counts

_FILES = Path(__file__).parent
KEY = "labelling_card"
_ANSWER, _WORDS, _MINE, _STOPPED = (
    f"labelling_{name}" for name in ("answer", "words", "mine", "stopped")
)
_SECONDS_COUNTED = 2


def _read(*names: str) -> str:
    return "\n".join((_FILES / name).read_text(encoding="utf-8") for name in names)


_card = st.components.v2.component(
    "malmoi_labelling_card",
    html=_read("card.html"),
    css=_read("card.css"),
    # One module: what Streamlit is given as text cannot import a second one.
    js=_read("queue.js", "card.js"),
)


@st.fragment
def draw_card(opened: OpenProject) -> None:
    """Draw the card with what the last message asked for; after a whole run, with all its texts.

    Only this reruns while somebody labels.
    """
    scope = scope_of(opened)
    given: CardAnswer | None = st.session_state.pop(_ANSWER, None)
    if given is None:
        given = CardAnswer(stopped=scope in st.session_state.get(_STOPPED, ()))
        if not given.stopped:
            try:
                hand_out(opened.access, given)
            except InputError as error:
                given.failed = for_visitors(error)
    _card(
        key=KEY,
        data={
            "scope": scope,
            "say": sentences(),
            "labels": [
                {
                    name: getattr(label, name)
                    for name in ("name", "title", "meaning", "color", "key")
                }
                for label in opened.project.labels
                if not label.retired
            ],
            "multi": opened.project.kind == "multi",
            "guideline": opened.project.guideline_version,
            "lease": opened.project.settings.lease_seconds,
            "annotators": opened.project.settings.annotators_per_text,
            "counts": _counts(opened.access, scope),
            "answer": _as_data(given),
        },
        on_exchange_change=lambda: _exchange(opened),
    )


def scope_of(opened: OpenProject) -> str:
    """Names a project and a person, among those of all databases that a browser meets here."""
    project = opened.project
    made = int(project.created_at.timestamp())
    return f"{project.id}-{made}/{opened.access.person.name}"


def _as_data(given: CardAnswer) -> dict[str, Any]:
    data = asdict(given)
    data["words"] = st.session_state.pop(_WORDS, None)
    # A drawing without a new answer, as after a change of the theme, is known by it.
    data["id"] = time.time_ns()
    return data


def _exchange(opened: OpenProject) -> None:
    """Do what the card has just sent."""
    scope = scope_of(opened)
    try:
        message = read_message(st.session_state[KEY]["exchange"])
    except InputError as error:
        st.session_state[_ANSWER] = CardAnswer(failed=for_visitors(error))
        return
    if message.scope != scope:
        # Done under another name or in another project: the card keeps it until that is open again.
        return
    stopped: set[str] = st.session_state.setdefault(_STOPPED, set())
    given = answer(opened.access, message, stopped=scope in stopped)
    (stopped.add if given.stopped else stopped.discard)(scope)
    _count(scope, given)
    if given.labels > 0:
        after_labels(opened, given.labels)
    if message.words is not None:
        st.session_state[_WORDS] = words_behind(opened.access, message.words)
    st.session_state[_ANSWER] = given


def _counts(access: ProjectAccess, scope: str) -> dict[str, int]:
    """Own labels, counted once a session and kept up; those of the project as of seconds ago."""
    mine: dict[str, int] = st.session_state.setdefault(_MINE, {})
    if scope not in mine:
        mine[scope] = count_own_labels(access)
    counts = _text_counts(str(access.engine.url), access.project_id, access)
    return {"mine": mine[scope], "open": counts.open, "total": counts.total}


@st.cache_data(ttl=_SECONDS_COUNTED, max_entries=200, show_spinner=False)
def _text_counts(url: str, project_id: int, _access: ProjectAccess) -> TextCounts:
    return text_counts(_access)


def _count(scope: str, given: CardAnswer) -> None:
    mine: dict[str, int] = st.session_state.setdefault(_MINE, {})
    if scope in mine:
        mine[scope] = max(0, mine[scope] + given.labels)
