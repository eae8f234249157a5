"""Parquet in, Parquet out, predicted on a Ray cluster: one file a part, one model a process.

Every process reads its rows and writes its file itself, so that no text passes through the machine
of the command: that one only hears how far the others are.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections import Counter
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from malmoi.command_line import is_full_disk
from malmoi.errors import InputError
from malmoi.files import sync
from malmoi.inference.classifier import Classifier
from malmoi.inference.output_columns import OutputColumns
from malmoi.inference.parquet_parts import Cut, Part, rows_of_part
from malmoi.inference.shipped_model import ShippedModel
from malmoi.inference.table_prediction import (
    Labelled,
    classifier_of_worker,
    predict_unit,
    units_of,
)
from malmoi.progress import Progress
from malmoi.workers.engines import map_in_order

PARTS = "output"
_UNFINISHED = "unfinished"
# What a part says of itself, in the end of its file.
_COUNTS = b"malmoi"
_TYPES = {"str": pa.string(), "float": pa.float64()}


def label_on_cluster(
    cut: Cut,
    model: ShippedModel,
    columns: OutputColumns,
    work: Path,
    *,
    workers: int | None,
    skip_bad_rows: bool,
    progress: Progress,
) -> Labelled:
    """Predict all parts whose files are not there yet, into the folder `PARTS` of `work`.

    A part of a node that dies is predicted again on another. A file appears whole or not at all, so
    it does not matter how often that happens.

    Args:
        cut: the input; all nodes find its files under the same paths.
        model: goes to the nodes by itself.
        columns: that are added.
        work: folder that all nodes share, of this run and of earlier ones that were killed.
        workers: cores at most; None: as many as the cluster has.
        skip_bad_rows: leave out rows whose text is none.
        progress: called with rows done.

    Raises:
        InputError: in the words of the process that met it.
        RuntimeError: rows were lost, which is a defect.
    """
    shutil.rmtree(work / _UNFINISHED, ignore_errors=True)  # of a run that was killed
    for name in (PARTS, _UNFINISHED):
        (work / name).mkdir(exist_ok=True)
    paths = [work / PARTS / part.name for part in cut.parts]
    todo = [part for part, path in zip(cut.parts, paths, strict=True) if _counts(path) is None]
    skipped = done = cut.rows - sum(part.rows for part in todo)
    progress("predicting", done, cut.rows, skipped=skipped)
    label = partial(_label_part, model, columns, cut.schema, work.resolve(), skip_bad_rows)
    units = ((part.rows, part) for part in todo)
    for rows, _ in map_in_order(label, units, engine="ray", most_at_once=workers):
        done += rows
        progress("predicting", done, cut.rows, skipped=skipped)
    sync(work / PARTS)
    labelled = Labelled()
    for found in map(_counts, paths):
        assert found is not None
        labelled.rows += found.rows
        labelled.empty += found.empty
        labelled.unsure += found.unsure
        labelled.unknown += found.unknown
        labelled.labels.update(found.labels)
    if labelled.rows != cut.rows and not skip_bad_rows:
        raise RuntimeError(f"{labelled.rows} rows written of {cut.rows}")
    return labelled


def _counts(path: Path) -> Labelled | None:
    """What the end of a part says of it; None of one that is not there, or not whole."""
    try:
        end = pq.read_metadata(path)
        counts = json.loads(end.metadata[_COUNTS])
    except (OSError, pa.ArrowException, KeyError, TypeError):
        return None
    return Labelled(
        rows=end.num_rows,
        empty=counts["empty"],
        unsure=counts["unsure"],
        unknown=counts["unknown"],
        labels=Counter(counts["labels"]),
    )


def _label_part(
    model: ShippedModel,
    columns: OutputColumns,
    schema: pa.Schema,
    folder: Path,
    skip_bad_rows: bool,
    part: Part,
) -> None:
    """What a process of the cluster does with a part."""
    # It has one core; without this Rust's threads would take all.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        classifier = classifier_of_worker(model, model.engine, threads=1)
        classifier.columns = columns
        write_part(part, schema, classifier, folder, skip_bad_rows=skip_bad_rows)
    except OSError as error:
        if not error.strerror:
            raise
        todo = (
            "free some space"
            if is_full_disk(error)
            else "let every node read and write the folder that they share"
        )
        raise InputError(
            "{reason}; {todo}", place=error.filename or "a file", reason=error.strerror, todo=todo
        ) from error


def write_part(
    part: Part, schema: pa.Schema, classifier: Classifier, folder: Path, *, skip_bad_rows: bool
) -> None:
    """Predict a part and write its file, which appears whole, into the folder `PARTS` of `folder`.

    Raises:
        InputError: as `malmoi.inference.parquet_parts.rows_of_part`.
        OSError: it cannot be written.
    """
    columns = classifier.columns
    names, kinds = columns.names(schema.names), columns.kinds()
    new = [pa.field(name, _TYPES[kind]) for name, kind in zip(names, kinds, strict=True)]
    labelled = Labelled()
    # A node that only seems to be dead may write the same part: each has a file of its own.
    scratch = folder / _UNFINISHED / f"{uuid.uuid4().hex}.parquet"
    try:
        with pq.ParquetWriter(scratch, pa.schema([*schema, *new]), compression="zstd") as writer:
            for unit in units_of(rows_of_part(part, schema, skip_bad_rows=skip_bad_rows)):
                table = pa.Table.from_batches([row.cells for row in unit]).combine_chunks()
                found = predict_unit(unit, classifier)
                for cells in found:
                    labelled.add(cells, columns)
                for field, added in zip(new, zip(*found, strict=True), strict=True):
                    table = table.append_column(field, [pa.array(added, field.type)])
                writer.write_table(table)
            counts = {
                "empty": labelled.empty,
                "unsure": labelled.unsure,
                "unknown": labelled.unknown,
                "labels": labelled.labels,
            }
            writer.add_key_value_metadata({_COUNTS: json.dumps(counts, ensure_ascii=False)})
        sync(scratch)
        scratch.replace(folder / PARTS / part.name)
    finally:
        scratch.unlink(missing_ok=True)
