"""The directory of a run: made, found again for `--resume`, held by one process at a time."""

import json
import os
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open
from transformers import PreTrainedTokenizerFast

from malmoi.errors import InputError
from malmoi.files import sync, sync_tree, write_at_once
from malmoi.model_folders import discriminator_folder
from malmoi.paths import runs
from malmoi.pretrain.config.defaults import FROM_NOTHING
from malmoi.pretrain.config.objective import Sharing
from malmoi.pretrain.config.run_config import RunConfig
from malmoi.pretrain.config.run_plan import RunPlan, plan_from_json
from malmoi.pretrain.engine.checkpoint import has_state
from malmoi.pretrain.model.networks import ElectraPair
from malmoi.pretrain.resuming import difference

RUNS = runs("pretrain")
# Version of run.json's layout, see docs/reference/run-json.md.
VERSION = 1
_OWN_FILES = {".lock", "run.json", ".run.json.tmp", "state", "metrics.jsonl", "tensorboard"}


def new_directory(output: Path | None, corpus: Path, preset: str) -> Path:
    """Where a new run will be written; nothing is made yet.

    Args:
        output: the flag; None: a name of `corpus`, `preset` and the time.

    Raises:
        InputError: the directory cannot be made, holds something else, or a run that can be
            resumed.
    """
    if output is not None:
        directory = output
    else:
        name = corpus.name.split(".")[0]
        directory = RUNS / f"{name}-{preset}-{datetime.now():%Y%m%d-%H%M%S}"
    # Before the hours that a large corpus takes: where it will be made, or is.
    there = next(path for path in (directory, *directory.parents) if os.path.lexists(path))
    if not there.is_dir():
        kind = "a broken link," if there.is_symlink() and not there.exists() else "the file"
        raise InputError(
            "expected a directory for --output, found {kind} {there}", kind=kind, there=there
        )
    effective = os.access in os.supports_effective_ids
    if not os.access(there, os.W_OK | os.X_OK, effective_ids=effective):
        raise InputError(
            "expected an --output that can be written, found {there} closed to this user; name "
            "another",
            there=there,
        )
    if directory.is_dir():
        # A run that ended before its first checkpoint leaves nothing worth keeping.
        foreign = {path.name for path in directory.iterdir()} - _OWN_FILES
        if foreign or has_state(directory / "state"):
            raise _in_use(directory)
    return directory


def _in_use(directory: Path) -> InputError:
    if (_read_record(directory) or {}).get("status") == "finished":
        return InputError(
            "expected a new directory for --output, found a complete run in {directory}; name "
            "another, and to go on from its weights give --init {directory}",
            directory=directory,
        )
    return InputError(
        "expected a new directory for --output, found {directory} in use; go on with --resume, or "
        "name another",
        directory=directory,
    )


