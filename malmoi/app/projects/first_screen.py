"""What a visitor sees who has no project yet: what this is, and three ways in."""

import csv
from itertools import islice
from pathlib import Path

import streamlit as st

from malmoi.app.found_models import available_models, model_name, names_for, stamp
from malmoi.app.language import say
from malmoi.app.model_choice import load_model, preferred
from malmoi.app.navigation import link_to, show_next
from malmoi.app.plain_text import escaped
from malmoi.app.projects.file_choice import upload_files
from malmoi.app.projects.imports import ImportOrder
from malmoi.app.projects.label_rows import with_defaults
from malmoi.app.projects.new_project import make_project, new_form
from malmoi.app.visit import Visit
from malmoi.errors import InputError
from malmoi.free_names import free_name
from malmoi.labels.importing import WayOfReading
from malmoi.labels.project import NewProject, ProjectSettings
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import find_sources

EXAMPLE = Path(__file__).parents[1] / "example" / "reviews.csv"
_LABELS = ("긍정", "부정", "중립")


def draw_first_screen(visit: Visit) -> None:
    """Draw it; with a file, or without one, the form of a new project comes next."""
    st.markdown(
        say(
            "Read some texts and press a key for each. The rest is labelled by a model that "
            "learns from you, and then it tells you what people say, of which product, since when."
        )
    )
    own, example, line = st.columns(3, gap="medium")
    with own.container(border=True, height="stretch"):
        st.subheader(say("Begin with my texts"), anchor=False)
        st.markdown(say("A file from Excel or anywhere else, with a text in each row."))
        if upload_files(new_form()) or st.button(
            say("Without a file"), icon=":material/add_circle:", width="stretch"
        ):
            show_next("new")
    with example.container(border=True, height="stretch"):
        st.subheader(say("Look around an example"), anchor=False)
        st.markdown(say("120 reviews of a shop, ready to label: press 1, 2 or 3."))
        with EXAMPLE.open(encoding="utf-8", newline="") as file:
            so_so_good_bad = list(islice(csv.DictReader(file), 3, 6))
        for row in so_so_good_bad:
            st.caption(f"{'★' * int(row['별점'])} {escaped(row['리뷰'])}")
        if st.button(say("Open the example"), icon=":material/play_arrow:", width="stretch"):
            _make_example(visit)
    with line.container(border=True, height="stretch"):
        st.subheader(say("Try one sentence"), anchor=False)
        _classify_one_line()


def _make_example(visit: Visit) -> None:
    taken = {project.name for project in visit.store.list(visit.person, archived=True)}
    settings = ProjectSettings(model=next(iter(names_for(_LABELS)), None))
    new = NewProject(
        name=free_name(say("Example: reviews of a shop"), taken),
        labels=with_defaults(_LABELS),
        settings=settings,
    )
    way = WayOfReading(options=ReadOptions(text_column="리뷰"))
    make_project(visit, new, ImportOrder(groups=[(way, find_sources(EXAMPLE))]))


def _classify_one_line() -> None:
    """The model that pages begin with, on a text that is typed here."""
    models = available_models()
    if not models:
        st.caption(say("There is no model here yet."))
        return
    text = st.text_input(
        say("A review"), say("Arrived fast, but the scent is too strong"), key="first_line"
    )
    if st.button(say("What does it say?"), width="stretch") and (text or "").strip():
        path = models[preferred(models)]
        try:
            with st.spinner(say("Loading the model…")):
                (found,) = load_model(str(path), stamp(path)).predict([text or ""])
        except InputError:
            found = None  # the page of one text says what is wrong with the model
        if found is not None:
            st.metric(say("Prediction"), found.label or say("(none)"))
            st.progress(
                found.confidence, text=say("{share:.0%} sure of it", share=found.confidence)
            )
    link_to("single", say("More on one text"), query={"model": model_name(models[0])})
