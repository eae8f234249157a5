"""Which flags go together, and that every step of those that do is finite."""

import itertools
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from malmoi.errors import InputError
from malmoi.pretrain.config.objective import DISCRIMINATING, Masking, Sharing
from malmoi.pretrain.config.objective import Objective as ObjectiveName
from malmoi.pretrain.config.objective import Schedule as ScheduleName
from malmoi.pretrain.config.run_config import RunConfig
from malmoi.pretrain.objectives.registry import resolve_recipe
from malmoi.pretrain.objectives.step import Moment, TrainingObjective
from tests.malmoi.pretrain.conftest import Toy, config_of

ADVERSARIAL = {"schedule": "adversarial"}
TWO_STAGE = {"schedule": "two-stage"}
FROZEN = {"schedule": "frozen-generator", "generator_from": Path("run")}
ALONE = {"schedule": "frozen-discriminator", "init": "run"}
MLM = {"objective": "mlm"}
NOISE = {"unigram_fraction": 1.0}
UNTRAINED = {"discriminator_weight": 0.0}
SBO = {"generator_head": "sbo", "masking": "span"}
SIZES: list[dict[str, Any]] = [{"generator_size": 0.5}, {"generator_layers": 2}]
SAMPLES: list[dict[str, Any]] = [
    {"sampling": "gumbel"},
    {"temperature": 2.0},
    {"first_temperature": 2.0},
]
FORBIDDING = {"forbid_original": True}
HEAVIER = {"discriminator_weight": 10.0}
# What each is refused beside, and so named with it.
HAS_NO_EFFECT: list[tuple[dict[str, Any], str, list[dict[str, Any]]]] = [
    (MLM, "objective.name=mlm", [*SIZES, *SAMPLES, FORBIDDING, HEAVIER, {"weight_warmup": 0.1}]),
    (MLM, "objective.name=mlm", [ADVERSARIAL, TWO_STAGE, {"schedule": "frozen-generator"}]),
    (MLM, "objective.name=mlm", [{"unigram_fraction": 0.1}, {"sentence_weight": 1.0}]),
    (MLM, "objective.name=mlm", [{"sharing": "gdes"}, {"sharing": "all"}]),
    (NOISE, "objective.unigram_fraction=1", [*SIZES, *SAMPLES, {"sharing": "gdes"}]),
    (NOISE, "objective.unigram_fraction=1", [{"kept_fraction": 0.0}, {"random_fraction": 0.1}]),
    (UNTRAINED, "objective.discriminator_weight=0", [FORBIDDING, SAMPLES[1], {"sharing": "none"}]),
    (UNTRAINED, "objective.discriminator_weight=0", [{"loss_mean": "texts"}]),
    (UNTRAINED, "objective.discriminator_weight=0", [{"weight_warmup": 0.1}, NOISE]),
    (UNTRAINED, "objective.discriminator_weight=0", [FROZEN, TWO_STAGE]),
    (FROZEN, "objective.schedule=frozen-generator", [*SIZES, {"sharing": "instance"}, SBO]),
    (FROZEN, "objective.schedule=frozen-generator", [{"unigram_fraction": 0.5}]),
    (ALONE, "objective.schedule=frozen-discriminator", [*SAMPLES, HEAVIER, {"sharing": "gdes"}]),
    (ALONE, "objective.schedule=frozen-discriminator", [{"objective": "replace-mlm"}]),
    (ALONE, "objective.schedule=frozen-discriminator", [{"sentence_weight": 1.0}]),
    (ALONE, "objective.schedule=frozen-discriminator", [{"loss_mean": "texts"}]),
    (ALONE, "objective.schedule=frozen-discriminator", [{"bag_weight": 5.0}]),
    (ALONE, "objective.schedule=frozen-discriminator", [{"correction_weight": 2.0}]),
    (ALONE, "objective.schedule=frozen-discriminator", [{"unigram_fraction": 0.5}]),
    (TWO_STAGE, "objective.schedule=two-stage", [*SIZES, {"sharing": "word"}]),
    (
        TWO_STAGE,
        "objective.schedule=two-stage",
        [{"unigram_fraction": 0.2}, {"weight_warmup": 0.5}],
    ),
    (TWO_STAGE, "objective.first_stage=0.7", [{"first_stage": 0.7, "average_fraction": 0.4}]),
    (ADVERSARIAL, "objective.schedule=adversarial", [{"unigram_fraction": 0.2}, SBO]),
    (ADVERSARIAL, "objective.name=all-tokens-mlm", [{"objective": "all-tokens-mlm"}]),
    ({"sharing": "all"}, "generator.sharing=all", [*SIZES, ADVERSARIAL]),
    (
        {"stacked": True},
        "model.stacked",
        [TWO_STAGE, FROZEN, {"sharing": "all"}, {"init": "run"}, {"average_fraction": 0.4}],
    ),
    (SBO, "generator.head=sbo", [MLM, NOISE, {"masking": "token"}]),
    ({"replaced_spans": True}, "objective.replaced_spans", [{"masking": "word"}]),
    ({"replaced_spans": True, "masking": "span"}, "replace-mlm", [{"objective": "replace-mlm"}]),
    (FORBIDDING, "objective.forbid_original", [{"objective": "electra-15"}]),
    (FORBIDDING, "sentence_weight", [{"sentence_weight": 1.0, "unchanged_fraction": 0.0}]),
    (
        {"correction_weight": 1.0},
        "objective.correction_weight",
        [MLM, {"objective": "replace-mlm"}],
    ),
    ({"correction_weight": 1.0}, "correction_weight", [{"objective": "all-tokens-mlm"}]),
    ({"kept_fraction": 1.0}, "masking.kept_fraction=1", [{}, MLM]),
    ({"kept_fraction": 0.6}, "0.6 + 0.5", [{"random_fraction": 0.5}]),
    ({}, "objective.unchanged_fraction", [{"unchanged_fraction": 0.5}]),
    ({"weight_decay": 0.0}, "optimizer.decay_all", [{"decay_all": True}]),
    ({}, "generator.init", [{"schedule": "frozen-generator"}, {"generator_from": Path("run")}]),
    ({}, "--init", [{"schedule": "frozen-discriminator"}]),
    ({}, "objective.first_stage", [{"first_stage": 0.7}]),
    ({}, "optimizer.muon_learning_rate", [{"muon_learning_rate": 1e-3}]),
    ({"max_steps": 5}, "--epochs", [{"epochs": 3}]),
    ({"vocab_size": 8_000}, "--vocab-size", [{"tokenizer": Path("given")}]),
    ({"init": "run"}, "model.initializer_range", [{"initializer_range": 0.02}]),
]


