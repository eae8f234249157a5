"""Which model the app predicts with: finding, choosing and loading it once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from malmoi.app.address import take_from_address, write_to_address
from malmoi.app.explanation import explain
from malmoi.app.found_models import (
    available_models,
    display_name,
    distinct_names,
    is_run,
    model_name,
    other_models,
    short_name,
    stamp,
)
from malmoi.app.language import say
from malmoi.app.model_report import best, better_than, fold_report, labels_of, same_labels
from malmoi.app.navigation import link_to
from malmoi.app.plain_text import escaped
from malmoi.app.training_job import newest_training
from malmoi.app.visit import Visit
from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier
from malmoi.inference.engine_choice import known_engine
from malmoi.labels.tasks import task_named

MODEL = "model"
_KEPT, _OF_PROJECT = "kept_model", "project_of_model"
# What a visitor without a task of their own most likely has.
_FIRST_TASK = "reviews"
_WARM_UP = "첫 글을 기다리게 하지 않으려고 미리 한 번 돌립니다."


@dataclass(frozen=True, kw_only=True)
class ChosenModel:
    """The model that a page predicts with.

    Attributes:
        classifier: loaded.
        name: by which it is kept, with what it has suggested too.
        key: changes with the model, so that its result is not shown for another's.
    """

    classifier: Classifier
    name: str
    key: str


def choose_model(visit: Visit) -> ChosenModel | None:
    """Let the visitor choose a model in the sidebar, and load it; else say what to do.

    That of the open project comes first, and the page says which one answers.
    """
    models = available_models()
    if not models:
        show_missing_model()
        return None
    path = choose_name(models, visit)
    changed = stamp(path)
    try:
        with st.spinner(say("Loading the model…")):
            classifier = load_model(str(path), changed)
    except InputError as error:
        explain(
            say(
                "The model {name} cannot be read. Choose another one on the left, or train it "
                "again on the page Models.",
                name=display_name(path),
            ),
            error,
        )
        return None
    _describe(path, classifier, models)
    _tell_who_answers(path, visit)
    return ChosenModel(classifier=classifier, name=model_name(path), key=f"{path}@{changed}")


def choose_name(models: Sequence[Path], visit: Visit) -> Path:
    """Let the visitor choose one of these models in the sidebar; nothing else can be named.

    What is chosen stands in the address, and stays where pages without this choice come between,
    until another project is opened.

    Args:
        models: newest first, at least one.
        visit: whose open project says which model comes first.
    """
    paths = {model_name(path): path for path in models}
    shown = distinct_names(models)
    opened = None if visit.open_project is None else visit.open_project.project.id
    if st.session_state.setdefault(_OF_PROJECT, opened) != opened:
        st.session_state[_OF_PROJECT] = opened
        for key in (MODEL, _KEPT):
            st.session_state.pop(key, None)
        write_to_address(MODEL, "")
    # What is chosen, else what the address asks for, else what was chosen before another page.
    missing = take_from_address(MODEL, paths)
    asked = (st.session_state.get(MODEL), st.session_state.get(_KEPT))
    known = [name for name in asked if name in paths]
    # Set at every run: what another page's widget of this key holds does not go over to this one.
    first = known[0] if known else model_name(_first(models, visit))
    st.session_state[MODEL] = first
    with st.sidebar:
        name = st.selectbox(say("Model"), list(paths), format_func=shown.__getitem__, key=MODEL)
        _tell_others(missing)
    st.session_state[_KEPT] = name
    write_to_address(MODEL, name)
    return paths[name]


def _first(models: Sequence[Path], visit: Visit) -> Path:
    """The open project's model, else a released one: no run of somebody else takes its place."""
    own = _of_project(visit)
    released = [path for path in models if not is_run(path)]
    known = (
        [path for path in models if model_name(path) == own]
        or (same_labels(released, visit.label_names) if visit.label_names else [])
        or list(models)
    )
    return known[preferred(known, visit.label_names)]


