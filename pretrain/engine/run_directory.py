"""The directory of a run: made, found again for `--resume`, held by one process at a time."""

import dataclasses
import json
import os
import shutil
from dataclasses import replace
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
from pretrain.config.objective import Sharing
from pretrain.config.settings import PretrainSettings
from pretrain.data.tokenized import is_tokenized
from pretrain.engine.checkpoint import has_state
from pretrain.model.networks import ElectraPair

RUNS = runs("pretrain")
# When a run ends, and how fast it learns: a resumed one may be given others. What belongs together
# is left out, or given, together.
_LENGTH_AND_RATES = (
    ("max_steps", "max_minutes", "max_tokens", "max_flops", "epochs"),
    ("learning_rate",),
    ("muon_learning_rate",),
)
# Settings that may differ between a run and its --resume: these, and where it is computed and
# shown, not what it learns from.
_FREE_ON_RESUME = {
    *(name for group in _LENGTH_AND_RATES for name in group),
    "output",
    "resume",
    "device",
    "compile",
    "log_steps",
    "save_steps",
}
# What a run did before these flags existed; of others the default is what it did.
_BEFORE: dict[str, Any] = {"unchanged_fraction": 0.0}
_PATHS = {"corpus", "tokenizer", "generator_from", "init"}
_NEEDED_TO_RESUME = {"settings", "packed", "bf16", "sharing"}
_OWN_FILES = {".lock", "run.json", ".run.json.tmp", "state", "metrics.jsonl", "tensorboard"}


def settings_as_json(settings: PretrainSettings) -> dict[str, Any]:
    """The flags with paths as strings."""
    values = dataclasses.asdict(settings)
    return {key: str(v) if isinstance(v, Path) else v for key, v in values.items()}


