"""The flags of a pre-training run and the model sizes behind `--preset`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from corpora.errors import InputError
from tokenizer.training import MAX_VOCABULARY


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Sizes of a discriminator and the training settings that go with them."""

    num_layers: int
    hidden_size: int
    num_heads: int
    embedding_size: int
    learning_rate: float
    tokens_per_batch: int
    """Tokens in one optimizer step, padding included."""
    initializer_range: float = 0.02
    """Standard deviation of new weights (paper: 0.02)."""


# The paper's 0.02 suits base; at 256 wide it lets so little of the other tokens into [CLS] that a
# memo classifier stayed at chance, and 0.05 did not (measured, docs/experiments.md, "Larger first
# weights").
_NARROW_INITIALIZER_RANGE = 0.05

# small and base: ELECTRA paper (Clark et al. 2020), Appendix A, Table 6. Their batches are
# 128 x 128 and 256 x 512 tokens; base's is cut to fit one device without accumulation.
# tiny: the first look of docs/experiments.md; learning rate and batch are assumptions.
PRESETS: dict[str, Preset] = {
    "tiny": Preset(
        num_layers=4,
        hidden_size=256,
        num_heads=4,
        embedding_size=128,
        learning_rate=5e-4,
        tokens_per_batch=4_096,
        initializer_range=_NARROW_INITIALIZER_RANGE,
    ),
    "small": Preset(
        num_layers=12,
        hidden_size=256,
        num_heads=4,
        embedding_size=128,
        learning_rate=5e-4,
        tokens_per_batch=16_384,
        initializer_range=_NARROW_INITIALIZER_RANGE,
    ),
    "base": Preset(
        num_layers=12,
        hidden_size=768,
        num_heads=12,
        embedding_size=768,
        learning_rate=2e-4,
        tokens_per_batch=32_768,
    ),
}


@dataclass(kw_only=True)
class PretrainSettings:
    """What to train on, how large a model, for how long."""

    corpus: Path
    """File or folder of texts (.txt .csv .tsv .jsonl .parquet .xlsx, plain, .gz or .zst)."""
    text_column: str | None = None
    """Column that holds the text; found by its usual name when not given."""
    preset: Literal["tiny", "small", "base"] | None = None
    """tiny: 4 layers x 256; small: the paper's ELECTRA-small, 12 x 256; base: 12 x 768. By
    default tiny, or with --init DIRECTORY that of the checkpoint (learning rate and batch)."""
    max_steps: int | None = None
    """Stop after this many optimizer steps; 0 writes the untrained starting weights."""
    max_minutes: float | None = None
    """Stop after this many minutes of training (preparing the corpus not counted)."""
    epochs: int = 10
    """Passes over the corpus when neither --max-steps nor --max-minutes is given."""
    tokenizer: Path | None = None
    """Tokenizer directory; one is trained on the corpus when not given."""
    vocab_size: int = 16_000
    """Entries of the tokenizer that is trained, rounded up to a multiple of 128."""
    init: str = "skip-gram"
    """random; skip-gram: word embeddings learnt from the corpus by skip-gram with negative
    sampling first; or a run's directory to continue from (its networks and tokenizer)."""
    output: Path | None = None
    """Directory of the run; default runs/pretrain/NAME with the corpus, preset and time."""
    resume: bool = False
    """Go on from the last checkpoint of --output, or of the newest unfinished run."""
    learning_rate: float | None = None
    """Peak learning rate; default by preset."""
    tokens_per_batch: int | None = None
    """Tokens in one optimizer step, padding included; default by preset."""
    max_length: int = 128
    """Longest sequence in tokens, [CLS] and [SEP] included; longer texts are cut in pieces."""
    mask_fraction: float = 0.15
    """Fraction of a text's tokens that is masked (paper: 0.15)."""
    discriminator_weight: float = 50.0
    """Weight of the discriminator's loss against the generator's (paper: 50)."""
    warmup_fraction: float = 0.06
    """Fraction of the run over which the learning rate rises (assumption)."""
    weight_decay: float = 0.01
    """Weight decay, not on LayerNorm and bias (paper: 0.01)."""
    dropout: float = 0.0
    """Dropout in both networks while they train from scratch (paper: 0.1; with few passes over
    the corpus there is little to overfit, and on a CPU it costs a third of the time)."""
    save_steps: int = 200
    """Steps between checkpoints; the last two are kept."""
    log_steps: int = 20
    """Steps between progress lines and rows of metrics.jsonl."""
    seed: int = 42
    """Seed of weights, order, masks and samples."""
    device: str = "auto"
    """auto, cpu or cuda."""

    def check(self) -> None:
        """Raise InputError for the first value out of bounds, echoing it."""
        bounds: list[tuple[str, float | None, float, float]] = [
            ("max-steps", self.max_steps, 0, float("inf")),
            ("max-minutes", self.max_minutes, 0.01, float("inf")),
            ("epochs", self.epochs, 1, float("inf")),
            ("learning-rate", self.learning_rate, 1e-9, 1.0),
            ("tokens-per-batch", self.tokens_per_batch, self.max_length, float("inf")),
            ("max-length", self.max_length, 8, 512),
            ("mask-fraction", self.mask_fraction, 0.01, 0.9),
            ("discriminator-weight", self.discriminator_weight, 0, float("inf")),
            ("warmup-fraction", self.warmup_fraction, 0, 1),
            ("weight-decay", self.weight_decay, 0, 1),
            ("dropout", self.dropout, 0, 0.9),
            ("seed", self.seed, 0, 2**32 - 1),
            ("vocab-size", self.vocab_size, 1_024, MAX_VOCABULARY),
            ("save-steps", self.save_steps, 1, float("inf")),
            ("log-steps", self.log_steps, 1, float("inf")),
        ]
        for flag, value, low, high in bounds:
            if value is not None and not low <= value <= high:
                raise InputError(f"expected --{flag} from {low:g} to {high:g}, found {value:g}")
        if self.max_steps is not None and self.max_minutes is not None:
            raise InputError("expected --max-steps or --max-minutes, found both; give one of them")
