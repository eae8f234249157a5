"""Erasing for good, as a law may ask for: a text, a person's name, or the open project."""

from pathlib import Path
from typing import Literal

import streamlit as st

from malmoi.app import learning
from malmoi.app.cached_results import forget_results
from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.plain_text import escaped
from malmoi.app.visit import PROJECT, OpenProject
from malmoi.errors import InputError
from malmoi.labels.erased_files import Erasure, carry_out, plan_erasure
from malmoi.labels.erasing import Wanted, wanted_texts
from malmoi.labels.people import AccessError
from malmoi.messages import Phrase

What = Literal["text", "person", "project"]
_KINDS: dict[What, str] = {
    "text": Phrase("a text"),
    "person": Phrase("a person's name"),
    "project": Phrase("this project"),
}
_PLAN, _DONE = "erase_plan", "erase_done"


def draw_erasing(open_project: OpenProject) -> None:
    """What is to go, all that goes with it, and the button behind a box that must be ticked."""
    if st.session_state.pop(_DONE, False):
        st.success(say("It is erased for good."), icon=":material/delete_forever:")
    if not open_project.allows("admin"):
        return
    st.caption(
        say(
            "Erasing is not archiving: it cannot be taken back. The trail keeps that something was "
            "erased, by whom and when, and nothing of what it was."
        )
    )
    what: What = st.radio(
        say("What is erased"),
        list(_KINDS),
        format_func=lambda one: say(_KINDS[one]),
        horizontal=True,
        key="erase_what",
    )
    words = ""
    if what == "text":
        words = st.text_area(say("The text as it is written, or its number"), key="erase_text")
    elif what == "person":
        words = st.text_input(say("Name or e-mail"), key="erase_person")
    asked = (open_project.project.id, what, words.strip())
    looks = st.button(say("See what would go"), icon=":material/search:")
    if looks and not words.strip() and what != "project":
        st.error(say("Say which text or whose name."))
    elif looks:
        try:
            plan = plan_erasure([open_project.access], _wanted(open_project, what, words))
        except AccessError as error:
            explain(say("Only admins erase."), error)
        except InputError as error:
            explain(say("There is no such text."), error)
        else:
            st.session_state[_PLAN] = (asked, plan)
    held = st.session_state.get(_PLAN)
    # Of other words than those that stand there now it tells nothing.
    if held is not None and held[0] == asked:
        _draw_plan(what, held[1])


def _wanted(open_project: OpenProject, what: What, words: str) -> Wanted:
    if what == "person":
        return Wanted(person=words)
    if what == "project":
        return Wanted(is_project=True)
    is_id = words.strip().isdecimal()
    ids, texts = ([int(words)], []) if is_id else ([], [words])
    return wanted_texts([open_project.access], ids, texts)


def _draw_plan(what: What, plan: Erasure) -> None:
    if plan.is_empty:
        st.info(say("There is nothing of it in this project."), icon=":material/search_off:")
        return
    # Of a path its last part: the others are of the server's machine.
    lines = [say(phrase, name=escaped(Path(where).name)) for where, phrase in plan.lines()]
    st.markdown("\n".join(f"- {line}" for line in lines))
    st.caption(
        say(
            "What cannot be reached from here: backups in other folders and of database servers, "
            "files that people have exported or downloaded, models that were published."
        )
    )
    sure = st.checkbox(say("I know that it cannot be taken back."), key="erase_sure")
    if st.button(
        say("Erase for good"),
        type="primary",
        icon=":material/delete_forever:",
        disabled=not sure,
    ):
        _erase(what, plan)


def _erase(what: What, plan: Erasure) -> None:
    try:
        carry_out(plan)
    except AccessError as error:
        explain(say("Only admins erase."), error)
        return
    except InputError as error:
        explain(say("Not all of it is erased yet."), error)
        return
    finally:
        # What the server and the process that learns still hold of it.
        forget_results()
        st.cache_data.clear()
        learning.forget()
        st.session_state.pop(_PLAN, None)
    for key in ("erase_text", "erase_person", "erase_sure"):
        st.session_state.pop(key, None)
    st.session_state[_DONE] = True
    if what == "project":
        st.query_params.pop(PROJECT, None)
    st.rerun()
