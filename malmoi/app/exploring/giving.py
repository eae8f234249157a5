"""Texts of the page 살펴보기 given to one person, and taken back."""

from collections.abc import Sequence

import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.plain_text import escaped
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.labels.access_keys import people_at_work
from malmoi.labels.assigning import assign_texts, given_texts, take_back_assigned
from malmoi.labels.projects import members
from malmoi.labels.searching import Search


def draw_giving(open_project: OpenProject, search: Search, chosen: Sequence[int]) -> None:
    """Draw the button that opens the dialog; its title is in the visitor's language.

    Args:
        open_project: whose texts; the visitor is a reviewer.
        search: what was found.
        chosen: ids of the rows that are chosen.
    """
    if st.button(say("Give to a person"), key="explore_give", icon=":material/assignment_ind:"):
        st.dialog(say("Give to a person"), width="medium")(_draw)(open_project, search, chosen)


def _draw(open_project: OpenProject, search: Search, chosen: Sequence[int]) -> None:
    access = open_project.access
    person = st.selectbox(
        say("To whom"),
        sorted({*members(access), *people_at_work(access)}),
        index=None,
        # Whoever typed their name need not be a member.
        accept_new_options=access.person.is_local,
        placeholder=say("Name"),
        key="explore_give_person",
    )
    st.caption(
        say(
            "Of these texts those that need labels are handed out to this person before all "
            "others, and to nobody else until they are done or taken back."
        )
    )
    which: dict[str, Sequence[int] | Search] = {"chosen": list(chosen), "all": search}
    titles = {
        "chosen": say("Give the {texts} chosen", texts=len(chosen)),
        "all": say("Give all found"),
    }
    with st.container(horizontal=True):
        for name, title in titles.items():
            if st.button(
                title,
                key=f"explore_give_{name}",
                type="primary",
                disabled=not (person and which[name]),
            ):
                _give(open_project, which[name], str(person))
    for given in given_texts(access):
        who, away = st.columns([3, 1], vertical_alignment="center")
        left = say("{left:,} of {texts:text} left", left=given.left, texts=given.texts)
        who.text(f"{given.person}: {left}")
        if away.button(say("Take back"), key=f"explore_give_back_{given.person}"):
            try:
                take_back_assigned(access, given.person)
            except InputError as error:
                explain(say("Nothing was taken back."), error)
                return
            st.rerun()


def _give(open_project: OpenProject, which: Sequence[int] | Search, person: str) -> None:
    try:
        number = assign_texts(open_project.access, which, person)
    except InputError as error:
        explain(say("Nothing was given."), error)
        return
    who = escaped(person)
    st.toast(say("{number:text} given to {who}.", number=number, who=who), icon=":material/check:")
    st.rerun()
