"""Texts of a project that are nearly the same: one of them is shown and labelled for all."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from sqlalchemy import bindparam, select, update

from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act
from malmoi.labels.connection import in_parts
from malmoi.labels.leasing import texts_alike
from malmoi.labels.tables import AnnotationRow, TextRow
from malmoi.text.cleaning.cleaner import clean_batch
from malmoi.text.duplicates.near import (
    NearDuplicates,
    find_near_duplicates,
    make_sketches,
)

# Higher than for corpora, where a text too many is lost: here one label may go to all. In a text
# of 60 characters one may differ.
THRESHOLD = 0.9
_READ = 5_000


def group_alike(access: ProjectAccess) -> int:
    """Find the texts that are nearly the same, and write to each of a group the id of its first.

    Spaces and case do not count: people of one mind set them differently. In memory are 230 bytes
    a text and one batch of texts, however long they are.

    Args:
        access: of an admin. After an import it is a local person of the server's own.

    Returns:
        How many texts have one before them that is nearly the same.

    Raises:
        AccessError: the person is no admin.
    """
    settings = NearDuplicates(threshold=THRESHOLD)
    ids: list[np.ndarray] = []
    bands: list[np.ndarray] = []
    sketches: list[np.ndarray] = []
    for some_ids, some_bands, some_sketches in _sketched(access, settings):
        ids.append(some_ids)
        bands.append(some_bands)
        sketches.append(some_sketches)
    if not ids:
        return 0
    every = np.concatenate(ids)
    with tempfile.TemporaryDirectory(prefix="malmoi-alike-") as work:
        keepers = find_near_duplicates(
            lambda band: np.concatenate([part[:, band] for part in bands]),
            iter(sketches),
            settings,
            Path(work),
            lambda done, total: None,
        )
    is_copy = keepers != np.arange(len(every))
    in_group = is_copy.copy()
    in_group[keepers[is_copy]] = True
    firsts = {int(every[place]): int(every[keepers[place]]) for place in np.flatnonzero(in_group)}
    _write(access, firsts)
    return int(is_copy.sum())


def _sketched(
    access: ProjectAccess, settings: NearDuplicates
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Ids of texts, int64 [n], in the order of import, and what `make_sketches` gives of them."""
    last = 0
    while True:
        query = (
            select(TextRow.id, TextRow.text)
            .where(TextRow.project_id == access.project_id, TextRow.id > last)
            .order_by(TextRow.id)
            .limit(_READ)
        )
        with access.reading("admin") as connection:
            rows = connection.execute(query).tuples().all()
        if not rows:
            return
        clean = clean_batch([text for _, text in rows]).texts
        # What nothing is left of is like itself only.
        plain = [
            "".join((text or original).casefold().split()) or original
            for text, (_, original) in zip(clean, rows, strict=True)
        ]
        yield np.array([one for one, _ in rows], dtype=np.int64), *make_sketches(plain, settings)
        last = rows[-1][0]


def _write(access: ProjectAccess, firsts: dict[int, int]) -> None:
    """Write the groups, and take away what was one before; in short transactions."""
    mine = TextRow.project_id == access.project_id
    query = select(TextRow.id, TextRow.alike).where(mine, TextRow.alike.is_not(None))
    with access.reading("admin") as connection:
        before = dict(connection.execute(query).tuples().all())
    changed = [
        {"changed": one, "first": firsts.get(one)}
        for one in sorted(before.keys() | firsts.keys())
        if before.get(one) != firsts.get(one)
    ]
    alone = update(TextRow).where(TextRow.id == bindparam("changed"))
    for part in in_parts(changed):
        with access.writing("admin") as connection:
            connection.execute(alone.values(alike=bindparam("first")), part)


def acts_of_alike(access: ProjectAccess, act: Act) -> list[Act]:
    """What an act on a text does to those that are nearly the same, to be saved with it.

    A label is given to those that this annotator could be handed now; an undo takes back what the
    label that it withdraws gave to them. An act that was saved before does nothing more.

    Args:
        act: a label, or the undo of one.

    Raises:
        AccessError: the person is no member.
    """
    with access.reading() as connection:
        saved = select(AnnotationRow.id).where(AnnotationRow.request_id == act.request_id)
        if connection.scalar(saved) is not None:
            return []
    if act.kind == "label":
        others = texts_alike(access, act.text_id)
    elif act.withdraws is not None:
        others = _labelled_with(access, act.text_id, act.withdraws)
    else:
        return []
    return [
        replace(
            act,
            text_id=other,
            request_id=_named_after(act.request_id, other),
            withdraws=None if act.withdraws is None else _named_after(act.withdraws, other),
            # Nobody looked at this text.
            shown=None,
            suggestion=None,
            seconds=None,
        )
        for other in others
    ]


def _labelled_with(access: ProjectAccess, text_id: int, request_id: str) -> list[int]:
    kind = select(TextRow.alike).where(TextRow.id == text_id).scalar_subquery()
    query = select(TextRow.id).where(
        TextRow.project_id == access.project_id, TextRow.alike == kind, TextRow.id != text_id
    )
    with access.reading() as connection:
        names = {_named_after(request_id, other): other for other in connection.scalars(query)}
        found: list[int] = []
        for some in in_parts(list(names)):
            rows = select(AnnotationRow.request_id).where(AnnotationRow.request_id.in_(some))
            found += [names[one] for one in connection.scalars(rows)]
        return found


def _named_after(request_id: str, text_id: int) -> str:
    return f"{request_id}:{text_id}"
