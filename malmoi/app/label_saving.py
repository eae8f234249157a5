"""Where a label goes that is given on the pages of a model: into a project that has its labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.found_models import short_name
from malmoi.app.language import say
from malmoi.app.visit import LOCAL_NAME, Visit, open_project_named
from malmoi.errors import InputError
from malmoi.free_names import free_name
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, Suggestion, save_acts, take_back
from malmoi.labels.found_texts import add_texts
from malmoi.labels.label_names import normal_label
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel, new_project_of_task
from malmoi.labels.tasks import TaskDefinition, task_with_labels


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A label for a text.

    Attributes:
        text: as it was on screen.
        label: what the person chose.
        suggestion: what the model had said.
        request_id: names the decision; the same one arriving twice is saved once.
    """

    text: str
    label: str
    suggestion: Suggestion | None
    request_id: str


@dataclass(frozen=True, kw_only=True)
class Place:
    """A project that takes the labels of a model, or what one that would be made is like.

    Attributes:
        access: to the project; None of one that is yet to be made.
        name: of it.
        labels: those that can be given: the model's, in its spelling, then others of the project.
        task: with the model's labels, where there is one.
        instead_of: the open project, where that cannot take the labels.
    """

    access: ProjectAccess | None
    name: str
    labels: Sequence[str]
    task: TaskDefinition | None
    instead_of: str | None = None

    @property
    def id(self) -> int | None:
        """Of the project; None of one that is yet to be made."""
        return None if self.access is None else self.access.project_id


def place_for(visit: Visit, labels: Sequence[str], model: str) -> Place:
    """The open project where it has all labels of the model, else the first that has just those.

    Without any, saving makes one: that of a task with these labels, else named like the model.
    """
    said = {normal_label(label) for label in labels}
    try:
        task = task_with_labels(labels)
    except InputError as error:
        explain(say("The guideline cannot be read. Mend the task's task.toml."), error)
        task = None
    project = None if visit.open_project is None else visit.open_project.project
    if project is not None and project.kind == "single" and said <= set(project.label_names):
        others = [label for label in project.label_names if label not in said]
        access = visit.store.access(visit.person, project.id)
        return Place(access=access, name=project.name, labels=[*labels, *others], task=task)
    projects = visit.store.list(visit.person, archived=True)
    instead_of = None if project is None else project.name
    for one in projects:
        if one.archived_at is None and one.kind == "single" and set(one.label_names) == said:
            access = visit.store.access(visit.person, one.id)
            return Place(
                access=access, name=one.name, labels=labels, task=task, instead_of=instead_of
            )
    wished = task.title if task is not None else short_name(model)
    name = free_name(wished, [one.name for one in projects])
    return Place(access=None, name=name, labels=labels, task=task, instead_of=instead_of)


def tell_place(place: Place) -> None:
    """Say where labels of this page go."""
    if place.access is None:
        st.text(say("Saving makes the new project {name}", name=place.name))
    else:
        st.text(say("Saved in the project {name}", name=place.name))
    if place.instead_of is not None:
        st.text(
            say(
                "The open project {project} cannot take the labels of this model.",
                project=place.instead_of,
            )
        )


def save_decisions(
    visit: Visit, place: Place, decisions: Sequence[Decision], source: str
) -> list[int]:
    """Save decisions, making the project where there is none.

    Args:
        decisions: at most 1,000.
        source: where the texts come from.

    Returns:
        The texts' ids in the project.

    Raises:
        InputError: the project does not take them; none is saved.
    """
    access = place.access
    if access is None:
        new = NewProject(
            name=place.name,
            labels=[ProjectLabel(name=label) for label in place.labels],
        )
        if place.task is not None:
            new = replace(new_project_of_task(place.task), name=place.name)
        access = visit.store.create(visit.person, new)
        if visit.open_project is None:
            open_project_named(place.name)
    ids = add_texts(access, [one.text for one in decisions], source)
    acts = [
        Act(
            text_id=text_id,
            kind="label",
            request_id=one.request_id,
            labels=[one.label],
            suggestion=one.suggestion,
        )
        for text_id, one in zip(ids, decisions, strict=True)
    ]
    save_acts(access, acts)
    return ids


def may_take_back(person: Person, giver: str) -> bool:
    """Whether labels of this giver are the person's own, as are those from before a name."""
    return giver == person.name or (person.is_local and giver == LOCAL_NAME)


def take_labels_back(
    access: ProjectAccess, giver: str, requests: Sequence[tuple[int, str]]
) -> None:
    """Undo labels that `save_decisions` has saved.

    Args:
        access: of the project, for who is at work now.
        giver: who gave the labels.
        requests: (text, request id) of each.

    Raises:
        InputError: the labels are another person's; see `may_take_back`.
    """
    if may_take_back(access.person, giver):
        access = replace(access, person=replace(access.person, name=giver))
    take_back(access, requests)
