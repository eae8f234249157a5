"""What a plan is: sections of numbers, which `malmoi.pretrain.plan` decides; run.json holds it."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from malmoi.pretrain.config.defaults import PRESETS, Preset, PresetName
from malmoi.pretrain.config.objective import Recipe, Sharing
from malmoi.pretrain.config.schema import Compiling, Initializer, OptimizerKeys, Rows
from malmoi.settings import read_sections, shown
from malmoi.text.reading.options import ReadOptions

Limit = Literal["max_steps", "max_minutes", "max_tokens", "max_flops"]
# What plans had before there was a choice.
_ADDED: dict[str, dict[str, Any]] = {
    "networks": {"initializer": "normal", "stacked": False},
    "optimizer": {"decay_from_start": False},
}


@dataclass(frozen=True, kw_only=True)
class CorpusPlan:
    """What is read, and how it is cut."""

    path: Path
    text_column: str | None
    """None: found by its name and cells."""
    sheet: str | None
    """None: all with one header."""
    delimiter: str | None
    """None: found by itself."""
    no_header: bool
    skip_bad_rows: bool
    tokenizer: Path | None
    """None: that of the corpus or the checkpoint, or one is trained."""
    vocab_size: int | None
    """Entries of the tokenizer that is trained; None where none is."""
    max_length: int
    """Tokens of the longest sequence, [CLS] and [SEP] included."""

    def reading(self) -> ReadOptions:
        """How the files are read."""
        return ReadOptions(
            text_column=self.text_column,
            sheet=self.sheet,
            delimiter=self.delimiter,
            no_header=self.no_header,
            skip_bad_rows=self.skip_bad_rows,
        )


@dataclass(frozen=True, kw_only=True)
class StartPlan:
    """What a run begins with."""

    recipe: str
    reason: str
    """Why this recipe."""
    init: str
    """random, word-vectors, or the checkpoint to go on from."""
    revision: str | None
    """Revision of a Hub id; None: main."""
    generator: Path | None
    """Run whose trained generator is taken as it is; None: none is."""
    seed: int
    """Seed of weights, order, masks and samples."""


@dataclass(frozen=True, kw_only=True)
class NetworksPlan:
    """The two networks."""

    preset: PresetName
    """Sizes, of a checkpoint to go on from the nearest ones: it has its own."""
    initializer: Initializer
    """How new weights are drawn."""
    initializer_range: float | None
    """Standard deviation of new weights; None where a checkpoint has its own."""
    dropout: float
    stacked: bool
    """Whether layers begin as copies of those below while the run goes on."""
    sharing: Sharing
    generator_size: float
    """Width of the generator as a fraction of the discriminator's; a checkpoint has its own."""
    generator_layers: int | None
    """None: as many as the discriminator has."""
    precision: Literal["bf16", "fp32"]
    """Number format of matrix products."""

    def sizes(self) -> Preset:
        """Sizes of new networks."""
        assert self.initializer_range is not None
        return replace(PRESETS[self.preset], initializer_range=self.initializer_range)


@dataclass(frozen=True, kw_only=True)
class OptimizerPlan(OptimizerKeys):
    """How gradients become steps."""

    learning_rate: float
    """The peak."""


@dataclass(frozen=True, kw_only=True)
class BatchingPlan:
    """What stands together in a batch."""

    tokens_per_batch: int
    """Tokens of one optimizer step, padding included."""
    rows: Rows
    """length: texts of like length; packed: rows filled with texts."""
    row_length: int | None
    """Tokens of a packed row; None where rows are not packed."""


@dataclass(frozen=True, kw_only=True)
class LengthPlan:
    """When the run ends."""

    limit: Limit
    amount: float
    """How many steps, minutes, tokens, or operations by the paper's counting."""
    epochs: int | None
    """Passes over the corpus that the steps make; None where the steps were given."""

    @property
    def steps(self) -> int | None:
        """Optimizer steps; None where time, tokens or operations end the run."""
        return round(self.amount) if self.limit == "max_steps" else None

    def shown(self) -> str:
        """As flags say it."""
        if self.epochs is not None:
            return f"--epochs {self.epochs}"
        name = "length.max_flops" if self.limit == "max_flops" else self.limit
        return shown(name, f"{self.amount:.15g}")


@dataclass(frozen=True, kw_only=True)
class ExecutionPlan:
    """Where and how it is computed: all of it may be another after `--resume`."""

    device: str
    """cpu or cuda."""
    compile: Compiling
    save_steps: int
    log_steps: int
    processes: int
    threads: int
    """Threads of one process, on the CPU."""


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """Every number of a run."""

    corpus: CorpusPlan
    start: StartPlan
    networks: NetworksPlan
    objective: Recipe
    optimizer: OptimizerPlan
    batching: BatchingPlan
    length: LengthPlan
    execution: ExecutionPlan

    def as_json(self) -> dict[str, Any]:
        """For run.json; `plan_from_json` reads it."""
        return {
            section: {key: str(v) if isinstance(v, Path) else v for key, v in inside.items()}
            for section, inside in asdict(self).items()
        }


def plan_from_json(values: Any, source: Path) -> RunPlan:
    """The plan that `RunPlan.as_json` wrote, now or before keys were added.

    Raises:
        InputError: it is damaged.
    """
    if isinstance(values, dict):
        values = values | {
            name: added | values[name]
            for name, added in _ADDED.items()
            if isinstance(values.get(name), dict)
        }
    return read_sections(RunPlan, values, str(source))
