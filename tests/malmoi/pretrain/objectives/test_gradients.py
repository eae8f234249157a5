"""Which loss moves which weights: nothing crosses where the recipe says it must not."""

import pytest
import torch

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.data.batches import Batch
from malmoi.pretrain.engine.optimizer import Optimizers
from malmoi.pretrain.model.networks import ElectraPair
from malmoi.pretrain.objectives import schedules
from malmoi.pretrain.objectives.context import EncoderPass, TokenLosses
from malmoi.pretrain.objectives.generator import predict_masked
from malmoi.pretrain.objectives.local_batch import mask_batch
from malmoi.pretrain.objectives.registry import OBJECTIVES
from malmoi.pretrain.objectives.replaced_token_detection import (
    ReplacedTokenDetection,
    replaced_labels,
)
from malmoi.pretrain.objectives.replacing import replace_tokens, sample_tokens
from malmoi.pretrain.objectives.step import Moment, TrainingObjective
from tests.malmoi.pretrain.conftest import Toy, plan_of

ROWS = [[7], [12], [5], [23]]
SHARINGS = ["none", "word", "instance", "gdes", "all"]


def source(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pair_of(toy: Toy, sharing: str, size: float | None = None) -> ElectraPair:
    size = size or (1 if sharing == "all" else 0.5)
    return toy.pair(sharing=sharing, generator_size=size)


def gradients_of(
    toy: Toy, pair: ElectraPair, recipe: Recipe, moment: Moment | None = None
) -> dict[str, torch.Tensor]:
    """By name, of what got any."""
    pair.zero_grad()
    batch = toy.batch(ROWS)
    TrainingObjective(recipe=recipe, tables=toy.tables)(
        pair, batch, source(), moment
    ).loss.backward()
    return {n: p.grad.clone() for n, p in pair.named_parameters() if p.grad is not None}


def weights_of(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in network.named_parameters()}


def changed_in(network: torch.nn.Module, before: dict[str, torch.Tensor]) -> set[str]:
    return {n for n, p in network.named_parameters() if not torch.equal(p, before[n])}


@pytest.mark.parametrize("objective", ["rtd", "all-tokens-mlm"])
@pytest.mark.parametrize("sharing", SHARINGS)
def test_the_discriminator_reaches_the_generator_only_through_what_they_share(
    toy: Toy, sharing: str, objective: str
) -> None:
    pair = toy.pair(
        sharing=sharing,
        generator_size=1 if sharing == "all" else 0.5,
        encoder_lm_head=objective == "all-tokens-mlm",
    )
    without, with_it = (
        gradients_of(toy, pair, Recipe(objective=objective, discriminator_weight=weight))
        for weight in (0.0, 50.0)
    )
    theirs = {id(p) for p in pair.discriminator.parameters()}
    names = {name: id(p) in theirs for name, p in pair.named_parameters()}
    own = [n for n in names if n.startswith("generator.") and not names[n]]
    shared = [n for n in names if n.startswith("generator.") and names[n]]
    assert own
    for name in own:
        assert torch.allclose(without[name], with_it[name], atol=1e-7), name
    for name in shared:
        if name.endswith("key.bias"):  # a softmax over keys does not see it: its gradient is 0
            continue
        assert not torch.allclose(without[name], with_it[name], atol=1e-4), name
    assert bool(shared) == (sharing not in ("none", "gdes"))


def test_the_discriminator_moves_the_difference_and_not_the_generators_table(toy: Toy) -> None:
    pair = pair_of(toy, "gdes")
    recipe = Recipe(schedule="frozen-generator")  # the discriminator's loss alone
    gradients = gradients_of(toy, pair, recipe)
    assert not [name for name in gradients if name.startswith("generator.")]
    for name in ("word_embeddings", "position_embeddings"):
        assert gradients[f"discriminator.electra.embeddings.{name}.delta"].abs().max() > 0
    padding = gradients["discriminator.electra.embeddings.word_embeddings.delta"][0]
    assert not padding.any()


def take_steps(
    toy: Toy, pair: ElectraPair, optimizers: Optimizers, recipe: Recipe, stage: int
) -> None:
    objective = TrainingObjective(recipe=recipe, tables=toy.tables)
    for seed in range(3):
        optimizers.set_rate(1e-3)
        objective(pair, toy.batch(ROWS), source(seed), Moment(stage=stage)).loss.backward()
        optimizers.step()


def test_a_two_stage_run_trains_one_network_at_a_time(toy: Toy) -> None:
    for optimizer in ("adamw", "muon"):
        pair = pair_of(toy, "none", 1)
        recipe = Recipe(schedule="two-stage")
        optimizers = Optimizers(pair, plan_of(optimizer=optimizer).optimizer)
        generator, discriminator = weights_of(pair.generator), weights_of(pair.discriminator)
        take_steps(toy, pair, optimizers, recipe, stage=0)
        assert changed_in(pair.generator, generator) == set(generator)
        assert changed_in(pair.discriminator, discriminator) == set()
        pair.start_discriminator_from_generator()
        pair.freeze_generator()
        encoders = [weights_of(network.electra) for network in pair.networks().values()]
        assert all(torch.equal(encoders[0][name], encoders[1][name]) for name in encoders[0])
        generator, discriminator = weights_of(pair.generator), weights_of(pair.discriminator)
        take_steps(toy, pair, optimizers, recipe, stage=1)
        assert changed_in(pair.generator, generator) == set()
        assert changed_in(pair.discriminator, discriminator) == set(discriminator)


def test_the_adversarial_gradient_is_reinforce(toy: Toy) -> None:
    """Sum over samples of -(reward - mean reward) x gradient of the log probability."""
    for flags in ({}, {"temperature": 0.6}, {"forbid_original": True, "temperature": 1.5}):
        recipe = Recipe(schedule="adversarial", mask_fraction=0.4, **flags)  # type: ignore[arg-type]
        pair = pair_of(toy, "none")
        found = gradients_of(toy, pair, recipe)
        batch = toy.batch(ROWS)
        share = mask_batch(batch, recipe, toy.tables, source(), fraction=0.4)
        logits = predict_masked(pair, share, toy.tables, span_boundary=False)[0].logits.detach()
        originals = batch.input_ids.flatten()[share.places]
        samples = sample_tokens(
            logits,
            originals,
            share.draws,
            temperature=recipe.temperature,
            forbid_original=recipe.forbid_original,
        )
        corrupted = replace_tokens(share, samples)
        labels = replaced_labels(share, corrupted)
        rewards, log_probabilities = [], []
        for row, length in enumerate(batch.is_real.sum(1).tolist()):
            heads = pair.discriminator(input_ids=corrupted[row : row + 1, :length]).logits[0]
            scores = pair.generator(input_ids=share.masked_ids[row : row + 1, :length]).logits[0]
            for column in share.masked[row].nonzero().flatten().tolist():
                target = batch.input_ids[row, column]
                if toy.tables.bias[target] != 0:  # the unknown token
                    continue
                sign = 1.0 if labels[row, column] else -1.0
                rewards.append(float(torch.nn.functional.softplus(-sign * heads[column]).detach()))
                powers = (scores[column] / recipe.temperature + toy.tables.bias).exp()
                if recipe.forbid_original:
                    powers = powers * (torch.arange(len(powers)) != target)
                log_probabilities.append((powers[corrupted[row, column]] / powers.sum()).log())
        mean = sum(rewards) / len(rewards)
        pair.zero_grad()
        sum(
            -(reward - mean) * log_probability / len(rewards)
            for reward, log_probability in zip(rewards, log_probabilities, strict=True)
        ).backward()
        for name, parameter in pair.generator.named_parameters():
            if parameter.grad is not None:
                expected = found[f"generator.{name}"]
                assert torch.allclose(parameter.grad, expected, rtol=1e-3, atol=1e-5), name


def test_the_reward_moves_no_discriminator(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would learn to be misled, which pays the generator."""
    recipe = Recipe(schedule="adversarial", mask_fraction=0.4)
    found = gradients_of(toy, pair_of(toy, "none"), recipe)
    monkeypatch.setattr(schedules, "reinforce_loss", lambda *_: torch.zeros(()))
    alone = gradients_of(toy, pair_of(toy, "none"), recipe)
    names = [name for name in alone if name.startswith("discriminator.")]
    assert names and all(torch.equal(found[name], alone[name]) for name in names)


FAVOURITE = 11


class Bandit(ReplacedTokenDetection):
    """Instead of a discriminator: the loss is 1 where a favourite token stands, else 0."""

    def token_losses(self, run: EncoderPass) -> TokenLosses:
        rewards = ((run.input_ids == FAVOURITE) & run.batch.masked).float()
        return TokenLosses(losses=rewards, scope=torch.zeros_like(run.batch.masked))


@pytest.mark.parametrize("sampling", ["inverse", "gumbel"])
def test_an_adversarial_generator_moves_towards_what_is_rewarded(
    toy: Toy, sampling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(OBJECTIVES, "rtd", Bandit)
    recipe = Recipe(schedule="adversarial", sampling=sampling, mask_fraction=0.4)
    bandit = TrainingObjective(recipe=recipe, tables=toy.tables)
    pair = pair_of(toy, "none")
    batch = toy.batch(ROWS)

    def chance(batch: Batch) -> float:
        share = mask_batch(batch, recipe, toy.tables, source(), fraction=0.4)
        with torch.no_grad():
            guesses = predict_masked(pair, share, toy.tables, span_boundary=False)[0]
        return float(guesses.logits.softmax(-1)[share.is_place, FAVOURITE].mean())

    before = chance(batch)
    optimizer = torch.optim.AdamW(pair.generator.parameters(), lr=5e-3)
    for seed in range(80):
        bandit(pair, batch, source(seed)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert before < 0.2
    assert chance(batch) > 0.8
