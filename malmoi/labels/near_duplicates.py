"""Texts of a project that are nearly the same, so that one of them can be shown for all."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sqlalchemy import select, update

from malmoi.labels.access import ProjectAccess
from malmoi.labels.tables import TextRow
from malmoi.text.cleaning.cleaner import clean_batch
from malmoi.text.duplicates.near import (
    NearDuplicates,
    find_near_duplicates,
    make_sketches,
)

# Higher than for corpora, where a text too many is lost: here one label may go to all. In a text
# of 60 characters one may differ.
THRESHOLD = 0.9
_READ, _WRITTEN = 5_000, 1_000


def group_alike(
    access: ProjectAccess, progress: Callable[[int, int], None] = lambda done, total: None
) -> int:
    """Find the texts that are nearly the same, and write to each of a group the id of its first.

    Spaces and case do not count: people of one mind set them differently. In memory are 230 bytes
    a text and one batch of texts, however long they are.

    Args:
        access: of an admin. After an import it is a local person of the server's own.
        progress: told the texts compared and their number.

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
            progress,
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
    changed: dict[int, int | None] = {one: None for one in before if one not in firsts}
    changed |= {one: first for one, first in firsts.items() if before.get(one) != first}
    by_first: dict[int | None, list[int]] = {}
    for one, first in changed.items():
        by_first.setdefault(first, []).append(one)
    batch: list[tuple[int | None, list[int]]] = []
    size = 0
    for first, members in by_first.items():
        for start in range(0, len(members), _WRITTEN):
            part = members[start : start + _WRITTEN]
            batch.append((first, part))
            size += len(part)
            if size >= _WRITTEN:
                _write_batch(access, batch)
                batch, size = [], 0
    _write_batch(access, batch)


def _write_batch(access: ProjectAccess, batch: list[tuple[int | None, list[int]]]) -> None:
    if not batch:
        return
    with access.writing("admin") as connection:
        for first, members in batch:
            connection.execute(update(TextRow).where(TextRow.id.in_(members)).values(alike=first))
