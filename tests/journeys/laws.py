"""What holds for every command, whatever it was given; and the commands, in this process."""

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
from hypothesis import currently_in_test_context
from hypothesis import note as hypothesis_note

from malmoi.__main__ import main
from tests.journeys.files import DirtyFile, Written, write


def note(words: str) -> None:
    """Said where a journey of many fails; a single one says what it did by itself."""
    if currently_in_test_context():
        hypothesis_note(words)


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def refused(self) -> bool:
        return self.code == 2


@contextlib.contextmanager
def journey(file: DirtyFile | None = None) -> Iterator[Path]:
    """An empty folder to work in; it and what it holds are kept and named where a law is broken."""
    before = Path.cwd()
    home = Path(tempfile.mkdtemp(prefix="journey-"))
    os.chdir(home)
    try:
        yield home
    except BaseException:
        note(f"the files of this journey: {home}")
        raise
    else:
        shutil.rmtree(home)
    finally:
        os.chdir(before)


def _everything(folder: Path) -> set[str]:
    # Caches may grow whatever becomes of the command, and SQLite's log while a database is open.
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.relative_to(folder).parts[:2] != ("runs", "cache")
        and not path.name.endswith(("-wal", "-shm"))
    }


def run(*arguments: object, stdin: bytes = b"") -> Done:
    """`malmoi ARGUMENTS`.

    Laws: it ends with 0, or with 2, one line and nothing written.
    """
    here = Path.cwd()
    words = [
        str(one.relative_to(here) if isinstance(one, Path) and one.is_relative_to(here) else one)
        for one in arguments
    ]
    note("malmoi " + " ".join(repr(word) if " " in word else word for word in words))
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    before = _everything(Path.cwd())
    real = sys.stdin
    with tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        sys.stdin = io.TextIOWrapper(given, "utf-8")
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(words)
        finally:
            sys.stdin.detach()
            sys.stdin = real
    out.flush()
    said = out.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]
    done = Done(code, said, err.getvalue())
    assert code in (0, 2), done
    if code == 2:
        lines = done.err.strip().splitlines()
        assert lines and lines[-1].startswith("error: "), done
        assert sum(line.startswith("error: ") for line in lines) == 1, done
        left = _everything(Path.cwd()) - before
        assert not left, f"refused, and left behind: {sorted(left)}; {done.err}"
    assert "Traceback" not in done.err, done
    return done


def render(file: DirtyFile, home: Path) -> Written:
    """The file in its folder, named for who reads of a failure."""
    written = write(file, home)
    note(f"{file!r}\nwritten to {written.path}")
    return written


def must_be_read(written: Written, done: Done) -> bool:
    """Whether the command went through; a refusal of what any reader reads is a fault."""
    if done.refused:
        assert not written.must_be_read, done.err
        return False
    return True


def table_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a file as stock tools read them: csv and openpyxl, json, pandas."""
    match path.suffix:
        case ".csv":
            frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        case ".xlsx":
            sheet = openpyxl.load_workbook(path).active
            assert sheet is not None
            head, *body = sheet.iter_rows(values_only=True)
            return [dict(zip(map(str, head), row, strict=True)) for row in body]
        case ".jsonl":
            lines = path.read_text(encoding="utf-8").splitlines()
            return [json.loads(line) for line in lines]
        case ".json":
            return list(json.loads(path.read_text(encoding="utf-8")))
        case ".parquet":
            frame = pd.read_parquet(path)
        case _:
            raise AssertionError(path)
    return [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")]