def hold(directory: Path, *, new: bool) -> FileLock:
    """Make the directory and keep other processes out until this one ends.

    Raises:
        InputError: another process is at work there, or has been since `new_directory` looked, or
            nothing can be made there.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as error:  # such as in /proc, which only looks like a folder
        raise InputError(
            "expected an --output that can be made, found {directory}", directory=directory
        ) from error
    lock = FileLock(directory / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InputError(
            "expected a directory that no other run is using, found one at work in {directory}; "
            "wait for it or name another --output",
            directory=directory,
        ) from error
    if new:
        if has_state(directory / "state"):
            lock.release()
            raise _in_use(directory)
        for path in directory.iterdir():
            if path.name in _OWN_FILES - {".lock"}:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    return lock


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """An unfinished run to go on with: its plan, and all that run.json says."""

    directory: Path
    plan: RunPlan
    record: dict[str, Any]


def resumed_directory(config: RunConfig) -> Resumed:
    """The unfinished run that is to be gone on with.

    Raises:
        InputError: there is none, it is complete, or it is another run than what is given.
    """
    output = config.flags.output
    if output is not None:
        if not has_state(output / "state"):
            raise InputError(
                "expected an unfinished run to resume, found no checkpoint in {output}; run "
                "without --resume",
                output=output,
            )
        resumed = _read_resumed(output)
        if resumed.record.get("status") == "finished":
            raise InputError(
                "expected an unfinished run to resume, found {output} complete; go on from its "
                "weights with --init {output}",
                output=output,
            )
        if found := difference(config, resumed.plan):
            raise InputError("cannot resume {output}: {found}", output=output, found=found)
        return resumed
    nearest, fitting = "", []
    for file in sorted(RUNS.glob("*/run.json"), key=lambda p: p.stat().st_mtime, reverse=True):
        directory = file.parent
        if not has_state(directory / "state") or _is_held(directory):
            continue
        try:
            resumed = _read_resumed(directory)
        except InputError:
            continue
        if resumed.record.get("status") == "finished":
            continue
        if found := difference(config, resumed.plan):
            nearest = nearest or f" ({directory}: {found})"
        else:
            fitting.append(resumed)
    if fitting:
        # The one begun by the same command, as far as it goes; the newest of equals.
        now = config.as_json()

        def otherwise(resumed: Resumed) -> int:
            before = resumed.record.get("given")
            before = before if isinstance(before, dict) else {}
            return sum(before.get(name) != now.get(name) for name in before.keys() | now.keys())

        return min(fitting, key=otherwise)
    raise InputError(
        "expected an unfinished run under {runs} of what is given to resume, found none{nearest}; "
        "run without --resume, or name the run with --output",
        runs=RUNS,
        nearest=nearest,
    )


def _read_resumed(directory: Path) -> Resumed:
    path = directory / "run.json"
    record = _read_record(directory)
    if record is None or not record.keys() >= {"version", "plan"}:
        raise InputError(
            "expected the record of the run in {path}, found it missing or damaged; put it back "
            "from a copy, or start again with another --output",
            path=path,
        )
    if record["version"] != VERSION:
        raise InputError(
            "expected version {known} of {path}, found {version}, by which another version of "
            "this program began; go on with that one, or from the run's weights with --init "
            "{directory}",
            known=VERSION,
            path=path,
            version=record["version"],
            directory=directory,
        )
    return Resumed(directory=directory, plan=plan_from_json(record["plan"], path), record=record)


def known_sharing(directory: str | Path) -> Sharing | None:
    """What the networks of a run shared, by its record; else what their weights still have in
    common: copies of networks travel without it. None where neither tells."""
    recorded: Sharing | None = _planned(_read_record(Path(directory)), "networks").get("sharing")
    if recorded is not None:
        return recorded
    prefix = "electra.embeddings."
    found: list[dict[str, torch.Tensor]] = []
    for network in (discriminator_folder(directory), Path(directory) / "generator"):
        try:
            with safe_open(network / "model.safetensors", framework="pt") as file:
                names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118
                found.append({name: file.get_tensor(name) for name in names})
        except (OSError, SafetensorError):  # who loads them says so
            return None
    ours, theirs = found

    def alike(name: str) -> bool:
        return name in ours and name in theirs and torch.equal(ours[name], theirs[name])

    tables = ("word_embeddings.weight", "position_embeddings.weight")
    if not all(alike(prefix + table) for table in tables):
        return "none"
    return "instance" if all(map(alike, ours)) else "word"


def learnt_with_generator(directory: str | Path) -> bool:
    """Whether a checkpoint was trained on a generator's replacements, by its record.

    One that tells nothing has a generator if it lies beside it.
    """
    record = _read_record(Path(directory)) or {}
    objective = _planned(record, "objective")
    # Nor does one that was killed between its last export and its last record.
    if "unigram_fraction" not in objective or "progress" not in record:
        return (Path(directory) / "generator").is_dir()
    steps, noise = record["progress"].get("step", 0), objective["unigram_fraction"]
    return bool(steps > 0 and objective.get("objective") != "mlm" and noise < 1)


def _planned(record: dict[str, Any] | None, section: str) -> dict[str, Any]:
    """A section of the plan in a record, empty where there is none."""
    found = (record or {}).get("plan", {}).get(section)
    return found if isinstance(found, dict) else {}


def _is_held(directory: Path) -> bool:
    lock = FileLock(directory / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


def _read_record(directory: Path) -> dict[str, Any] | None:
    try:
        record = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict):
        return None
    parts = [record, record.get("plan", {}), record.get("progress", {})] if record else []
    return record if parts and all(isinstance(part, dict) for part in parts) else None


def write_record(directory: Path, record: dict[str, Any]) -> None:
    """Write run.json through a temporary name."""
    record = {"version": VERSION} | record
    write_at_once(directory / "run.json", json.dumps(record, ensure_ascii=False, indent=2))


def trained_length(plan: RunPlan, tokenizer: PreTrainedTokenizerFast, positions: int) -> int:
    """Tokens of the longest rows that the networks were trained on.

    Networks that went on from a checkpoint were trained on what its tokenizer hands out, too.

    Args:
        tokenizer: of the run; of the checkpoint, unless another one was given.
        positions: that the networks have, trained or not.
    """
    own = plan.corpus.max_length
    if plan.start.init in FROM_NOTHING or plan.corpus.tokenizer is not None:
        return own
    return max(own, min(int(tokenizer.model_max_length), positions))


def write_networks(
    directory: Path, pair: ElectraPair, tokenizer: PreTrainedTokenizerFast, max_length: int
) -> None:
    """Both networks under a temporary name, then two renames: no reader sees half a model.

    Args:
        max_length: tokens that the tokenizer beside them hands out, see `trained_length`.
    """
    tokenizer.model_max_length = max_length
    scratch = directory / ".networks.tmp"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        pair.save_networks(scratch, tokenizer)
        sync_tree(scratch)
        for path in sorted(scratch.iterdir(), reverse=True):  # the discriminator last
            name = path.name
            shutil.rmtree(directory / name, ignore_errors=True)
            path.rename(directory / name)
        sync(directory)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
