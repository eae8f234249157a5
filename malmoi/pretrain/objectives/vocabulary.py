"""What is known of every entry of the vocabulary. Legend: V entries."""

from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from malmoi.pretrain.data.masking import rarity_weights, word_starts

# Mikolov et al. 2013, Section 2.2: the exponent that flattens noise drawn by frequency.
_NOISE_EXPONENT = 0.75
NUM_FREQUENCY_BINS = 5


@dataclass(frozen=True, kw_only=True)
class VocabularyTables:
    """Facts by entry; all tensors on the training device."""

    mask_id: int
    cls_id: int
    bias: torch.Tensor
    """float32 [V]: minus infinity at entries the generator must never propose, else 0. Special
    tokens never stand in text and `[unusedN]` pads the vocabulary: probability mass there would
    only be noise that the discriminator learns to spot at once."""
    starts_word: torch.Tensor
    """bool [V]."""
    rarity: torch.Tensor
    """float32 [V]: weights of `masking.strategy=rare`."""
    noise: torch.Tensor
    """float64 [V]: cumulative distribution of unigram noise."""
    proposable: torch.Tensor
    """int64 [R]: entries that may stand in text."""
    frequency_bin: torch.Tensor
    """int64 [V]: 0 for the commonest entries, which make up a fifth of the corpus, to 4."""
    surprisal: torch.Tensor
    """float32 [V], nats: the loss of guessing a token by how common it is in the corpus."""
    commonest: int
    """The entry that is the most common in the corpus."""

    def may_stand(self, tokens: torch.Tensor) -> torch.Tensor:
        """Whether each token may be proposed. int64 [...] -> bool [...]."""
        return self.bias[tokens] == 0


def vocabulary_tables(
    tokenizer: PreTrainedTokenizerFast, size: int, counts: np.ndarray, device: torch.device
) -> VocabularyTables:
    """Tables for a tokenizer and the counts of its entries in the corpus.

    Args:
        size: entries of the networks' embeddings, at least those of the tokenizer.
        counts: int64 [at most `size`], how often each entry occurs.
    """
    vocabulary = tokenizer.get_vocab()
    unused = [index for token, index in vocabulary.items() if token.startswith("[unused")]
    bias = torch.zeros(size)
    bias[[*tokenizer.all_special_ids, *unused]] = float("-inf")
    bias[len(tokenizer) :] = float("-inf")
    starts = torch.zeros(size, dtype=torch.bool)
    table = word_starts(vocabulary)
    starts[: len(table)] = table
    found = torch.zeros(size, dtype=torch.float64)
    found[: len(counts)] = torch.from_numpy(counts.astype(np.float64))
    seen = torch.where(bias == 0, found, 0.0)
    share = seen / seen.sum().clamp(min=1)
    noise = torch.where(bias == 0, found.clamp(min=1) ** _NOISE_EXPONENT, 0.0).cumsum(0)
    order = seen.argsort(descending=True, stable=True)
    before = share[order].cumsum(0) - share[order]
    bins = torch.empty(size, dtype=torch.int64)
    bins[order] = (before * NUM_FREQUENCY_BINS).long().clamp(max=NUM_FREQUENCY_BINS - 1)
    return VocabularyTables(
        mask_id=int(tokenizer.mask_token_id),
        cls_id=int(tokenizer.cls_token_id),
        bias=bias.to(device),
        starts_word=starts.to(device),
        rarity=rarity_weights(found).to(device),
        noise=(noise / noise[-1]).to(device),
        proposable=(bias == 0).nonzero().squeeze(1).to(device),
        frequency_bin=bins.to(device),
        # One of no token of the corpus is guessed as if it came once.
        surprisal=-share.clamp(min=1 / float(seen.sum().clamp(min=1))).log().float().to(device),
        commonest=int(seen.argmax()),
    )
