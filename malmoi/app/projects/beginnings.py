"""Projects that begin with what is there: a task of `corpora/`, labels saved one by one."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st
from sqlalchemy.orm import Session

from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.projects.imports import ImportOrder
from malmoi.app.projects.new_project import make_project
from malmoi.app.projects.preview import look_at
from malmoi.app.projects.uploads import UploadFolder
from malmoi.app.visit import Visit
from malmoi.errors import InputError
from malmoi.labels.importing import WayOfReading
from malmoi.labels.models import names_in
from malmoi.labels.names import in_order
from malmoi.labels.project import NewProject, ProjectLabel, new_project_of_task
from malmoi.labels.queries import known_sets
from malmoi.labels.store import LabelStore
from malmoi.labels.tasks import TaskDefinition, own_tasks
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import find_sources

_SECONDS = 60


@dataclass(frozen=True, kw_only=True)
class SavedLabels:
    """Labels from before there were projects: what one could choose from, and how many texts."""

    labels: tuple[str, ...]
    texts: int


def draw_beginnings(visit: Visit) -> None:
    """Offer what there is; nothing where there is nothing."""
    _draw_tasks(visit)
    # These labels are of no project, so there are no members to ask for.
    if visit.person.is_local:
        _draw_saved(visit)


def _draw_tasks(visit: Visit) -> None:
    try:
        tasks = own_tasks()
    except InputError as error:
        explain(say("A task.toml in corpora cannot be read."), error)
        return
    if not tasks:
        return
    with st.expander(say("Begin with a task of corpora"), icon=":material/library_books:"):
        place = st.selectbox(
            say("Task (task.toml in corpora)"),
            range(len(tasks)),
            format_func=lambda one: f"{tasks[one].title} ({tasks[one].name})",
            key="begin_task",
        )
        task = tasks[place]
        st.text(", ".join(label.title for label in task.labels))
        name = st.text_input(
            say("Name of the project"),
            task.name,
            key=f"begin-name-{task.name}",
            max_chars=200,
        )
        with_labels = st.toggle(
            say("Import the labels of its file, too"),
            value=True,
            key=f"begin-labels-{task.name}",
            help=say("Without them, labelling begins from nothing."),
        )
        if st.button(say("Open as a project"), key="begin-task-make"):
            _make_of_task(visit, task, name or task.name, with_labels)


def _make_of_task(visit: Visit, task: TaskDefinition, name: str, with_labels: bool) -> None:
    try:
        new = replace(new_project_of_task(task), name=name)
        order = order_of_task(task, with_labels=with_labels)
    except InputError as error:
        explain(say("This task cannot be opened."), error)
        return
    make_project(visit, new, order, _nothing)


def order_of_task(task: TaskDefinition, *, with_labels: bool) -> ImportOrder:
    """The data of a task as an import.

    Raises:
        InputError: its file is missing or cannot be read.
    """
    groups = []
    for source in find_sources(task.data):
        label = task.label_column
        if with_labels and label is None:
            preview = look_at(source)
            label = None if preview.label is None else preview.columns[preview.label]
        way = WayOfReading(
            options=ReadOptions(text_column=task.text_column),
            label_column=label if with_labels else None,
        )
        groups.append((way, [source]))
    return ImportOrder(groups=groups)


def _draw_saved(visit: Visit) -> None:
    url = visit.store.engine.url.render_as_string(hide_password=False)
    found = _saved(url, visit)
    if not found:
        return
    with st.expander(
        say("Begin with labels that were saved before"),
        icon=":material/inventory_2:",
    ):
        place = st.selectbox(
            say("Saved labels"),
            range(len(found)),
            format_func=lambda one: (
                f"{', '.join(found[one].labels)} · " + say("{texts:text}", texts=found[one].texts)
            ),
            key="begin_saved",
        )
        name = st.text_input(
            say("Name of the project"),
            say("saved labels"),
            key=f"begin-saved-name-{place}",
            max_chars=200,
        )
        st.caption(
            say("Texts come with their labels and who gave them. What was saved stays as it is.")
        )
        if st.button(say("Make a project of it"), key="begin-saved-make"):
            _make_of_saved(visit, found[place].labels, name or "")


def _make_of_saved(visit: Visit, labels: Sequence[str], name: str) -> None:
    try:
        new = NewProject(name=name, labels=[ProjectLabel(name=one) for one in labels])
    except InputError as error:
        explain(say("It cannot be made like this."), error)
        return
    make_project(visit, new, order_of_saved(visit, labels), _nothing)


def order_of_saved(visit: Visit, labels: Sequence[str]) -> ImportOrder:
    """The labels that were saved for a task, as an import.

    Args:
        visit: whose database it is.
        labels: of the task.
    """
    lines = [
        json.dumps(
            {
                "text": row.text,
                "label": row.label,
                "annotator": row.annotator,
                "model": row.model,
                "saved_at": row.created_at.isoformat(timespec="seconds"),
            },
            ensure_ascii=False,
        )
        for row in LabelStore(visit.store.engine.url).current(labels)
    ]
    folder = UploadFolder()
    source = folder.write("labels.jsonl", "\n".join(lines).encode())
    way = WayOfReading(
        options=ReadOptions(text_column="text"),
        label_column="label",
        annotator_column="annotator",
    )
    return ImportOrder(groups=[(way, [source])], folders=[folder])


@st.cache_data(ttl=_SECONDS, max_entries=4, show_spinner=False)
def _saved(url: str, _visit: Visit) -> list[SavedLabels]:
    """What was saved, by the labels that one could choose from."""
    with Session(_visit.store.engine) as session:
        sets = known_sets(session)
    store = LabelStore(_visit.store.engine.url)
    found = []
    for one in sets:
        labels = names_in(one)
        texts = sum(store.counts(labels).values())
        if texts and len(labels) > 1:
            found.append(SavedLabels(labels=tuple(in_order(labels)), texts=texts))
    return found


def _nothing() -> None:
    pass
