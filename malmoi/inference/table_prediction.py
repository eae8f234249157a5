"""Rows in, the same rows with predictions out.

To a file, by units that a killed run need not do again; to a pipe, as lines of JSON; and the pieces
of which `malmoi.inference.cluster_prediction` labels a table on many machines.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol, TypeVar

from malmoi.errors import UnfinishedError
from malmoi.files import sync, write_at_once
from malmoi.inference.classifier import Classifier
from malmoi.inference.output_columns import UNKNOWN, UNSURE, OutputColumns
from malmoi.inference.shipped_model import ShippedModel, load_shipped
from malmoi.inference.working_ahead import worked_ahead
from malmoi.model_folders import read_json
from malmoi.progress import Progress
from malmoi.text.reading.bad_rows import BadRows
from malmoi.text.reading.columns import ColumnRequest, distinct_names
from malmoi.text.reading.notes import SourceNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import Source
from malmoi.text.reading.tables import open_table
from malmoi.text.record import Record
from malmoi.text.table_writing import (
    ABSENT,
    KINDS,
    check_writable,
    ending,
    json_line,
    table_writer,
)
from malmoi.text.written_cells import CutCells
from malmoi.workers.engines import map_in_order
from malmoi.workers.local import available_cores

# Large enough that texts of like length are found in it, small enough that a kill costs seconds.
ROWS_IN_UNIT = 10_000
# A unit of long texts is cut earlier: memory does not grow with the length of texts.
CHARACTERS_IN_UNIT = 8_000_000
_SURVEY, _UNITS = "survey.json", "units"

# N texts, and the second text of each where the model reads pairs.
TextsAndPairs = tuple[list[str], list[str] | None]
# Of the new columns, N rows.
Cells = list[list[Any]]


class HasText(Protocol):
    """A row, whatever else it holds."""

    @property
    def text(self) -> str: ...
    @property
    def pair(self) -> str | None: ...


Row = TypeVar("Row", bound=HasText)


@dataclass(kw_only=True)
class Survey:
    """What a first reading has found.

    Attributes:
        rows: how many there are.
        columns: name to kind (one of `KINDS`; "" where all cells are empty), in the order in which
            they were met.
    """

    rows: int = 0
    columns: dict[str, str] = field(default_factory=dict)

    def add(self, row: Record) -> None:
        self.rows += 1
        for name, cell in row.cells.items():
            kind = _kind(cell)
            before = self.columns.setdefault(name, kind)
            if kind and kind != before:
                self.columns[name] = _wider(before, kind)


def _kind(cell: Any) -> str:
    """The kind of a column that holds this cell alone; an integer beyond 64 bits stays text."""
    if cell is None or cell != cell:
        return ""
    if type(cell) is int and not -(2**63) <= cell < 2**63:
        return "str"
    return next((kind for kind, types in KINDS.items() if type(cell) in types), "str")


def _wider(before: str, kind: str) -> str:
    """The kind of a column that holds cells of both."""
    if not before:
        return kind
    return "float" if {before, kind} == {"int", "float"} else "str"


def kept_columns(
    sources: Sequence[Source], options: ReadOptions, output: Path, pair_column: str | None = None
) -> dict[str, Any]:
    """What a column keeps beside its cells where the output is a file of the same kind.

    Args:
        output: its ending says the kind.
        pair_column: of second texts.

    Returns:
        By column: of Parquet its type, of workbooks how numbers and dates are shown; none where
        the files differ.

    Raises:
        InputError: as the reader.
    """
    alike = {".parquet": {".parquet", ".arrow"}, ".xlsx": {".xlsx"}}.get(ending(output), set())
    if not {source.format for source in sources} <= alike:
        return {}
    found: dict[str, set[Any]] = {}
    for source in sources:
        request = ColumnRequest(text=options.text_column, pair=pair_column)
        notes = SourceNotes(source=source.name)
        with open_table(source, request, options, notes, BadRows(skip=True)) as table:
            kept = dict(enumerate(table.types)) or table.formats()
            for place, name in enumerate(distinct_names(table.columns)):
                if place in kept:
                    found.setdefault(name, set()).add(kept[place])
    return {name: next(iter(kinds)) for name, kinds in found.items() if len(kinds) == 1}


@dataclass(kw_only=True)
class Labelled:
    """What became of a table.

    Attributes:
        rows: in the output.
        empty: of these, rows without a text.
        unsure, unknown: of these, rows whose label is no answer.
        labels: how often each label was given.
        cuts: cells that the output, a workbook, does not hold whole.
    """

    rows: int = 0
    empty: int = 0
    unsure: int = 0
    unknown: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    cuts: CutCells = field(default_factory=CutCells)

    def add(self, cells: Sequence[Any], columns: OutputColumns) -> None:
        """Count a row by the cells of its prediction."""
        self.rows += 1
        if cells[0] is None:
            self.empty += 1
        elif columns.gives_labels:
            self.labels[columns.shown(cells[0])] += 1
            if columns.threshold is not None:
                self.unsure += cells[-1] == UNSURE
                self.unknown += cells[-1] == UNKNOWN


def survey_rows(read: Callable[[], Iterable[Record]], work: Path) -> Survey:
    """Read all rows once, before anything is computed; what an earlier run has found is taken.

    Raises:
        InputError: as the reader, for any row.
    """
    known = read_json(work / _SURVEY)
    if known:
        return Survey(**known)
    survey = Survey()
    for row in read():
        survey.add(row)
    write_at_once(work / _SURVEY, json.dumps(asdict(survey), ensure_ascii=False))
    return survey


def label_table(
    read: Callable[[], Iterable[Record]],
    survey: Survey,
    classifier: Classifier,
    output: Path,
    work: Path,
    *,
    kept: Mapping[str, Any],
    model: str,
    workers: int,
    progress: Progress,
) -> Labelled:
    """Predict every row and write the table, in the order of the input.

    Args:
        read: streams the rows; the same ones each time.
        survey: of these rows.
        classifier: loaded in this process; it computes where there is one worker.
        output: the file to write; it appears whole.
        work: folder of finished units, of this run and of earlier ones that were killed.
        kept: of `kept_columns`.
        model: how another process loads the classifier.
        workers: processes.
        progress: called with rows done.

    Raises:
        InputError: the output cannot hold so many rows, or the input changed meanwhile.
    """
    check_writable(output, survey.rows)
    units = work / _UNITS
    units.mkdir(exist_ok=True)
    finished = {int(path.stem): _rows_of(path) for path in units.glob("*.jsonl")}
    skipped = sum(finished.values())
    done, began = skipped, time.monotonic()
    progress("predicting", done, survey.rows, skipped=skipped)
    todo = (
        (unit, _texts_and_pairs(unit[1]))
        for unit in enumerate(units_of(read()))
        if unit[0] not in finished
    )
    for (number, rows), cells in _predicted(todo, classifier, model, workers):
        _write_unit(units / f"{number:08}.jsonl", rows, cells)
        done += len(rows)
        rate = (done - skipped) / max(time.monotonic() - began, 1e-3)
        progress(f"predicting, {rate:,.0f} texts/s", done, survey.rows, skipped=skipped)
    result = work / f"output{ending(output)}"
    parts = sorted(units.glob("*.jsonl"))
    labelled = _assemble(read(), parts, survey, kept, classifier.columns, result)
    if labelled is None:
        shutil.rmtree(units)  # nobody knows which of them have the rows of the first reading
        raise UnfinishedError(
            "expected the {rows:,} rows of the first reading, found others; the input changed "
            "meanwhile: give the command again",
            rows=survey.rows,
        )
    sync(result)
    shutil.move(result, output)
    return labelled


def json_lines(rows: Sequence[Record], classifier: Classifier) -> str:
    """Predict rows, all at once; each is a line of JSON."""
    lines = []
    for row, found in zip(rows, predict_unit(rows, classifier), strict=True):
        names = classifier.columns.names(list(row.cells))
        lines.append(json_line({**row.cells, **dict(zip(names, found, strict=True))}))
    return "".join(f"{line}\n" for line in lines)


def units_of(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows that are predicted together: by their number and length, so always the same ones."""
    unit: list[Row] = []
    characters = 0
    for row in rows:
        unit.append(row)
        characters += len(row.text) + len(row.pair or "")
        if len(unit) == ROWS_IN_UNIT or characters >= CHARACTERS_IN_UNIT:
            yield unit
            unit, characters = [], 0
    if unit:
        yield unit


