"""What a run costs: parameters, operations by two ways of counting, and the machine's own rate.

Legend: h width, l layers, i inner width, e width of the embeddings, s tokens a sequence, v entries.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode
from transformers import ElectraConfig

from pretrain.config.objective import Recipe
from pretrain.model.networks import ElectraPair

# What the paper's counting charges for one activation of each kind; a multiplication and an
# addition are two operations everywhere.
_LAYER_NORM, _GELU, _SOFTMAX, _DROPOUT = 5, 8, 5, 4


def parameter_counts(pair: ElectraPair) -> dict[str, dict[str, int]]:
    """Parameters of each network, in all and without embeddings (word, position, type)."""
    counts = {}
    for name, network in pair.networks().items():
        total = network.num_parameters()
        embedded = sum(
            parameter.numel()
            for key, parameter in network.electra.embeddings.named_parameters()
            if "embeddings" in key
        )
        counts[name] = {"parameters": total, "without_embeddings": total - embedded}
    return counts


def paper_flops_per_token(
    recipe: Recipe,
    discriminator: ElectraConfig,
    generator: ElectraConfig | None,
    length: float,
    *,
    trains_generator: bool = True,
) -> float:
    """Operations of training on one token, the mean over a run, counted as the ELECTRA paper does.

    Clark et al. 2020, Appendix (and the released code's `flops_computation.py`): every
    mathematical operation counts once, so a product of matrices two for each element; looking up
    an embedding counts as multiplying by a one-hot vector; the backward pass costs what the
    forward pass does. Dropout is charged whether it is on or not, so that figures compare with the
    paper's.

    Args:
        length: mean tokens of a sequence.
        trains_generator: False in a run whose generator is frozen: its backward pass is saved.
    """
    last = recipe.last_mask_fraction
    masked = recipe.mask_fraction if last is None else (recipe.mask_fraction + last) / 2
    total = 2 * _encoder(discriminator, length)
    if recipe.bag_weight > 0:  # not the paper's: one guess a text
        total += 2 * _lm_head(discriminator, 1 / length)
    if recipe.objective == "mlm":
        return total + 2 * _lm_head(discriminator, masked)
    if recipe.objective == "replace-mlm":
        total += 2 * _lm_head(discriminator, masked)
    elif recipe.objective == "all-tokens-mlm":
        total += 2 * (_lm_head(discriminator, 1.0) + _binary_head(discriminator))
    else:
        total += 2 * _binary_head(discriminator)
    if recipe.correction_weight > 0:
        total += 2 * _lm_head(discriminator, masked)
    if generator is not None:
        passes = 2.0 if trains_generator else 1.0
        if recipe.schedule == "two-stage":
            # First the generator alone; then it runs forward only, beside the discriminator.
            total *= 1 - recipe.first_stage
            passes = 1 + recipe.first_stage
        elif recipe.schedule == "frozen-discriminator":
            total = 0.0
        total += passes * (_encoder(generator, length) + _lm_head(generator, masked))
        if recipe.generator_head == "sbo":  # beside the other head, with the same output matrix
            total += passes * _span_boundary_head(generator, masked)
    return total


def _encoder(config: ElectraConfig, s: float) -> float:
    h, i, e, v = (
        config.hidden_size,
        config.intermediate_size,
        config.embedding_size,
        config.vocab_size,
    )
    heads = config.num_attention_heads
    attention = 6 * h * h + 3 * h + 2 * h * s + (_SOFTMAX + _DROPOUT + 1) * s * heads
    attention += 2 * h * s + 2 * h * h + h + _DROPOUT * h + h + _LAYER_NORM
    inner = 4 * h * i + (_GELU + 1) * i + (2 + _DROPOUT + _LAYER_NORM) * h
    embedding = 2 * e * v + 2 * e * (s + 2) + (2 + _LAYER_NORM + _DROPOUT) * e
    if e != h:
        embedding += 2 * h * e + h
    return float(config.num_hidden_layers * (attention + inner) + embedding)


def _lm_head(config: ElectraConfig, share: float) -> float:
    h, e, v = config.hidden_size, config.embedding_size, config.vocab_size
    return share * (2 * e * v + 2 * h * e + (1 + _GELU + _LAYER_NORM) * e + (_SOFTMAX + 2) * v)


def _span_boundary_head(config: ElectraConfig, share: float) -> float:
    """Two layers over both boundaries and the place, then the vocabulary."""
    h, e, v = config.hidden_size, config.embedding_size, config.vocab_size
    layers = 2 * (2 * h + e) * e + 2 * e * e + 2 * (1 + _GELU + _LAYER_NORM) * e
    return share * (layers + 2 * e * v + (_SOFTMAX + 2) * v)


def _binary_head(config: ElectraConfig) -> float:
    h = config.hidden_size
    return float(2 * h * h + h + _GELU * h + 2 * h)


def hardware_flops(step: Callable[[], Any]) -> int:
    """Operations in the matrix products that a call really makes, by torch's own counter."""
    with FlopCounterMode(display=False) as counter:
        step()
    return int(counter.get_total_flops())


def matrix_shapes(
    pair: ElectraPair, recipe: Recipe, tokens: int, masked: int
) -> dict[tuple[int, int, int], int]:
    """(rows, inputs, outputs) of the linear layers of one forward pass, and how often each comes.

    Of the bag's head, which has a row a text, nothing is counted.

    Args:
        tokens: rows of the encoders' layers.
        masked: rows of the heads that guess masked tokens.
    """
    shapes: dict[tuple[int, int, int], int] = {}

    def add(rows: int, inputs: int, outputs: int, times: int = 1) -> None:
        shape = (rows, inputs, outputs)
        shapes[shape] = shapes.get(shape, 0) + times

    for name, network in pair.networks().items():
        if name == "discriminator" and recipe.schedule == "frozen-discriminator":
            continue  # it does not even run
        config = network.config
        h, layers = config.hidden_size, config.num_hidden_layers
        add(tokens, h, h, 4 * layers)
        add(tokens, h, config.intermediate_size, layers)
        add(tokens, config.intermediate_size, h, layers)
        if config.embedding_size != h:
            add(tokens, config.embedding_size, h)
        if name == "generator":
            add(masked, h, config.embedding_size)
            add(masked, config.embedding_size, config.vocab_size)
        elif recipe.objective not in ("mlm", "replace-mlm"):
            add(tokens, h, h)
        if name == "discriminator" and pair.lm_predictions is not None:
            rows = tokens if recipe.objective == "all-tokens-mlm" else masked
            add(rows, h, config.embedding_size)
            add(rows, config.embedding_size, config.vocab_size)
    return shapes


def matrix_seconds(
    shapes: dict[tuple[int, int, int], int],
    device: torch.device,
    dtype: torch.dtype,
    *,
    repeats: int = 5,
) -> tuple[float, float]:
    """How long the machine needs for these products alone, forward and backward.

    The physical limit of a step: nothing but its linear layers' three products each (output,
    gradient of the input, gradient of the weight), one after the other.

    Returns:
        Seconds of one step, and the rate in operations a second.
    """
    seconds = operations = 0.0
    for (rows, inputs, outputs), times in shapes.items():
        x = torch.randn(rows, inputs, device=device).to(dtype)
        weight = torch.randn(outputs, inputs, device=device).to(dtype)
        y = torch.randn(rows, outputs, device=device).to(dtype)

        def products(
            x: torch.Tensor = x, weight: torch.Tensor = weight, y: torch.Tensor = y
        ) -> None:
            functional.linear(x, weight)
            y @ weight
            y.t() @ x

        products()
        best = float("inf")
        for _ in range(repeats):
            _wait(device)
            began = time.perf_counter()
            products()
            _wait(device)
            best = min(best, time.perf_counter() - began)
        seconds += best * times
        operations += 6.0 * rows * inputs * outputs * times
    return seconds, operations / seconds


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
