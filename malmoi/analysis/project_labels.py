"""What people say of the texts of a project of the app, as far as it was drawn by chance."""

import json
from collections.abc import Mapping, Sequence

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.connection import existing_database, in_parts
from malmoi.labels.final_label_rule import final_label
from malmoi.labels.project import Project
from malmoi.labels.projects import ProjectStore, read_project
from malmoi.labels.review import reviewed_texts
from malmoi.labels.scores import random_sample
from malmoi.labels.stored_text import text_hash
from malmoi.labels.training_texts import READER


def people_labels(
    database: str, project: str | None, texts: Sequence[str]
) -> tuple[list[str], Mapping[str, str]]:
    """The labels of N texts as JSON lists, "" of those that are not in the project's sample.

    And the colours of labels, as `label_colors`.

    Args:
        database: a file or a URL.
        project: its name; None: the only one there is.
        texts: N.

    Raises:
        InputError: there is no such database or project, or none of the texts has a label in it.
    """
    store = ProjectStore(existing_database(database), "--labels")
    names = [one.name for one in store.list(READER, archived=True)]
    if project is None and len(names) != 1:
        raise InputError(
            "expected --project with one of the projects of {database}, {names:, }, found none",
            database=database,
            names=names,
        )
    access = store.access(READER, names[0] if project is None else project)
    known = {
        text_hash(text): json.dumps(labels, ensure_ascii=False)
        for text, labels in sample_labels(access).values()
    }
    found = [known.get(text_hash(text), "") for text in texts]
    if not any(found):
        raise InputError(
            "expected texts of the project whose random sample has labels, found none of {texts:,} "
            "among the {known:,} of it; give the file that was imported, or label more",
            texts=len(texts),
            known=len(known),
        )
    return found, label_colors(read_project(access))


def label_colors(project: Project) -> dict[str, str]:
    """As on the labelling card, by the name of a label and by what it is shown as."""
    return {
        name: label.color
        for label in project.labels
        if label.color is not None
        for name in (label.title, label.name)
    }


def sample_labels(access: ProjectAccess) -> Mapping[int, tuple[str, tuple[str, ...]]]:
    """Text and labels of each text of the random sample on which people agree, by its id.

    Raises:
        AccessError: the person is no reviewer.
    """
    ids = random_sample(access)
    found: dict[int, tuple[str, tuple[str, ...]]] = {}
    with access.reading("reviewer") as connection:
        for some in in_parts(ids):
            for text in reviewed_texts(access, connection, some):
                final = final_label(text)
                if final is not None:
                    found[text.text_id] = (text.text, final.labels)
    return found
