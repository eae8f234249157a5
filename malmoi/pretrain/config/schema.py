"""What a recipe, or `--set section.key=value`, says of a pre-training run; see `objective`, too.

`python -m malmoi.pretrain.config.schema` writes `recipes/default.toml`, which shows all of it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from malmoi.pretrain.config.objective import (
    Fraction,
    GeneratorHead,
    MaskingKeys,
    ObjectiveKeys,
    Sharing,
    Weight,
)
from malmoi.settings import Off, Range, as_toml
from malmoi.text.reading.options import ReadingKeys

Rows = Literal["length", "packed"]
Compiling = Literal["graphs", "on", "off"]
Initializer = Literal["normal", "truncated"]
Steps = Annotated[int, Range(1)]


@dataclass(frozen=True, kw_only=True)
class GeneratorKeys:
    """[generator]: the network that proposes replacements."""

    size: Annotated[float | None, Range(1 / 16, 1), Off((None, 1.0))] = None
    """Width as a fraction of the discriminator's (paper, Section 3.2: 1/4 to 1/2 work best). auto:
    1/3 for base, 1/4 for the others (paper, Table 6), and 1 where both networks have to be of one
    size (sharing = "all", schedule = "two-stage")."""
    layers: Annotated[int | None, Range(1, 48)] = None
    """Layers; auto: as many as the discriminator has (paper's code)."""
    head: GeneratorHead = "mlm"
    """mlm: from the masked position's state (paper); sbo: from the two ends of a span (SpanBERT,
    Section 3.2; with masking.strategy = "span")."""
    sharing: Sharing | None = None
    """What the networks share. none; word: word and position embeddings (paper, Section 3.2);
    instance: the whole embedding module (paper's code); gdes: as word, without the discriminator's
    gradients (DeBERTaV3, He et al. 2021, Section 3.2); all: the whole encoder (paper, Section 3.2).
    auto: instance, none where the schedule forbids sharing, and with --init DIRECTORY whatever
    leaves its generator the embeddings it has."""
    init: Path | None = None
    """Run whose trained generator objective.schedule = "frozen-generator" draws from."""


@dataclass(frozen=True, kw_only=True)
class ModelKeys:
    """[model]: both networks."""

    dropout: Annotated[float, Range(0, 0.9)] = 0.0
    """While pre-training (paper: 0.1; with few passes over a corpus there is little to overfit, and
    on a CPU it costs a quarter to a third of a step: measured)."""
    stacked: bool = False
    """A quarter of the layers runs at first, half from 35% of the run on, all from 70%; new ones
    begin as copies of those below (Gong et al. 2019, "Efficient Training of BERT by Progressively
    Stacking"; the fractions are assumptions). Measured: lab/log. Networks are not compiled."""
    initializer: Initializer = "normal"
    """How new weights are drawn. normal: normal everywhere (transformers). truncated: normal, cut
    off at two standard deviations, and Glorot's uniform for the embeddings' projection and the last
    layer of the discriminator's head, for which the paper's code names no initializer
    (run_pretraining.py, model/modeling.py)."""
    initializer_range: Annotated[float | None, Range(1e-4, 1)] = None
    """Standard deviation of new weights (paper: 0.02); auto: 0.02 for base, 0.05 for narrower ones
    (measured)."""


@dataclass(frozen=True, kw_only=True)
class OptimizerKeys:
    """[optimizer]: how gradients become steps."""

    name: Literal["adamw", "muon"] = "adamw"
    """adamw (paper); muon on the encoder layers' matrices and adamw elsewhere (Jordan et al.
    2024)."""
    muon_learning_rate: Annotated[float, Range(1e-9, 1)] = 5e-3
    """Muon's peak learning rate (measured, one seed)."""
    adam_bias_correction: bool = True
    """Adam's moments are corrected for their start at zero. The paper's code does not, and takes
    larger steps: by arithmetic 6.6 times the twelfth, 1.3 times the thousandth. In short runs the
    discriminator then learns nothing (measured)."""
    warmup_fraction: Fraction = 0.06
    """Fraction of the run over which the learning rate rises (assumption; paper: 10,000 of 1M
    steps)."""
    decay_from_start: bool = False
    """The rate falls over the whole run, and the warm-up is multiplied with it (paper's code,
    model/optimization.py); false: it falls from the end of the warm-up."""
    weight_decay: Fraction = 0.01
    """Paper, Table 6: 0.01."""
    decay_all: bool = False
    """Decay LayerNorm and biases too (paper's code: not)."""
    max_gradient_norm: Weight = 1.0
    """Gradients are scaled down to this norm (paper's code: 1); 0: never."""
    average_fraction: Fraction = 0.0
    """The result is the mean of the weights over this last fraction of the run (Izmailov et al.
    2018); 0: the last (paper)."""


@dataclass(frozen=True, kw_only=True)
class BatchingKeys:
    """[batching]: what stands together in a batch."""

    rows: Rows | None = None
    """length: texts of like length together; packed: rows of --max-length filled with texts, each
    attending to itself only. auto: length on a CPU, packed on a GPU (measured,
    docs/performance.md)."""


@dataclass(frozen=True, kw_only=True)
class LengthKeys:
    """[length]: a limit beside the flags'."""

    max_flops: Annotated[float | None, Range(1)] = None
    """Stop after this many operations by the paper's counting: for comparisons at equal compute."""


@dataclass(frozen=True, kw_only=True)
class ExecutionKeys:
    """[execution]: what changes nothing of what is learnt."""

    compile: Compiling | None = None
    """torch.compile the encoders: off, on, or graphs (replayed as CUDA graphs, which wants packed
    rows). auto: graphs on a GPU with packed rows, on with others, off on a CPU (measured,
    docs/performance.md) and with model.stacked."""
    cluster: Literal["ray"] | None = None
    """Clean and tokenise the corpus on the Ray cluster that RAY_ADDRESS names: ray; none: on this
    machine. The arrays are the same."""
    save_steps: Steps = 200
    """Steps between checkpoints, of which the last two are kept (assumption; one every four minutes
    anyway)."""
    log_steps: Steps = 20
    """Steps between progress lines and rows of metrics.jsonl (assumption)."""


@dataclass(frozen=True, kw_only=True)
class PretrainKeys:
    """The sections."""

    objective: ObjectiveKeys = ObjectiveKeys()  # noqa: RUF009
    masking: MaskingKeys = MaskingKeys()  # noqa: RUF009
    generator: GeneratorKeys = GeneratorKeys()
    model: ModelKeys = ModelKeys()
    optimizer: OptimizerKeys = OptimizerKeys()
    batching: BatchingKeys = BatchingKeys()
    length: LengthKeys = LengthKeys()
    execution: ExecutionKeys = ExecutionKeys()
    reading: ReadingKeys = ReadingKeys()  # noqa: RUF009


ABOUT = """Every key of a recipe with its default, as malmoi/pretrain/config declares them. What a
run learns by itself: ELECTRA (Clark et al. 2020, arXiv 2003.10555), replaced-token detection with
a generator beside it, and for short runs noise first and two more losses (ours; measured without a
generator only). "paper" is that one, "paper's code" is google-research/electra; "assumption":
nobody measured it; "measured": lab/log. "auto" and "none" leave a value open: the run decides it,
or does without. Others extend this: extends = "default", then what differs. One key by hand: --set
objective.temperature=1.2"""

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


if __name__ == "__main__":
    path = Path(__file__).parents[1] / "recipes" / "default.toml"
    path.write_text(as_toml(PretrainKeys, ABOUT), encoding="utf-8")
