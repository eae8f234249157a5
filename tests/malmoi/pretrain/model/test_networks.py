"""What the networks share, and what of them is saved and loaded."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModel,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    ElectraForSequenceClassification,
    PreTrainedTokenizerFast,
)

from malmoi.errors import InputError
from malmoi.model_folders import discriminator_folder
from malmoi.pretrain.config.defaults import PRESETS
from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.engine.optimizer import Optimizers
from malmoi.pretrain.model.networks import (
    ElectraPair,
    GradientDisentangledEmbedding,
    PairShape,
    build_pair,
    load_pair,
)
from malmoi.pretrain.objectives.step import TrainingObjective
from malmoi.transformers_models import save_model
from tests.malmoi.pretrain.conftest import TOY, Toy, plan_of

SHARINGS = ["none", "word", "instance", "gdes", "all"]


def test_cls_sees_the_text_from_the_start(
    tokenizer: PreTrainedTokenizerFast, comments: list[str]
) -> None:
    """Untrained [CLS] vectors of different texts differ as much as those of a base encoder.

    With weights as small as base's, narrow encoders give nearly the same [CLS] for every text,
    and a classifier of few examples never leaves chance.
    """
    batch = tokenizer(comments[:32], padding=True, return_tensors="pt")
    spread = {}
    for name in ("tiny", "small", "base"):
        torch.manual_seed(0)
        shape = PairShape(with_generator=False)
        network = build_pair(PRESETS[name], tokenizer, shape=shape).discriminator.eval()
        with torch.no_grad():
            cls = network.electra(**batch).last_hidden_state[:, 0]  # [B, hidden_size]
        spread[name] = float(cls.std(0).mean() / cls.pow(2).mean().sqrt())
    assert min(spread["tiny"], spread["small"]) > 0.9 * spread["base"]


def sharing_pair(toy: Toy, sharing: str, **shape: Any) -> ElectraPair:
    size = 1 if sharing == "all" else 0.5
    return toy.pair(**{"sharing": sharing, "generator_size": size, **shape})


def take_steps(toy: Toy, pair: ElectraPair, recipe: Recipe | None = None, steps: int = 2) -> None:
    """Large ones, so that nothing is left near where it began."""
    optimizers = Optimizers(pair, plan_of().optimizer)
    objective = TrainingObjective(recipe=recipe or Recipe(), tables=toy.tables)
    batch = toy.batch([[12], [20], [7]])
    for seed in range(steps):
        optimizers.set_rate(0.02)
        objective(pair, batch, torch.Generator().manual_seed(seed)).loss.backward()
        optimizers.step()


def shared_names(pair: ElectraPair) -> set[str]:
    """Parameters of the encoders that are one object in both."""
    theirs = dict(pair.generator.electra.named_parameters())
    ours = pair.discriminator.electra.named_parameters()
    return {name for name, parameter in ours if theirs.get(name) is parameter}


WORDS = {"embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight"}
MODULE = WORDS | {
    "embeddings.token_type_embeddings.weight",
    "embeddings.LayerNorm.weight",
    "embeddings.LayerNorm.bias",
}


@pytest.mark.parametrize("sharing", SHARINGS)
def test_what_is_shared_is_one_object_and_stays_so(toy: Toy, sharing: str) -> None:
    pair = sharing_pair(toy, sharing)
    expected = {"none": set(), "word": WORDS, "instance": MODULE, "gdes": set()}
    expected["all"] = {name for name, _ in pair.discriminator.electra.named_parameters()}

    def check() -> None:
        assert shared_names(pair) == expected[sharing]
        table = pair.generator.electra.embeddings.word_embeddings.weight
        assert pair.generator.generator_lm_head.weight is table
        assert len(pair.word_tables()) == (2 if sharing == "none" else 1)
        assert pair.word_tables()[-1] is table
        if sharing == "gdes":
            ours = pair.discriminator.electra.embeddings
            assert isinstance(ours.word_embeddings, GradientDisentangledEmbedding)
            sums = table + ours.word_embeddings.delta
            assert torch.equal(ours.word_embeddings.weight, sums)
            assert {n for n, _ in ours.named_parameters() if "word" in n} == {
                "word_embeddings.delta"
            }

    check()
    take_steps(toy, pair)
    check()
    pair.to(torch.float64)
    check()
    pair.to(device="cpu", dtype=torch.float32)
    check()


def test_the_disentangled_difference_starts_at_nothing(toy: Toy) -> None:
    pair = sharing_pair(toy, "gdes")
    ids = torch.arange(26)
    base = pair.generator.electra.embeddings.word_embeddings
    ours = pair.discriminator.electra.embeddings.word_embeddings
    assert torch.equal(ours(ids), base(ids))
    take_steps(toy, pair)
    assert ours.delta.abs().max() > 1e-3
    assert torch.equal(ours(ids), ours.weight)


def test_a_discriminator_begun_from_the_generator_computes_the_same_states(toy: Toy) -> None:
    pair = sharing_pair(toy, "none", generator_size=1)
    take_steps(toy, pair)
    pair.start_discriminator_from_generator()
    batch = toy.batch([[12], [20]])
    states = [n.electra(batch.input_ids).last_hidden_state for n in pair.networks().values()]
    assert torch.equal(states[0], states[1])
    pair.freeze_generator()
    take_steps(toy, pair, Recipe(schedule="frozen-generator"))
    assert shared_names(pair) == set()


def logits_of(network: Any, toy: Toy) -> torch.Tensor:
    batch = toy.batch([[12], [20], [7]])
    with torch.no_grad():
        return network.eval()(batch.input_ids, attention_mask=batch.is_real.long())[0]


def loaded(network_class: Any, folder: Path, **more: Any) -> tuple[Any, set[str]]:
    """The network, and the keys that were not as expected; another head's may be there."""
    network, info = network_class.from_pretrained(folder, output_loading_info=True, **more)
    foreign = {key for key in info["unexpected_keys"] if key.startswith("electra.")}
    return network, {*info["missing_keys"], *info["mismatched_keys"], *foreign}


