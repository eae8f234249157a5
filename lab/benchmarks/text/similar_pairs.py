"""Pairs of similar texts, exactly: for corpora of some thousand texts.

`malmoi.text.duplicates.near` estimates the same similarity for millions, from 0.7 on only.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

from malmoi.errors import InputError


def find_similar_pairs(
    texts: Sequence[str], at_least: float, ngram_characters: int = 3
) -> list[tuple[float, int, int]]:
    """The pairs of texts whose sets of character n-grams have a Jaccard similarity from a bound on.

    White space does not count; a text shorter than an n-gram is one n-gram. By an inverted index,
    so only texts that share an n-gram are compared.

    Args:
        texts: N texts.
        at_least: the bound, above 0 to 1.
        ngram_characters: length of the n-grams in characters.

    Returns:
        (similarity, earlier index, later index), the most similar first.

    Raises:
        InputError: the bound or the length is out of range.
    """
    if not 0 < at_least <= 1:
        raise InputError(f"expected a similarity above 0 up to 1, found {at_least}")
    if ngram_characters < 1:
        raise InputError(f"expected n-grams of at least 1 character, found {ngram_characters}")
    holders: defaultdict[str, list[int]] = defaultdict(list)
    sizes: list[int] = []
    pairs: list[tuple[float, int, int]] = []
    for later, text in enumerate(texts):
        grams = _ngrams("".join(text.split()), ngram_characters)
        sizes.append(len(grams))
        shared = Counter(earlier for gram in grams for earlier in holders[gram])
        for earlier, common in shared.items():
            similarity = common / (len(grams) + sizes[earlier] - common)
            if similarity >= at_least:
                pairs.append((similarity, earlier, later))
        for gram in grams:
            holders[gram].append(later)
    return sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2]))


def _ngrams(text: str, length: int) -> set[str]:
    return {text[start : start + length] for start in range(len(text) - length + 1)} or {text}
