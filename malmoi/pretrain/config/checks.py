"""Which values and which combinations of them make no sense: refused before anything long."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from malmoi.errors import InputError
from malmoi.model_folders import check_discriminator_files, check_generator_files, is_hub_id
from malmoi.pretrain.config.objective import DISCRIMINATING, GENERATOR_SIZE, Recipe, Sharing
from malmoi.pretrain.config.settings import RunConfig, shown
from malmoi.text.reading.sources import find_sources
from malmoi.tokenizer.kinds import MAX_VOCABULARY

_ANY = math.inf
# Lowest and highest value.
BOUNDS: dict[str, tuple[float, float]] = {
    "max_steps": (0, _ANY),
    "max_minutes": (0.01, _ANY),
    "max_tokens": (1, _ANY),
    "length.max_flops": (1, _ANY),
    "epochs": (1, _ANY),
    "learning_rate": (1e-9, 1.0),
    "max_length": (8, 512),
    "seed": (0, 2**32 - 1),
    "vocab_size": (1_024, MAX_VOCABULARY),
    "masking.fraction": (0.01, 0.9),
    "masking.last_fraction": (0.01, 0.9),
    "masking.kept_fraction": (0, 1),
    "masking.random_fraction": (0, 1),
    "objective.discriminator_weight": (0, _ANY),
    "objective.weight_warmup": (0, 1),
    "objective.sentence_weight": (0, _ANY),
    "objective.unchanged_fraction": (0, 0.9),
    "objective.bag_weight": (0, _ANY),
    "objective.correction_weight": (0, _ANY),
    "objective.unigram_fraction": (0, 1),
    "objective.first_stage": (0.01, 0.99),
    "objective.temperature": (0.05, 20),
    "objective.first_temperature": (0.05, 20),
    "generator.size": (1 / 16, 1),
    "generator.layers": (1, 48),
    "model.dropout": (0, 0.9),
    "model.initializer_range": (1e-4, 1),
    "optimizer.muon_learning_rate": (1e-9, 1.0),
    "optimizer.warmup_fraction": (0, 1),
    "optimizer.weight_decay": (0, 1),
    "optimizer.max_gradient_norm": (0, _ANY),
    "optimizer.average_fraction": (0, 1),
    "execution.save_steps": (1, _ANY),
    "execution.log_steps": (1, _ANY),
}
# What says when a run ends; epochs do where none of them is given.
LIMITS = ("max_steps", "max_minutes", "max_tokens", "length.max_flops")


def check_values(config: RunConfig) -> None:
    """Raise InputError for the first value out of bounds, and for two limits, echoing them.

    All that can be said of what is given beside `--resume`: the rest is as the run has it.
    """
    _check_bounds(config)
    _check_length(config)


def check(config: RunConfig) -> None:
    """Raise InputError for the first value or combination that makes no sense, echoing it."""
    check_values(config)
    _check_start(config)
    keys = config.keys
    recipe = recipe_of(config)
    # With room for rounding: 0.9 and 0.1 are one whole.
    average = keys.optimizer.average_fraction
    if recipe.schedule == "two-stage" and recipe.first_stage + average > 1 + 1e-9:
        raise InputError(
            "optimizer.average_fraction would take in the discriminator before its stage begins, "
            f"found {average:g} with objective.first_stage={recipe.first_stage:g}; together at "
            "most 1"
        )
    check_recipe(
        recipe,
        sharing=sharing_of(config),
        generator_size=generator_size_of(config),
        generator_layers=keys.generator.layers,
        generator_init=None if keys.generator.init is None else str(keys.generator.init),
        asked=config.asked,
    )


def check_places(config: RunConfig) -> None:
    """Raise InputError for the first path where nothing is; imports nothing that takes long."""
    if not config.flags.corpus.exists():
        find_sources(config.flags.corpus)
    if config.continues and not is_hub_id(config.init):
        check_discriminator_files(config.init)
    if config.keys.generator.init is not None:
        check_generator_files(config.keys.generator.init)


def recipe_of(config: RunConfig) -> Recipe:
    """What a step learns, by the keys."""
    masking, objective = config.keys.masking, vars(config.keys.objective)
    return Recipe(
        objective=objective["name"],
        masking=masking.strategy,
        mask_fraction=masking.fraction,
        last_mask_fraction=masking.last_fraction,
        kept_fraction=masking.kept_fraction,
        random_fraction=masking.random_fraction,
        generator_head=config.keys.generator.head,
        **{name: value for name, value in objective.items() if name != "name"},
    )


def sharing_of(config: RunConfig) -> Sharing:
    """The key, else what the schedule allows."""
    if config.keys.generator.sharing is not None:
        return config.keys.generator.sharing
    alone = config.keys.objective.schedule in ("two-stage", "frozen-generator")
    return "none" if alone else "instance"


def generator_size_of(config: RunConfig, default: float = GENERATOR_SIZE) -> float:
    """Width of the generator as a fraction: the key, 1 where both have to be of one size, else
    `default`."""
    keys = config.keys
    if keys.generator.size is not None:
        return keys.generator.size
    one_size = keys.generator.sharing == "all" or keys.objective.schedule == "two-stage"
    return 1.0 if one_size else default


def limits_given(config: RunConfig) -> list[str]:
    """Those of `LIMITS` that have a value."""
    flags = config.flags_given()
    keys = [] if config.keys.length.max_flops is None else ["length.max_flops"]
    return [name for name in LIMITS if name in flags or name in keys]


def _check_bounds(config: RunConfig) -> None:
    flags = vars(config.flags)
    bounds = BOUNDS | {"tokens_per_batch": (config.max_length, _ANY)}
    for name, (low, high) in bounds.items():
        value = config.value(name) if "." in name else flags[name]
        if value is None or (low <= value <= high and math.isfinite(value)):
            continue
        bounded = f"from {low:g} to {high:g}" if math.isfinite(high) else f"of {low:g} or more"
        raise InputError(f"expected {shown(name)} {bounded}, found {value:g}")


def _check_length(config: RunConfig) -> None:
    given = [shown(name) for name in limits_given(config)]
    if len(given) > 1:
        raise InputError(f"expected one limit, found both {' and '.join(given)}; give one of them")
    if given and config.flags.epochs is not None:
        raise InputError(f"{given[0]} says when to stop, so --epochs has no effect; leave it out")


def _check_start(config: RunConfig) -> None:
    flags, keys, continues = config.flags, config.keys, config.continues
    if flags.revision is not None and not (continues and is_hub_id(config.init)):
        raise InputError(
            f"--revision is of a Hub id in --init, found --init {config.init}; leave it out"
        )
    if flags.tokenizer is not None and continues:
        raise InputError(
            f"expected no --tokenizer with --init {config.init}, found {flags.tokenizer}: "
            "embeddings mean nothing without the tokenizer they were learnt with"
        )
    given = {*config.flags_given(), *config.asked}
    for name, is_idle, why in (
        ("vocab_size", flags.tokenizer is not None, "--tokenizer has its own vocabulary"),
        ("vocab_size", keys.generator.init is not None, "generator.init has its vocabulary"),
        ("vocab_size", continues, "--init has its own vocabulary"),
        (
            "optimizer.muon_learning_rate",
            keys.optimizer.name != "muon",
            "optimizer.name=adamw has no Muon",
        ),
        (
            "optimizer.decay_all",
            keys.optimizer.weight_decay == 0,
            "optimizer.weight_decay=0 decays nothing",
        ),
    ):
        if is_idle and name in given:
            raise InputError(f"{why}, so {shown(name)} has no effect; leave it out")
    for name in ("model.initializer", "model.initializer_range"):
        if continues and name in config.given.by_hand:  # a recipe may be of new networks, too
            raise InputError(f"--init has weights, so {name} has no effect; leave it out")
    if keys.objective.schedule == "frozen-discriminator" and not continues:
        raise InputError(
            "objective.schedule=frozen-discriminator trains a generator for a discriminator that "
            f"is trained already, found --init {config.init}; give a run's directory as --init"
        )


@dataclass(frozen=True, kw_only=True)
class _Combination:
    """What the rules below look at."""

    r: Recipe
    sharing: str
    size: float
    layers: int | None
    init: str | None

    @property
    def one_network(self) -> bool:
        return self.r.objective == "mlm"

    @property
    def discriminates(self) -> bool:
        return self.r.objective in DISCRIMINATING

    @property
    def has_more_losses(self) -> bool:
        """Whether the discriminator has a loss beside its own."""
        return (self.r.sentence_weight or self.r.bag_weight or self.r.correction_weight) > 0


Rule = tuple[Callable[[_Combination], bool], str]
_LEAVE_UNIGRAM = "take objective.unigram_fraction=0"
# Each with its reason, in which c is the combination.
_NETWORKS: tuple[Rule, ...] = (
    (
        lambda c: c.one_network and c.r.schedule != "joint",
        "objective.name=mlm trains one network, so objective.schedule={c.r.schedule} has nothing "
        "to order; leave objective.schedule out",
    ),
    (
        lambda c: c.one_network and c.r.unigram_fraction > 0,
        f"objective.name=mlm replaces nothing; {_LEAVE_UNIGRAM}",
    ),
    (
        lambda c: c.one_network and c.sharing not in ("instance", "none"),
        "objective.name=mlm has one network, so generator.sharing={c.sharing} has nothing to "
        "share; leave generator.sharing out",
    ),
    (
        lambda c: c.r.generator_head == "sbo" and c.r.masking != "span",
        "generator.head=sbo guesses from a span's two ends, and masking.strategy={c.r.masking} "
        "has no spans; add --set masking.strategy=span",
    ),
    (
        lambda c: c.r.generator_head == "sbo" and not c.r.needs_generator,
        "generator.head=sbo needs a generator, and this recipe trains none; leave it out",
    ),
    (
        lambda c: c.r.schedule == "two-stage" and c.size != 1,
        "objective.schedule=two-stage starts the discriminator from the generator's weights, so "
        "both must be of one size, found generator.size={c.size:g}; leave it out",
    ),
    (
        lambda c: c.r.schedule == "two-stage" and c.layers is not None,
        "objective.schedule=two-stage starts the discriminator from the generator's weights, so "
        "both have the same layers; leave out generator.layers",
    ),
    (
        lambda c: c.r.schedule == "two-stage" and c.sharing != "none",
        "objective.schedule=two-stage copies the generator's weights once and shares none after "
        "it; leave out generator.sharing={c.sharing}",
    ),
    (
        lambda c: c.r.schedule == "frozen-discriminator" and c.sharing == "gdes",
        "objective.schedule=frozen-discriminator would change the table that the discriminator's "
        "is a difference to with generator.sharing=gdes; leave generator.sharing out",
    ),
    (
        lambda c: c.r.unigram_fraction == 1 and c.sharing not in ("instance", "none"),
        "objective.unigram_fraction=1 trains no generator, so generator.sharing={c.sharing} has "
        "nothing to share; leave generator.sharing out",
    ),
    (
        lambda c: c.sharing == "all" and c.size != 1,
        "generator.sharing=all needs networks of one size, found generator.size={c.size:g}; leave "
        "it out",
    ),
    (
        lambda c: c.sharing == "all" and c.layers is not None,
        "generator.sharing=all is one encoder, so the generator has its layers; leave out "
        "generator.layers",
    ),
    (
        lambda c: c.sharing == "all" and c.r.schedule != "joint",
        "generator.sharing=all is one encoder, which objective.schedule={c.r.schedule} would have "
        "to train and keep at once; take another generator.sharing",
    ),
    (
        lambda c: c.r.schedule == "frozen-generator" and c.init is None,
        "objective.schedule=frozen-generator needs a trained generator; give a run's directory by "
        "--set generator.init=DIRECTORY",
    ),
    (
        lambda c: c.init is not None and c.r.schedule != "frozen-generator",
        "generator.init is read by objective.schedule=frozen-generator, found {c.r.schedule}; "
        "leave it out, or use --init to go on from both networks",
    ),
    (
        lambda c: c.r.schedule == "frozen-generator" and c.sharing != "none",
        "objective.schedule=frozen-generator changes no weight of the generator, so "
        "generator.sharing={c.sharing} would freeze the discriminator's too; leave it out",
    ),
)
_LOSSES: tuple[Rule, ...] = (
    (
        lambda c: c.r.replaced_spans and c.r.masking != "span",
        "objective.replaced_spans labels whole spans, and masking.strategy={c.r.masking} has none; "
        "add --set masking.strategy=span",
    ),
    (
        lambda c: c.r.replaced_spans and not c.discriminates,
        "objective.replaced_spans changes the discriminator's labels, and "
        "objective.name={c.r.objective} has none; take rtd or electra-15",
    ),
    (
        lambda c: c.r.schedule == "adversarial" and not c.discriminates,
        "objective.schedule=adversarial rewards the generator for misleading the discriminator, "
        "and objective.name={c.r.objective} has none; take rtd or electra-15",
    ),
    (
        lambda c: c.r.schedule == "adversarial" and c.r.unigram_fraction > 0,
        f"objective.schedule=adversarial rewards the generator's own samples; {_LEAVE_UNIGRAM}",
    ),
    (
        lambda c: c.r.schedule == "adversarial" and c.r.generator_head == "sbo",
        "objective.schedule=adversarial has no loss for the span boundary head; take "
        "generator.head=mlm",
    ),
    (
        lambda c: c.r.generator_head == "sbo" and c.r.schedule == "frozen-generator",
        "objective.schedule=frozen-generator would draw from a span boundary head that nothing has "
        "trained, for no run saves one; take generator.head=mlm",
    ),
    (
        lambda c: c.r.schedule == "two-stage" and c.r.unigram_fraction > 0,
        f"objective.schedule=two-stage has no stage for unigram noise; {_LEAVE_UNIGRAM}",
    ),
    (
        lambda c: c.r.schedule == "two-stage" and 0 < c.r.weight_warmup <= c.r.first_stage,
        "objective.weight_warmup counts from the start of the run, where "
        "objective.schedule=two-stage trains no discriminator, found {c.r.weight_warmup:g} with "
        "objective.first_stage={c.r.first_stage:g}; take more, or leave it out",
    ),
    (
        lambda c: c.r.schedule == "frozen-discriminator" and c.r.unigram_fraction > 0,
        f"objective.schedule=frozen-discriminator replaces nothing; {_LEAVE_UNIGRAM}",
    ),
    (
        lambda c: (
            c.r.schedule == "frozen-discriminator" and (c.r.bag_weight + c.r.correction_weight) > 0
        ),
        "objective.schedule=frozen-discriminator trains the generator alone, so "
        "objective.bag_weight={c.r.bag_weight:g} and "
        "objective.correction_weight={c.r.correction_weight:g} have no effect; take 0 for both",
    ),
    (
        lambda c: c.r.schedule == "frozen-generator" and c.r.unigram_fraction > 0,
        f"objective.schedule=frozen-generator draws from its generator; {_LEAVE_UNIGRAM}",
    ),
    (
        lambda c: c.r.objective == "electra-15" and c.r.forbid_original,
        "objective.forbid_original replaces every masked token, so objective.name=electra-15, "
        "which asks at these alone, has one answer; leave out objective.forbid_original, or take "
        "rtd",
    ),
    (
        lambda c: c.r.sentence_weight > 0 and c.r.forbid_original and c.r.unchanged_fraction == 0,
        "objective.forbid_original replaces something in every text, so objective.sentence_weight, "
        "which asks for that, has one answer; leave out one of them, or take an "
        "objective.unchanged_fraction",
    ),
    (
        lambda c: c.r.sentence_weight > 0 and not c.discriminates,
        "objective.sentence_weight adds a loss to the discriminator's, and "
        "objective.name={c.r.objective} has none; take rtd or electra-15",
    ),
    (
        lambda c: c.r.correction_weight > 0 and not c.discriminates,
        "objective.correction_weight lets a discriminator guess too what stood at masked "
        "positions, and objective.name={c.r.objective} lets it guess anyway; take 0, or rtd",
    ),
    (
        lambda c: (
            c.r.discriminator_weight == 0
            and (c.r.unigram_fraction == 1 or c.r.schedule in ("frozen-generator", "two-stage"))
            and not c.has_more_losses
        ),
        "objective.discriminator_weight=0 leaves nothing to train where no generator learns; take "
        "more, or add an objective.bag_weight or objective.correction_weight",
    ),
    (
        lambda c: c.r.discriminator_weight == 0 and c.r.schedule == "adversarial",
        "objective.schedule=adversarial rewards the generator for misleading a discriminator, "
        "which objective.discriminator_weight=0 would not train; take more",
    ),
    (
        lambda c: (
            c.r.discriminator_weight == 0
            and c.sharing == "none"
            and c.discriminates
            and c.r.schedule == "joint"
            and not c.has_more_losses
        ),
        "objective.discriminator_weight=0 with generator.sharing=none leaves the discriminator, "
        "which is what a run is for, without a loss; take more, or another generator.sharing",
    ),
    (
        lambda c: c.r.kept_fraction == 1 and c.r.unigram_fraction < 1,
        "masking.kept_fraction=1 hides no token, so there is nothing to guess; take less",
    ),
    (
        lambda c: c.r.kept_fraction + c.r.random_fraction > 1,
        "masking.kept_fraction and masking.random_fraction are parts of the masked positions, "
        "found {c.r.kept_fraction:g} + {c.r.random_fraction:g}; together at most 1",
    ),
)
_GENERATOR = ("generator.size", "generator.layers")
_SAMPLES = ("objective.sampling", "objective.temperature", "objective.first_temperature")
_WEIGHT = ("objective.discriminator_weight", "objective.weight_warmup")
# Keys that would change nothing: whoever asks for one expects that it does.
_IDLE: tuple[tuple[Callable[[_Combination], bool], str, tuple[str, ...]], ...] = (
    (
        lambda c: c.one_network,
        "objective.name=mlm trains one network and replaces nothing",
        (*_GENERATOR, *_SAMPLES, "objective.forbid_original", *_WEIGHT),
    ),
    (
        lambda c: c.r.unigram_fraction == 1,
        "objective.unigram_fraction=1 replaces by noise and trains no generator",
        (*_GENERATOR, *_SAMPLES, "masking.kept_fraction", "masking.random_fraction"),
    ),
    (
        lambda c: c.r.schedule == "frozen-generator",
        "objective.schedule=frozen-generator takes a trained generator as it is",
        _GENERATOR,
    ),
    (
        lambda c: c.r.schedule == "frozen-discriminator",
        "objective.schedule=frozen-discriminator trains the generator alone and replaces nothing",
        (
            *_SAMPLES,
            *_WEIGHT,
            "objective.name",
            "objective.forbid_original",
            "objective.sentence_weight",
            "objective.loss_mean",
            "objective.replaced_spans",
        ),
    ),
    (
        lambda c: c.r.schedule != "two-stage",
        "objective.schedule={c.r.schedule} has one stage",
        ("objective.first_stage",),
    ),
    (
        lambda c: c.r.sentence_weight == 0,
        "no objective.sentence_weight asks which texts are unchanged",
        ("objective.unchanged_fraction",),
    ),
    (
        lambda c: c.r.discriminator_weight == 0,
        "objective.discriminator_weight=0 leaves the discriminator's loss out",
        ("objective.weight_warmup", "objective.loss_mean"),
    ),
    (
        lambda c: (
            c.r.discriminator_weight == 0 and c.r.unigram_fraction < 1 and not c.has_more_losses
        ),
        "objective.discriminator_weight=0 has no loss that sees replacements",
        (*_SAMPLES, "objective.forbid_original"),
    ),
)


def check_recipe(
    recipe: Recipe,
    *,
    sharing: str,
    generator_size: float,
    generator_init: str | None,
    generator_layers: int | None = None,
    asked: Collection[str] = (),
) -> None:
    """Refuse what cannot work together, with the reason.

    Args:
        sharing: what the networks share.
        generator_size: width of the generator as a fraction of the discriminator's.
        generator_init: directory with a trained generator, or None.
        generator_layers: None: as many as the discriminator has.
        asked: keys that somebody wants, see `RunConfig.asked`.

    Raises:
        InputError: for the first combination that makes no sense.
    """
    c = _Combination(
        r=recipe,
        sharing=sharing,
        size=generator_size,
        layers=generator_layers,
        init=generator_init,
    )
    for is_wrong, reason in (*_NETWORKS, *_LOSSES):
        if is_wrong(c):
            raise InputError(reason.format(c=c))
    for applies, reason, names in _IDLE:
        for name in names:
            if applies(c) and name in asked:
                raise InputError(f"{reason.format(c=c)}, so {name} has no effect; leave it out")
