"""Projects that begin with a task of `corpora/`."""

from dataclasses import replace

import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.projects.imports import ImportOrder
from malmoi.app.projects.new_project import make_project
from malmoi.app.projects.preview import look_at
from malmoi.app.visit import Visit
from malmoi.errors import InputError
from malmoi.labels.importing import WayOfReading
from malmoi.labels.project import new_project_of_task
from malmoi.labels.tasks import TaskDefinition, own_tasks
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import find_sources


def draw_task_projects(visit: Visit) -> None:
    """Offer what there is; nothing where there is nothing."""
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
    make_project(visit, new, order)


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
