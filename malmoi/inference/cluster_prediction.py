"""Parquet in, Parquet out, predicted on a Ray cluster: one model an actor, one file a part.

Every actor reads its rows and writes its file itself, so that no text passes through the machine of
the command: that one only hears how far the others are.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from malmoi.command_line import is_full_disk
from malmoi.errors import InputError
from malmoi.files import sync
from malmoi.inference.classifier import Classifier
from malmoi.inference.parquet_parts import Cut, Part, read_units
from malmoi.inference.shipped_model import ShippedModel, load_shipped
from malmoi.inference.table_prediction import Labelled
from malmoi.progress import Progress
from malmoi.workers.ray_cluster import RETRIES, cluster_cores

PARTS = "output"
_UNFINISHED, _ATTEMPTS = "unfinished", "attempts"
# What a part says of itself, in the end of its file.
_COUNTS = b"malmoi"
_TYPES = {"str": pa.string(), "float": pa.float64()}


def label_on_cluster(
    ray: Any,
    cut: Cut,
    model: ShippedModel,
    work: Path,
    *,
    workers: int | None,
    skip_bad_rows: bool,
    progress: Progress,
) -> Labelled:
    """Predict all parts whose files are not there yet, into the folder `PARTS` of `work`.

    A part of a node that dies is predicted again by another actor. A file appears whole or not at
    all, so it does not matter how often that happens.

    Args:
        ray: joined, see `malmoi.workers.ray_cluster.joined_cluster`.
        cut: the input; all nodes find its files under the same paths.
        model: goes to the nodes by itself.
        work: folder that all nodes share, of this run and of earlier ones that were killed.
        workers: actors at most, each with a core; None: as many as the cluster has cores.
        skip_bad_rows: leave out rows whose text is none.
        progress: called with rows done.

    Raises:
        InputError: in the words of the actor that met it.
        RuntimeError: rows were lost, which is a defect.
    """
    for name in (_UNFINISHED, _ATTEMPTS):  # of a run that was killed
        shutil.rmtree(work / name, ignore_errors=True)
    for name in (PARTS, _UNFINISHED, _ATTEMPTS):
        (work / name).mkdir(exist_ok=True)
    paths = [work / PARTS / part.name for part in cut.parts]
    todo = [
        (place, part)
        for place, (part, path) in enumerate(zip(cut.parts, paths, strict=True))
        if not _is_whole(path)
    ]
    skipped = done = cut.rows - sum(part.rows for _, part in todo)
    progress("predicting", done, cut.rows, skipped=skipped)
    task = _Task(cut=cut, folder=work.resolve(), skip_bad_rows=skip_bad_rows)
    if todo:
        with closing(_finished(ray, [place for place, _ in todo], model, task, workers)) as rows:
            for number in rows:
                done += number
                progress("predicting", done, cut.rows, skipped=skipped)
    sync(work / PARTS)
    found = _counted(paths)
    if found.rows != cut.rows and not skip_bad_rows:
        raise RuntimeError(f"{found.rows} rows written of {cut.rows}")
    return found


def _is_whole(path: Path) -> bool:
    try:
        return _COUNTS in (pq.read_metadata(path).metadata or {})
    except (OSError, pa.ArrowException):
        return False


def _counted(paths: Sequence[Path]) -> Labelled:
    """What the ends of all files say together."""
    rows = empty = 0
    labels: Counter[str] = Counter()
    for path in paths:
        end = pq.read_metadata(path)
        found = json.loads(end.metadata[_COUNTS])
        rows += end.num_rows
        empty += found["empty"]
        labels.update(found["labels"])
    return Labelled(rows=rows, empty=empty, labels=dict(labels.most_common()))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Task:
    """What all actors do, in `folder`."""

    cut: Cut
    folder: Path
    skip_bad_rows: bool


def _finished(
    ray: Any, places: Sequence[int], model: ShippedModel, task: _Task, workers: int | None
) -> Generator[int]:
    """The rows of each of these parts, as an actor finishes it."""
    import ray.data as ray_data

    context = ray_data.DataContext.get_current()
    context.enable_progress_bars = False  # ours says more
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    # Held here until the end: an actor that begins again on another node asks for them again.
    shipped, what = ray.put(model), ray.put(task)
    items = [{"place": place} for place in places]
    parts = ray_data.from_items(items, override_num_blocks=len(items)).map_batches(
        PartPredictor,
        batch_size=1,
        fn_constructor_args=([shipped], [what]),
        # A pool that may shrink: an actor whose node is gone waits for a core, and gets that of
        # one that has nothing left to do.
        compute=ray_data.ActorPoolStrategy(
            min_size=1, max_size=min(workers or cluster_cores(ray), len(items))
        ),
        num_cpus=1,
    )
    for row in parts.iter_rows():
        if row["error"]:
            raise InputError(str(row["error"]))
        yield int(row["rows"])


class PartPredictor:
    """An actor: it holds the model, and turns parts into files."""

    def __init__(self, model: Sequence[Any], task: Sequence[Any]) -> None:
        """Load the model.

        Args:
            model: the reference of a `ShippedModel`.
            task: the reference of what all do.
        """
        import ray

        # An actor has one core; without this Rust's threads would take all.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        self._task: _Task = ray.get(task[0])
        self._classifier: Classifier | None = None
        try:
            self._classifier = load_shipped(ray.get(model[0]), threads=1)
        except Exception as error:  # raised here, Ray would begin the actor again and again
            self._error = _line(error)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The part at `place` becomes a file; gives its `rows`, or the `error` in one line."""
        part = self._task.cut.parts[int(batch["place"][0])]
        error = ""
        try:
            if self._classifier is None:
                raise InputError(self._error)
            _count_attempt(self._task.folder / _ATTEMPTS / part.name)
            write_part(
                part,
                self._task.cut.schema,
                self._classifier,
                self._task.folder,
                skip_bad_rows=self._task.skip_bad_rows,
            )
        except (InputError, OSError) as found:
            error = _line(found)
        return {"rows": np.array([part.rows]), "error": np.array([error])}


