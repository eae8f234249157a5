"""Which flags go together, and that every step of those that do is finite."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from malmoi.errors import InputError
from pretrain.config import checks
from pretrain.config.objective import DISCRIMINATING, Masking, Recipe, Sharing
from pretrain.config.objective import Objective as ObjectiveName
from pretrain.config.objective import Schedule as ScheduleName
from pretrain.objectives.registry import resolve_recipe
from pretrain.objectives.step import Moment, TrainingObjective
from tests.pretrain.conftest import Toy, config_of

ADVERSARIAL = {"schedule": "adversarial"}
TWO_STAGE = {"schedule": "two-stage"}
FROZEN = {"schedule": "frozen-generator", "generator_from": Path("run")}
ALONE = {"schedule": "frozen-discriminator", "init": "run"}
OF_GENERATOR = {
    "generator.size": {"generator_size": 0.5},
    "generator.layers": {"generator_layers": 2},
}
OF_SAMPLES = {
    "objective.sampling": {"sampling": "gumbel"},
    "objective.temperature": {"temperature": 2.0},
    "objective.first_temperature": {"first_temperature": 2.0},
}
SBO = {"generator_head": "sbo", "masking": "span"}


def check(**given: Any) -> None:
    checks.check(config_of(**{"recipe": "rtd"} | given))


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (
            {"objective": "mlm", **ADVERSARIAL},
            "trains one network, so objective.schedule=adversarial has",
        ),
        (
            {"objective": "mlm", **TWO_STAGE},
            "trains one network, so objective.schedule=two-stage has",
        ),
        (
            {"objective": "mlm", **FROZEN},
            "trains one network, so objective.schedule=frozen-generator has",
        ),
        (
            {"objective": "mlm", "unigram_fraction": 0.1},
            "replaces nothing; take objective.unigram_fraction=0",
        ),
        (
            {"objective": "mlm", "sharing": "gdes"},
            "one network, so generator.sharing=gdes has nothing",
        ),
        (
            {"objective": "mlm", "sharing": "all"},
            "one network, so generator.sharing=all has nothing",
        ),
        ({"objective": "mlm", **SBO}, "generator.head=sbo needs a generator"),
        ({"discriminator_weight": 0.0, "sharing": "none"}, "leaves the discriminator, which is"),
        ({"kept_fraction": 1.0}, "hides no token"),
        ({"objective": "mlm", "kept_fraction": 1.0}, "hides no token"),
        (
            {"discriminator_weight": 0.0, "forbid_original": True},
            "no loss that sees replacements, so objective.forbid_original has no effect",
        ),
        (
            {"discriminator_weight": 0.0, "temperature": 2.0},
            "no loss that sees replacements, so objective.temperature has no effect",
        ),
        (
            {"generator_head": "sbo"},
            "masking.strategy=token has no spans; add --set masking.strategy=span",
        ),
        ({"unigram_fraction": 1.0, **SBO}, "generator.head=sbo needs a generator"),
        ({"replaced_spans": True, "masking": "word"}, "masking.strategy=word has none; add --set"),
        (
            {"replaced_spans": True, "masking": "span", "objective": "replace-mlm"},
            "objective.name=replace-mlm has none; take rtd or electra-15",
        ),
        (
            {**ADVERSARIAL, "objective": "all-tokens-mlm"},
            "objective.name=all-tokens-mlm has none; take rtd or electra-15",
        ),
        ({**ADVERSARIAL, "unigram_fraction": 0.2}, "rewards the generator's own samples"),
        ({**ADVERSARIAL, **SBO}, "no loss for the span boundary head"),
        ({**TWO_STAGE, "generator_size": 0.25}, "found generator.size=0.25; leave it out"),
        ({**TWO_STAGE, "generator_layers": 2}, "same layers; leave out generator.layers"),
        (
            {**TWO_STAGE, "sharing": "word"},
            "shares none after it; leave out generator.sharing=word",
        ),
        ({**TWO_STAGE, "unigram_fraction": 0.2}, "has no stage for unigram noise"),
        (
            {"sharing": "all", "generator_size": 0.25},
            "networks of one size, found generator.size=0.25; leave it out",
        ),
        (
            {"sharing": "all", "generator_layers": 2},
            "so the generator has its layers; leave out generator.layers",
        ),
        (
            {"sharing": "all", **ADVERSARIAL},
            "which objective.schedule=adversarial would have to train and keep at once",
        ),
        ({"schedule": "frozen-generator"}, "give a run's directory by --set generator.init"),
        ({"generator_from": Path("run")}, "found joint; leave it out, or use --init"),
        ({**FROZEN, "sharing": "instance"}, "would freeze the discriminator's too"),
        ({**FROZEN, "unigram_fraction": 0.5}, "take objective.unigram_fraction=0"),
        ({**FROZEN, **SBO}, "a span boundary head that nothing has trained"),
        ({"sentence_weight": 1.0, "objective": "mlm"}, "objective.name=mlm has none; take rtd"),
        ({"kept_fraction": 0.6, "random_fraction": 0.5}, "found 0.6 + 0.5; together at most 1"),
        ({"objective": "electra-15", "forbid_original": True}, "asks at these alone, has one"),
        (
            {"sentence_weight": 1.0, "forbid_original": True, "unchanged_fraction": 0.0},
            "which asks for that, has one answer",
        ),
        ({"unchanged_fraction": 0.5}, "so objective.unchanged_fraction has no effect"),
        (
            {"discriminator_weight": 0.0, "loss_mean": "texts"},
            "so objective.loss_mean has no effect",
        ),
        (
            {"discriminator_weight": 0.0, "weight_warmup": 0.1},
            "so objective.weight_warmup has no effect",
        ),
        (
            {"weight_decay": 0.0, "decay_all": True},
            "decays nothing, so optimizer.decay_all has no effect",
        ),
        (
            {**TWO_STAGE, "weight_warmup": 0.5},
            "found 0.5 with objective.first_stage=0.5; take more, or leave it out",
        ),
        (
            {"unigram_fraction": 1.0, "sharing": "gdes"},
            "so generator.sharing=gdes has nothing to share",
        ),
        *(
            ({"objective": "mlm", **flag}, f"replaces nothing, so {name} has no effect; leave it")
            for name, flag in {
                **OF_GENERATOR,
                **OF_SAMPLES,
                "objective.forbid_original": {"forbid_original": True},
                "objective.discriminator_weight": {"discriminator_weight": 10.0},
                "objective.weight_warmup": {"weight_warmup": 0.1},
            }.items()
        ),
        *(
            ({"unigram_fraction": 1.0, **flag}, f"trains no generator, so {name} has no effect")
            for name, flag in {
                **OF_GENERATOR,
                **OF_SAMPLES,
                "masking.kept_fraction": {"kept_fraction": 0.0},
                "masking.random_fraction": {"random_fraction": 0.1},
            }.items()
        ),
        *(
            ({**FROZEN, **flag}, f"takes a trained generator as it is, so {name} has no effect")
            for name, flag in OF_GENERATOR.items()
        ),
        *(
            (
                {**ALONE, **flag},
                f"trains the generator alone and replaces nothing, so {name} has no effect",
            )
            for name, flag in {
                **OF_SAMPLES,
                "objective.name": {"objective": "replace-mlm"},
                "objective.sentence_weight": {"sentence_weight": 1.0},
                "objective.discriminator_weight": {"discriminator_weight": 10.0},
                "objective.loss_mean": {"loss_mean": "texts"},
            }.items()
        ),
        ({**ALONE, "bag_weight": 5.0}, "objective.bag_weight=5 and objective.correction_weight=0"),
        ({**ALONE, "correction_weight": 2.0}, "have no effect; take 0 for both"),
        (
            {**ALONE, "unigram_fraction": 0.5},
            "replaces nothing; take objective.unigram_fraction=0",
        ),
        ({**ALONE, "sharing": "gdes"}, "would change the table that the discriminator's is a"),
        (
            {"schedule": "frozen-discriminator"},
            "that is trained already, found --init word-vectors; give a run's directory as --init",
        ),
        (
            {"first_stage": 0.7},
            "objective.schedule=joint has one stage, so objective.first_stage has no effect",
        ),
        (
            {"muon_learning_rate": 1e-3},
            "has no Muon, so optimizer.muon_learning_rate has no effect",
        ),
        ({"epochs": 3, "max_steps": 5}, "--max-steps says when to stop, so --epochs has no effect"),
        (
            {"vocab_size": 8_000, "tokenizer": Path("given")},
            "--tokenizer has its own vocabulary, so --vocab-size has no effect",
        ),
        (
            {"initializer_range": 0.02, "init": "run"},
            "--init has weights, so model.initializer_range has no effect",
        ),
        *(
            (
                {"objective": objective, "correction_weight": 1.0},
                f"objective.name={objective} lets it guess anyway; take 0, or rtd",
            )
            for objective in ("mlm", "replace-mlm", "all-tokens-mlm")
        ),
        ({"unigram_fraction": 1.0, "discriminator_weight": 0.0}, "leaves nothing to train"),
        ({**FROZEN, "discriminator_weight": 0.0}, "leaves nothing to train"),
        ({**TWO_STAGE, "discriminator_weight": 0.0}, "leaves nothing to train"),
        (
            {**TWO_STAGE, "first_stage": 0.7, "average_fraction": 0.4},
            "before its stage begins, found 0.4 with objective.first_stage=0.7; together at most 1",
        ),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(value),
)
def test_what_makes_no_sense_is_refused_with_its_reason(flags: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError) as error:
        check(**flags)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"objective": "mlm"},
        {"objective": "mlm", "sharing": "none", "masking": "word", "random_fraction": 0.1},
        {"objective": "electra-15", "sentence_weight": 1.0},
        {"objective": "replace-mlm", **TWO_STAGE},
        {"objective": "all-tokens-mlm", "sharing": "all"},
        {"unigram_fraction": 1.0},
        {"unigram_fraction": 0.3, "sharing": "gdes", "forbid_original": True},
        {**SBO, "replaced_spans": True, "objective": "electra-15"},
        {**TWO_STAGE, **SBO},
        {**TWO_STAGE, "sharing": "none", "weight_warmup": 0.6},
        {"objective": "mlm", "kept_fraction": 0.1, "random_fraction": 0.1, "bag_weight": 1.0},
        {"unigram_fraction": 1.0, "bag_weight": 5.0, "discriminator_weight": 10.0},
        {"unigram_fraction": 1.0, "correction_weight": 5.0, "discriminator_weight": 0.0},
        {"unigram_fraction": 1.0, "forbid_original": True, "weight_warmup": 0.2},
        {**FROZEN, "temperature": 2.0, "sampling": "gumbel", "kept_fraction": 0.0},
        {**TWO_STAGE, "first_stage": 0.9, "average_fraction": 0.1},
        {**ADVERSARIAL, "sharing": "gdes", "sentence_weight": 1.0},
        {**FROZEN, "first_temperature": 2.0},
        {**ALONE, "generator_size": 0.5, "generator_layers": 2, "random_fraction": 0.1},
        {**ALONE, **SBO, "sharing": "none"},
        {**FROZEN, "objective": "all-tokens-mlm", "masking": "rare"},
        {"generator_layers": 2, "generator_size": 0.5},
        {"kept_fraction": 0.9, "random_fraction": 0.1, "mask_fraction": 0.5},
    ],
    ids=lambda flags: "-".join(map(str, flags.values())) or "defaults",
)
def test_what_makes_sense_passes(flags: dict[str, Any]) -> None:
    check(**flags)


SWEEP = list(
    itertools.product(
        get_args(ObjectiveName), get_args(ScheduleName), get_args(Masking), get_args(Sharing)
    )
)


@pytest.mark.parametrize("objective", get_args(ObjectiveName))
def test_every_combination_that_is_not_refused_takes_a_finite_step(
    toy: Toy, objective: str
) -> None:
    batch = toy.batch([[5, 9], [14], [1, 2, 11], []], packed=True)
    taken = 0
    for _, schedule, masking, sharing in (names for names in SWEEP if names[0] == objective):
        recipe = Recipe(
            objective=objective,
            schedule=schedule,
            masking=masking,
            generator_head="sbo" if masking == "span" and schedule == "joint" else "mlm",
            correction_weight=1.0 if objective in DISCRIMINATING and masking == "word" else 0.0,
        )
        if schedule == "frozen-discriminator":
            recipe = replace(recipe, correction_weight=0.0)
        size = 1.0 if schedule == "two-stage" or sharing == "all" else 0.25
        given = "run" if schedule == "frozen-generator" else None
        if objective == "mlm":
            recipe = Recipe(objective=objective, schedule=schedule, masking=masking)
        try:
            checks.check_recipe(
                recipe,
                sharing=sharing,
                generator_size=size,
                generator_init=given,
                asked=() if recipe.objective == "rtd" else {"objective.name"},
            )
        except InputError:
            continue
        taken += 1
        pair = toy.pair(
            sharing=sharing,
            generator_size=size,
            with_generator=recipe.needs_generator,
            span_boundary_head=recipe.generator_head == "sbo",
            encoder_lm_head=resolve_recipe(recipe).objective.needs_lm_head,
            correction_head=recipe.correction_weight > 0,
        )
        if given:
            pair.freeze_generator()
        if schedule == "frozen-discriminator":
            pair.freeze_discriminator()
        for stage in (0, 1) if schedule == "two-stage" else (1,):
            result = TrainingObjective(recipe=recipe, tables=toy.tables)(
                pair, batch, torch.Generator().manual_seed(0), Moment(fraction=0.5, stage=stage)
            )
            result.loss.backward()
            gradients = [p.grad for p in pair.parameters() if p.grad is not None]
            assert torch.isfinite(result.loss) and torch.isfinite(result.binned_loss).all()
            assert gradients and all(torch.isfinite(gradient).all() for gradient in gradients)
            assert any(gradient.any() for gradient in gradients)
    # Joint with every sharing, adversarial with all but one, two-stage and frozen-generator with
    # none, frozen-discriminator with what changes nothing of it.
    expected = {"mlm": 2, "rtd": 5 + 4 + 2 + 3, "electra-15": 5 + 4 + 2}
    assert taken == 4 * expected.get(objective, 5 + 2)
