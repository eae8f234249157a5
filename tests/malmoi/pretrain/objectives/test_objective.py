"""The losses of every objective, against sums written out position by position."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.data.batches import Batch
from malmoi.pretrain.model.networks import ElectraPair
from malmoi.pretrain.objectives.context import COUNT_NAMES
from malmoi.pretrain.objectives.local_batch import mask_batch
from malmoi.pretrain.objectives.registry import resolve_recipe
from malmoi.pretrain.objectives.replaced_token_detection import replaced_labels
from malmoi.pretrain.objectives.replacing import replace_tokens
from malmoi.pretrain.objectives.step import Moment, StepResult, TrainingObjective, mask_fraction_at
from malmoi.pretrain.objectives.vocabulary import vocabulary_tables
from tests.malmoi.pretrain.conftest import Toy

# Tokens of the texts in each row. The second packed layout ends in a row of padding.
PADDED = [[7], [12], [1], [23]]
PACKED = [[5, 9], [14], [1, 2, 11], []]
SEED = 3


def source(seed: int = SEED) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@dataclass(kw_only=True)
class Expected:
    """What a step gives, in Python numbers."""

    loss: float = 0.0
    generator: float = 0.0
    encoder: float = 0.0
    correction: float = 0.0
    hidden_losses: list[float] = field(default_factory=lambda: [0.0, 0.0])
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNT_NAMES, 0))
    binned: list[list[float]] = field(default_factory=lambda: [[0.0] * 5, [0.0] * 5])


def texts_of(batch: Batch) -> list[tuple[int, int, int]]:
    """Row, begin and end of each text."""
    numbers = batch.is_real.long() if batch.documents is None else batch.documents
    return [
        (row, line.index(number), line.index(number) + line.count(number))
        for row, line in enumerate(numbers.tolist())
        for number in range(1, max(line) + 1)
    ]


def softmax(scores: list[float], allowed: list[bool]) -> list[float]:
    highest = max(s for s, may in zip(scores, allowed, strict=True) if may)
    powers = [math.exp(s - highest) if may else 0.0 for s, may in zip(scores, allowed, strict=True)]
    return [power / sum(powers) for power in powers]


def walk(probabilities: list[float], draw: float) -> int:
    """The entry in which `draw` falls when all are laid end to end."""
    reached = 0.0
    for index, probability in enumerate(probabilities):
        reached += probability / sum(probabilities)
        if reached > draw:
            return index
    raise AssertionError("a draw is below 1")


def bce(logit: float, label: bool) -> float:
    return math.log1p(math.exp(-logit if label else logit))


def mean_of(losses: dict[tuple[int, int], float], texts: list[tuple[int, int]], how: str) -> float:
    """Mean over positions, or of the means of the texts that have any. `texts`: text by position"""
    if how == "tokens":
        return sum(losses.values()) / max(1, len(losses))
    by_text: dict[int, list[float]] = {}
    for place, loss in losses.items():
        by_text.setdefault(texts[place], []).append(loss)
    return sum(sum(group) / len(group) for group in by_text.values()) / max(1, len(by_text))


def reference(
    toy: Toy, pair: ElectraPair, batch: Batch, recipe: Recipe, moment: Moment
) -> Expected:
    """One step with every text run alone, unpadded, through the stock networks.

    Masks and uniform draws are the step's own (`mask_batch` has its own tests); all that comes
    after them is done by loops over Python numbers.
    """
    expected = Expected()
    share = mask_batch(
        batch, recipe, toy.tables, source(), fraction=mask_fraction_at(recipe, moment.fraction)
    )
    width = batch.input_ids.shape[1]
    vocabulary = toy.tokenizer.get_vocab()
    banned = {*toy.tokenizer.all_special_ids, vocabulary["[unused0]"]}
    allowed = [index not in banned for index in range(len(vocabulary))]
    ids, masked = batch.input_ids.tolist(), share.masked.tolist()
    draws = {
        divmod(int(place), width): (float(draw), *map(float, noise))
        for place, is_place, draw, noise in zip(
            share.places, share.is_place, share.draws, share.noise_draws, strict=True
        )
        if is_place
    }
    places = [(r, c) for r in range(len(ids)) for c in range(width) if masked[r][c]]
    assert sorted(draws) == places
    texts = texts_of(batch)
    text_at = {(r, c): n for n, (r, b, e) in enumerate(texts) for c in range(b, e)}
    counted = [place for place in places if allowed[ids[place[0]][place[1]]]]
    seen = [count if may else 0 for count, may in zip(toy.counts.tolist(), allowed, strict=True)]
    shown = share.masked_ids.tolist()
    hidden = [(r, c) for r, c in counted if shown[r][c] == toy.tokenizer.mask_token_id]
    for r, c in hidden:
        expected.hidden_losses[1] -= math.log(max(1, seen[ids[r][c]]) / sum(seen))
        expected.counts["commonest"] += ids[r][c] == seen.index(max(seen))
    expected.counts["hidden"] = len(hidden)
    expected.counts["masked"] = len(places)
    expected.counts["tokens"] = len(text_at)

    def run(network: Any, tokens: torch.Tensor) -> dict[tuple[int, int], torch.Tensor]:
        """States by position, of texts that know nothing of each other."""
        return {
            (row, begin + offset): state
            for row, begin, end in texts
            for offset, state in enumerate(
                network(input_ids=tokens[row : row + 1, begin:end]).last_hidden_state[0]
            )
        }

    def encoder_scores(states: dict[tuple[int, int], torch.Tensor]) -> dict[Any, list[float]]:
        weight = pair.discriminator.electra.embeddings.word_embeddings.weight
        return {
            p: (weight @ pair.lm_predictions(s) + pair.lm_bias).tolist() for p, s in states.items()
        }

    def add_binned(losses: dict[tuple[int, int], float]) -> None:
        for (r, c), loss in losses.items():
            if not allowed[ids[r][c]]:  # [CLS] is not rare, but in no text
                continue
            frequency_bin = int(toy.tables.frequency_bin[ids[r][c]])
            expected.binned[0][frequency_bin] += loss
            expected.binned[1][frequency_bin] += 1

    def token_losses(scores: dict[Any, list[float]], kind: str) -> dict[tuple[int, int], float]:
        losses = {}
        for r, c in counted:
            losses[r, c] = -math.log(softmax(scores[r, c], allowed)[ids[r][c]])
            if kind == "guessed" and (r, c) not in hidden:
                continue
            best = [s if may else -math.inf for s, may in zip(scores[r, c], allowed, strict=True)]
            expected.counts[kind] += best.index(max(best)) == ids[r][c]
        if kind == "guessed":
            expected.hidden_losses[0] = sum(losses[place] for place in hidden)
        return losses

    if recipe.objective == "mlm":
        losses = token_losses(
            encoder_scores(run(pair.discriminator.electra, share.masked_ids)), "guessed"
        )
        expected.counts["encoder_places"] = len(hidden)
        expected.counts["encoder_guessed"] = expected.counts["guessed"]
        expected.loss = expected.generator = mean_of(losses, text_at, recipe.loss_mean)
        add_binned(losses)
        return expected

    # The generator.
    scores: dict[Any, list[float]] = {}
    generator_loss = 0.0
    if recipe.needs_generator:
        generator = pair.generator
        states = run(generator.electra, share.masked_ids)
        scores = {
            p: generator.generator_lm_head(generator.generator_predictions(s)).tolist()
            for p, s in states.items()
        }
        losses = token_losses(scores, "guessed")
        expected.generator = generator_loss = sum(losses.values()) / max(1, len(counted))
        if recipe.generator_head == "sbo":
            head = pair.span_head
            for r, c in places:
                left, right = c, c
                while masked[r][left]:
                    left -= 1
                while masked[r][right]:
                    right += 1
                place = head.places.weight[c - left - 1]
                features = head.layers(torch.cat([states[r, left], states[r, right], place]))
                scores[r, c] = generator.generator_lm_head(features).tolist()
            expected.counts["guessed"] = 0
            losses = token_losses(scores, "guessed")
            expected.generator = sum(losses.values()) / max(1, len(counted))
            generator_loss += expected.generator

    # Its samples.
    temperature = resolve_recipe(recipe).schedule.temperature_at(moment.fraction)
    noise_share = 0.0
    if recipe.unigram_fraction > 0:
        noise_share = max(0.0, 1 - moment.fraction / recipe.unigram_fraction)
        if recipe.unigram_fraction == 1:
            noise_share = 1.0
    corrupted = batch.input_ids.clone()
    log_probabilities = {}
    for (r, c), (draw, which, noise_draw) in draws.items():
        may = list(allowed)
        if recipe.forbid_original:
            may[ids[r][c]] = False
        if which < noise_share:
            counts = [max(1, count) ** 0.75 for count in toy.counts.tolist()]
            noise = [count if m else 0.0 for count, m in zip(counts, may, strict=True)]
            corrupted[r, c] = walk(noise, noise_draw)
        else:
            probabilities = softmax([s / temperature for s in scores[r, c]], may)
            corrupted[r, c] = walk(probabilities, draw)
            log_probabilities[r, c] = math.log(probabilities[int(corrupted[r, c])])

    # The discriminator, or the guesses of its encoder.
    new = corrupted.tolist()
    changed = {(r, c): new[r][c] != ids[r][c] for r, c in text_at}
    labels = dict(changed)
    if recipe.replaced_spans:
        for r, c in places:
            run_of = [c]
            while masked[r][run_of[0] - 1]:
                run_of.insert(0, run_of[0] - 1)
            while masked[r][run_of[-1] + 1]:
                run_of.append(run_of[-1] + 1)
            labels[r, c] = any(changed[r, k] for k in run_of)
    states = run(pair.discriminator.electra, corrupted)
    heads = {
        p: float(pair.discriminator.discriminator_predictions(s[None])) for p, s in states.items()
    }
    sentence_loss = 0.0
    if recipe.objective in ("rtd", "electra-15"):
        scope = list(text_at) if recipe.objective == "rtd" else places
        if recipe.sentence_weight:
            cls = [(row, begin) for row, begin, _ in texts]
            scope = [place for place in scope if place not in cls]
            for n, place in enumerate(cls):
                any_changed = any(changed[p] for p in text_at if text_at[p] == n)
                sentence_loss += bce(heads[place], any_changed) / len(texts)
        losses = {place: bce(heads[place], labels[place]) for place in scope}
    elif recipe.objective == "replace-mlm":
        losses = token_losses(encoder_scores(states), "encoder_guessed")
        expected.counts["encoder_places"] = len(counted)
    else:
        scope = list(text_at)
        encoder = encoder_scores(states)
        token_losses(encoder, "encoder_guessed")
        expected.counts["encoder_places"] = len(places)
        losses = {}
        for r, c in text_at:
            copies = 1 / (1 + math.exp(heads[r, c]))
            target = ids[r][c]
            probability = copies * (new[r][c] == target)
            if allowed[target]:
                probability += (1 - copies) * softmax(encoder[r, c], allowed)[target]
            # An unknown token that was replaced can neither be copied nor guessed.
            losses[r, c] = -math.log(probability) if probability else 0.0
    if recipe.objective != "replace-mlm":
        for place in scope:
            predicted = heads[place] > 0
            expected.counts["true_positive"] += predicted and labels[place]
            expected.counts["predicted_replaced"] += predicted
            expected.counts["replaced"] += labels[place]
    add_binned(losses)
    expected.encoder = mean_of(losses, text_at, recipe.loss_mean)
    risen = min(1.0, moment.fraction / recipe.weight_warmup) if recipe.weight_warmup else 1.0
    expected.loss = recipe.discriminator_weight * risen * expected.encoder
    expected.loss += recipe.sentence_weight * sentence_loss
    if recipe.correction_weight:
        corrections = token_losses(encoder_scores(states), "encoder_guessed")
        expected.counts["encoder_places"] = len(counted)
        expected.correction = sum(corrections.values()) / len(counted)
        expected.loss += recipe.correction_weight * expected.correction
    if recipe.schedule == "adversarial":
        rewards = {place: losses[place] for place in counted}
        mean = sum(rewards.values()) / len(counted)
        for place, reward in rewards.items():
            expected.loss -= (reward - mean) * log_probabilities[place] / len(counted)
    elif recipe.schedule != "frozen-generator":
        expected.loss += generator_loss
    return expected


def check(
    toy: Toy, recipe: Recipe, *, packed: bool, sharing: str = "instance", fraction: float = 0.0
) -> None:
    pair = toy.pair_for(recipe, sharing)
    batch = toy.batch(PACKED if packed else PADDED, packed=packed)
    moment = Moment(fraction=fraction)
    with torch.no_grad():
        result = TrainingObjective(recipe=recipe, tables=toy.tables)(pair, batch, source(), moment)
        expected = reference(toy, pair, batch, recipe, moment)
    assert float(result.loss) == pytest.approx(expected.loss, rel=2e-4)
    assert float(result.generator_loss) == pytest.approx(expected.generator, rel=2e-4)
    assert float(result.discriminator_loss) == pytest.approx(expected.encoder, rel=2e-4)
    correction = float(result.auxiliary.get("correction_loss", 0))
    assert correction == pytest.approx(expected.correction, rel=2e-4)
    assert dict(zip(COUNT_NAMES, result.counts.tolist(), strict=True)) == expected.counts
    assert result.hidden_losses.tolist() == pytest.approx(expected.hidden_losses, rel=2e-4)
    for found, wanted in zip(result.binned_loss.tolist(), expected.binned, strict=True):
        assert found == pytest.approx(wanted, rel=2e-4)


LAYOUTS = pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
MASK_MORE = {"mask_fraction": 0.4}


@LAYOUTS
@pytest.mark.parametrize("objective", ["rtd", "electra-15"])
@pytest.mark.parametrize("noise", [0.0, 1.0], ids=["samples", "noise"])
def test_a_discriminator_guesses_what_stood_at_masked_positions(
    toy: Toy, noise: float, objective: str, packed: bool
) -> None:
    recipe = Recipe(objective=objective, correction_weight=2.0, unigram_fraction=noise, **MASK_MORE)
    check(toy, recipe, packed=packed)


@LAYOUTS
@pytest.mark.parametrize("objective", ["rtd", "mlm", "replace-mlm"])
def test_cls_guesses_the_words_of_its_text(toy: Toy, objective: str, packed: bool) -> None:
    recipe = Recipe(objective=objective, bag_weight=3.0, **MASK_MORE)
    pair = toy.pair_for(recipe)
    batch = toy.batch(PACKED if packed else PADDED, packed=packed)
    seen: list[torch.Tensor] = []
    pair.discriminator.electra.register_forward_hook(
        lambda module, inputs, outputs: seen.append(outputs.last_hidden_state)
    )
    with torch.no_grad():
        asked = TrainingObjective(recipe=recipe, tables=toy.tables)(pair, batch, source())
        without = replace(recipe, bag_weight=0.0)
        silent = TrainingObjective(recipe=without, tables=toy.tables)(pair, batch, source())
    allowed = [bias == 0 for bias in toy.tables.bias.tolist()]
    losses = []
    for row, ids in enumerate(batch.input_ids.tolist()):
        if not batch.is_real[row].any():
            continue
        scores = pair.bag_logits(seen[0][row, :1])[0].tolist()
        expected = softmax(scores, allowed)
        words = ids[: ids.index(toy.tokenizer.sep_token_id)]  # the row's first text
        losses += [-math.log(expected[word]) for word in words if allowed[word]]
    bag_loss = float(asked.auxiliary["bag_loss"])
    assert bag_loss == pytest.approx(sum(losses) / len(losses), rel=2e-4)
    assert float(asked.loss - silent.loss) == pytest.approx(3 * bag_loss, rel=2e-3)
    assert not silent.auxiliary


@LAYOUTS
@pytest.mark.parametrize("loss_mean", ["tokens", "texts"])
@pytest.mark.parametrize("objective", ["rtd", "mlm", "electra-15", "replace-mlm", "all-tokens-mlm"])
def test_each_objective_is_its_definition(
    toy: Toy, objective: str, loss_mean: str, packed: bool
) -> None:
    check(toy, Recipe(objective=objective, loss_mean=loss_mean, **MASK_MORE), packed=packed)


@LAYOUTS
def test_each_flag_changes_the_loss_as_it_says(toy: Toy, packed: bool) -> None:
    for flags, fraction in (
        ({"discriminator_weight": 7.0}, 0),
        ({"sentence_weight": 2.0}, 0),
        ({"sentence_weight": 2.0, "objective": "electra-15", "loss_mean": "texts"}, 0),
        ({"masking": "word"}, 0),
        ({"masking": "rare", "objective": "replace-mlm"}, 0),
        ({"masking": "span", "replaced_spans": True}, 0),
        ({"masking": "span", "replaced_spans": True, "objective": "electra-15"}, 0),
        ({"masking": "span", "generator_head": "sbo"}, 0),
        ({"masking": "span", "generator_head": "sbo", "objective": "all-tokens-mlm"}, 0),
        ({"temperature": 0.5}, 0),
        ({"first_temperature": 3.0}, 0.1),
        ({"forbid_original": True}, 0),
        ({"random_fraction": 0.3, "kept_fraction": 0.3}, 0),
        ({"last_mask_fraction": 0.8}, 0.5),
        ({"weight_warmup": 0.5}, 0.2),
        ({"unigram_fraction": 0.5}, 0.25),
        ({"unigram_fraction": 0.5, "forbid_original": True}, 0.1),
        ({"unigram_fraction": 1.0, "objective": "replace-mlm"}, 0.9),
        ({"schedule": "frozen-generator"}, 0),
        ({"schedule": "adversarial"}, 0),
        ({"schedule": "adversarial", "temperature": 2.0, "forbid_original": True}, 0),
    ):
        check(toy, Recipe(**{**MASK_MORE, **flags}), packed=packed, fraction=fraction)


@pytest.mark.parametrize("sharing", ["none", "word", "gdes", "all"])
@pytest.mark.parametrize("objective", ["rtd", "all-tokens-mlm"])
def test_sharing_changes_no_definition(toy: Toy, sharing: str, objective: str) -> None:
    check(toy, Recipe(objective=objective, **MASK_MORE), packed=False, sharing=sharing)


def test_of_two_heads_the_loss_of_the_one_that_samples_is_shown(toy: Toy) -> None:
    """Beside what guessing by frequency alone has, which is of one head, in both stages."""
    recipe = Recipe(schedule="two-stage", masking="span", generator_head="sbo", **MASK_MORE)
    pair = toy.pair(sharing="none", generator_size=1, span_boundary_head=True)
    batch, learns = toy.batch(PADDED), TrainingObjective(recipe=recipe, tables=toy.tables)
    alone, later = (learns(pair, batch, source(), Moment(stage=stage)) for stage in (0, 1))
    assert float(alone.generator_loss) == pytest.approx(float(later.generator_loss), rel=1e-5)
    assert float(alone.loss.detach()) > 1.5 * float(alone.generator_loss)


def test_the_first_stage_is_the_generators_loss_alone(toy: Toy) -> None:
    recipe = Recipe(schedule="two-stage", **MASK_MORE)
    pair = toy.pair(sharing="none", generator_size=1)
    batch = toy.batch(PADDED)
    result = TrainingObjective(recipe=recipe, tables=toy.tables)(
        pair, batch, source(), Moment(stage=0)
    )
    with torch.no_grad():
        expected = reference(toy, pair, batch, recipe, Moment())
    assert float(result.loss.detach()) == pytest.approx(expected.generator, rel=2e-4)
    assert float(result.discriminator_loss) == 0
    later = TrainingObjective(recipe=recipe, tables=toy.tables)(
        pair, batch, source(), Moment(stage=1)
    )
    assert float(later.loss.detach()) == pytest.approx(50 * expected.encoder, rel=2e-4)


def test_a_sample_equal_to_the_original_counts_as_original(toy: Toy) -> None:
    batch = toy.batch(PADDED)
    share = mask_batch(batch, Recipe(), toy.tables, source(), fraction=0.4)
    originals = batch.input_ids.flatten()[share.places]
    same = replace_tokens(share, originals)
    assert torch.equal(same, batch.input_ids)
    assert not replaced_labels(share, same).any()
    others = torch.where(originals == 9, 10, 9)
    assert torch.equal(replaced_labels(share, replace_tokens(share, others)), share.masked)


def test_processes_together_compute_the_loss_of_one(toy: Toy) -> None:
    """The parts of two processes, one of which may have nothing but padding, add up."""
    recipe = Recipe(loss_mean="texts", sentence_weight=1.0, **MASK_MORE)
    pair = toy.pair()
    for rows in (PACKED, [[5, 9], []]):
        batch = toy.batch(rows, packed=True)
        whole = TrainingObjective(recipe=recipe, tables=toy.tables)(pair, batch, source())
        # Every sum that the processes ask for, in order, is the sum of both processes' parts.
        parts: list[list[torch.Tensor]] = []
        for rank in (0, 1):
            parts.append([])

            def note(tensor: torch.Tensor, own: list[torch.Tensor] = parts[-1]) -> torch.Tensor:
                own.append(tensor)
                return tensor

            TrainingObjective(
                recipe=recipe, tables=toy.tables, rank=rank, world_size=2, add_up=note
            )(pair, batch, source())
        sums = [a + b for a, b in zip(*parts, strict=True)]
        results = []
        for rank in (0, 1):
            answers = iter(sums)
            results.append(
                TrainingObjective(
                    recipe=recipe,
                    tables=toy.tables,
                    rank=rank,
                    world_size=2,
                    add_up=lambda _, answers=answers: next(answers),
                )(pair, batch, source())
            )
        assert float(sum(r.loss for r in results)) == pytest.approx(float(whole.loss), rel=1e-4)
        assert torch.equal(sum(r.counts for r in results), whole.counts)


def test_unknown_and_special_targets_leave_loss_and_gradients_finite(toy: Toy) -> None:
    for objective in ("rtd", "mlm", "replace-mlm", "all-tokens-mlm"):
        recipe = Recipe(objective=objective, mask_fraction=0.9)
        pair = toy.pair_for(recipe)
        batch = toy.batch([[2], [6]])
        batch.input_ids[batch.maskable] = toy.tokenizer.unk_token_id
        result = TrainingObjective(recipe=recipe, tables=toy.tables)(pair, batch, source())
        result.loss.backward()
        assert torch.isfinite(result.loss)
        assert float(result.generator_loss) == 0
        assert all(torch.isfinite(p.grad).all() for p in pair.parameters() if p.grad is not None)


def overfit(
    pair: ElectraPair,
    tokenizer: PreTrainedTokenizerFast,
    texts: list[str],
    *,
    steps: int,
    **flags: Any,
) -> StepResult:
    """Train on one batch whose masks and draws are the same in every step."""
    encoded = tokenizer(texts, padding=True, return_tensors="pt")
    real = encoded["attention_mask"].bool()
    special = torch.isin(encoded["input_ids"], torch.tensor(tokenizer.all_special_ids))
    batch = Batch(
        input_ids=encoded["input_ids"],
        maskable=~special,
        is_real=real,
        position_ids=None,
        documents=None,
        num_tokens=int(real.sum()),
    )
    counts = torch.bincount(batch.input_ids.flatten(), minlength=len(tokenizer)).numpy()
    tables = vocabulary_tables(tokenizer, len(tokenizer), counts, torch.device("cpu"))
    objective = TrainingObjective(recipe=Recipe(**flags), tables=tables)
    trained = [parameter for parameter in pair.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=3e-3, fused=True)
    for _ in range(steps):
        result = objective(pair, batch, source())
        result.loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return result


def test_the_generator_overfits_one_batch_in_the_joint_objective(
    pair: ElectraPair, tokenizer: PreTrainedTokenizerFast, comments: list[str]
) -> None:
    result = overfit(pair, tokenizer, comments[:4], steps=200)
    counts = dict(zip(COUNT_NAMES, result.counts.tolist(), strict=True))
    assert counts["guessed"] / counts["hidden"] > 0.95
    assert result.generator_loss.item() < 0.05


def test_the_discriminator_overfits_one_batch(
    pair: ElectraPair, tokenizer: PreTrainedTokenizerFast, comments: list[str]
) -> None:
    # An untrained generator, embeddings included, keeps making the same wrong guesses.
    pair.freeze_generator()
    result = overfit(pair, tokenizer, comments[:8], steps=200, schedule="frozen-generator")
    found, predicted, replaced = result.counts[2:5].tolist()
    assert replaced > 10
    assert found == predicted == replaced
    assert result.discriminator_loss.item() < 0.02
