"""One plan for a run: what was given and what was found in, every number decided once out.

For a run that goes on, see `malmoi.pretrain.resuming`.
"""

from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from malmoi.errors import InputError
from malmoi.pretrain.config.defaults import EPOCHS, PRESETS, VOCAB_SIZE, PresetName
from malmoi.pretrain.config.objective import GENERATOR_SIZE, Recipe, Sharing
from malmoi.pretrain.config.run_config import RunConfig
from malmoi.pretrain.config.run_plan import (
    BatchingPlan,
    CorpusPlan,
    ExecutionPlan,
    LengthPlan,
    Limit,
    NetworksPlan,
    OptimizerPlan,
    RunPlan,
    StartPlan,
)
from malmoi.pretrain.config.schema import Rows
from malmoi.pretrain.data.batches import planned_batches
from malmoi.settings import shown


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where the run is computed, as found."""

    device: str
    """cpu or cuda."""
    prefers_bf16: bool
    """Whether bf16 is faster there."""
    processes: int = 1
    threads: int = 1


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What is known of the networks to go on from."""

    preset: PresetName
    """Whose learning rate and batch suit it best."""
    has_generator: bool
    sharing: Sharing | None
    """What its networks have shared; None where that cannot be told."""
    learnt_with_generator: bool
    generator_size: float = GENERATOR_SIZE
    """Width of a new generator beside it, as a fraction of its own."""


def plan(
    config: RunConfig,
    *,
    lengths: np.ndarray,
    checkpoint: Checkpoint | None,
    machine: Machine,
    is_tokenized: bool = False,
) -> RunPlan:
    """Decide every number of a new run. The same input gives the same plan.

    Args:
        lengths: int64 [sequences], tokens of the corpus's, [CLS] and [SEP] not counted.
        checkpoint: what `--init` names, if it names one.
        is_tokenized: whether the corpus is a folder of token ids.

    Raises:
        InputError: what is given cannot work together.
    """
    preset_name = preset_of_run(config, checkpoint)
    preset = PRESETS[preset_name]
    rows = plan_rows(config, machine)
    batching = BatchingPlan(
        tokens_per_batch=config.flags.tokens_per_batch or preset.tokens_per_batch,
        rows=rows,
        row_length=config.max_length if rows == "packed" else None,
    )
    objective, reason = _objective(config, checkpoint)
    keys = config.keys
    return RunPlan(
        corpus=plan_corpus(config, is_tokenized=is_tokenized),
        start=StartPlan(
            recipe=config.recipe,
            reason=reason,
            init=config.init,
            revision=config.flags.revision,
            generator=keys.generator.init,
            seed=config.seed,
        ),
        networks=_networks(config, preset_name, checkpoint, machine),
        objective=objective,
        optimizer=OptimizerPlan(
            learning_rate=config.flags.learning_rate or preset.learning_rate,
            **vars(keys.optimizer),
        ),
        batching=batching,
        length=plan_length(config, batching, lengths, config.seed),
        execution=plan_execution(config, rows, machine, stacked=keys.model.stacked),
    )


def plan_corpus(config: RunConfig, *, is_tokenized: bool) -> CorpusPlan:
    """What is read: decided first, for all else wants to know what is in it.

    Raises:
        InputError: token ids are to be read in some way.
    """
    flags, keys = config.flags, config.keys
    options = keys.reading.options(text_column=flags.text_column, skip_bad_rows=flags.skip_bad_rows)
    if is_tokenized:
        reading = [f"reading.{name}" for name in vars(keys.reading)]
        for name in ("vocab_size", "text_column", "skip_bad_rows", *reading):
            if config.asks_for(name):
                raise InputError(
                    "{corpus} is tokenized already, so {name} has no effect; leave it out, or "
                    "give the texts themselves as --corpus",
                    corpus=flags.corpus,
                    name=shown(name),
                )
    has_own = flags.tokenizer is not None or keys.generator.init is not None
    trains_none = is_tokenized or has_own or config.continues
    return CorpusPlan(
        path=flags.corpus,
        text_column=options.text_column,
        sheet=options.sheet,
        delimiter=options.delimiter,
        no_header=options.no_header,
        skip_bad_rows=options.skip_bad_rows,
        tokenizer=flags.tokenizer,
        vocab_size=None if trains_none else flags.vocab_size or VOCAB_SIZE,
        max_length=config.max_length,
    )


def preset_of_run(config: RunConfig, checkpoint: Checkpoint | None) -> PresetName:
    """The flag, else what suits the checkpoint, which has sizes of its own, else tiny."""
    return config.flags.preset or (checkpoint.preset if checkpoint else "tiny")


