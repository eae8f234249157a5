"""The labelling card on a page: its files, and the exchange between browser and store."""

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from malmoi.app import learning
from malmoi.app.explanation import for_visitors
from malmoi.app.labelling.card_server import KEPT, CardAnswer, answer, answer_first
from malmoi.app.labelling.columns import shown_columns
from malmoi.app.labelling.messages import read_message
from malmoi.app.labelling.presence import new_card, note_card
from malmoi.app.labelling.wording import sentences
from malmoi.app.labelling.words import words_behind
from malmoi.app.labelling.worth import worth
from malmoi.app.language import say
from malmoi.app.navigation import held
from malmoi.app.visit import OpenProject, project_store
from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.project import Project
from malmoi.labels.projects import read_project
from malmoi.labels.review import ProjectProgress, own_counts, progress

_FILES = Path(__file__).parent
# One module: what Streamlit is given as text cannot import a second one.
SCRIPTS = ("keys.js", "queue.js", "suggestion.js", "parts.js", "card.js")
KEY = "labelling_card"
_ANSWER, _WORDS, _MINE, _STOPPED, _NEWS, _CARD = (
    f"labelling_{name}" for name in ("answer", "words", "mine", "stopped", "news", "cards")
)
_SECONDS_COUNTED = 2


def _read(*names: str) -> str:
    return "\n".join((_FILES / name).read_text(encoding="utf-8") for name in names)


_card = st.components.v2.component(
    "malmoi_labelling_card",
    html=_read("card.html"),
    css=_read("card.css"),
    js=_read(*SCRIPTS),
)


@st.fragment
def draw_card(open_project: OpenProject) -> None:
    """Draw the card with what the last message asked for; after a whole run, with all its texts.

    Only this reruns while somebody labels, but for a change of the project by somebody else: then
    all of the page is drawn with it.
    """
    if news := st.session_state.pop(_NEWS, None):
        st.toast(news, icon=":material/info:")
        st.rerun()
    access, project = open_project.access, open_project.project
    scope = _scope_of(access, project)
    card: str = st.session_state.setdefault(_CARD, {}).setdefault(scope, new_card())
    given: CardAnswer | None = st.session_state.pop(_ANSWER, None)
    if given is None:
        stopped = scope in st.session_state.get(_STOPPED, ())
        given = answer_first(access, stopped=stopped, columns=shown_columns(project.id))
    if given.held is not None:
        note_card(card, access, given.held[:KEPT])
    _card(
        key=KEY,
        data={
            "scope": scope,
            "say": sentences(),
            "labels": [
                {
                    name: getattr(label, name)
                    for name in ("id", "name", "title", "meaning", "color", "key")
                }
                for label in project.offered_labels
            ],
            "multi": project.kind == "multi",
            "guideline": project.guideline_version,
            "lease": project.settings.lease_seconds,
            "annotators": project.settings.annotators_per_text,
            "counts": _counts(access, scope),
            "worth": worth(access),
            "learning": learning.state(access).is_on,
            "card": card,
            "similar": f"explore?{urlencode(held())}" if learning.reads_meaning() else None,
            "answer": _as_data(given),
        },
        on_exchange_change=lambda: _exchange(access, project, scope),
    )


def _scope_of(access: ProjectAccess, project: Project) -> str:
    """Names a project and a person, among those of all databases that a browser meets here."""
    made = int(project.created_at.timestamp())
    return f"{project.id}-{made}/{access.person.name}"


def _as_data(given: CardAnswer) -> dict[str, Any]:
    data = asdict(given)
    data["words"] = st.session_state.pop(_WORDS, None)
    # A drawing without a new answer, as after a change of the theme, is known by it.
    data["id"] = time.time_ns()
    return data


def _exchange(access: ProjectAccess, shown: Project, scope: str) -> None:
    """Do what the card has just sent, which shows the project as it was then."""
    try:
        message = read_message(st.session_state[KEY]["exchange"])
        engine = project_store().engine
    except InputError as error:
        st.session_state[_ANSWER] = CardAnswer(failed=for_visitors(error))
        return
    replaced, access = engine is not access.engine, replace(access, engine=engine)
    try:
        now = read_project(access)
    except InputError:  # the answer tells why
        now = shown
    if replaced:
        st.session_state[_NEWS] = say("The label database has been replaced by another.")
    if message.scope != _scope_of(access, now):
        # Done under another name or in another project: the card keeps it until that is open again.
        return
    stopped: set[str] = st.session_state.setdefault(_STOPPED, set())
    columns = shown_columns(shown.id)
    if message.have:
        card = st.session_state[_CARD][message.scope]
        note_card(card, access, [text_id for text_id, _ in message.have[:KEPT]])
    given = answer(access, message, stopped=scope in stopped, columns=columns)
    if news := _news(shown, now):
        st.session_state[_NEWS] = news
    (stopped.add if given.stopped else stopped.discard)(scope)
    _count(scope, given)
    if given.labels > 0:
        learning.after_labels(access, given.labels)
    if message.words is not None:
        st.session_state[_WORDS] = words_behind(access, message.words)
    st.session_state[_ANSWER] = given


def _news(shown: Project, now: Project) -> str:
    """What somebody has changed since the page was drawn; "" where nothing that it shows."""
    if shown.labels != now.labels:
        return say("The labels have changed.")
    if shown.guideline_version != now.guideline_version:
        version = now.guideline_version
        return say("The guideline is now version {version}.", version=version)
    if shown.settings != now.settings:
        return say("The settings of the project have changed.")
    return ""


def _counts(access: ProjectAccess, scope: str) -> dict[str, int]:
    """Own labels, counted once a session and kept up; those of the project as of seconds ago."""
    mine: dict[str, int] = st.session_state.setdefault(_MINE, {})
    if scope not in mine:
        mine[scope] = own_counts(access).labelled
    done = _progress(str(access.engine.url), access.project_id, access)
    return {"mine": mine[scope], "open": done.texts - done.finished, "total": done.texts}


@st.cache_data(ttl=_SECONDS_COUNTED, max_entries=200, show_spinner=False)
def _progress(url: str, project_id: int, _access: ProjectAccess) -> ProjectProgress:
    return progress(_access)


def _count(scope: str, given: CardAnswer) -> None:
    mine: dict[str, int] = st.session_state.setdefault(_MINE, {})
    if scope in mine:
        mine[scope] = max(0, mine[scope] + given.labels)
