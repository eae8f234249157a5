"""The plan of a run that goes on: what is given must be the run's, but for what may change.

Only length, learning rates and execution may; see `malmoi.pretrain.plan` for a new run.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from malmoi.errors import InputError
from malmoi.pretrain.config.run_config import RunConfig
from malmoi.pretrain.config.run_plan import RunPlan
from malmoi.pretrain.config.schema import PretrainKeys
from malmoi.pretrain.engine.checkpoint import TrainerState
from malmoi.pretrain.plan import Machine, plan_execution, plan_length
from malmoi.settings import keys_of, shown

# Where the value of a flag or a key stands in a plan, where it has another name there.
_PLACES = {
    "corpus": "corpus.path",
    **{
        name: f"corpus.{name}"
        for name in ("text_column", "skip_bad_rows", "tokenizer", "vocab_size", "max_length")
    },
    **{f"reading.{name}": f"corpus.{name}" for name in ("sheet", "delimiter", "no_header")},
    **{name: f"start.{name}" for name in ("init", "revision", "seed")},
    **{name: f"networks.{name}" for name in ("preset", "precision")},
    "learning_rate": "optimizer.learning_rate",
    "tokens_per_batch": "batching.tokens_per_batch",
    "objective.name": "objective.objective",
    "masking.strategy": "objective.masking",
    "masking.fraction": "objective.mask_fraction",
    "masking.last_fraction": "objective.last_mask_fraction",
    "masking.kept_fraction": "objective.kept_fraction",
    "masking.random_fraction": "objective.random_fraction",
    "generator.head": "objective.generator_head",
    "generator.init": "start.generator",
    "generator.size": "networks.generator_size",
    "generator.layers": "networks.generator_layers",
    "generator.sharing": "networks.sharing",
    "model.dropout": "networks.dropout",
    "model.stacked": "networks.stacked",
    "model.initializer": "networks.initializer",
    "model.initializer_range": "networks.initializer_range",
}
_RATES = ("learning_rate", "optimizer.muon_learning_rate")


def as_given(plan: RunPlan) -> dict[str, Any]:
    """The flags and keys that would give this plan again, but for its length and execution."""
    sections = plan.as_json()
    free = ("length.", "execution.")
    names = [name for name in _PLACES if "." not in name]
    names += [key for key in keys_of(PretrainKeys) if not key.startswith(free)]
    found = {}
    for name in names:
        section, _, value = _PLACES.get(name, name).partition(".")
        found[name] = sections[section][value]
    if not plan.objective.needs_generator:
        found["generator.size"] = None  # nobody could say it
    return found


def difference(config: RunConfig, before: RunPlan) -> str:
    """The first thing given that a run has otherwise, as a sentence; empty if it is that run.

    What is left out, or left open, is as the run has it; its length, its learning rates and its
    execution may be others.
    """
    given = config.flags_given()
    given |= {key: config.value(key) for key in sorted(config.chosen)}
    for name, found in as_given(before).items():
        value = given.get(name)
        if value in (None, "auto") or name in _RATES or found == value:
            continue
        is_place = name in ("init", "corpus", "tokenizer", "generator.init")
        if is_place and found is not None and Path(found).resolve() == Path(value).resolve():
            continue  # one path, however it was written
        return (
            f"it has {shown(name, found)}, found {shown(name, value)}; give the same, or leave it "
            "out"
        )
    return ""


def go_on(
    config: RunConfig, before: RunPlan, *, lengths: np.ndarray | None, machine: Machine
) -> RunPlan:
    """The plan of a resumed run: its own, with what may change and is given anew.

    Args:
        config: see `difference`, which is empty.
        lengths: as for `plan`; None where the corpus is not read yet: epochs, which nobody can
            count then, are left as they were.

    Raises:
        InputError: the new length or the device cannot be.
    """
    flags, by_hand = config.flags, config.by_hand
    optimizer, length = before.optimizer, before.length
    if flags.learning_rate is not None:
        optimizer = replace(optimizer, learning_rate=flags.learning_rate)
    if "optimizer.muon_learning_rate" in by_hand and optimizer.name == "muon":
        muon = config.keys.optimizer.muon_learning_rate
        optimizer = replace(optimizer, muon_learning_rate=muon)
    if config.limits or (flags.epochs is not None and lengths is not None):
        length = plan_length(config, before.batching, lengths, before.start.seed)
    execution = plan_execution(
        config,
        before.batching.rows,
        machine,
        before.execution,
        stacked=before.networks.stacked,
    )
    return replace(before, optimizer=optimizer, length=length, execution=execution)


def check_not_passed(before: RunPlan, after: RunPlan, progress: TrainerState) -> None:
    """Refuse another length that the run is beyond: it would end there and then, for good.

    The length that it had is none: a run that was killed after its last step is finished by it.

    Raises:
        InputError: with both numbers.
    """
    length = after.length
    done, found = {
        "max_steps": (progress.step, f"{progress.step:,} steps"),
        "max_tokens": (progress.tokens, f"{progress.tokens:,} tokens"),
        "max_flops": (progress.flops, f"{progress.flops:.3g} operations"),
        "max_minutes": (progress.clock / 60, f"{progress.clock / 60:.2f} minutes"),
    }[length.limit]
    if length == before.length or done <= length.amount:
        return
    steps = f", which is {length.steps:,} steps" if length.epochs is not None else ""
    raise InputError(
        "expected a length of {found} or more, where the run is, found {length}{steps}; give "
        "more, or leave it out: {before}",
        found=found,
        length=length.shown(),
        steps=steps,
        before=before.length.shown(),
    )


def changes(before: RunPlan, after: RunPlan) -> list[str]:
    """In what length and learning rates differ, as `--flag new (was --flag old)`."""
    found = []
    if after.length != before.length:
        found.append(f"{after.length.shown()} (was {before.length.shown()})")
    for name in ("learning_rate", "muon_learning_rate"):
        old, new = (getattr(one.optimizer, name) for one in (before, after))
        if old != new:
            flag = name if name == "learning_rate" else f"optimizer.{name}"
            found.append(f"{shown(flag, new)} (was {old})")
    return found