@pytest.mark.parametrize(
    ("shape", "recipe"),
    [
        *(({"sharing": sharing}, Recipe()) for sharing in SHARINGS),
        ({"sharing": "none", "generator_size": 1}, Recipe(schedule="two-stage")),
        ({"sharing": "gdes", "encoder_lm_head": True}, Recipe(objective="all-tokens-mlm")),
        ({"sharing": "instance", "span_boundary_head": True}, Recipe(masking="span")),
        ({"with_generator": False, "encoder_lm_head": True}, Recipe(objective="mlm")),
    ],
    ids=[*SHARINGS, "two-stage", "all-tokens-mlm", "sbo", "mlm"],
)
def test_saved_networks_load_in_stock_classes_and_compute_the_same(
    toy: Toy, tmp_path: Path, shape: dict[str, Any], recipe: Recipe
) -> None:
    pair = sharing_pair(toy, **{"sharing": "instance", **shape})
    take_steps(toy, pair, recipe)
    state = {name: parameter.detach().clone() for name, parameter in pair.named_parameters()}
    pair.save_networks(tmp_path, toy.tokenizer)
    # Saving changes nothing: the run may go on.
    assert {n for n, p in pair.named_parameters() if torch.equal(p, state[n])} == set(state)
    assert pair.discriminator.config.hidden_dropout_prob == 0

    discriminator, unfit = loaded(ElectraForPreTraining, tmp_path / "discriminator")
    assert not unfit
    ours = logits_of(pair.discriminator, toy)
    assert torch.allclose(logits_of(discriminator, toy), ours, atol=1e-5)
    encoder, unfit = loaded(AutoModel, tmp_path / "discriminator")
    assert not unfit
    states = logits_of(pair.discriminator.electra, toy)
    assert torch.allclose(logits_of(encoder, toy), states, atol=1e-5)
    classifier, unfit = loaded(
        ElectraForSequenceClassification, tmp_path / "discriminator", num_labels=3
    )
    assert unfit and all(key.startswith("classifier.") for key in unfit)
    assert torch.allclose(logits_of(classifier.electra, toy), states, atol=1e-5)

    generator, unfit = loaded(ElectraForMaskedLM, tmp_path / "generator")
    assert not unfit
    if pair.generator is not None:
        ours = logits_of(pair.generator, toy)
    else:
        ours = pair.encoder_lm_logits(states).detach()
    assert torch.allclose(logits_of(generator, toy), ours, atol=1e-5)
    assert generator.generator_lm_head.weight is generator.get_input_embeddings().weight
    for name in ("discriminator", "generator"):
        config = json.loads((tmp_path / name / "config.json").read_text())
        assert config["hidden_dropout_prob"] == config["attention_probs_dropout_prob"] == 0.1