def check(**given: Any) -> RunConfig:
    return config_of(**{"recipe": "rtd"} | given)


def test_what_makes_no_sense_is_refused_and_named() -> None:
    for flags, named, others in HAS_NO_EFFECT:
        for other in others:
            with pytest.raises(InputError) as error:
                check(**flags | other)
            line = str(error.value)
            assert named in line and "\n" not in line, (flags, other, line)


def test_what_makes_sense_passes() -> None:
    for flags in (
        {},
        MLM,
        {**MLM, "sharing": "none", "masking": "word", "random_fraction": 0.1},
        {"objective": "electra-15", "sentence_weight": 1.0},
        {"objective": "replace-mlm", **TWO_STAGE},
        {"objective": "all-tokens-mlm", "sharing": "all"},
        NOISE,
        {"unigram_fraction": 0.3, "sharing": "gdes", "forbid_original": True},
        {**SBO, "replaced_spans": True, "objective": "electra-15"},
        {**TWO_STAGE, **SBO},
        {**TWO_STAGE, "sharing": "none", "weight_warmup": 0.6},
        {**MLM, "kept_fraction": 0.1, "random_fraction": 0.1, "bag_weight": 1.0},
        {**NOISE, "bag_weight": 5.0, "discriminator_weight": 10.0},
        {**NOISE, "correction_weight": 5.0, "discriminator_weight": 0.0},
        {**NOISE, "forbid_original": True, "weight_warmup": 0.2},
        {**FROZEN, "temperature": 2.0, "sampling": "gumbel", "kept_fraction": 0.0},
        {**TWO_STAGE, "first_stage": 0.9, "average_fraction": 0.1},
        {**ADVERSARIAL, "sharing": "gdes", "sentence_weight": 1.0},
        {**FROZEN, "first_temperature": 2.0},
        {**ALONE, "generator_size": 0.5, "generator_layers": 2, "random_fraction": 0.1},
        {**ALONE, **SBO, "sharing": "none"},
        {**FROZEN, "objective": "all-tokens-mlm", "masking": "rare"},
        {"generator_layers": 2, "generator_size": 0.5},
        {"kept_fraction": 0.9, "random_fraction": 0.1, "mask_fraction": 0.5},
    ):
        check(**flags)  # type: ignore[arg-type]


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
        corrects = objective in DISCRIMINATING and masking == "word"
        given: dict[str, Any] = {
            "frozen-generator": {"generator_from": "run"},
            "frozen-discriminator": {"init": "run"},
        }.get(schedule, {})
        if objective != "mlm" and masking == "span" and schedule == "joint":
            given["generator_head"] = "sbo"
        if corrects and schedule != "frozen-discriminator":
            given["correction_weight"] = 1.0
        try:
            config = check(
                objective=objective, schedule=schedule, masking=masking, sharing=sharing, **given
            )
        except InputError:
            continue
        recipe, size = config.objective, config.generator_size()
        taken += 1
        pair = toy.pair(
            sharing=sharing,
            generator_size=size,
            with_generator=recipe.needs_generator,
            span_boundary_head=recipe.generator_head == "sbo",
            encoder_lm_head=resolve_recipe(recipe).objective.needs_lm_head,
            correction_head=recipe.correction_weight > 0,
        )
        if schedule == "frozen-generator":
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
