"""Arrow files, as Hugging Face's `save_to_disk` writes them, and the names that go with them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow
import pyarrow.ipc

from malmoi.text.reading.sources import Source, damaged

_FILE_MAGIC = b"ARROW1"


@contextmanager
def open_arrow(source: Source, stored: BinaryIO) -> Iterator[tuple[pyarrow.Schema, Iterator[Any]]]:
    """The schema of an Arrow file, in either of its two layouts, and its batches of rows.

    Raises:
        InputError: here or while reading: it is damaged, or none.
    """
    what = "an Arrow file"
    try:
        is_file = stored.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        stored.seek(0)
        reader = pyarrow.ipc.open_file(stored) if is_file else pyarrow.ipc.open_stream(stored)
    except (pyarrow.ArrowException, OSError) as error:
        raise damaged(source, what, error) from error

    def batches() -> Iterator[Any]:
        try:
            if is_file:
                yield from (reader.get_batch(n) for n in range(reader.num_record_batches))
            else:
                yield from reader
        except (pyarrow.ArrowException, OSError) as error:
            raise damaged(source, what, error) from error

    yield reader.schema, batches()


def class_names(schema: pyarrow.Schema) -> dict[str, list[str]]:
    """The names of each column that the library `datasets` calls a ClassLabel, or lists of them.

    They stand beside the columns; the cells hold their places only.
    """
    try:
        about = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = about["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    found = {}
    for column, feature in features.items() if isinstance(features, dict) else ():
        while isinstance(feature, dict) and "feature" in feature:
            feature = feature["feature"]  # a Sequence or a List of them
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
            found[column] = [str(name) for name in feature.get("names") or ()]
    return found


def named(cells: Sequence[Any], column: str, names: Mapping[str, Sequence[str]]) -> Sequence[Any]:
    """Cells of a column with the names for the places; -1, no label, is None.

    A place that has no name stays as it is.
    """
    known = names.get(column)
    if not known:
        return cells

    def name(cell: Any) -> Any:
        if isinstance(cell, list):
            return [name(one) for one in cell]
        if isinstance(cell, int) and -1 <= cell < len(known):
            return None if cell == -1 else known[cell]
        return cell

    return [name(cell) for cell in cells]