def new_directory(settings: PretrainSettings) -> Path:
    """Where a new run will be written; nothing is made yet.

    Raises:
        InputError: the directory cannot be made, holds something else, or a run that can be
            resumed.
    """
    if settings.output is not None:
        directory = settings.output
    else:
        name = settings.corpus.name.split(".")[0]
        directory = RUNS / f"{name}-{settings.preset}-{datetime.now():%Y%m%d-%H%M%S}"
    # Before the hours that a large corpus takes: where it will be made, or is.
    there = next(path for path in (directory, *directory.parents) if os.path.lexists(path))
    if not there.is_dir():
        kind = "a broken link," if there.is_symlink() and not there.exists() else "the file"
        raise InputError(f"expected a directory for --output, found {kind} {there}")
    effective = os.access in os.supports_effective_ids
    if not os.access(there, os.W_OK | os.X_OK, effective_ids=effective):
        raise InputError(
            f"expected an --output that can be written, found {there} closed to this user; name "
            "another"
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
            f"expected a new directory for --output, found a complete run in {directory}; name "
            f"another, and to go on from its weights give --init {directory}"
        )
    return InputError(
        f"expected a new directory for --output, found {directory} in use; "
        "go on with --resume, or name another"
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
        raise InputError(f"expected an --output that can be made, found {directory}") from error
    lock = FileLock(directory / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InputError(
            f"expected a directory that no other run is using, found one at work in {directory}; "
            "wait for it or name another --output"
        ) from error
    if new:
        if has_state(directory / "state"):
            lock.release()
            raise _in_use(directory)
        for path in directory.iterdir():
            if path.name in _OWN_FILES - {".lock"}:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    return lock


def resumed_directory(settings: PretrainSettings) -> tuple[Path, dict[str, Any]]:
    """The unfinished run that these settings go on with, and its record.

    Raises:
        InputError: there is none, it is complete, or its settings differ.
    """
    if settings.output is not None:
        if not has_state(settings.output / "state"):
            raise InputError(
                f"expected an unfinished run to resume, found no checkpoint in {settings.output}; "
                "run without --resume"
            )
        record = _read_record(settings.output)
        if record is None or not record.keys() >= _NEEDED_TO_RESUME:
            raise InputError(
                f"expected the record of the run in {settings.output / 'run.json'}, found it "
                "missing or damaged; put it back from a copy, or start again with another --output"
            )
        if record.get("status") == "finished":
            raise InputError(
                f"expected an unfinished run to resume, found {settings.output} complete; "
                f"go on from its weights with --init {settings.output}"
            )
        if difference := _difference(settings, record):
            raise InputError(f"cannot resume {settings.output}: {difference}")
        return settings.output, record
    nearest, found = "", []
    for file in sorted(RUNS.glob("*/run.json"), key=lambda p: p.stat().st_mtime, reverse=True):
        directory = file.parent
        record = _read_record(directory)
        if record is None or not record.keys() >= _NEEDED_TO_RESUME:
            continue
        if record.get("status") == "finished":
            continue
        if not has_state(directory / "state") or _is_held(directory):
            continue
        difference = _difference(settings, record)
        if not difference:
            found.append((directory, record))
        nearest = nearest or f" ({directory}: {difference})"
    if found:
        # Of a sweep the one with the length and rates that are given; the newest of equals.
        return min(found, key=lambda one: len(changes(as_it_was(settings, one[1]), one[1])))
    raise InputError(
        f"expected an unfinished run under {RUNS} with these settings to resume, found none"
        f"{nearest}; run without --resume, or name the run with --output"
    )


def as_it_was(settings: PretrainSettings, record: dict[str, Any]) -> PretrainSettings:
    """The settings of a resumed run, with its own length and rates where no flag gives others.

    The default given by hand cannot be told from a flag left out.
    """
    before = record.get("settings", {})
    kept = {
        name: before[name]
        for group in _LENGTH_AND_RATES
        if all(getattr(settings, name) == getattr(PretrainSettings, name) for name in group)
        for name in group
        if name in before
    }
    return replace(settings, **kept)


def changes(settings: PretrainSettings, record: dict[str, Any]) -> list[str]:
    """In what length and rates differ from the run's, as `--flag new (was old)`."""
    before = record.get("settings", {})
    return [
        f"--{name.replace('_', '-')} {getattr(settings, name)} (was {before[name]})"
        for group in _LENGTH_AND_RATES
        for name in group
        if name in before and getattr(settings, name) != before[name]
    ]


def known_sharing(directory: str | Path) -> Sharing | None:
    """What the networks of a run shared, by its record; else what their weights still have in
    common: copies of networks travel without it. None where neither tells."""
    sharing: Sharing | None = (_read_record(Path(directory)) or {}).get("sharing")
    if sharing is not None:
        return sharing
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
    noise = recorded_replacements(record).get("unigram_fraction")
    # Nor does one that was killed between its last export and its last record.
    if noise is None or "progress" not in record:
        return (Path(directory) / "generator").is_dir()
    steps = record["progress"].get("step", 0)
    objective = record.get("settings", {}).get("objective")
    return bool(steps > 0 and objective != "mlm" and noise < 1)


def recorded_replacements(record: dict[str, Any]) -> dict[str, Any]:
    """What a run has decided where no flag did, as flags; in earlier versions only flags did."""
    names = ("unigram_fraction", "bag_weight", "correction_weight")
    settings = record.get("settings", {})
    found = {name: record.get(name, settings.get(name)) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _difference(settings: PretrainSettings, record: dict[str, Any]) -> str:
    """The first setting in which the run differs, as a sentence; empty if it is the same run."""
    before = record.get("settings", {})
    decided = recorded_replacements(record)
    for name, value in settings_as_json(settings).items():
        found = before.get(name, _BEFORE.get(name, getattr(PretrainSettings, name, None)))
        if name in _FREE_ON_RESUME or found == value:
            continue
        # Left out, or given as it was decided: the same run.
        if name in decided and value in (None, decided[name]):
            continue
        if name in _idle(settings):  # it was accepted once
            continue
        if name in _PATHS and _same_place(found, value):
            continue
        # Begun by an earlier version; what it began with is in its checkpoint.
        if name == "init" and (found, value) == ("skip-gram", "word-vectors"):
            continue
        flag = name.replace("_", "-")
        return f"it has --{flag} {found}, found --{flag} {value}; give the same flags"
    return ""


def _same_place(found: Any, value: Any) -> bool:
    """Whether two paths are one, however they were written."""
    return None not in (found, value) and Path(found).resolve() == Path(value).resolve()


def _idle(settings: PretrainSettings) -> set[str]:
    """Flags that say nothing of a run with these others."""
    tokenized = is_tokenized(settings.corpus)
    trains = (settings.tokenizer, settings.generator_from) == (None, None)
    fixed = tokenized or not trains or settings.continues()
    idle = {
        "vocab_size": fixed,
        "text_column": tokenized,
        "unchanged_fraction": settings.sentence_weight == 0,
    }
    return {name for name, says_nothing in idle.items() if says_nothing}


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
    parts = [record, record.get("settings", {}), record.get("progress", {})] if record else []
    return record if parts and all(isinstance(part, dict) for part in parts) else None


def write_record(directory: Path, record: dict[str, Any]) -> None:
    """Write run.json through a temporary name."""
    write_at_once(directory / "run.json", json.dumps(record, ensure_ascii=False, indent=2))


def write_networks(directory: Path, pair: ElectraPair, tokenizer: PreTrainedTokenizerFast) -> None:
    """Both networks under a temporary name, then two renames: no reader sees half a model."""
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
