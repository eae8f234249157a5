"""Where `--rejects` writes the texts that cleaning dropped."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from malmoi.errors import InputError
from malmoi.files import sync_tree
from malmoi.text.corpus.parquet_parts import FileWriter, PartWriter, TableWriter
from malmoi.text.corpus.units import REJECT_SCHEMA

_FILES = (".jsonl", ".csv")


def check_rejects(path: Path, output: Path) -> None:
    """Refuse a place for rejects that cannot be used.

    Raises:
        InputError: it exists, lies in the output or around it, or is a file of another kind than
            .jsonl or .csv.
    """
    if output.absolute() in (path.absolute(), *path.absolute().parents):
        raise InputError(
            "expected --rejects outside --output, found {path} in {output}; name another",
            path=path,
            output=output,
        )
    if path.absolute() in output.absolute().parents:
        raise InputError(
            "expected --output outside --rejects, found {output} in {path}; name another",
            output=output,
            path=path,
        )
    if path.exists():
        raise InputError(
            "expected a new file or folder for --rejects, found {path}; delete it or name another",
            path=path,
        )
    if path.suffix and path.suffix not in _FILES:
        raise InputError(
            "expected a .jsonl or .csv file, or a folder (a name without a suffix), for "
            "--rejects, found {path}; name another",
            path=path,
        )


@contextmanager
def rejects_writer(path: Path) -> Iterator[TableWriter]:
    """A writer whose file, or folder of Parquet parts, appears when all went well."""
    scratch = path.with_name(f".tmp-{path.name}")
    made = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove(scratch)  # of a run that was killed
    writer: TableWriter
    try:
        if path.suffix:
            writer = FileWriter(scratch, REJECT_SCHEMA)
        else:
            scratch.mkdir()
            writer = PartWriter(scratch, REJECT_SCHEMA)
        yield writer
        sync_tree(scratch)
        scratch.rename(path)
    except BaseException:
        _remove(scratch)
        with suppress(OSError):  # another run may have put something there meanwhile
            for parent in made:
                parent.rmdir()
        raise


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
