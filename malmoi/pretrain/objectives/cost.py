"""What a recipe costs: operations by the paper's counting, and the linear layers of a step."""

from transformers import ElectraConfig

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.model.flops import encoder_flops, lm_head_flops, span_boundary_head_flops
from malmoi.pretrain.model.networks import ElectraPair
from malmoi.pretrain.objectives.encoder_objective import Product
from malmoi.pretrain.objectives.masked_lm import lm_head_products
from malmoi.pretrain.objectives.registry import ResolvedRecipe, resolve_recipe


def paper_flops_per_token(
    recipe: Recipe,
    discriminator: ElectraConfig,
    generator: ElectraConfig | None,
    length: float,
    part: float = 1.0,
) -> float:
    """Operations of training on one token, the mean over a run, counted as the ELECTRA paper does.

    See `malmoi.pretrain.model.flops`; the backward pass costs what the forward pass does. Dropout
    is charged whether it is on or not, so that figures compare with the paper's.

    Args:
        length: mean tokens of a sequence.
        part: of the layers, that runs on average.
    """
    resolved = resolve_recipe(recipe)
    last = recipe.last_mask_fraction
    masked = recipe.mask_fraction if last is None else (recipe.mask_fraction + last) / 2
    learning, generator_passes = resolved.schedule.passes()
    total = learning * _discriminator_flops(resolved, discriminator, masked, length, part)
    if generator is not None:
        head = lm_head_flops(generator, masked)
        total += generator_passes * (encoder_flops(generator, length, part) + head)
        if recipe.generator_head == "sbo":  # beside the other head, with the same output matrix
            total += generator_passes * span_boundary_head_flops(generator, masked)
    return total


def _discriminator_flops(
    resolved: ResolvedRecipe, config: ElectraConfig, masked: float, length: float, part: float
) -> float:
    """Forward and backward pass."""
    total = 2 * encoder_flops(config, length, part)
    for each in resolved.auxiliaries:
        if each.at_cls:
            total += 2 * each.head_flops(config, masked, length)
    total += 2 * resolved.objective.head_flops(config, masked)
    for each in resolved.auxiliaries:
        if not each.at_cls:
            total += 2 * each.head_flops(config, masked, length)
    return total


def matrix_shapes(
    pair: ElectraPair, recipe: Recipe, tokens: int, masked: int
) -> dict[Product, int]:
    """(rows, inputs, outputs) of the linear layers of one forward pass, and how often each comes.

    Args:
        tokens: rows of the encoders' layers.
        masked: rows of the heads that guess masked tokens.
    """
    resolved = resolve_recipe(recipe)
    products: list[Product] = []
    for name, network in pair.networks().items():
        config = network.config
        if name == "generator":
            products += _encoder_products(config, tokens) + lm_head_products(config, masked)
        elif resolved.schedule.runs_discriminator:
            products += _encoder_products(config, tokens)
            products += resolved.objective.head_products(config, tokens, masked)
            for each in resolved.auxiliaries:
                products += each.head_products(config, masked)
    return {product: products.count(product) for product in dict.fromkeys(products)}


def _encoder_products(config: ElectraConfig, tokens: int) -> list[Product]:
    h, e, inner = config.hidden_size, config.embedding_size, config.intermediate_size
    layer = [(tokens, h, h)] * 4 + [(tokens, h, inner), (tokens, inner, h)]
    products = layer * config.num_hidden_layers
    return products + [(tokens, e, h)] if e != h else products