@pytest.mark.parametrize("sharing", SHARINGS)
def test_a_loaded_pair_computes_what_the_saved_one_did_and_shares_again(
    toy: Toy, tmp_path: Path, sharing: str
) -> None:
    pair = sharing_pair(toy, sharing)
    take_steps(toy, pair)
    pair.save_networks(tmp_path, toy.tokenizer)
    again = load_pair(tmp_path, pair.shape)
    assert shared_names(again) == shared_names(pair)
    for ours, theirs in zip(pair.networks().values(), again.networks().values(), strict=True):
        assert torch.allclose(logits_of(ours, toy), logits_of(theirs, toy), atol=1e-5)
    assert {n for n, _ in again.named_parameters()} == {n for n, _ in pair.named_parameters()}
    if sharing == "gdes":
        deltas = [p.discriminator.electra.embeddings.word_embeddings.delta for p in (pair, again)]
        assert torch.allclose(deltas[0], deltas[1], atol=1e-6)


def test_a_masked_language_model_goes_on_with_its_own_head(toy: Toy, tmp_path: Path) -> None:
    pair = sharing_pair(toy, "instance", with_generator=False, encoder_lm_head=True)
    take_steps(toy, pair, Recipe(objective="mlm"))
    pair.save_networks(tmp_path, toy.tokenizer)
    again = load_pair(tmp_path, pair.shape)
    assert again.generator is None
    states = torch.randn(5, TOY.hidden_size)
    assert torch.equal(again.encoder_lm_logits(states), pair.encoder_lm_logits(states))
    corrects = load_pair(tmp_path, PairShape(with_generator=False, correction_head=True))
    assert torch.equal(corrects.encoder_lm_logits(states), pair.encoder_lm_logits(states))


@pytest.mark.parametrize("sharing", ["instance", "gdes"])
def test_a_head_that_corrects_is_not_handed_out(toy: Toy, tmp_path: Path, sharing: str) -> None:
    for name, noise in (("joint", 0.0), ("alone", 1.0)):
        shape = {"with_generator": noise == 0, "correction_head": True}
        pair = sharing_pair(toy, sharing if noise == 0 else "instance", **shape)
        take_steps(toy, pair, Recipe(correction_weight=2.0, unigram_fraction=noise))
        pair.save_networks(tmp_path / name, toy.tokenizer)
        with_generator = ["generator"] if noise == 0 else []
        folders = sorted(path.name for path in (tmp_path / name).iterdir())
        assert folders == ["discriminator", *with_generator]
        _, unfit = loaded(ElectraForPreTraining, tmp_path / name / "discriminator")
        assert not unfit
        # Whoever goes on begins a new one.
        again = load_pair(tmp_path / name, pair.shape)
        states = torch.randn(5, TOY.hidden_size)
        assert not torch.equal(again.encoder_lm_logits(states), pair.encoder_lm_logits(states))


def test_without_a_saved_generator_one_starts_from_the_discriminators_embeddings(
    toy: Toy, tmp_path: Path
) -> None:
    noise_only = sharing_pair(toy, "instance", with_generator=False)
    noise_only.save_networks(tmp_path, toy.tokenizer)
    again = load_pair(tmp_path, PairShape(sharing="none", generator_size=0.5))
    assert again.generator is not None
    assert again.generator.config.hidden_size == TOY.hidden_size // 2
    expected = noise_only.discriminator.electra.embeddings.state_dict()
    found = again.generator.electra.embeddings.state_dict()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    take_steps(toy, again)
    assert load_pair(tmp_path, PairShape(with_generator=False)).generator is None


