"""What a run learns: [objective] and [masking] of a recipe, and what goes together in them.

The names are the paper's (Clark et al. 2020, "ELECTRA"): Section 3.4 and Table 5 for the
objectives, Appendix F for the schedules. In what is said of a key "paper" is that one, "paper's
code" is google-research/electra; "assumption": nobody measured it; "measured": lab/log.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from malmoi.settings import Choice, Off, Range

Objective = Literal["rtd", "mlm", "electra-15", "replace-mlm", "all-tokens-mlm"]
Schedule = Literal["joint", "two-stage", "adversarial", "frozen-generator", "frozen-discriminator"]
Masking = Literal["token", "word", "span", "rare"]
GeneratorHead = Literal["mlm", "sbo"]
Sampling = Literal["inverse", "gumbel"]
Sharing = Literal["none", "word", "instance", "gdes", "all"]

# Width of the generator as a fraction of the discriminator's (paper: 1/4 to 1/2).
GENERATOR_SIZE = 0.25
# Objectives that end in the discriminator's own head, which says replaced or original.
DISCRIMINATING = ("rtd", "electra-15")

Weight = Annotated[float, Range(0)]
# A loss that a run by default has, and others take back.
DefaultWeight = Annotated[float, Range(0), Off((0.0,))]
Fraction = Annotated[float, Range(0, 1)]
Temperature = Range(0.05, 20)


@dataclass(frozen=True, kw_only=True)
class StepKeys:
    """The keys of [objective] that a step goes by under the same names."""

    schedule: Schedule = "joint"
    """joint: both networks at once (paper, Section 2). two-stage: the generator alone, then the
    discriminator from its weights while it stays as it is; adversarial: the generator learns by
    policy gradient to mislead, against a batch's mean where the paper learns a baseline (both:
    paper, Section 3.2 and Appendix F). frozen-generator: the one of generator.init, unchanged
    (Fast-ELECTRA, Dong et al. 2023, arXiv 2310.07347). frozen-discriminator: a generator for the
    discriminator of --init, which stays as it is, and so do the embeddings that they share (ours,
    for released encoders)."""
    first_stage: Annotated[float, Range(0.01, 0.99)] = 0.5
    """Fraction of a two-stage run that trains the generator (assumption; the paper names a number
    of steps)."""
    discriminator_weight: Weight = 50.0
    """Weight of the discriminator's loss against the generator's (paper, Section 2 and Table 6:
    lambda, 50)."""
    weight_warmup: Fraction = 0.0
    """Fraction of the run over which that weight rises from 0 (ours; paper: 0)."""
    loss_mean: Literal["tokens", "texts"] = "tokens"
    """Discriminator's loss: mean over all real tokens of the batch (paper's code), or over each
    text first."""
    sentence_weight: Weight = 0.0
    """Weight of a loss on [CLS]: was anything in this text replaced? (paper, appendix "Negative
    Results": tried, not better)."""
    unchanged_fraction: Annotated[float, Range(0, 0.9)] = 0.2
    """With sentence_weight, the fraction of texts in which nothing is masked (0.2 there; else
    nearly every text would have something replaced); without, none."""
    bag_weight: DefaultWeight = 5.0
    """Weight of a loss by which [CLS] guesses all words of its text, as a paragraph vector does (Le
    and Mikolov 2014, PV-DBOW); in a packed batch the first text of each row. Paper: 0. Measured: 5
    where there is no generator; beside one an assumption."""
    correction_weight: DefaultWeight = 5.0
    """Weight of a loss by which the discriminator also guesses what stood at the masked positions,
    from the corrupted text: COCO-LM's corrective language modelling (Meng et al. 2021, arXiv
    2102.08473) without its copy mechanism, as in METRO (Bajaj et al. 2022, arXiv 2204.06644).
    Paper: 0. Measured: 5 where there is no generator; beside one an assumption."""
    unigram_fraction: Annotated[float, Range(0, 1), Off((0.0,))] = 0.3
    """Fraction of the run over which replacements change from noise by word frequency to the
    generator's samples, linearly (ours; paper: 0); 1: noise only, without a generator. 0.3 is an
    assumption for runs of a few million tokens, whose generator has little to say at first; one of
    677 million took 0.1. A run without --recipe takes 0 where --init names a pair that has learnt
    together."""
    sampling: Sampling = "inverse"
    """How a token is drawn from the softmax: inverse, by inverting its cumulative sum, or gumbel
    (paper's code). One distribution; the draws of inverse are the same for any number of processes,
    and on a CPU it is faster (measured)."""
    temperature: Annotated[float, Temperature] = 1.0
    """Divides the generator's logits before a token is drawn (paper: 1)."""
    first_temperature: Annotated[float | None, Temperature] = None
    """Temperature of the first samples, which decays to that exponentially (Fast-ELECTRA); none:
    constant (paper)."""
    forbid_original: bool = False
    """Never draw the token that stood there (paper, appendix "Negative Results": tried, not
    better)."""
    replaced_spans: bool = False
    """With masking.strategy = "span": all tokens of a span count as replaced when one of them is
    (ours)."""


@dataclass(frozen=True, kw_only=True)
class ObjectiveKeys(StepKeys):
    """[objective]: what a run learns by default."""

    name: Objective = "rtd"
    """rtd: replaced or original, at every token (paper, Section 2). electra-15: the same at masked
    positions only; replace-mlm: guess what stood where the generator put a token; all-tokens-mlm:
    guess what stood everywhere, with a copy mechanism (all three: paper, Section 3.4); mlm: guess
    what [MASK] hides (BERT, Devlin et al. 2019)."""


@dataclass(frozen=True, kw_only=True)
class MaskingKeys:
    """[masking]: what is hidden from the generator, or from a masked-LM encoder."""

    strategy: Masking = "token"
    """What is masked together. token (paper, Section 2); word: whole words (BERT's later release);
    span: runs of words of geometric length (SpanBERT, Joshi et al. 2020, Section 3.1); rare: rare
    tokens more often (ours). A word is an eojeol, save that WordPiece cuts its punctuation off."""
    fraction: Annotated[float, Range(0.01, 0.9)] = 0.15
    """Fraction of a text's tokens that is masked (paper, Table 6: 0.15 for small and base)."""
    last_fraction: Annotated[float | None, Range(0.01, 0.9)] = None
    """The fraction at the end of the run, approached linearly (ours); none: constant (paper)."""
    kept_fraction: Fraction = 0.15
    """Fraction of masked positions that keep their token in the generator's input (paper's code:
    0.15)."""
    random_fraction: Fraction = 0.0
    """Fraction of masked positions that get a random token (paper: 0; BERT: 0.1)."""


@dataclass(frozen=True, kw_only=True)
class Recipe(StepKeys):
    """How one step turns a batch into losses; by itself the paper's. A section of the plan."""

    objective: Objective = ObjectiveKeys.name
    bag_weight: float = 0.0
    correction_weight: float = 0.0
    unigram_fraction: float = 0.0
    masking: Masking = MaskingKeys.strategy
    mask_fraction: float = MaskingKeys.fraction
    last_mask_fraction: float | None = MaskingKeys.last_fraction
    kept_fraction: float = MaskingKeys.kept_fraction
    random_fraction: float = MaskingKeys.random_fraction
    generator_head: GeneratorHead = "mlm"

    @property
    def needs_generator(self) -> bool:
        """Whether a generator network takes part."""
        return self.objective != "mlm" and self.unigram_fraction < 1

    @property
    def discriminates(self) -> bool:
        """Whether the encoder says replaced or original."""
        return self.objective in DISCRIMINATING

    @property
    def has_more_losses(self) -> bool:
        """Whether the encoder has a loss beside its own."""
        return (self.sentence_weight or self.bag_weight or self.correction_weight) > 0


_SIZES = ("generator.size", "generator.layers")
# How a generator's tokens are drawn.
SAMPLES = ("objective.sampling", "objective.temperature", "objective.first_temperature")
_WEIGHT = ("objective.discriminator_weight", "objective.weight_warmup")
_OF_DISCRIMINATOR = (
    *("objective.sentence_weight", "objective.replaced_spans", "objective.correction_weight"),
    "objective.schedule=adversarial",
)
_SHARED = "generator.sharing=word|gdes|all"
_NOISE = "objective.unigram_fraction"
_SCHEDULE, _SPANS = "objective.schedule", ("generator.head=sbo", "objective.replaced_spans")

# What a run learns is one choice of each of these, with its keys.
CHOICES = (
    Choice(
        "objective.name",
        "mlm",
        "trains one network and replaces nothing",
        lacks=(
            "objective.schedule=two-stage|adversarial|frozen-generator|frozen-discriminator",
            *(_NOISE, _SHARED, "generator.head=sbo", *_SIZES, *SAMPLES),
            *("objective.forbid_original", *_WEIGHT, *_OF_DISCRIMINATOR),
        ),
    ),
    Choice(
        "objective.name",
        "electra-15",
        "asks at masked tokens alone, where this leaves one answer",
        lacks=("objective.forbid_original",),
    ),
    *(
        Choice(
            "objective.name",
            name,
            "guesses tokens and has no discriminator's loss",
            lacks=_OF_DISCRIMINATOR,
        )
        for name in ("replace-mlm", "all-tokens-mlm")
    ),
    Choice(
        _SCHEDULE,
        "two-stage",
        "starts the discriminator from the generator's weights: of one size, and nothing shared",
        owns=("objective.first_stage",),
        lacks=(*_SIZES, "generator.sharing=word|instance|gdes|all", _NOISE),
    ),
    Choice(
        _SCHEDULE,
        "adversarial",
        "rewards the generator's own samples, by their masked states",
        lacks=(_NOISE, "generator.head=sbo", "generator.sharing=all"),
    ),
    Choice(
        _SCHEDULE,
        "frozen-generator",
        "takes a trained generator as it is",
        owns=("generator.init",),
        lacks=(
            *(*_SIZES, "generator.sharing=word|instance|gdes|all", _NOISE),
            "generator.head=sbo",  # no run saves one
        ),
    ),
    Choice(
        _SCHEDULE,
        "frozen-discriminator",
        "trains the generator alone and replaces nothing",
        lacks=(
            *("generator.sharing=gdes|all", _NOISE, *SAMPLES, *_WEIGHT),
            "objective.name=mlm|electra-15|replace-mlm|all-tokens-mlm",
            *("objective.forbid_original", "objective.sentence_weight"),
            *("objective.loss_mean", "objective.replaced_spans"),
            *("objective.bag_weight", "objective.correction_weight"),
        ),
    ),
    Choice(
        "objective.unigram_fraction",
        1,
        "replaces by noise and trains no generator",
        lacks=(
            *(*_SIZES, *SAMPLES, _SHARED, "generator.head=sbo"),
            *("masking.kept_fraction", "masking.random_fraction"),
        ),
    ),
    Choice("generator.sharing", "all", "is one encoder in two networks", lacks=_SIZES),
    Choice(
        "model.stacked",
        True,
        "stacks layers that learn all the time, in networks of their own",
        lacks=(
            "objective.schedule=two-stage|frozen-generator|frozen-discriminator",
            "generator.sharing=all",
        ),
    ),
    *(
        Choice("masking.strategy", strategy, "masks no spans", lacks=_SPANS)
        for strategy in ("token", "word", "rare")
    ),
    Choice(
        "objective.sentence_weight",
        0,
        "asks of no text whether it is unchanged",
        lacks=("objective.unchanged_fraction",),
    ),
    Choice(
        "objective.discriminator_weight",
        0,
        "leaves the discriminator's loss out",
        lacks=(
            *("objective.weight_warmup", "objective.loss_mean"),
            "objective.schedule=adversarial",
        ),
    ),
)
