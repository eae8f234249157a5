"""What a recipe, or `--set section.key=value`, says of a pre-training run.

`malmoi/pretrain/recipes/default.toml` explains every key with its source; the defaults stand here.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from malmoi.pretrain.config.objective import (
    GeneratorHead,
    Masking,
    Objective,
    Recipe,
    Sampling,
    Schedule,
    Sharing,
)
from malmoi.text.reading.options import ReadingKeys

Rows = Literal["length", "packed"]
Compiling = Literal["graphs", "on", "off"]
Initializer = Literal["normal", "truncated"]


@dataclass(frozen=True, kw_only=True)
class ObjectiveKeys:
    """[objective]: see `Recipe`, which has these under the same names but for `name`.

    A `Recipe` by itself is the paper's; what a run learns by default is said here.
    """

    name: Objective = Recipe.objective
    schedule: Schedule = Recipe.schedule
    first_stage: float = Recipe.first_stage
    discriminator_weight: float = Recipe.discriminator_weight
    weight_warmup: float = Recipe.weight_warmup
    loss_mean: Literal["tokens", "texts"] = Recipe.loss_mean
    sentence_weight: float = Recipe.sentence_weight
    unchanged_fraction: float = Recipe.unchanged_fraction
    bag_weight: float = 5.0
    correction_weight: float = 5.0
    unigram_fraction: float = 0.3
    sampling: Sampling = Recipe.sampling
    temperature: float = Recipe.temperature
    first_temperature: float | None = Recipe.first_temperature
    forbid_original: bool = Recipe.forbid_original
    replaced_spans: bool = Recipe.replaced_spans


@dataclass(frozen=True, kw_only=True)
class MaskingKeys:
    """[masking]: what is hidden from the generator, or from a masked-LM encoder."""

    strategy: Masking = Recipe.masking
    fraction: float = Recipe.mask_fraction
    last_fraction: float | None = Recipe.last_mask_fraction
    kept_fraction: float = Recipe.kept_fraction
    random_fraction: float = Recipe.random_fraction


@dataclass(frozen=True, kw_only=True)
class GeneratorKeys:
    """[generator]: the network that proposes replacements."""

    size: float | None = None
    """Width as a fraction of the discriminator's; None: the preset's, or 1 where both have to be
    of one size."""
    layers: int | None = None
    """None: as many as the discriminator has."""
    head: GeneratorHead = Recipe.generator_head
    sharing: Sharing | None = None
    """None: as the checkpoint had it, else what the schedule allows."""
    init: Path | None = None
    """Run whose trained generator is taken as it is."""


@dataclass(frozen=True, kw_only=True)
class ModelKeys:
    """[model]: both networks."""

    dropout: float = 0.0
    initializer: Initializer = "normal"
    initializer_range: float | None = None
    """None: the preset's."""


@dataclass(frozen=True, kw_only=True)
class OptimizerKeys:
    """[optimizer]: how gradients become steps."""

    name: Literal["adamw", "muon"] = "adamw"
    muon_learning_rate: float = 5e-3
    adam_bias_correction: bool = True
    warmup_fraction: float = 0.06
    decay_from_start: bool = False
    weight_decay: float = 0.01
    decay_all: bool = False
    max_gradient_norm: float = 1.0
    average_fraction: float = 0.0


@dataclass(frozen=True, kw_only=True)
class BatchingKeys:
    """[batching]: what stands together in a batch."""

    rows: Rows | None = None
    """None: by length on a CPU, packed on a GPU."""


@dataclass(frozen=True, kw_only=True)
class LengthKeys:
    """[length]: a limit beside the flags'."""

    max_flops: float | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutionKeys:
    """[execution]: what changes nothing of what is learnt."""

    compile: Compiling | None = None
    """None: what suits the device."""
    cluster: Literal["ray"] | None = None
    """Where the corpus is cleaned and tokenised; None: on this machine."""
    save_steps: int = 200
    log_steps: int = 20


@dataclass(frozen=True, kw_only=True)
class PretrainKeys:
    """The sections."""

    objective: ObjectiveKeys = ObjectiveKeys()
    masking: MaskingKeys = MaskingKeys()
    generator: GeneratorKeys = GeneratorKeys()
    model: ModelKeys = ModelKeys()
    optimizer: OptimizerKeys = OptimizerKeys()
    batching: BatchingKeys = BatchingKeys()
    length: LengthKeys = LengthKeys()
    execution: ExecutionKeys = ExecutionKeys()
    reading: ReadingKeys = ReadingKeys()  # noqa: RUF009


# Names that somebody may try as a flag, besides those that `keys_by_flag` finds by itself.
OTHER_NAMES = {
    "objective": "objective.name",
    "masking": "masking.strategy",
    "mask_fraction": "masking.fraction",
    "last_mask_fraction": "masking.last_fraction",
    "sharing": "generator.sharing",
    "generator_from": "generator.init",
    "optimizer": "optimizer.name",
    "batching": "batching.rows",
}