def _objective(config: RunConfig, checkpoint: Checkpoint | None) -> tuple[Recipe, str]:
    """What a step learns, and why.

    Noise is a start for a generator that has learnt nothing: one that has learnt beside its
    discriminator would go back to it.
    """
    recipe, reason = config.objective, config.reason
    key = "objective.unigram_fraction"
    is_open = config.flags.recipe is None and key not in config.by_hand
    has_learnt = checkpoint is not None and checkpoint.learnt_with_generator
    if is_open and has_learnt and recipe.unigram_fraction > 0:
        recipe = replace(recipe, unigram_fraction=0.0)
        reason += ", without noise, for what --init names has learnt from a generator"
    return recipe, reason


def plan_rows(config: RunConfig, machine: Machine) -> Rows:
    """Whether rows are filled with several texts.

    On a CPU the two ways are equally fast (docs/performance.md), and rows of like lengths need no
    mask of every row. A GPU wants one shape, for torch.compile and CUDA graphs.
    """
    return config.keys.batching.rows or ("packed" if machine.device == "cuda" else "length")


def _networks(
    config: RunConfig, preset: PresetName, checkpoint: Checkpoint | None, machine: Machine
) -> NetworksPlan:
    generator, model = config.keys.generator, config.keys.model
    precision = config.flags.precision
    if precision == "auto":
        precision = "bf16" if machine.prefers_bf16 else "fp32"
    new_weights = model.initializer_range or PRESETS[preset].initializer_range
    new_size = PRESETS[preset].generator_size if checkpoint is None else checkpoint.generator_size
    return NetworksPlan(
        preset=preset,
        initializer=model.initializer,
        initializer_range=None if config.continues else new_weights,
        dropout=model.dropout,
        stacked=model.stacked,
        sharing=_sharing(config, checkpoint),
        generator_size=config.generator_size(new_size),
        generator_layers=generator.layers,
        precision=precision,
    )


def _sharing(config: RunConfig, checkpoint: Checkpoint | None) -> Sharing:
    """The key, else what the networks to go on from have shared, else the schedule's default.

    A generator with embeddings of its own would lose them to the default.
    """
    default = config.sharing
    if config.keys.generator.sharing is not None or default == "none" or checkpoint is None:
        return default
    if not (config.objective.needs_generator and checkpoint.has_generator):
        return default
    before = checkpoint.sharing
    if before not in ("none", "word", "gdes"):
        return default  # "all" has left both the same embeddings
    alone = config.keys.objective.schedule == "frozen-discriminator"
    return "none" if before == "gdes" and alone else before


def plan_length(
    config: RunConfig, batching: BatchingPlan, lengths: np.ndarray | None, seed: int
) -> LengthPlan:
    """When the run ends; epochs are counted in the steps that they take.

    Args:
        lengths: as for `plan`; may be None where a limit is given.
    """
    flags = vars(config.flags) | {"max_flops": config.keys.length.max_flops}
    for limit in get_args(Limit):
        if flags[limit] is not None:
            return LengthPlan(limit=limit, amount=float(flags[limit]), epochs=None)
    assert lengths is not None
    epochs = config.flags.epochs or EPOCHS
    steps = planned_batches(
        lengths, batching.tokens_per_batch, seed, epochs=epochs, row_length=batching.row_length
    )
    return LengthPlan(limit="max_steps", amount=float(steps), epochs=epochs)


def plan_execution(
    config: RunConfig,
    rows: Rows,
    machine: Machine,
    before: ExecutionPlan | None = None,
    *,
    stacked: bool = False,
) -> ExecutionPlan:
    """Where and how it is computed.

    An encoder of 12 layers is some thousand small kernels a step, and a host needs longer to start
    them than a GPU to run them (docs/performance.md): CUDA graphs start them all at once. They want
    the same shape in every step, which packed rows have.

    Args:
        before: of a run that is resumed: what nobody gives stays, but for what the machine says.
        stacked: whether other layers run from some steps on, which compiled networks do not.

    Raises:
        InputError: networks are to be compiled, or graphs recorded, where they cannot be.
    """
    keys, by_hand = config.keys.execution, config.by_hand
    packed, on_cpu = rows == "packed", machine.device == "cpu"
    compiling = keys.compile
    if before is not None and "execution.compile" not in by_hand:
        compiling = None  # on another device another one suits
    if stacked and compiling not in (None, "off"):
        raise InputError(
            "model.stacked lets other layers run from some steps on, so networks cannot be "
            "compiled, found execution.compile={compiling}; leave it out",
            compiling=compiling,
        )
    if compiling == "graphs" and (on_cpu or not packed):
        raise InputError(
            "execution.compile=graphs needs a GPU and batching.rows=packed, found {device} and "
            "{rows}; take --set execution.compile=on",
            device=machine.device,
            rows=rows,
        )
    if compiling is None:
        compiling = "off" if on_cpu or stacked else "graphs" if packed else "on"
    save, log = keys.save_steps, keys.log_steps
    if before is not None:
        save = save if "execution.save_steps" in by_hand else before.save_steps
        log = log if "execution.log_steps" in by_hand else before.log_steps
    return ExecutionPlan(
        device=machine.device,
        compile=compiling,
        save_steps=save,
        log_steps=log,
        processes=machine.processes,
        threads=machine.threads,
    )
