"""What a run learns, and which combinations of flags make no sense.

The names are the paper's (Clark et al. 2020, "ELECTRA"): Section 3.4 and Table 5 for the
objectives, Appendix F for the schedules.
"""

from dataclasses import dataclass, fields
from typing import Literal

from malmoi.errors import InputError

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


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one step turns a batch into losses."""

    objective: Objective = "rtd"
    """rtd: replaced or original, at every token (ELECTRA). electra-15: the same at masked
    positions only. replace-mlm: guess what stood at positions where the generator put a token.
    all-tokens-mlm: guess what stood everywhere, with a copy mechanism. mlm: guess what [MASK]
    hides (BERT)."""
    schedule: Schedule = "joint"
    """joint: both networks at once. two-stage: the generator alone, then the discriminator from
    its weights while it stays as it is. adversarial: the generator learns by policy gradient to
    mislead. frozen-generator: a trained one of another run, never changed (Fast-ELECTRA).
    frozen-discriminator: the generator alone, beside a discriminator that is trained already."""
    masking: Masking = "token"
    """What is masked together: tokens; whole words; spans of geometric length (SpanBERT); rare
    tokens more often."""
    replaced_spans: bool = False
    """With span masking: all tokens of a masked span count as replaced when one of them is."""
    generator_head: GeneratorHead = "mlm"
    """mlm: from the masked position's state. sbo: from the span's two boundaries (SpanBERT)."""
    sampling: Sampling = "inverse"
    """How a token is drawn from the softmax: by inverting its cumulative sum, or Gumbel-max (the
    paper's code). One distribution; on a CPU the first is faster."""
    temperature: float = 1.0
    """Divides the generator's logits before a token is drawn (paper: 1)."""
    first_temperature: float | None = None
    """Temperature at the start, which falls to `temperature` by exponential decay
    (Fast-ELECTRA); None: constant."""
    forbid_original: bool = False
    """Never draw the token that stood there (tried in the paper, not better)."""
    mask_fraction: float = 0.15
    """Fraction of a text's tokens that is masked."""
    last_mask_fraction: float | None = None
    """The fraction at the end of the run, approached linearly; None: constant."""
    kept_fraction: float = 0.15
    """Fraction of the masked positions that keep their token in the generator's input."""
    random_fraction: float = 0.0
    """Fraction of them that get a random token (BERT: 0.1)."""
    discriminator_weight: float = 50.0
    """Weight of the discriminator's loss against the generator's (paper: lambda, 50)."""
    weight_warmup: float = 0.0
    """Fraction of the run over which the discriminator's weight rises from 0."""
    sentence_weight: float = 0.0
    """Weight of a loss on [CLS]: was anything in this text replaced? (tried in the paper)."""
    unchanged_fraction: float = 0.2
    """With it, the fraction of the texts that are left as they are, masks included; without, none.
    (0.2 in the paper's negative results; else nearly every text would have something replaced)."""
    bag_weight: float = 0.0
    """Weight of a loss by which [CLS] guesses all words of its text, as a paragraph vector does
    (Le and Mikolov 2014, PV-DBOW); 0: none. In a packed batch the first text of each row."""
    correction_weight: float = 0.0
    """Weight of a loss by which the discriminator also guesses what stood at the masked positions,
    from the corrupted text: COCO-LM's corrective language modelling (Meng et al. 2021, arXiv
    2102.08473) without its copy mechanism, as in METRO (Bajaj et al. 2022, arXiv 2204.06644)."""
    unigram_fraction: float = 0.0
    """Fraction of the run over which replacements change from unigram noise to the generator's
    samples, linearly; 1: noise only, and no generator is trained."""
    first_stage: float = 0.5
    """Fraction of a two-stage run that trains the generator."""
    loss_mean: Literal["tokens", "texts"] = "tokens"
    """The discriminator's loss is the mean over all real tokens of the batch, or over each text
    first."""

    @property
    def needs_generator(self) -> bool:
        """Whether a generator network takes part."""
        return self.objective != "mlm" and self.unigram_fraction < 1

    @property
    def needs_encoder_lm_head(self) -> bool:
        """Whether the discriminator's encoder guesses tokens as its objective."""
        return self.objective in ("mlm", "replace-mlm", "all-tokens-mlm")


def check_recipe(
    recipe: Recipe,
    *,
    sharing: str,
    generator_size: float,
    given: str | None,
    generator_layers: int | None = None,
) -> None:
    """Refuse what cannot work together, with the reason.

    Args:
        sharing: `--sharing`.
        generator_size: width of the generator as a fraction of the discriminator's.
        given: directory with a trained generator, or None.
        generator_layers: `--generator-layers`; None: as many as the discriminator has.

    Raises:
        InputError: for the first combination that makes no sense.
    """
    r = recipe
    refused: list[tuple[bool, str]] = [
        (
            r.objective == "mlm" and r.schedule != "joint",
            f"--objective mlm trains one network, so --schedule {r.schedule} has nothing to order; "
            "leave --schedule out",
        ),
        (
            r.objective == "mlm" and r.unigram_fraction > 0,
            "--objective mlm replaces nothing, so --unigram-fraction has no effect; leave it out",
        ),
        (
            r.objective == "mlm" and sharing not in ("instance", "none"),
            f"--objective mlm has one network, so --sharing {sharing} has nothing to share; "
            "leave --sharing out",
        ),
        (
            r.generator_head == "sbo" and r.masking != "span",
            f"--generator-head sbo guesses from a span's two ends, and --masking {r.masking} has "
            "no spans; add --masking span",
        ),
        (
            r.generator_head == "sbo" and not r.needs_generator,
            "--generator-head sbo needs a generator, and these flags train none; leave it out",
        ),
        (
            r.replaced_spans and r.masking != "span",
            f"--replaced-spans labels whole spans, and --masking {r.masking} has none; add "
            "--masking span",
        ),
        (
            r.replaced_spans and r.objective not in DISCRIMINATING,
            f"--replaced-spans changes the discriminator's labels, and --objective {r.objective} "
            "has none; take rtd or electra-15",
        ),
        (
            r.schedule == "adversarial" and r.objective not in DISCRIMINATING,
            "--schedule adversarial rewards the generator for misleading the discriminator, and "
            f"--objective {r.objective} has none; take rtd or electra-15",
        ),
        (
            r.schedule == "adversarial" and r.unigram_fraction > 0,
            "--schedule adversarial rewards the generator's own samples; leave out "
            "--unigram-fraction",
        ),
        (
            r.schedule == "adversarial" and r.generator_head == "sbo",
            "--schedule adversarial has no loss for the span boundary head; take "
            "--generator-head mlm",
        ),
        (
            r.generator_head == "sbo" and r.schedule == "frozen-generator",
            "--schedule frozen-generator would draw from a span boundary head that nothing has "
            "trained, for no run saves one; take --generator-head mlm",
        ),
        (
            r.schedule == "two-stage" and generator_size != 1,
            "--schedule two-stage starts the discriminator from the generator's weights, so both "
            f"must be of one size, found --generator-size {generator_size:g}; take 1",
        ),
        (
            r.schedule == "two-stage" and generator_layers is not None,
            "--schedule two-stage starts the discriminator from the generator's weights, so both "
            "have the same layers; leave out --generator-layers",
        ),
        (
            r.schedule == "two-stage" and sharing != "none",
            "--schedule two-stage copies the generator's weights once and shares none after it; "
            f"leave out --sharing {sharing}",
        ),
        (
            r.schedule == "two-stage" and r.unigram_fraction > 0,
            "--schedule two-stage has no stage for unigram noise; leave out --unigram-fraction",
        ),
        (
            r.schedule == "two-stage" and 0 < r.weight_warmup <= r.first_stage,
            "--weight-warmup counts from the start of the run, where --schedule two-stage trains "
            f"no discriminator, found {r.weight_warmup:g} with --first-stage {r.first_stage:g}; "
            "take more, or leave it out",
        ),
        (
            r.schedule == "frozen-discriminator" and r.unigram_fraction > 0,
            "--schedule frozen-discriminator replaces nothing; leave out --unigram-fraction",
        ),
        (
            r.schedule == "frozen-discriminator" and sharing == "gdes",
            "--schedule frozen-discriminator would change the table that the discriminator's is a "
            "difference to with --sharing gdes; leave --sharing out",
        ),
        (
            r.objective == "electra-15" and r.forbid_original,
            "--forbid-original replaces every masked token, so --objective electra-15, which asks "
            "at these alone, has one answer; leave out --forbid-original, or take rtd",
        ),
        (
            r.sentence_weight > 0 and r.forbid_original and r.unchanged_fraction == 0,
            "--forbid-original replaces something in every text, so --sentence-weight, which asks "
            "for that, has one answer; leave out one of them, or take an --unchanged-fraction",
        ),
        (
            r.unigram_fraction == 1 and sharing not in ("instance", "none"),
            f"--unigram-fraction 1 trains no generator, so --sharing {sharing} has nothing to "
            "share; leave --sharing out",
        ),
        (
            sharing == "all" and generator_size != 1,
            "--sharing all needs networks of one size, found --generator-size "
            f"{generator_size:g}; take 1",
        ),
        (
            sharing == "all" and generator_layers is not None,
            "--sharing all is one encoder, so the generator has its layers; leave out "
            "--generator-layers",
        ),
        (
            sharing == "all" and r.schedule != "joint",
            f"--sharing all is one encoder, which --schedule {r.schedule} would have to train and "
            "keep at once; take another --sharing",
        ),
        (
            r.schedule == "frozen-generator" and given is None,
            "--schedule frozen-generator needs a trained generator; give a run's directory as "
            "--generator-from",
        ),
        (
            given is not None and r.schedule != "frozen-generator",
            f"--generator-from is read by --schedule frozen-generator, found {r.schedule}; "
            "leave it out, or use --init to go on from both networks",
        ),
        (
            r.schedule == "frozen-generator" and sharing != "none",
            f"--schedule frozen-generator changes no weight of the generator, so --sharing "
            f"{sharing} would freeze the discriminator's too; leave it out",
        ),
        (
            r.schedule == "frozen-generator" and r.unigram_fraction > 0,
            "--schedule frozen-generator draws from its generator; leave out --unigram-fraction",
        ),
        (
            r.sentence_weight > 0 and r.objective not in DISCRIMINATING,
            "--sentence-weight adds a loss to the discriminator's, and --objective "
            f"{r.objective} has none; take rtd or electra-15",
        ),
        (
            r.correction_weight > 0 and r.objective not in DISCRIMINATING,
            "--correction-weight lets a discriminator guess too what stood at masked positions, "
            f"and --objective {r.objective} lets it guess anyway; leave it out, or take rtd",
        ),
        (
            r.discriminator_weight == 0
            and (r.unigram_fraction == 1 or r.schedule in ("frozen-generator", "two-stage"))
            and not (r.sentence_weight or r.bag_weight or r.correction_weight),
            "--discriminator-weight 0 leaves nothing to train where no generator learns; take "
            "more, or add --bag-weight or --correction-weight",
        ),
        (
            r.discriminator_weight == 0 and r.schedule == "adversarial",
            "--schedule adversarial rewards the generator for misleading a discriminator, which "
            "--discriminator-weight 0 would not train; take more",
        ),
        (
            r.discriminator_weight == 0
            and sharing == "none"
            and r.objective in DISCRIMINATING
            and r.schedule == "joint"
            and not (r.sentence_weight or r.bag_weight or r.correction_weight),
            "--discriminator-weight 0 with --sharing none leaves the discriminator, which is what "
            "a run is for, without a loss; take more, or another --sharing",
        ),
        (
            r.kept_fraction == 1 and r.unigram_fraction < 1,
            "--kept-fraction 1 hides no token, so there is nothing to guess; take less",
        ),
        (
            r.kept_fraction + r.random_fraction > 1,
            "--kept-fraction and --random-fraction are parts of the masked positions, found "
            f"{r.kept_fraction:g} + {r.random_fraction:g}; together at most 1",
        ),
    ]
    for wrong, reason in refused:
        if wrong:
            raise InputError(reason)
    _refuse_idle(r, generator_size, generator_layers)


def _refuse_idle(recipe: Recipe, generator_size: float, generator_layers: int | None) -> None:
    """Refuse flags that would change nothing: whoever gives one expects that it does.

    The default given by hand cannot be told from a flag left out, and passes.
    """
    changed = {f.name for f in fields(Recipe) if getattr(recipe, f.name) != f.default}
    if generator_size != GENERATOR_SIZE:
        changed.add("generator_size")
    if generator_layers is not None:
        changed.add("generator_layers")
    generator = ("generator_size", "generator_layers")
    samples = ("sampling", "temperature", "first_temperature")
    idle = [
        (
            recipe.objective == "mlm",
            "--objective mlm trains one network and replaces nothing",
            (*generator, *samples, "forbid_original", "discriminator_weight", "weight_warmup"),
        ),
        (
            recipe.unigram_fraction == 1,
            "--unigram-fraction 1 replaces by noise and trains no generator",
            (*generator, *samples, "kept_fraction", "random_fraction"),
        ),
        (
            recipe.schedule == "frozen-generator",
            "--schedule frozen-generator takes a trained generator as it is",
            generator,
        ),
        (
            recipe.schedule == "frozen-discriminator",
            "--schedule frozen-discriminator trains the generator alone and replaces nothing",
            (
                *samples,
                "objective",
                "forbid_original",
                "discriminator_weight",
                "weight_warmup",
                "sentence_weight",
                "bag_weight",
                "correction_weight",
                "loss_mean",
                "replaced_spans",
            ),
        ),
        (
            recipe.schedule != "two-stage",
            f"--schedule {recipe.schedule} has one stage",
            ("first_stage",),
        ),
        (
            recipe.sentence_weight == 0,
            "no --sentence-weight asks which texts are unchanged",
            ("unchanged_fraction",),
        ),
        (
            recipe.discriminator_weight == 0,
            "--discriminator-weight 0 leaves the discriminator's loss out",
            ("weight_warmup", "loss_mean"),
        ),
        (
            recipe.discriminator_weight == 0
            and recipe.unigram_fraction < 1
            and not (recipe.sentence_weight or recipe.bag_weight or recipe.correction_weight),
            "--discriminator-weight 0 has no loss that sees replacements",
            (*samples, "forbid_original"),
        ),
    ]
    for applies, reason, names in idle:
        for name in names:
            if applies and name in changed:
                flag = name.replace("_", "-")
                raise InputError(f"{reason}, so --{flag} has no effect; leave it out")
