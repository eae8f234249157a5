"""The last layer for the first token alone: logits, gradients and dropout of the stock model."""

import torch
from torch.nn.functional import cross_entropy
from transformers import ElectraConfig, ElectraForSequenceClassification, PreTrainedModel

from malmoi.inference.first_token import FirstTokenElectra, logits_of

LENGTHS = (9, 4, 1)


def make_model(dropout: float = 0.0, layers: int = 2) -> PreTrainedModel:
    torch.manual_seed(1)
    config = ElectraConfig(
        vocab_size=60,
        embedding_size=16,
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=16,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=dropout,
        classifier_dropout=0.0,
        num_labels=3,
        attn_implementation="eager",
    )
    return ElectraForSequenceClassification(config)


def make_inputs() -> dict[str, torch.Tensor]:
    longest = max(LENGTHS)
    mask = (torch.arange(longest) < torch.tensor(LENGTHS)[:, None]).long()
    ids = torch.randint(1, 60, mask.shape, generator=torch.Generator().manual_seed(2)) * mask
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": (ids % 2) * mask}


def test_logits_and_gradients_are_those_of_the_stock_model() -> None:
    for layers in (1, 2):
        model, inputs, targets = make_model(layers=layers), make_inputs(), torch.tensor([0, 2, 1])
        gradients = []
        for compute in (logits_of(model), lambda model=model, **inputs: model(**inputs).logits):
            model.zero_grad()
            logits = compute(**inputs)
            cross_entropy(logits, targets).backward()
            gradients.append({"logits": logits.detach()} | dict(_gradients(model)))
        assert gradients[0].keys() == gradients[1].keys(), layers
        for name, expected in gradients[1].items():
            torch.testing.assert_close(gradients[0][name], expected, rtol=1e-4, atol=1e-6, msg=name)


def test_attention_is_dropped_in_training_alone() -> None:
    model, inputs = make_model(dropout=0.5), make_inputs()
    compute = logits_of(model)
    model.train()
    drawn = torch.stack([compute(**inputs) for _ in range(400)])
    assert drawn[:, :2].std(dim=0).min() > 0
    # Dropout leaves the mean of what is attended to; with one layer logits are nearly linear in it.
    with torch.no_grad():
        torch.manual_seed(3)
        ours = torch.stack([compute(**inputs) for _ in range(400)])
        stock = torch.stack([model(**inputs).logits for _ in range(400)])
        spread = (ours.var(dim=0) + stock.var(dim=0)).div(400).sqrt().clamp_min(1e-6)
        assert ((ours.mean(dim=0) - stock.mean(dim=0)).abs() / spread).max() < 5
        ratio = ours.std(dim=0) / stock.std(dim=0)
        assert ratio.min() > 0.8 and ratio.max() < 1.25
    model.eval()
    torch.testing.assert_close(compute(**inputs), compute(**inputs))


def test_checkpointed_activations_are_left_to_transformers() -> None:
    model = make_model()
    assert isinstance(logits_of(model), FirstTokenElectra)
    model.activation_checkpointing_enable({"use_reentrant": False})
    assert not isinstance(logits_of(model), FirstTokenElectra)


def _gradients(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """By name; what has none is left out."""
    return {
        name: value.grad.clone()
        for name, value in model.named_parameters()
        if value.grad is not None
    }
