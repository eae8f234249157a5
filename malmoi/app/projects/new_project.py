"""A new project: from nothing to the first text on the screen in under a minute."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.found_models import names_for
from malmoi.app.language import say
from malmoi.app.navigation import open_project
from malmoi.app.plain_text import escaped
from malmoi.app.projects.file_choice import (
    ChosenFile,
    ChosenTexts,
    as_order,
    choose_texts,
)
from malmoi.app.projects.guideline import edit_guideline
from malmoi.app.projects.imports import ImportOrder, start_import
from malmoi.app.projects.label_rows import (
    as_typed,
    draw_heads,
    edit_label,
    typed_labels,
    with_defaults,
)
from malmoi.app.projects.model_field import choose_model
from malmoi.app.projects.preview import label_values
from malmoi.app.visit import Visit
from malmoi.errors import InputError
from malmoi.labels.label_names import nearly_equal
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings, TaskKind
from malmoi.labels.text_import import ImportReport
from malmoi.messages import Phrase

_FORM = "new_project_form"
_KINDS: dict[TaskKind, str] = {
    "single": Phrase("Exactly one"),
    "multi": Phrase("Any number"),
}


def new_form() -> str:
    """Begins the keys of the form that is filled in now."""
    return f"new{st.session_state.setdefault(_FORM, 0)}"


def begin_new_form() -> None:
    st.session_state[_FORM] = st.session_state.get(_FORM, 0) + 1


def draw_new_project(visit: Visit) -> None:
    """The form, and what is made of it."""
    form = new_form()
    if chosen_files := st.session_state.get(f"texts-files-{form}"):
        st.session_state.setdefault(f"{form}-name", Path(chosen_files[0].name).stem)
    left, right = st.columns([2, 3])
    with left:
        name = st.text_input(
            say("Name"),
            key=f"{form}-name",
            max_chars=200,
            placeholder=say("e.g. autumn reviews"),
        )
        typed = st.text_area(
            say("Labels (one a line, or with commas)"),
            key=f"{form}-labels",
            height=138,
            placeholder=say("positive, negative, neutral"),
        )
        of_files, make, wrong = st.container(), st.container(), st.container()
    with right:
        texts = choose_texts(form)
    chosen = texts.files
    names = typed_labels(typed or "")
    kind: TaskKind = st.session_state.get(f"{form}-kind") or "single"
    with of_files:
        with_labels = [one for one in chosen if one.way.has_labels]
        _offer_labels_of_files(with_labels, kind, form, names)
    labels, kind, guideline, settings = _draw_more(names, form)
    with of_files:
        for twins in nearly_equal(names):
            shown = " / ".join(map(escaped, twins))
            st.caption(say("Nearly equal labels: ") + shown)
    # Beside the files, so that no number of them pushes it away.
    if not make.button(
        say("Make it and begin"),
        type="primary",
        icon=":material/play_arrow:",
        key=f"{form}-make",
        width="stretch",
    ):
        return
    missing = _missing(name or "", names, kind, texts)
    if missing:
        wrong.error(missing, icon=":material/edit:")
        return
    try:
        new = NewProject(
            name=name or "", labels=labels, kind=kind, guideline=guideline, settings=settings
        )
    except InputError as error:
        explain(say("It cannot be made like this."), error)
        return
    make_project(visit, new, as_order(chosen) if chosen else None)


def make_project(visit: Visit, new: NewProject, order: ImportOrder | None) -> None:
    """Make a project, begin to fill it, and open it.

    Args:
        order: its texts; None: they come later.
    """
    try:
        access = visit.store.create(visit.person, new)
    except InputError as error:
        if any(project.name == new.name for project in visit.store.list(visit.person)):
            st.error(
                say("There is a project of this name. Give another one."),
                icon=":material/edit:",
            )
        else:
            explain(say("The project cannot be made."), error)
        return
    begin_new_form()  # for the next one
    to_label = order is not None
    if order is not None:
        with st.spinner(say("Reading the texts…")):
            job = start_import(access, order)
            job.wait(_PATIENCE)
        outcome = job.result
        to_label = isinstance(outcome, ImportReport) and not outcome.left_out_count
    # Who has texts without a flaw labels at once; else they see first what is wrong.
    open_project(new.name, to_label=to_label)


# So long a new project waits for its texts before its page is shown with a bar.
_PATIENCE = 4.0


def _missing(name: str, names: Sequence[str], kind: TaskKind, texts: ChosenTexts) -> str:
    """What still has to be filled in."""
    if not name.strip():
        return say("Give it a name.")
    fewest = 1 if kind == "multi" else 2
    if len(names) < fewest:
        return say("Give at least {fewest:label}.", fewest=fewest)
    if texts.unreadable and not texts.files:
        return say(
            "None of the files can be read. Give others, or take them out to begin without texts."
        )
    return ""


def _draw_more(
    names: Sequence[str], form: str
) -> tuple[list[ProjectLabel], TaskKind, str, ProjectSettings]:
    """All that has a good default, folded away."""
    labels = with_defaults(names)
    with st.expander(say("More (can be changed later)"), icon=":material/tune:"):
        kind: TaskKind = st.segmented_control(
            say("Labels of a text"),
            list(_KINDS),
            default="single",
            required=True,
            format_func=lambda one: say(_KINDS[one]),
            key=f"{form}-kind",
        )
        if labels:
            draw_heads(with_names=False)
            # By their places: one that has moved has another key and colour by default.
            labels = [
                edit_label(label, key=f"{form}-label-{place}-{label.name}", with_names=False)
                for place, label in enumerate(labels)
            ]
        guideline = edit_guideline("", key=f"{form}-guideline")
        left, right = st.columns(2, vertical_alignment="bottom")
        annotators = left.number_input(
            say("How many annotators per text?"),
            min_value=1,
            max_value=100,
            value=1,
            key=f"{form}-annotators",
        )
        suggestion = right.toggle(
            say("Show the model's suggestion"),
            value=True,
            key=f"{form}-suggestion",
        )
        model = choose_model(names_for(names), None, key=f"{form}-model")
    settings = ProjectSettings(
        annotators_per_text=int(annotators), show_suggestion=suggestion, model=model
    )
    return labels, kind, guideline, settings


def _offer_labels_of_files(
    chosen: Sequence[ChosenFile], kind: TaskKind, form: str, names: Sequence[str]
) -> None:
    """Let the labels that stand in a file become those of the project."""
    if not chosen:
        return
    if not st.button(
        say("Take the labels of the file"),
        icon=":material/playlist_add:",
        key=f"{form}-take",
        help=say("Reads the column of labels to its end, and adds its values to the labels."),
    ):
        return
    found = list(names)
    try:
        with st.spinner(say("Reading the file…")):
            for one in chosen:
                found += label_values(one.kept.source, one.way, kind)
    except InputError as error:
        explain(say("This is no column of labels."), error)
        return
    st.session_state[_TAKEN] = (f"{form}-labels", as_typed(list(dict.fromkeys(found))))
    st.rerun()


_TAKEN = "new_project_taken"


def fill_taken_labels() -> None:
    """Put labels into the field that were taken from a file; before the field is drawn."""
    if taken := st.session_state.pop(_TAKEN, None):
        key, text = taken
        st.session_state[key] = text