def predict_unit(rows: Sequence[HasText], classifier: Classifier) -> Cells:
    """The cells of the new columns."""
    return classifier.predict_rows(*_texts_and_pairs(rows))


def _texts_and_pairs(rows: Sequence[HasText]) -> TextsAndPairs:
    pairs = [row.pair for row in rows if row.pair is not None]
    return [row.text for row in rows], pairs or None


def _predicted(
    todo: Iterable[tuple[Any, TextsAndPairs]], classifier: Classifier, model: str, workers: int
) -> Iterator[tuple[Any, Cells]]:
    """Predictions of units, in their order, in this process or in several."""
    if workers == 1:
        # Rows are read and written while others are computed.
        yield from worked_ahead(lambda unit: (unit[0], classifier.predict_rows(*unit[1])), todo)
        return
    threads = max(1, available_cores() // workers)
    os.environ["OMP_NUM_THREADS"] = str(threads)  # of torch in the processes
    work = partial(_in_worker, model, classifier.engine, threads, classifier.columns)
    yield from map_in_order(work, todo, workers=workers)


def _in_worker(
    model: str, engine: str, threads: int, columns: OutputColumns, texts: TextsAndPairs
) -> Cells:
    classifier = classifier_of_worker(model, engine, threads)
    classifier.columns = columns
    return classifier.predict_rows(*texts)


@lru_cache(maxsize=1)
def classifier_of_worker(model: str | ShippedModel, engine: str, threads: int) -> Classifier:
    """The one classifier that a process beside this one, or on another machine, works with."""
    if isinstance(model, ShippedModel):
        return load_shipped(model, threads)
    return Classifier.load(model, engine, threads=threads)


def _write_unit(path: Path, rows: Sequence[Record], cells: Cells) -> None:
    """What rows it is of, and a line a row: the cells of its prediction."""
    lines = [_hash_of(rows), *map(json.dumps, cells)]
    write_at_once(path, "".join(f"{line}\n" for line in lines))


def _hash_of(rows: Sequence[Record]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps([row.place, row.text, row.pair]).encode())
    return digest.hexdigest()


def _rows_of(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file) - 1


def _assemble(
    rows: Iterable[Record],
    parts: Sequence[Path],
    survey: Survey,
    kept: Mapping[str, Any],
    columns: OutputColumns,
    result: Path,
) -> Labelled | None:
    """Write rows and predictions into a file of the wanted format; None if they do not fit."""
    names = list(survey.columns)
    new = columns.names(names)
    kinds = [kept.get(name, kind) for name, kind in survey.columns.items()]
    labelled = Labelled()
    absent = ABSENT if ".json" in ending(result) else None
    header, all_kinds = [*names, *new], [*kinds, *columns.kinds()]
    with table_writer(result, header, all_kinds, cuts=labelled.cuts) as write:
        for unit, part in zip_longest(units_of(rows), parts):
            if unit is None or part is None:
                return None
            with part.open(encoding="utf-8") as file:
                if next(file).strip() != _hash_of(unit):
                    return None
                for row, line in zip(unit, file, strict=True):
                    found = json.loads(line)
                    write([*(row.cells.get(name, absent) for name in names), *found])
                    labelled.add(found, columns)
    return labelled if labelled.rows == survey.rows else None