def _count_attempt(path: Path) -> None:
    """One byte an attempt: Ray itself would give a part that kills its actor to others for ever."""
    with path.open("ab") as file:
        file.write(b".")
        attempts = file.tell()
    if attempts > RETRIES:
        raise InputError(
            f"{path.name}: its actor died {RETRIES} times, most likely for want of memory; give "
            "fewer --workers, or larger nodes"
        )


def write_part(
    part: Part, schema: pa.Schema, classifier: Classifier, folder: Path, *, skip_bad_rows: bool
) -> None:
    """Predict a part and write its file, which appears whole, into the folder `PARTS` of `folder`.

    Raises:
        InputError: as `malmoi.inference.parquet_parts.read_units`.
        OSError: it cannot be written.
    """
    columns = classifier.columns
    names, kinds = columns.names(schema.names), columns.kinds()
    new = [pa.field(name, _TYPES[kind]) for name, kind in zip(names, kinds, strict=True)]
    empty = 0
    labels: Counter[str] = Counter()
    # A node that only seems to be dead may write the same part: each has a file of its own.
    scratch = folder / _UNFINISHED / f"{uuid.uuid4().hex}.parquet"
    try:
        whole = pa.schema([*schema, *new])
        with pq.ParquetWriter(scratch, whole, compression="zstd") as writer:
            for unit in read_units(part, schema, skip_bad_rows=skip_bad_rows):
                cells = classifier.predict_rows(unit.texts, unit.pairs)
                empty += sum(row[0] is None for row in cells)
                if columns.gives_labels:
                    labels.update(row[0] for row in cells if row[0] is not None)
                added = [
                    pa.array([row[place] for row in cells], field.type)
                    for place, field in enumerate(new)
                ]
                writer.write_table(
                    pa.Table.from_arrays([*unit.table.columns, *added], schema=whole)
                )
            counts = json.dumps({"empty": empty, "labels": labels}, ensure_ascii=False)
            writer.add_key_value_metadata({_COUNTS: counts.encode()})
        sync(scratch)
        scratch.replace(folder / PARTS / part.name)
    finally:
        scratch.unlink(missing_ok=True)


def _line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        todo = (
            "free some space"
            if is_full_disk(error)
            else "let every node read and write the folder that they share"
        )
        return f"{error.filename or 'a file'}: {error.strerror}; {todo}"
    return str(error) or type(error).__name__