def test_a_generator_of_another_width_may_lie_beside_what_shares_nothing_with_it(
    toy: Toy, tmp_path: Path
) -> None:
    """As `objective.schedule=frozen-generator` leaves them."""
    toy.pair(sharing="none").save_networks(tmp_path, toy.tokenizer)
    torch.manual_seed(1)
    wider = build_pair(replace(TOY, embedding_size=32), toy.tokenizer, shape=PairShape())
    save_model(wider.discriminator, toy.tokenizer, tmp_path / "discriminator")
    again = load_pair(tmp_path, PairShape(sharing="none"))
    assert again.generator is not None
    widths = [network.config.embedding_size for network in again.networks().values()]
    assert sorted(widths) == [16, 32]
    take_steps(toy, again)
    for shape in ({"with_generator": False}, {"with_generator": False, "encoder_lm_head": True}):
        assert load_pair(tmp_path, PairShape(**shape)).generator is None
    with pytest.raises(InputError, match=r"same embeddings, .* generator.sharing=none or a copy"):
        load_pair(tmp_path, PairShape(sharing="word"))
    # The discriminator of two stages is to start from the generator.
    with pytest.raises(InputError, match=r"same embeddings, found .* give a copy of it without"):
        load_pair(tmp_path, PairShape(sharing="none", one_size=True))


def test_a_released_checkpoint_is_a_discriminator_with_its_generator_below(
    toy: Toy, tmp_path: Path
) -> None:
    pair = sharing_pair(toy, "instance")
    take_steps(toy, pair)
    pair.save_networks(tmp_path, toy.tokenizer)
    for file in (tmp_path / "discriminator").iterdir():
        file.rename(tmp_path / file.name)
    (tmp_path / "discriminator").rmdir()
    assert discriminator_folder(tmp_path) == tmp_path
    again = load_pair(tmp_path, pair.shape)
    for ours, theirs in zip(pair.networks().values(), again.networks().values(), strict=True):
        assert torch.allclose(logits_of(ours, toy), logits_of(theirs, toy), atol=1e-5)


def test_networks_of_two_sizes_cannot_become_one_encoder(toy: Toy, tmp_path: Path) -> None:
    sharing_pair(toy, "instance").save_networks(tmp_path, toy.tokenizer)
    with pytest.raises(InputError, match=r"networks of one size .* for generator.sharing=all"):
        load_pair(tmp_path, PairShape(sharing="all"))


@pytest.mark.parametrize(
    ("shape", "refused"),
    [
        ({}, None),
        ({"generator_size": 0.5}, None),
        ({"generator_size": 0.5, "generator_layers": 1}, None),
        ({"generator_size": 1}, r"generator.size=0\.5, as the generator in .*, found 1; leave"),
        ({"generator_layers": 2}, "generator.layers=1, as the generator in .*, found 2; leave"),
        (
            {"sharing": "none", "generator_size": 1, "one_size": True},
            r"one size .* for objective.schedule=two-stage, found generator \(1, 16, 2, 64\)",
        ),
    ],
)
def test_flags_that_contradict_the_saved_generator_are_refused(
    toy: Toy, tmp_path: Path, shape: dict[str, Any], refused: str | None
) -> None:
    sharing_pair(toy, "instance", generator_layers=1).save_networks(tmp_path, toy.tokenizer)
    if refused is None:
        assert load_pair(tmp_path, PairShape(**shape)).generator is not None
        return
    with pytest.raises(InputError, match=refused):
        load_pair(tmp_path, PairShape(**shape))


@pytest.mark.parametrize("sharing", SHARINGS)
def test_whatever_is_shared_the_loaded_discriminator_computes_what_it_did(
    toy: Toy, tmp_path: Path, sharing: str
) -> None:
    """One that had embeddings of its own keeps them: it is the network that is kept."""
    pair = toy.pair(sharing="gdes", generator_size=1)
    take_steps(toy, pair)
    pair.save_networks(tmp_path, toy.tokenizer)
    again = load_pair(tmp_path, PairShape(sharing=sharing))
    if sharing == "all":
        assert shared_names(again) == {n for n, _ in again.discriminator.electra.named_parameters()}
    ours = logits_of(pair.discriminator, toy)
    assert torch.allclose(logits_of(again.discriminator, toy), ours, atol=1e-5)


def test_dropout_is_set_in_every_layer(toy: Toy) -> None:
    pair = sharing_pair(toy, "instance")
    pair.set_dropout(0.3)
    ids = toy.batch([[12]]).input_ids
    for network in pair.networks().values():
        network.train()
        assert not torch.equal(network(ids).logits, network(ids).logits)
    pair.set_dropout(0.0)
    for network in pair.networks().values():
        assert torch.equal(network(ids).logits, network(ids).logits)
