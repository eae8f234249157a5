"""The hidden folder in which a long run keeps what is finished until its output can appear."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from malmoi.errors import InputError, UnfinishedError
from malmoi.files import write_at_once

_PLAN = "plan.json"
_LOCK = ".lock"


@contextmanager
def work_folder(output: Path, plan: dict[str, Any]) -> Iterator[Path]:
    """Yield the work folder of `output`, `.NAME.work` beside it, with what an earlier run left.

    What a run with another plan left is deleted, which a line on stdout says. The folder goes when
    the run ends well, or when it meets input that it cannot use; it stays when the run is killed,
    the disk is full, or inside `worth_keeping`.

    Args:
        output: the directory that the run makes; must not exist yet, its parents may be missing.
        plan: all that the work depends on (hashes of inputs, settings, versions), as JSON has it.

    Raises:
        InputError: another run is at work on the same output.
    """
    folder = output.with_name(f".{output.name}.work")
    made = [path for path in output.parents if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / _LOCK, output):
        # As JSON gives it back: lists for tuples.
        plan = json.loads(json.dumps(plan))
        if _plan_of(folder) != plan:
            left = [path for path in folder.iterdir() if path.name != _LOCK]
            if left:
                print(
                    f"begun anew: an unfinished run of {output} had other data or settings",
                    flush=True,
                )
            for path in left:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            write_at_once(folder / _PLAN, json.dumps(plan, ensure_ascii=False, indent=2))
        try:
            yield folder
        except InputError as error:
            if not isinstance(error, UnfinishedError):
                shutil.rmtree(folder)
                with suppress(OSError):  # another run may have put something there meanwhile
                    for path in made:
                        path.rmdir()
            raise
        shutil.rmtree(folder)


@contextmanager
def worth_keeping() -> Iterator[None]:
    """Inside, what goes wrong leaves the work folder as it is: what is in it took long.

    Raises:
        UnfinishedError: instead of any other InputError.
    """
    try:
        yield
    except UnfinishedError:
        raise
    except InputError as error:
        raise UnfinishedError(
            "{error}; what is finished is kept, the same data and settings go on from it",
            error=error,
        ) from error


@contextmanager
def only_run(output: Path) -> Iterator[None]:
    """Inside, no other run makes the same output: for one that keeps nothing when it is killed.

    The lock is the hidden file `.NAME.lock` beside the output, gone when the run ends.

    Args:
        output: what the run makes; its parents may be missing.

    Raises:
        InputError: another run is at work on it.
    """
    made = [path for path in output.parents if not path.exists()]
    output.parent.mkdir(parents=True, exist_ok=True)
    lock = output.with_name(f".{output.name}.lock")
    try:
        with _locked(lock, output):
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
    except BaseException:
        with suppress(OSError):  # another run may have put something there meanwhile
            for path in made:
                path.rmdir()
        raise


@contextmanager
def _locked(path: Path, output: Path) -> Iterator[None]:
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InputError(
            "expected an output that no other run is making, found one at work on {output}; wait "
            "for it or name another --output",
            output=output,
        ) from error
    try:
        yield
    finally:
        lock.release()


def _plan_of(folder: Path) -> dict[str, Any] | None:
    try:
        plan = json.loads((folder / _PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return plan if isinstance(plan, dict) else None
