"""Guideline of the open project with its versions, and how its texts are handed out."""

from typing import cast

import streamlit as st

from malmoi.app import learning
from malmoi.app.explanation import explain
from malmoi.app.found_models import names_for
from malmoi.app.language import say
from malmoi.app.projects.guideline import edit_guideline, show_guideline
from malmoi.app.projects.model_field import choose_model
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.labels.people import AccessError
from malmoi.labels.project import ProjectSettings, SettingsChange, TextOrder
from malmoi.labels.projects import change_guideline, change_settings, guideline_of
from malmoi.messages import Phrase

ORDERS: dict[TextOrder, str] = {
    "plain": Phrase("as they were imported"),
    "adaptive": Phrase("at random at first, then as a model orders them"),
    "scores": Phrase("as a model orders them, a share at random"),
    "random": Phrase("all at random"),
}


def draw_guideline(open_project: OpenProject) -> None:
    """The newest version to be edited, and the earlier ones."""
    version = open_project.project.guideline_version
    if not open_project.allows("admin"):
        with st.container(border=True):
            show_guideline(open_project.project.guideline)
    else:
        st.caption(
            say(
                "This is version {version}. A change makes the next one; every label keeps the "
                "version that it was given by.",
                version=version,
            )
        )
        text = edit_guideline(
            open_project.project.guideline, key=f"guideline-{open_project.project.id}-{version}"
        )
        if st.button(say("Save the guideline"), type="primary", icon=":material/save:"):
            _save_guideline(open_project, text)
    if version > 1:
        with st.expander(say("Earlier versions"), icon=":material/history:"):
            chosen = st.selectbox(
                say("Version"),
                list(range(version - 1, 0, -1)),
                format_func=lambda one: say("version {one}", one=one),
                key=f"guideline-version-{open_project.project.id}",
            )
            with st.container(border=True):
                show_guideline(guideline_of(open_project.access, chosen), key="earlier")


def _save_guideline(open_project: OpenProject, text: str) -> None:
    try:
        version = change_guideline(open_project.access, text)
    except AccessError as error:
        explain(say("Only admins change it."), error)
    except InputError as error:
        explain(say("It cannot be saved."), error)
    else:
        st.toast(say("Version {version} is saved.", version=version), icon=":material/check:")
        st.rerun()


def draw_work(open_project: OpenProject) -> None:
    """How many annotators, whether they see suggestions, in which order, for how long."""
    now, may = open_project.project.settings, open_project.allows("admin")
    mark = f"{open_project.project.id}-{hash(now):x}"
    with st.form(f"work-{mark}", border=False):
        changes = _people_and_time(now, mark, may)
        changes.update(_order_and_model(now, mark, may))
        changes["model"] = choose_model(
            names_for(open_project.project.label_names),
            now.model,
            key=f"work-model-{mark}",
            disabled=not may,
        )
        pressed = st.form_submit_button(
            say("Save the settings"), type="primary", icon=":material/save:", disabled=not may
        )
    if pressed:
        _save_work(open_project, now, changes)


def _people_and_time(now: ProjectSettings, mark: str, may: bool) -> SettingsChange:
    left, right = st.columns(2)
    annotators = left.number_input(
        say("Annotators per text"),
        min_value=1,
        max_value=100,
        value=now.annotators_per_text,
        key=f"work-annotators-{mark}",
        disabled=not may,
        help=say(
            "Two or more label without seeing each other; reviewers decide where they differ."
        ),
    )
    minutes = right.number_input(
        say("Minutes for which a text is kept"),
        min_value=1 / 60,
        max_value=float(7 * 24 * 60),
        value=now.lease_seconds / 60,
        step=1.0,
        format="%.0f" if now.lease_seconds % 60 == 0 else "%.2f",
        key=f"work-lease-{mark}",
        disabled=not may,
        help=say("A text that is not done by then goes to somebody else."),
    )
    return SettingsChange(annotators_per_text=int(annotators), lease_seconds=round(60 * minutes))


def _order_and_model(now: ProjectSettings, mark: str, may: bool) -> SettingsChange:
    left, right = st.columns(2)
    order: TextOrder = left.selectbox(
        say("Order of texts"),
        list(ORDERS),
        index=list(ORDERS).index(now.text_order),
        format_func=lambda one: say(ORDERS[one]),
        key=f"work-order-{mark}",
        disabled=not may,
    )
    share = right.slider(
        say("Share at random, of a model's order (%)"),
        0,
        100,
        round(100 * now.random_share),
        step=5,
        key=f"work-share-{mark}",
        disabled=not may,
        help=say("Only texts drawn at random tell how good a model is without bias."),
    )
    suggestion = left.toggle(
        say("Show the model's suggestion while labelling"),
        now.show_suggestion,
        key=f"work-suggestion-{mark}",
        disabled=not may,
        help=say("It is faster to see it, and easier to be led by it."),
    )
    return SettingsChange(text_order=order, random_share=share / 100, show_suggestion=suggestion)


def _save_work(open_project: OpenProject, now: ProjectSettings, changes: SettingsChange) -> None:
    # Only what was changed here: somebody else may have changed the rest.
    changed = cast(
        SettingsChange,
        {name: value for name, value in changes.items() if getattr(now, name) != value},
    )
    try:
        change_settings(open_project.access, **changed)
    except AccessError as error:
        explain(say("Only admins change this."), error)
    except InputError as error:
        explain(say("It cannot be saved like this."), error)
    else:
        if "model" in changed and learning.is_on():
            learning.learn_now(open_project.access)
        st.toast(say("Saved."), icon=":material/check:")
        st.rerun()
