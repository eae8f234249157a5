"""Operations of a network's parts for one token, counted as the ELECTRA paper does.

Clark et al. 2020, Appendix (and the released code's `flops_computation.py`): every mathematical
operation counts once, so a product of matrices two for each element; looking up an embedding
counts as multiplying by a one-hot vector. All here are of the forward pass.
Legend: h width, i inner width, e width of the embeddings, s tokens a sequence, v entries.
"""

from transformers import ElectraConfig

# What the paper's counting charges for one activation of each kind; a multiplication and an
# addition are two operations everywhere.
_LAYER_NORM, _GELU, _SOFTMAX, _DROPOUT = 5, 8, 5, 4


def encoder_flops(config: ElectraConfig, s: float, part: float = 1.0) -> float:
    """The encoder, embeddings included, in a sequence of `s` tokens; `part` of its layers runs."""
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
    return float(part * config.num_hidden_layers * (attention + inner) + embedding)


def lm_head_flops(config: ElectraConfig, share: float) -> float:
    """A masked-LM head that runs at this share of the tokens."""
    h, e, v = config.hidden_size, config.embedding_size, config.vocab_size
    return share * (2 * e * v + 2 * h * e + (1 + _GELU + _LAYER_NORM) * e + (_SOFTMAX + 2) * v)


def span_boundary_head_flops(config: ElectraConfig, share: float) -> float:
    """Two layers over both boundaries and the place, then the vocabulary."""
    h, e, v = config.hidden_size, config.embedding_size, config.vocab_size
    layers = 2 * (2 * h + e) * e + 2 * e * e + 2 * (1 + _GELU + _LAYER_NORM) * e
    return share * (layers + 2 * e * v + (_SOFTMAX + 2) * v)


def detection_head_flops(config: ElectraConfig) -> float:
    """The discriminator's own head, at every token."""
    h = config.hidden_size
    return float(2 * h * h + h + _GELU * h + 2 * h)
