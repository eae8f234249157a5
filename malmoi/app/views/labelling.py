"""The page "라벨링": one key gives a text its label, saves it and shows the next."""

import importlib

import streamlit as st

from malmoi.app.filling import draw_filling
from malmoi.app.jobs import import_key, jobs
from malmoi.app.labelling.columns import choose_columns
from malmoi.app.labelling.component import draw_card
from malmoi.app.language import say
from malmoi.app.navigation import link_to
from malmoi.app.projects.guideline import show_guideline
from malmoi.app.side_by_side import side_by_side
from malmoi.app.visit import LOCAL_NAME, OpenProject, Visit
from malmoi.labels.text_state import has_texts

_SHOWN, _CURVE = "guideline", "curve"
_PIXELS = 520
_SECONDS_TO_LOOK_AGAIN = 5.0
_GUIDELINE = "labelling_guideline"
_SMALL = f"""
<style>
.st-key-{_GUIDELINE} :is(p, li, td, th) {{ font-size: 0.85rem; line-height: 1.5; }}
</style>
"""


def show(visit: Visit) -> None:
    open_project = visit.needs_project()
    if open_project is None:
        link_to("projects", say("Make a project"))
        return
    if (
        jobs().of(import_key(open_project.access.engine, open_project.access.project_id))
        is not None
    ):
        # Reads tables, which takes long to import.
        imports = importlib.import_module("malmoi.app.projects.imports")
        imports.draw_import(open_project, with_end=True, while_labelling=True)
    if open_project.project.archived_at is not None:
        st.info(
            say(
                "This project is archived. Its labels are kept; open it again under Settings to "
                "go on."
            ),
            icon=":material/inventory_2:",
        )
        link_to("settings", say("Open the settings"))
    elif not has_texts(open_project.access):
        st.info(
            say("There are no texts yet. Import a file under Projects to begin."),
            icon=":material/upload_file:",
        )
        link_to("projects", say("Import texts"))
    elif _is_nobody(open_project):
        st.info(
            say(
                "Several people label each text of this project. Type your name under Annotator "
                "on the left to begin."
            ),
            icon=":material/badge:",
        )
    else:
        _draw(open_project)


def _is_nobody(open_project: OpenProject) -> bool:
    """Whether two visitors like this one would count as one of several annotators."""
    person = open_project.access.person
    several = open_project.project.settings.annotators_per_text > 1
    return several and person.is_local and person.name == LOCAL_NAME


def _draw(open_project: OpenProject) -> None:
    """The card, and beside it (below it on a narrow page) the guideline."""
    guideline = open_project.project.guideline.strip()
    shown = bool(guideline) and st.toggle(
        say("Show the guideline"),
        key=_SHOWN,
        value=True,
        help=say("Keeps the guideline beside the text."),
    )
    st.html(_SMALL)
    # The card keeps its place with and without a guideline: another place would be a new card.
    card, beside = side_by_side("labelling")
    with card:
        draw_card(open_project)
        choose_columns(open_project)
    if shown:
        with beside, st.container(key=_GUIDELINE, border=True, height=_PIXELS):
            st.caption(
                say("Guideline, version {version}", version=open_project.project.guideline_version)
            )
            show_guideline(guideline)
    # The model may learn while nothing but the card is drawn.
    st.fragment(draw_filling, run_every=_SECONDS_TO_LOOK_AGAIN)(open_project)
    if st.toggle(say("Show what the model has learnt"), key=_CURVE):
        # Draws charts, which take long to import.
        importlib.import_module("malmoi.app.learning.curve").draw_curve(open_project)
