"""What was given for a run, read and checked once: flags, a recipe, and `--set`.

Nothing is decided here, see `malmoi.pretrain.plan`; nothing is imported that takes long.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from malmoi.errors import InputError
from malmoi.model_folders import (
    check_discriminator_files,
    check_generator_files,
    find_named,
    is_hub_id,
)
from malmoi.pretrain.config.defaults import FROM_NOTHING, INIT, MAX_LENGTH, SEED
from malmoi.pretrain.config.objective import CHOICES, GENERATOR_SIZE, SAMPLES, Recipe, Sharing
from malmoi.pretrain.config.schema import PretrainKeys
from malmoi.pretrain.config.settings import RECIPES, PretrainSettings
from malmoi.pretrain.config.stacking import LAST_FRACTION
from malmoi.settings import (
    Choice,
    Given,
    check_choices,
    check_ranges,
    keys_of,
    read_assignments,
    read_given,
    read_recipe,
    shown,
)
from malmoi.text.reading.sources import find_sources

# What a run learns when nobody says it, and when --set asks for another objective or schedule than
# noise, a bag and correction go with.
DEFAULT, PLAIN = "default", "rtd"
_OTHER_TASKS = ("objective.name", "objective.schedule")
# Flags that say how a command runs, not what a run is.
_OF_COMMAND = ("output", "resume", "recipe", "set")
# What says when a run ends; epochs do where none of them is given.
LIMITS = ("max_steps", "max_minutes", "max_tokens", "length.max_flops")
_OPTIMIZER = (
    Choice("optimizer.name", "muon", "", owns=("optimizer.muon_learning_rate",)),
    Choice("optimizer.weight_decay", 0, "decays nothing", lacks=("optimizer.decay_all",)),
)


@dataclass(frozen=True, kw_only=True)
class RunConfig(Given[PretrainSettings, PretrainKeys]):
    """What was given, and nothing decided.

    Attributes:
        recipe: name or file.
        reason: why this one.
    """

    recipe: str
    reason: str

    def asks_for(self, name: str) -> bool:
        """As of every command; a recipe asks, too, by a value that is not the default."""
        key = keys_of(PretrainKeys).get(name)
        by_recipe = key is not None and not key.off and self.value(name) != key.default
        return by_recipe or super().asks_for(name)

    def flags_given(self) -> dict[str, Any]:
        """The flags that were given, but for those of the command itself."""
        named = {item.name: self.value(item.name) for item in fields(self.flags)}
        return {
            name: value
            for name, value in named.items()
            if name not in _OF_COMMAND and self.asks_for(name)
        }

    def as_json(self) -> dict[str, Any]:
        """What was given, by flags and by keys, for run.json."""
        given = {} if self.flags.recipe is None else {"recipe": self.flags.recipe}
        given |= self.flags_given()
        given |= {key: self.value(key) for key in sorted(self.by_hand)}
        return {name: str(v) if isinstance(v, Path) else v for name, v in given.items()}

    @property
    def init(self) -> str:
        """What the weights begin as."""
        return self.flags.init or INIT

    @property
    def continues(self) -> bool:
        """Whether --init names a checkpoint to go on from."""
        return self.init not in FROM_NOTHING

    @property
    def max_length(self) -> int:
        """Tokens of the longest sequence."""
        return self.flags.max_length or MAX_LENGTH

    @property
    def seed(self) -> int:
        """Seed of weights, order, masks and samples."""
        return SEED if self.flags.seed is None else self.flags.seed

    @cached_property
    def objective(self) -> Recipe:
        """What a step learns."""
        masking, objective = self.keys.masking, dict(vars(self.keys.objective))
        return Recipe(
            objective=objective.pop("name"),
            masking=masking.strategy,
            mask_fraction=masking.fraction,
            last_mask_fraction=masking.last_fraction,
            kept_fraction=masking.kept_fraction,
            random_fraction=masking.random_fraction,
            generator_head=self.keys.generator.head,
            **objective,
        )

    @property
    def sharing(self) -> Sharing:
        """What the networks share: the key, else what the schedule allows."""
        alone = self.objective.schedule in ("two-stage", "frozen-generator")
        return self.keys.generator.sharing or ("none" if alone else "instance")

    def generator_size(self, default: float = GENERATOR_SIZE) -> float:
        """Width of the generator as a fraction of the discriminator's.

        It is the key, 1 where both have to be of one size, else `default`.
        """
        one_size = self.sharing == "all" or self.objective.schedule == "two-stage"
        return self.keys.generator.size or (1.0 if one_size else default)

    @property
    def limits(self) -> list[str]:
        """Those of `LIMITS` that have a value."""
        return [name for name in LIMITS if self.value(name) is not None]


def read_config(flags: PretrainSettings) -> RunConfig:
    """Read the recipe and `--set` beside the flags; a name in `--init` becomes its directory.

    Of a run that is resumed the rest is as it was, so combinations are not looked at.

    Raises:
        InputError: no such recipe or key, or a value or combination that makes no sense.
    """
    if flags.init is not None and flags.init not in FROM_NOTHING:
        place = find_named(flags.init)
        if place != Path(flags.init):  # what is no name stays as it was written
            flags = replace(flags, init=str(place))
    by_hand = read_assignments(flags.set)
    recipe, reason = _recipe_of(flags, by_hand)
    # Of the default's values nobody has chosen any, nor of a resumed run's, whose plan has them.
    open_still = flags.recipe is None and (recipe == DEFAULT or flags.resume)
    values = {} if open_still else read_recipe(recipe, RECIPES)
    given = read_given(flags, PretrainKeys, values, by_hand, f"recipe {recipe}")
    config = RunConfig(**vars(given), recipe=recipe, reason=reason)
    _check_values(config)
    if not flags.resume:
        _check_start(config)
        check_choices(config, (*CHOICES, *_OPTIMIZER))
        _check_generator(config)
        _check_losses(config)
    return config


def _recipe_of(flags: PretrainSettings, by_hand: Mapping[str, Any]) -> tuple[str, str]:
    """Name of the recipe, and why this one."""
    if flags.recipe is not None:
        return flags.recipe, "as given"
    defaults = keys_of(PretrainKeys)
    for key in _OTHER_TASKS:
        if by_hand.get(key, defaults[key].default) != defaults[key].default:
            return PLAIN, f"for {key} is given"
    return DEFAULT, "the default"


def check_places(config: RunConfig) -> None:
    """Raise InputError for the first path where nothing is."""
    if not config.flags.corpus.exists():
        find_sources(config.flags.corpus)
    if config.continues and not is_hub_id(config.init):
        check_discriminator_files(config.init)
    if config.keys.generator.init is not None:
        check_generator_files(config.keys.generator.init)


def _check_values(config: RunConfig) -> None:
    check_ranges(config.flags)
    check_ranges(config.keys)
    tokens = config.flags.tokens_per_batch
    if tokens is not None and tokens < config.max_length:
        raise InputError(
            "expected --tokens-per-batch of at least --max-length {max_length}, found {tokens}",
            max_length=config.max_length,
            tokens=tokens,
        )
    averaged = config.keys.optimizer.average_fraction
    if config.keys.model.stacked and averaged > LAST_FRACTION:
        raise InputError(
            "expected optimizer.average_fraction of at most {last}, in which all layers run with "
            "model.stacked, found {averaged:g}",
            last=LAST_FRACTION,
            averaged=averaged,
        )
    given = [shown(name) for name in config.limits]
    if len(given) > 1:
        raise InputError(
            "expected one limit, found both {given}; give one of them", given=" and ".join(given)
        )
    if given and config.flags.epochs is not None:
        raise InputError(
            "{given} says when to stop, so --epochs has no effect; leave it out", given=given[0]
        )


def _check_start(config: RunConfig) -> None:
    flags, generator = config.flags, config.keys.generator
    if flags.revision is not None and not (config.continues and is_hub_id(config.init)):
        raise InputError(
            "--revision is of a Hub id in --init, found --init {init}; leave it out",
            init=config.init,
        )
    if flags.tokenizer is not None and config.continues:
        raise InputError(
            "expected no --tokenizer with --init {init}, found {tokenizer}: embeddings mean "
            "nothing without the tokenizer they were learnt with",
            init=config.init,
            tokenizer=flags.tokenizer,
        )
    for has_own, name in (
        (flags.tokenizer is not None, "--tokenizer"),
        (generator.init is not None, "generator.init"),
        (config.continues, "--init"),
    ):
        if has_own and flags.vocab_size is not None:
            raise InputError(
                "{name} has its own vocabulary, so --vocab-size has no effect; leave it out",
                name=name,
            )
    for name in ("model.initializer", "model.initializer_range"):
        if config.continues and name in config.by_hand:  # a recipe may be of new networks, too
            raise InputError("--init has weights, so {name} has no effect; leave it out", name=name)
    if config.continues and config.keys.model.stacked:
        raise InputError(
            "--init has all its layers, so model.stacked has nothing to stack; leave one of the "
            "two out"
        )
    if config.objective.schedule == "frozen-discriminator" and not config.continues:
        raise InputError(
            "objective.schedule=frozen-discriminator trains a generator for a discriminator that "
            "is trained already, found --init {init}; give a run's directory as --init",
            init=config.init,
        )


def _check_generator(config: RunConfig) -> None:
    """Refuse masks that hide nothing, and a generator that is not there."""
    recipe = config.objective
    if recipe.schedule == "frozen-generator" and config.keys.generator.init is None:
        raise InputError(
            "objective.schedule=frozen-generator needs a trained generator; give a run's directory "
            "by --set generator.init=DIRECTORY"
        )
    if recipe.kept_fraction == 1 and recipe.unigram_fraction < 1:
        raise InputError(
            "masking.kept_fraction=1 hides no token, so there is nothing to guess; take less"
        )
    if recipe.kept_fraction + recipe.random_fraction > 1:
        raise InputError(
            "masking.kept_fraction and masking.random_fraction are parts of the masked positions, "
            "found {kept_fraction:g} + {random_fraction:g}; together at most 1",
            kept_fraction=recipe.kept_fraction,
            random_fraction=recipe.random_fraction,
        )


def _check_losses(config: RunConfig) -> None:
    """Refuse stages and losses that leave a network nothing to learn."""
    recipe, average = config.objective, config.keys.optimizer.average_fraction
    if recipe.schedule == "two-stage":
        # With room for rounding: 0.9 and 0.1 are one whole.
        if recipe.first_stage + average > 1 + 1e-9:
            raise InputError(
                "optimizer.average_fraction would take in the discriminator before its stage "
                "begins, found {average:g} with objective.first_stage={first_stage:g}; together "
                "at most 1",
                average=average,
                first_stage=recipe.first_stage,
            )
        if 0 < recipe.weight_warmup <= recipe.first_stage:
            raise InputError(
                "objective.weight_warmup counts from the start of the run, where "
                "objective.schedule=two-stage trains no discriminator, found {weight_warmup:g} "
                "with objective.first_stage={first_stage:g}; take more, or leave it out",
                weight_warmup=recipe.weight_warmup,
                first_stage=recipe.first_stage,
            )
    if recipe.sentence_weight and recipe.forbid_original and not recipe.unchanged_fraction:
        raise InputError(
            "objective.forbid_original replaces something in every text, so "
            "objective.sentence_weight, which asks for that, has one answer; leave out one of "
            "them, or take an objective.unchanged_fraction"
        )
    if recipe.discriminator_weight or recipe.has_more_losses:
        return
    alone = recipe.unigram_fraction == 1 or recipe.schedule in ("frozen-generator", "two-stage")
    apart = config.sharing == "none" and recipe.discriminates and recipe.schedule == "joint"
    if alone or apart:
        raise InputError(
            "objective.discriminator_weight=0 leaves the discriminator without a loss, and no "
            "generator that shares with it learns; take more, or add an objective.bag_weight or "
            "objective.correction_weight"
        )
    for name in (*SAMPLES, "objective.forbid_original"):
        if config.asks_for(name):
            raise InputError(
                "objective.discriminator_weight=0 has no loss that sees replacements, so {name} "
                "has no effect; leave it out",
                name=name,
            )
