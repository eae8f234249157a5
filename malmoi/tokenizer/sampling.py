"""The text a vocabulary is trained on: a part of the corpus, even and repeatable, and its words."""

import hashlib
import random
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from malmoi.errors import InputError
from malmoi.text.morphemes import AnalyserError, morpheme_boundaries
from malmoi.tokenizer.kinds import MAX_SAMPLE_BYTES

# Longer "words" are keyboard noise and lists without spaces; trainers hold every part of each in
# memory (tokenizers#1170). The limit is that of BERT's WordPiece.
MAX_WORD_CHARACTERS = 100
# Stands between the morphemes of a word while a vocabulary is trained, and never in a vocabulary:
# a private-use character means nothing in a text.
MORPHEME_MARK = "\ue000"
# Room to go on after the sample was cut, so that it is cut a few times and not at every text.
_CUT_TO_FRACTION = 0.9


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Texts drawn evenly over a corpus, in its order.

    Attributes:
        texts: the drawn texts.
        read: how many there were to draw from.
        sha256: over the texts, each with a line feed after it, in UTF-8.
    """

    texts: list[str]
    read: int
    sha256: str


def sample_evenly(
    texts: Iterable[str], *, max_bytes: int = MAX_SAMPLE_BYTES, seed: int = 42
) -> Sample:
    """Draw texts in one pass, each as likely as any other, so that they fit `max_bytes`.

    Every text draws a number; texts above a limit are left out, and the limit falls whenever the
    sample has grown too large. All texts are taken if they fit. The same texts and seed give the
    same sample.

    Args:
        max_bytes: upper bound of the sample in UTF-8 bytes, the end of each text included.

    Raises:
        InputError: `max_bytes` is not positive.
    """
    if max_bytes < 1:
        raise InputError(
            "expected a sample of 1 byte or more, found {max_bytes}", max_bytes=max_bytes
        )
    source = random.Random(seed)
    kept: list[str] = []
    numbers = array("d")
    sizes = array("q")
    limit, total, read = 1.0, 0, 0
    for text in texts:
        read += 1
        number = source.random()
        if number >= limit:
            continue
        kept.append(text)
        numbers.append(number)
        sizes.append(len(text.encode("utf-8", "surrogatepass")) + 1)
        total += sizes[-1]
        if total > max_bytes:
            limit = _lower_limit(numbers, sizes, max_bytes * _CUT_TO_FRACTION)
            stay = [index for index, drawn in enumerate(numbers) if drawn < limit]
            kept = [kept[index] for index in stay]
            numbers = array("d", (numbers[index] for index in stay))
            sizes = array("q", (sizes[index] for index in stay))
            total = sum(sizes)
    digest = hashlib.sha256()
    for text in kept:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\n")
    return Sample(texts=kept, read=read, sha256=digest.hexdigest())


def _lower_limit(numbers: "array[float]", sizes: "array[int]", max_bytes: float) -> float:
    """The number below which the texts together have at most `max_bytes`."""
    total = 0
    for number, size in sorted(zip(numbers, sizes, strict=True)):
        total += size
        if total > max_bytes:
            return number
    return 1.0


def mark_morphemes(texts: Iterable[str]) -> tuple[list[str], int]:
    """Put `MORPHEME_MARK` between the morphemes of each word, by Kiwi.

    Returns:
        The texts, and how many of them the analyser failed on: these have no marks.
    """
    marked: list[str] = []
    failed = 0
    for text in texts:
        text = text.replace(MORPHEME_MARK, "")
        try:
            places = morpheme_boundaries(text)
        except AnalyserError:
            failed += 1
            places = []
        parts = [text[i:j] for i, j in zip([0, *places], [*places, len(text)], strict=True)]
        marked.append(MORPHEME_MARK.join(parts))
    return marked, failed


def count_words(texts: Iterable[str]) -> Counter[str]:
    """How often each word (between white space) occurs, marks of morphemes included.

    A word of more than 100 characters counts as several.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text.split())
    for word in [word for word in counts if len(word) > MAX_WORD_CHARACTERS]:
        count = counts.pop(word)
        for start in range(0, len(word), MAX_WORD_CHARACTERS):
            counts[word[start : start + MAX_WORD_CHARACTERS]] += count
    return counts


def iter_batches(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Group texts in lists of `size`, the last one shorter: `tokenizers` works on lists."""
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
