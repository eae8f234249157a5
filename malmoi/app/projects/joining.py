"""Two names of one person made one, in the settings of the open project."""

from collections.abc import Sequence

import streamlit as st

from malmoi.app.cached_results import forget_results
from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.plain_text import escaped
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.labels.joined_people import PeopleJoin, join_people

_JOINED = "people_joined"


def draw_joining(open_project: OpenProject, names: Sequence[str]) -> None:
    """Two names to choose, what becomes of them, and the button behind a box that must be ticked.

    Args:
        open_project: whose people they are; the visitor is an admin.
        names: of all who are members or have labelled.
    """
    if (joined := st.session_state.pop(_JOINED, None)) is not None:
        st.success(say("All of it is {person}'s now.", person=joined), icon=":material/check:")
    if len(names) < 2:
        return
    with st.expander(say("Join two names of one person"), icon=":material/merge:"):
        left, right = st.columns(2)
        gone = left.selectbox(say("This name goes"), names, index=None, key="join-gone")
        rest = [name for name in names if name != gone]
        stays = right.selectbox(say("This name stays"), rest, index=None, key="join-stays")
        if gone is None or stays is None:
            return
        try:
            found = join_people(open_project.access, gone, stays, only_count=True)
            st.caption(_told(found, escaped(gone), escaped(stays)))
            sure = st.checkbox(
                say("I know that it cannot be taken back."), key=f"join-sure-{gone}-{stays}"
            )
            if st.button(say("Join"), type="primary", icon=":material/merge:", disabled=not sure):
                join_people(open_project.access, gone, stays)
                forget_results()
                st.cache_data.clear()
                st.session_state[_JOINED] = escaped(stays)
                st.rerun()
        except InputError as error:
            explain(say("That cannot be."), error)


def _told(found: PeopleJoin, gone: str, stays: str) -> str:
    moved = say(
        "{texts:text} and {decisions:,} decisions of {gone} become those of {stays}, with their "
        "notes and times.",
        texts=found.texts,
        decisions=found.decisions,
        gone=gone,
        stays=stays,
    )
    if not found.both:
        return moved
    return (
        moved
        + " "
        + say(
            "Under both names {both:text} were labelled; on {differing:,} of them the two differ. "
            "The later label holds.",
            both=found.both,
            differing=found.differing,
        )
    )
