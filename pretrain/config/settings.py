"""The flags of a pre-training run and the model sizes behind `--preset`."""

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import ClassVar, Literal

from malmoi.config import Precision
from malmoi.errors import InputError
from malmoi.model_folders import check_discriminator_files, check_generator_files, is_hub_id
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import find_sources
from pretrain.config.objective import (
    GENERATOR_SIZE,
    GeneratorHead,
    Masking,
    Objective,
    Recipe,
    Sampling,
    Schedule,
    Sharing,
    check_recipe,
)
from tokenizer.kinds import MAX_VOCABULARY

PresetName = Literal["tiny", "small", "base"]


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


# What --init calls a start that is no checkpoint; skip-gram: in records of earlier versions.
FROM_NOTHING = ("random", "word-vectors", "skip-gram")

# Up to here runs learn by default from noise and a bag of words: above joint RTD from 1 to 20
# million tokens (three seeds each; docs/experiments.md, "Token budgets"). Beyond 20 million nothing
# was compared with joint RTD.
FEW_TOKENS = 50_000_000
FEW_TOKENS_BAG_WEIGHT = 5.0
# And up to here from correction, which makes a token a third dearer: ahead at 5 million tokens for
# the same time, level at 20 (three seeds each).
CORRECTION_TOKENS = 10_000_000
FEW_TOKENS_CORRECTION_WEIGHT = 5.0


