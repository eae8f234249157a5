"""The replaced-token objective against the paper's definition."""

import torch
from transformers import PreTrainedTokenizerFast

from pretrain.loop import make_optimizer
from pretrain.networks import ElectraPair
from pretrain.objective import (
    StepResult,
    _sample,
    corrupt,
    replaced_token_detection,
    unreachable_tokens,
)
from pretrain.settings import PretrainSettings


def batch_of(
    tokenizer: PreTrainedTokenizerFast, texts: list[str]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    encoded = tokenizer(texts, padding=True, return_tensors="pt")
    special = torch.isin(encoded["input_ids"], torch.tensor([0, 2, 3]))
    return encoded["input_ids"], encoded["attention_mask"], ~special


def bias_of(tokenizer: PreTrainedTokenizerFast) -> torch.Tensor:
    unused = [i for t, i in tokenizer.get_vocab().items() if t.startswith("[unused")]
    return unreachable_tokens(tokenizer.all_special_ids, unused, len(tokenizer))


def step(
    pair: ElectraPair,
    tokenizer: PreTrainedTokenizerFast,
    texts: list[str],
    seed: int = 0,
    discriminator_weight: float = 50.0,
) -> StepResult:
    input_ids, attention_mask, maskable = batch_of(tokenizer, texts)
    return replaced_token_detection(
        pair,
        input_ids,
        attention_mask,
        maskable,
        mask_id=tokenizer.mask_token_id,
        mask_fraction=0.15,
        discriminator_weight=discriminator_weight,
        token_bias=bias_of(tokenizer),
        random=torch.Generator().manual_seed(seed),
    )


def test_samples_follow_the_softmax() -> None:
    probabilities = torch.tensor([0.5, 0.0, 0.25, 0.2, 0.05])
    rows = probabilities.log().expand(40_000, 5)
    samples = _sample(rows, torch.Generator().manual_seed(0))
    rates = torch.bincount(samples, minlength=5) / 40_000
    assert rates[1] == 0
    assert torch.allclose(rates, probabilities, atol=0.01)


def test_replacements_are_samples_not_the_likeliest_token(
    pair: ElectraPair, tokenizer: PreTrainedTokenizerFast, comments: list[str]
) -> None:
    pair.eval()
    input_ids, attention_mask, maskable = batch_of(tokenizer, comments[:64])
    draws = []
    for seed in (1, 2):
        corruption = corrupt(
            pair,
            input_ids,
            attention_mask,
            maskable,
            mask_id=tokenizer.mask_token_id,
            mask_fraction=0.15,
            token_bias=bias_of(tokenizer),
            random=torch.Generator().manual_seed(seed),
        )
        replaced = corruption.corrupted_ids != input_ids
        assert torch.equal(corruption.is_replaced, replaced)
        assert not (replaced & ~maskable).any()
        proposed = corruption.corrupted_ids[replaced]
        assert (bias_of(tokenizer)[proposed] == 0).all()
        draws.append(proposed)
    # An untrained generator is close to uniform: argmax would repeat, samples hardly ever do.
    assert draws[0].unique().numel() > 0.7 * draws[0].numel()


def test_discriminator_teaches_the_generator_nothing_but_through_shared_embeddings(
    pair: ElectraPair, tokenizer: PreTrainedTokenizerFast, comments: list[str]
) -> None:
    pair.eval()
    texts = comments[:16]
    gradients = []
    for weight in (0.0, 50.0):
        pair.zero_grad()
        step(pair, tokenizer, texts, discriminator_weight=weight).loss.backward()
        gradients.append(
            {
                name: parameter.grad.clone()
                for name, parameter in pair.generator.named_parameters()
                if parameter.grad is not None
            }
        )
    embedding = "electra.embeddings.word_embeddings.weight"
    for name, gradient in gradients[0].items():
        if not name.startswith("electra.embeddings."):
            assert torch.allclose(gradient, gradients[1][name], atol=1e-7), name
    assert not torch.allclose(gradients[0][embedding], gradients[1][embedding])


def test_padding_changes_neither_loss(
    pair: ElectraPair, tokenizer: PreTrainedTokenizerFast, comments: list[str]
) -> None:
    pair.eval()
    text = comments[0]
    alone = step(pair, tokenizer, [text])
    input_ids, attention_mask, _ = batch_of(tokenizer, [text])
    hidden = pair.discriminator.electra(input_ids, attention_mask=attention_mask).last_hidden_state
    padded_ids = torch.nn.functional.pad(input_ids, (0, 9))
    padded_mask = torch.nn.functional.pad(attention_mask, (0, 9))
    padded = pair.discriminator.electra(padded_ids, attention_mask=padded_mask).last_hidden_state
    assert torch.allclose(hidden, padded[:, : hidden.shape[1]], atol=1e-5)
    assert alone.counts[5] == attention_mask.sum()


def test_embeddings_are_shared_and_stay_shared_after_a_step(
    pair: ElectraPair, tokenizer: PreTrainedTokenizerFast, comments: list[str]
) -> None:
    optimizer = make_optimizer(pair, PretrainSettings(corpus="-"))  # type: ignore[arg-type]
    step(pair, tokenizer, comments[:8]).loss.backward()
    optimizer.step()
    ours, theirs = pair.generator.electra.embeddings, pair.discriminator.electra.embeddings
    for name, parameter in ours.named_parameters():
        assert parameter is dict(theirs.named_parameters())[name]
    assert pair.generator.generator_lm_head.weight is theirs.word_embeddings.weight


def test_unknown_target_does_not_make_the_loss_infinite(
    pair: ElectraPair, tokenizer: PreTrainedTokenizerFast
) -> None:
    assert tokenizer("𒀀𒀁").input_ids[1:-1] == [tokenizer.unk_token_id]
    result = step(pair, tokenizer, ["𒀀𒀁"])
    result.loss.backward()
    assert torch.isfinite(result.loss)
    assert all(torch.isfinite(p.grad).all() for p in pair.parameters() if p.grad is not None)


def without_dropout(pair: ElectraPair) -> ElectraPair:
    for module in pair.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return pair


def overfit(
    pair: ElectraPair, tokenizer: PreTrainedTokenizerFast, texts: list[str], steps: int
) -> StepResult:
    """Train on one batch whose masks and draws are the same in every step."""
    trained = [parameter for parameter in pair.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3)
    for _ in range(steps):
        result = step(pair, tokenizer, texts)
        result.loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return result


def test_the_generator_overfits_one_batch_in_the_joint_objective(
    pair: ElectraPair, tokenizer: PreTrainedTokenizerFast, comments: list[str]
) -> None:
    result = overfit(without_dropout(pair), tokenizer, comments[:8], steps=600)
    masked, guessed = result.counts[:2].tolist()
    assert guessed / masked > 0.95
    assert result.generator_loss.item() < 0.05


def test_the_discriminator_overfits_one_batch(
    pair: ElectraPair, tokenizer: PreTrainedTokenizerFast, comments: list[str]
) -> None:
    # An untrained generator, embeddings included, keeps making the same wrong guesses.
    for parameter in pair.generator.parameters():
        parameter.requires_grad_(False)
    result = overfit(without_dropout(pair), tokenizer, comments[:8], steps=300)
    found, predicted, replaced, _ = result.counts[2:].tolist()
    assert replaced > 10
    assert found == predicted == replaced
    assert result.discriminator_loss.item() < 0.02