def _of_project(visit: Visit) -> str | None:
    """What was trained on the open project's labels last, else what was chosen for it."""
    if visit.open_project is None:
        return None
    if (run := newest_training(visit.open_project.access)) is not None:
        return model_name(run.model)
    return visit.open_project.project.settings.model


def _tell_who_answers(path: Path, visit: Visit) -> None:
    """Say which model a page speaks for."""
    name = escaped(display_name(path))
    if model_name(path) == _of_project(visit):
        st.caption(say("{name} answers: the model of this project.", name=name))
    else:
        st.caption(say("{name} answers.", name=name))


def _tell_others(missing: str | None) -> None:
    """Say which models cannot be chosen here, and that the one of the address cannot."""
    if missing:
        name = escaped(short_name(missing))
        st.warning(
            say(
                "The model of the address, {name}, is not in this list; another one is open.",
                name=name,
            ),
            icon=":material/help:",
        )
    if others := other_models():
        names = ", ".join(escaped(display_name(path)) for path in others)
        st.caption(
            say(
                "Only models that give one label to one text work here, so these are not in the "
                "list: {names}.",
                names=names,
            )
        )


def use_model(name: str) -> None:
    """Choose a model by its name, as `model_name` has it; for a button's `on_click`."""
    st.session_state[MODEL] = st.session_state[_KEPT] = name


def _describe(path: Path, classifier: Classifier, models: Sequence[Path]) -> None:
    with st.sidebar:
        st.text(", ".join(classifier.labels))
        if (report := fold_report(path)) is not None:
            st.caption(say("Cross-validated F1 {f1:.2f} (1 is perfect)", f1=report.f1))
        tell_better(path, models)
        engine = classifier.engine
        st.caption(say("Computed here by {engine}.", engine=engine))


def tell_better(path: Path, models: Sequence[Path]) -> None:
    """Say where another model has scored higher on the same labels."""
    other = better_than(path, models)
    mine, theirs = fold_report(path), fold_report(other) if other else None
    if other is None or mine is None or theirs is None:
        return
    name = escaped(display_name(other))
    st.warning(
        say(
            "The model {name}, of the same labels, has the higher F1: {theirs:.2f}, and this one "
            "{mine:.2f}.",
            name=name,
            theirs=theirs.f1,
            mine=mine.f1,
        ),
        icon=":material/trending_down:",
    )


def show_missing_model() -> None:
    """Say how to come by a model."""
    st.warning(
        say("There is no model yet. Label some texts, then train one on the page Models."),
        icon=":material/model_training:",
    )
    link_to("models", say("Train a model on these labels"), query={"section": "train"})
    st.button(say("Look for models again"), icon=":material/refresh:")


def preferred(models: Sequence[Path], labels: Sequence[str] = ()) -> int:
    """Place of the model to start with.

    The best by its report of those that say the labels; where there is none, of those of reviews,
    else of those that say what the newest says. See `malmoi.app.model_report.best`.

    Args:
        models: newest first.
        labels: those of the project that is open; none without one.
    """
    try:
        task = task_named(_FIRST_TASK)
    except InputError:
        task = None  # the page of the task says what is wrong with it
    for wanted in (labels, task.label_names if task else (), labels_of(models[0])):
        if wanted and (found := best(same_labels(models, wanted))) is not None:
            return models.index(found)
    return 0


def load_first() -> None:
    """Load the model that the app begins with, where its engine is known already.

    A comparison takes both cores for long: it waits until somebody wants a prediction.
    """
    models = available_models()
    path = models[preferred(models)] if models else None
    if path is not None and known_engine(path) is not None:
        load_model(str(path), stamp(path))


@st.cache_resource(max_entries=2, show_spinner=False)
def load_model(path: str, changed: float) -> Classifier:
    """Load a model once for all sessions.

    Args:
        changed: its `stamp`; part of the cache key only.

    Raises:
        InputError: the directory is damaged or holds something else.
    """
    classifier = Classifier.load(path)
    classifier.predict([_WARM_UP])
    return classifier
