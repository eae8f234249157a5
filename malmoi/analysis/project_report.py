"""A project of the app as a `Report`: its texts, what people and a model said of them, vectors."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sqlalchemy import Connection, select

from malmoi.analysis.analysing import unlearnt
from malmoi.analysis.project_labels import label_colors, sample_labels
from malmoi.analysis.report import Report
from malmoi.analysis.shares import Labelling
from malmoi.labels.access import ProjectAccess
from malmoi.labels.exporting import first_sources
from malmoi.labels.label_names import normal_label
from malmoi.labels.projects import read_project
from malmoi.labels.tables import TextRow
from malmoi.labels.vector_index import read_index
from malmoi.text.cleaning.cleaner import clean_batch

_TEXTS = 5_000


@dataclass(frozen=True, kw_only=True)
class ProjectReport:
    """What a project says.

    Attributes:
        report: of its texts, in the order of import.
        text_ids: of them.
    """

    report: Report
    text_ids: Sequence[int]


def project_report(
    access: ProjectAccess,
    said: Mapping[str, tuple[Sequence[str], float]],
    *,
    model: str | None,
    folder: Path | None = None,
    vectors_of: str | None = None,
) -> ProjectReport:
    """Read a project; without labels of people and of a model there are themes alone.

    Args:
        access: of a reviewer.
        said: labels and confidence of the model, by the id of the text as a string.
        model: its name; None: there is none.
        folder: of a classifier, which may have learnt some of the texts.
        vectors_of: identity of the sentence encoder whose vectors are kept.

    Raises:
        AccessError: the person is no reviewer.
    """
    with access.reading("reviewer") as connection:
        rows, cells = _rows(access, connection)
    ids = list(rows)
    texts, hashes = [rows[one][0] for one in ids], [rows[one][1] for one in ids]
    people = {one: labels for one, (_, labels) in sample_labels(access).items()}
    project = read_project(access)
    names = list(project.label_names) if said or people else []
    labelling = Labelling(
        said=_matrix([said[key][0] if (key := str(one)) in said else () for one in ids], names),
        given=_matrix([people.get(one, ()) for one in ids], names),
        drawn=np.array([one in people for one in ids], dtype=bool),
    )
    learnt = 0
    if folder is not None:
        labelling, learnt = unlearnt(labelling, clean_batch(texts).texts, names, folder)
    shown = [project.titles[name] for name in names]
    if len(set(shown)) < len(shown):
        shown = names
    return ProjectReport(
        report=Report(
            originals=texts,
            cells=cells,
            labels=shown,
            colors=label_colors(project),
            labelling=labelling,
            confidence=np.array([said.get(str(one), ((), np.nan))[1] for one in ids], dtype=float),
            model=model,
            title=project.name,
            learnt=learnt,
            vectors=None if vectors_of is None else _vectors(access, hashes, vectors_of),
        ),
        text_ids=ids,
    )


def _rows(
    access: ProjectAccess, connection: Connection
) -> tuple[dict[int, tuple[str, str]], pd.DataFrame]:
    """Text and hash by id, and the cells of the first row of each."""
    query = select(TextRow.id, TextRow.text, TextRow.text_sha256).where(
        TextRow.project_id == access.project_id
    )
    rows = {id_: (text, key) for id_, text, key in connection.execute(query.order_by(TextRow.id))}
    ids, cells = list(rows), []
    for start in range(0, len(ids), _TEXTS):
        some = ids[start : start + _TEXTS]
        sources = first_sources(connection, some)
        cells += [sources[one][2] if one in sources else {} for one in some]
    plain = [{name: _plain(cell) for name, cell in row.items()} for row in cells]
    return rows, pd.DataFrame(plain, index=range(len(ids)), dtype=object)


def _plain(cell: object) -> object:
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, list | dict) else cell


def _matrix(labels: Sequence[Sequence[str]], names: Sequence[str]) -> np.ndarray:
    place = {normal_label(name): number for number, name in enumerate(names)}
    found = np.zeros((len(labels), len(names)), dtype=bool)
    for row, given in enumerate(labels):
        found[row, [place[key] for one in given if (key := normal_label(one)) in place]] = True
    return found


def _vectors(access: ProjectAccess, hashes: Sequence[str], identity: str) -> np.ndarray | None:
    """Those that are there, 0 of the others; None where there are none."""
    index = read_index(access, identity)
    if not len(index):
        return None
    place = {row.tobytes().hex(): number for number, row in enumerate(index.hashes)}
    places = np.array([place.get(one, -1) for one in hashes])
    found = index.vectors[places]
    found[places < 0] = 0
    return np.asarray(found)
