"""The records of a fetched public source."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from malmoi.errors import InputError
from malmoi.text.public.catalog import find_source
from malmoi.text.public.description import RemoteFile
from malmoi.text.reading.records import iter_records, laid_out_records
from malmoi.text.reading.sources import Source
from malmoi.text.record import Record


def iter_public(name: str, folder: str | Path) -> Iterator[Record]:
    """Stream the records of a public source, with the meaning of its labels.

    Args:
        name: the source.
        folder: where its files lie; those that are missing are left out.

    Returns:
        Records whose `source` is the file's name.

    Raises:
        InputError: at once for an unknown source or a folder with none of its files; while
            iterating as `iter_records`.
    """
    source = find_source(name)
    folder = Path(folder)
    present = [file for file in source.files if (folder / file.name).is_file()]
    if not present:
        raise InputError(
            f"{folder}: expected files of {name} ({source.files[0].name}, …), found none; "
            f"run: malmoi fetch {name} --output {folder}"
        )
    return _records(present, folder)


def _records(files: list[RemoteFile], folder: Path) -> Iterator[Record]:
    for file in files:
        path = folder / file.name
        if file.layout is None:
            yield from (replace(record, source=file.name) for record in iter_records(path))
        else:
            stored = Source(name=file.name, shown=str(path), path=path)
            yield from laid_out_records(stored, file.layout)