@dataclass(kw_only=True)
class PretrainSettings(ReadOptions):
    """What to train on, how large a model, for how long."""

    HELP_GROUPS: ClassVar[dict[str, tuple[str, ...]]] = {
        "data": (
            "corpus",
            "text_column",
            "init",
            "revision",
            "tokenizer",
            "vocab_size",
            "max_length",
        ),
        "files": ("sheet", "delimiter", "no_header", "skip_bad_rows"),
        "length": ("max_minutes", "max_tokens", "max_steps", "max_flops", "epochs"),
        "network": ("preset", "objective", "learning_rate", "tokens_per_batch"),
        "run": ("output", "resume", "device", "precision", "seed", "save_steps", "log_steps"),
    }
    """See `malmoi.flags.parse_flags`."""

    corpus: Path
    """File or folder of texts (.txt .csv .tsv .jsonl .parquet .xlsx, plain, .gz or .zst), or a
    folder of runs/cache/tokenized: all that another machine needs to train, without the texts."""
    preset: PresetName | None = None
    """tiny: 4 layers x 256; small: the paper's ELECTRA-small, 12 x 256; base: 12 x 768. By
    default tiny, or with --init DIRECTORY that of the checkpoint (learning rate and batch)."""
    max_steps: int | None = None
    """Stop after this many optimizer steps; 0 writes the untrained starting weights."""
    max_minutes: float | None = None
    """Stop after this many minutes of training (without preparing the corpus and compiling). The
    clock sets the learning rate then, so no second run, resumed or not, is the same to the bit."""
    max_tokens: float | None = None
    """Stop after this many tokens, padding not counted; 20e6 is 20 million."""
    max_flops: float | None = None
    """Stop after this many operations by the paper's counting: for comparisons at equal compute."""
    epochs: int = 10
    """Passes over the corpus when no --max-... is given."""
    tokenizer: Path | None = None
    """Tokenizer directory; one is trained on the corpus when not given."""
    vocab_size: int = 32_000
    """Entries of the tokenizer that is trained, rounded up to a multiple of 128."""
    init: str = "word-vectors"
    """random; word-vectors: word embeddings from counts of which word pieces occur together in
    the corpus; or the directory of a run or a released checkpoint to continue from, or the
    Hub id of an ELECTRA discriminator in safetensors (its networks and tokenizer; a generator that
    is needed and not there begins new). A directory has to stay where it is until the run is
    finished: --resume reads its shape again."""
    revision: str | None = None
    """Branch, tag or commit of the Hub id in --init, such as refs/pr/1; by default main."""
    output: Path | None = None
    """Directory of the run; default runs/pretrain/NAME with the corpus, preset and time."""
    resume: bool = False
    """Go on from the last checkpoint of --output, or of the newest unfinished run with the flags
    given: weights to the bit as if it had never stopped, save with --max-minutes. Its length and
    learning rates may be given anew; left out, they stay. The first row of metrics.jsonl after it
    is of the steps since the checkpoint."""
    learning_rate: float | None = None
    """Peak learning rate; default by preset."""
    tokens_per_batch: int | None = None
    """Tokens in one optimizer step, padding included; default by preset."""
    max_length: int = 128
    """Longest sequence in tokens, [CLS] and [SEP] included; longer texts are cut in pieces."""
    objective: Objective = Recipe.objective
    """rtd: replaced or original, at every token (ELECTRA); mlm: BERT; electra-15: rtd with its
    loss at masked positions only; replace-mlm: guess what stood where the generator put a token;
    all-tokens-mlm: guess what stood everywhere, with a copy mechanism."""
    schedule: Schedule = Recipe.schedule
    """joint: both networks at once; two-stage: the generator alone, then the discriminator from
    its weights; adversarial: the generator learns by policy gradient to mislead (against a batch's
    mean, where the paper learns a baseline); frozen-generator: the one of --generator-from,
    unchanged; frozen-discriminator: a generator for the discriminator of --init, which stays as it
    is, and so do the embeddings that they share."""
    generator_from: Path | None = None
    """Run whose trained generator --schedule frozen-generator draws from."""
    masking: Masking = Recipe.masking
    """token; word: whole words; span: runs of words of geometric length (SpanBERT); rare: rare
    tokens more often. A word is an eojeol, save that WordPiece cuts its punctuation off."""
    replaced_spans: bool = Recipe.replaced_spans
    """With --masking span: a span counts as replaced as a whole."""
    generator_head: GeneratorHead = Recipe.generator_head
    """mlm, or sbo: guess a span from its two boundaries (SpanBERT; with --masking span)."""
    sharing: Sharing | None = None
    """What the networks share. none; word: word and position embeddings; instance: the whole
    embedding module; gdes: as word, without the discriminator's gradients (DeBERTaV3); all: the
    whole encoder. By default instance, none where the schedule forbids sharing, and with --init
    DIRECTORY whatever leaves its generator the embeddings it has."""
    generator_size: float = GENERATOR_SIZE
    """Width of the generator as a fraction of the discriminator's (paper: 1/4 to 1/2)."""
    generator_layers: int | None = None
    """Layers of the generator; by default as many as the discriminator has."""
    sampling: Sampling = Recipe.sampling
    """inverse, or gumbel (the paper's code): two ways to draw from the same softmax. The draws of
    inverse are the same for any number of processes."""
    temperature: float = Recipe.temperature
    """Divides the generator's logits before a token is drawn (paper: 1)."""
    first_temperature: float | None = Recipe.first_temperature
    """Temperature of the first samples, decaying to --temperature (Fast-ELECTRA); by default
    constant."""
    forbid_original: bool = Recipe.forbid_original
    """Never draw the token that stood there."""
    bag_weight: float | None = None
    """Weight of a loss by which [CLS] guesses all words of its text (paper: 0), which keeps what a
    text is about where classifiers read it. By default 5 where noise is the default, else 0."""
    correction_weight: float | None = None
    """Weight of a loss by which the discriminator also guesses what stood at the masked positions,
    from the corrupted text (paper: 0; COCO-LM, METRO). By default 5 where noise is the default in
    a run of up to 10 million tokens or by --max-minutes, else 0."""
    unigram_fraction: float | None = None
    """Fraction of the run over which replacements change from noise by word frequency to the
    generator's samples (paper: 0); 1: noise only, without a generator. By default 1 in joint rtd
    of up to 50 million tokens, or by --max-minutes, however many, on a CPU (docs/experiments.md);
    else, by --max-flops, with other than default flags of a generator, --sharing or
    --discriminator-weight, and where --init has learnt from one, 0."""
    mask_fraction: float = Recipe.mask_fraction
    """Fraction of a text's tokens that is masked (paper: 0.15)."""
    last_mask_fraction: float | None = Recipe.last_mask_fraction
    """The fraction at the end of the run, approached linearly; by default constant."""
    kept_fraction: float = Recipe.kept_fraction
    """Fraction of masked positions that keep their token in the generator's input (paper: 0.15)."""
    random_fraction: float = Recipe.random_fraction
    """Fraction of masked positions that get a random token (paper: 0; BERT: 0.1)."""
    discriminator_weight: float = Recipe.discriminator_weight
    """Weight of the discriminator's loss against the generator's (paper: 50)."""
    weight_warmup: float = Recipe.weight_warmup
    """Fraction of the run over which that weight rises from 0 (paper: 0)."""
    sentence_weight: float = Recipe.sentence_weight
    """Weight of a loss on [CLS]: was anything in this text replaced? (paper: 0)."""
    unchanged_fraction: float = Recipe.unchanged_fraction
    """With --sentence-weight, the fraction of texts in which nothing is masked (paper: 0.2)."""
    first_stage: float = Recipe.first_stage
    """Fraction of a two-stage run that trains the generator."""
    loss_mean: Literal["tokens", "texts"] = Recipe.loss_mean
    """Discriminator's loss: mean over all real tokens (paper), or over each text first."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """adamw, or muon on the encoder layers' matrices and adamw elsewhere."""
    muon_learning_rate: float = 5e-3
    """Muon's peak learning rate."""
    adam_bias_correction: bool = True
    """By default Adam's moments are corrected for their start at zero. The paper's code does not
    (this flag), and takes steps up to three times as large in its first thousand; in short runs
    with a generator the discriminator then learns nothing (docs/experiments.md)."""
    warmup_fraction: float = 0.06
    """Fraction of the run over which the learning rate rises (assumption)."""
    initializer_range: float | None = None
    """Standard deviation of new weights (paper: 0.02); by default 0.02 for base, 0.05 for narrower
    ones (docs/experiments.md)."""
    weight_decay: float = 0.01
    """Weight decay (paper: 0.01)."""
    decay_all: bool = False
    """Decay LayerNorm and biases too (paper: not)."""
    max_gradient_norm: float = 1.0
    """Gradients are scaled down to this norm (paper's code: 1); 0: never."""
    average_fraction: float = 0.0
    """The result is the mean of the weights over this last fraction of the run; 0: the last."""
    dropout: float = 0.0
    """Dropout while pre-training (paper: 0.1; with few passes over the corpus there is little to
    overfit, and on a CPU it costs a quarter to a third of a step)."""
    batching: Literal["auto", "length", "packed"] = "auto"
    """length: texts of like length together; packed: rows of --max-length filled with texts,
    each attending to itself only. auto: length on a CPU, packed on a GPU (docs/performance.md);
    a resumed run keeps what it began with."""
    precision: Precision = "auto"
    """Number format of matrix products; weights and optimizer state are fp32 in both. auto: the
    faster one of this device (docs/performance.md); a resumed run keeps what it began with."""
    compile: Literal["auto", "graphs", "on", "off"] = "auto"
    """torch.compile the encoders; graphs: and replay them as CUDA graphs, which wants packed rows.
    auto: graphs on a GPU with packed rows, on with others, off on a CPU (docs/performance.md)."""
    save_steps: int = 200
    """Steps between checkpoints; the last two are kept."""
    log_steps: int = 20
    """Steps between progress lines and rows of metrics.jsonl."""
    seed: int = 42
    """Seed of weights, order, masks and samples."""
    device: str = "auto"
    """auto, cpu or cuda."""

    def check_places(self) -> None:
        """Raise InputError for the first path where nothing is; imports nothing that takes long."""
        if not self.corpus.exists():
            find_sources(self.corpus)
        if self.continues() and not is_hub_id(self.init):
            check_discriminator_files(self.init)
        if self.generator_from is not None:
            check_generator_files(self.generator_from)

    def check(self) -> None:
        """Raise InputError for the first value out of bounds, echoing it."""
        bounds: list[tuple[str, float | None, float, float]] = [
            ("max-steps", self.max_steps, 0, float("inf")),
            ("max-minutes", self.max_minutes, 0.01, float("inf")),
            ("max-tokens", self.max_tokens, 1, float("inf")),
            ("max-flops", self.max_flops, 1, float("inf")),
            ("epochs", self.epochs, 1, float("inf")),
            ("learning-rate", self.learning_rate, 1e-9, 1.0),
            ("tokens-per-batch", self.tokens_per_batch, self.max_length, float("inf")),
            ("max-length", self.max_length, 8, 512),
            ("mask-fraction", self.mask_fraction, 0.01, 0.9),
            ("last-mask-fraction", self.last_mask_fraction, 0.01, 0.9),
            ("kept-fraction", self.kept_fraction, 0, 1),
            ("random-fraction", self.random_fraction, 0, 1),
            ("discriminator-weight", self.discriminator_weight, 0, float("inf")),
            ("weight-warmup", self.weight_warmup, 0, 1),
            ("sentence-weight", self.sentence_weight, 0, float("inf")),
            ("unchanged-fraction", self.unchanged_fraction, 0, 0.9),
            ("bag-weight", self.bag_weight, 0, float("inf")),
            ("correction-weight", self.correction_weight, 0, float("inf")),
            ("unigram-fraction", self.unigram_fraction, 0, 1),
            ("first-stage", self.first_stage, 0.01, 0.99),
            ("generator-size", self.generator_size, 1 / 16, 1),
            ("generator-layers", self.generator_layers, 1, 48),
            ("temperature", self.temperature, 0.05, 20),
            ("first-temperature", self.first_temperature, 0.05, 20),
            ("muon-learning-rate", self.muon_learning_rate, 1e-9, 1.0),
            ("warmup-fraction", self.warmup_fraction, 0, 1),
            ("initializer-range", self.initializer_range, 1e-4, 1),
            ("weight-decay", self.weight_decay, 0, 1),
            ("max-gradient-norm", self.max_gradient_norm, 0, float("inf")),
            ("average-fraction", self.average_fraction, 0, 1),
            ("dropout", self.dropout, 0, 0.9),
            ("seed", self.seed, 0, 2**32 - 1),
            ("vocab-size", self.vocab_size, 1_024, MAX_VOCABULARY),
            ("save-steps", self.save_steps, 1, float("inf")),
            ("log-steps", self.log_steps, 1, float("inf")),
        ]
        for flag, value, low, high in bounds:
            if value is None or (low <= value <= high and math.isfinite(value)):
                continue
            bounded = f"from {low:g} to {high:g}" if math.isfinite(high) else f"of {low:g} or more"
            raise InputError(f"expected --{flag} {bounded}, found {value:g}")
        limits = ("max_steps", "max_minutes", "max_tokens", "max_flops")
        given = [f"--{n.replace('_', '-')}" for n in limits if getattr(self, n) is not None]
        if len(given) > 1:
            raise InputError(
                f"expected one limit, found both {' and '.join(given)}; give one of them"
            )
        if self.init == "skip-gram":
            raise InputError(
                "expected --init word-vectors, which has taken the place of skip-gram, found "
                "--init skip-gram; give word-vectors, or leave --init out"
            )
        continues = self.continues()
        if self.revision is not None and not (continues and is_hub_id(self.init)):
            raise InputError(
                f"--revision is of a Hub id in --init, found --init {self.init}; leave it out"
            )
        for flag, changes, why in (
            ("epochs", bool(given), f"{''.join(given)} says when to stop"),
            ("vocab-size", self.tokenizer is not None, "--tokenizer has its own vocabulary"),
            ("vocab-size", self.generator_from is not None, "--generator-from has its vocabulary"),
            ("vocab-size", continues, "--init has its own vocabulary"),
            ("muon-learning-rate", self.optimizer != "muon", "--optimizer adamw has no Muon"),
            ("initializer-range", continues, "--init has weights"),
            ("decay-all", self.weight_decay == 0, "--weight-decay 0 decays nothing"),
        ):
            name = flag.replace("-", "_")
            if changes and getattr(self, name) != getattr(PretrainSettings, name):
                raise InputError(f"{why}, so --{flag} has no effect; leave it out")
        if self.schedule == "frozen-discriminator" and not continues:
            raise InputError(
                "--schedule frozen-discriminator trains a generator for a discriminator that is "
                f"trained already, found --init {self.init}; give a run's directory as --init"
            )
        # With room for rounding: 0.9 and 0.1 are one whole.
        if self.schedule == "two-stage" and self.first_stage + self.average_fraction > 1 + 1e-9:
            raise InputError(
                "--average-fraction would take in the discriminator before its stage begins, found "
                f"{self.average_fraction:g} with --first-stage {self.first_stage:g}; together at "
                "most 1"
            )
        check_recipe(
            self.recipe(),
            sharing=self.resolved_sharing(),
            generator_size=self.generator_size,
            given=None if self.generator_from is None else str(self.generator_from),
            generator_layers=self.generator_layers,
        )

    def recipe(self) -> Recipe:
        """The flags that say what a step learns; what was left out as in the paper."""
        flags = {field.name: getattr(self, field.name) for field in fields(Recipe)}
        return Recipe(**{name: value for name, value in flags.items() if value is not None})

    def for_tokens(self, planned: float | None) -> "PretrainSettings":
        """Fill in what the length of a run decides, where no flag does: noise, or a generator.

        Args:
            planned: tokens that the run will see; None if nothing tells before it begins, or it
                only writes the networks it would begin with.
        """
        if self.unigram_fraction is None and planned is not None and planned <= FEW_TOKENS:
            bag, correction = self.bag_weight, self.correction_weight
            if correction is None:
                correction = FEW_TOKENS_CORRECTION_WEIGHT if planned <= CORRECTION_TOKENS else 0.0
            noise = replace(
                self,
                unigram_fraction=1.0,
                bag_weight=FEW_TOKENS_BAG_WEIGHT if bag is None else bag,
                correction_weight=correction,
            )
            # The weight is one against the generator's loss.
            left_out = ("objective", "schedule", "sharing", "discriminator_weight", "weight_warmup")
            plain = all(getattr(self, n) == getattr(PretrainSettings, n) for n in left_out)
            if plain and noise.is_allowed():
                return noise
        recipe = self.recipe()
        return replace(
            self,
            unigram_fraction=recipe.unigram_fraction,
            bag_weight=recipe.bag_weight,
            correction_weight=recipe.correction_weight,
        )

    def is_allowed(self) -> bool:
        """Whether `check` finds nothing wrong."""
        try:
            self.check()
        except InputError:
            return False
        return True

    def continues(self) -> bool:
        """Whether --init names a checkpoint to go on from."""
        return self.init not in FROM_NOTHING

    def resolved_sharing(self) -> Sharing:
        """The flag, else what the schedule allows."""
        if self.sharing is not None:
            return self.sharing
        return "none" if self.schedule in ("two-stage", "frozen-generator") else "instance"


def peak_learning_rate(settings: PretrainSettings) -> float:
    """The flag's value, else the preset's."""
    return settings.learning_rate or PRESETS[settings.preset or "tiny"].learning_rate


def batch_tokens(settings: PretrainSettings) -> int:
    """The flag's value, else the preset's."""
    return settings.tokens_per_batch or PRESETS[settings.preset or "tiny"].tokens_per_batch
