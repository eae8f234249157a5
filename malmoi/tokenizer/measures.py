"""What a tokenizer makes of texts: how short, how much unknown, how close to the morphemes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from malmoi.errors import InputError
from malmoi.text.morphemes import AnalyserError, morpheme_boundaries, places_inside_eojeols
from malmoi.tokenizer.loading import load_pretraining_tokenizer
from malmoi.transformers_models import SPECIAL_TOKENS

# The best of this many passes is the speed: others use the machine too.
_SPEED_PASSES = 3


@dataclass(frozen=True, kw_only=True)
class Measures:
    """One tokenizer on one corpus; fractions are 0 to 1, [CLS] and [SEP] are not counted.

    Attributes:
        entries: size of the vocabulary.
        unknown_tokens: fraction of tokens that are [UNK].
        unknown_characters: fraction of characters (spaces not counted) inside them.
        tokens_per_character: spaces not counted.
        tokens_per_eojeol: an eojeol is what stands between spaces.
        morpheme_precision: fraction of cuts inside eojeols that Kiwi cuts too.
        morpheme_recall: fraction of Kiwi's cuts inside eojeols that are cut.
        morpheme_f1: their harmonic mean.
        entries_used: fraction of the entries, special and `[unusedN]` ones not counted, that occur.
        texts_per_second: on one thread.
    """

    entries: int
    unknown_tokens: float
    unknown_characters: float
    tokens_per_character: float
    tokens_per_eojeol: float
    morpheme_precision: float
    morpheme_recall: float
    morpheme_f1: float
    entries_used: float
    texts_per_second: float


@dataclass(frozen=True, kw_only=True)
class CutTexts:
    """Texts and where Kiwi cuts them.

    Attributes:
        texts: the texts that Kiwi could analyse.
        places: for each, its cuts inside eojeols.
        failed: how many it could not.
    """

    texts: list[str]
    places: list[list[int]]
    failed: int


def cut_by_kiwi(texts: Sequence[str]) -> CutTexts:
    """Let Kiwi cut texts (NFC); about 1,800 reviews a second on one core (measured)."""
    done: list[str] = []
    places: list[list[int]] = []
    for text in texts:
        try:
            places.append(morpheme_boundaries(text))
        except AnalyserError:
            continue
        done.append(text)
    return CutTexts(texts=done, places=places, failed=len(texts) - len(done))


def load_any_tokenizer(path: Path) -> Tokenizer:
    """A tokenizer directory, or a BERT `vocab.txt` read as published Korean models read it.

    Such a file is WordPiece, cased, accents kept, one hanja a word (the settings of KcBERT's and
    KoELECTRA's `tokenizer_config.json`).

    Raises:
        InputError: neither of them, or the file has no [UNK] or an entry twice.
    """
    if not path.is_file():
        return load_pretraining_tokenizer(path).backend_tokenizer
    try:
        entries = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(
            "expected a vocabulary in UTF-8, found {error}", place=path, error=error
        ) from error
    vocabulary = {entry: index for index, entry in enumerate(entries)}
    if "[UNK]" not in vocabulary:
        raise InputError(
            "expected a BERT vocabulary with [UNK], one entry a line, found none; give a "
            "vocab.txt or a tokenizer directory",
            place=path,
        )
    if len(vocabulary) != len(entries):
        raise InputError(
            "expected different entries, found one twice; download it again", place=path
        )
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=False
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def measure(tokenizer: Tokenizer, texts: Sequence[str], cut: CutTexts) -> Measures:
    """Measure a tokenizer.

    Args:
        texts: NFC, not empty; at least one.
        cut: some of them, cut by Kiwi.
    """
    unknown = tokenizer.token_to_id("[UNK]")
    seconds = []
    for _ in range(_SPEED_PASSES):
        started = time.perf_counter()
        tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        seconds.append(time.perf_counter() - started)
    tokens = unknown_tokens = unknown_characters = 0
    used: set[int] = set()
    for text in texts:
        encoding = tokenizer.encode(text, add_special_tokens=False)
        tokens += len(encoding.ids)
        used.update(encoding.ids)
        for index, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if index == unknown:
                unknown_tokens += 1
                unknown_characters += len("".join(text[start:end].split()))
    words = [text.split() for text in texts]
    characters = sum(len(word) for text in words for word in text)
    vocabulary = tokenizer.get_vocab()
    reachable = {
        index
        for token, index in vocabulary.items()
        if token not in SPECIAL_TOKENS and not token.lower().startswith("[unused")
    }
    precision, recall = _morpheme_agreement(tokenizer, cut)
    return Measures(
        entries=len(vocabulary),
        unknown_tokens=unknown_tokens / tokens,
        unknown_characters=unknown_characters / characters,
        tokens_per_character=tokens / characters,
        tokens_per_eojeol=tokens / sum(map(len, words)),
        morpheme_precision=precision,
        morpheme_recall=recall,
        morpheme_f1=2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        entries_used=len(used & reachable) / len(reachable) if reachable else 0.0,
        texts_per_second=len(texts) / min(seconds),
    )


def _morpheme_agreement(tokenizer: Tokenizer, cut: CutTexts) -> tuple[float, float]:
    """Precision and recall of the tokenizer's cuts inside eojeols against Kiwi's."""
    ours = theirs = both = 0
    for text, places in zip(cut.texts, cut.places, strict=True):
        offsets = tokenizer.encode(text, add_special_tokens=False).offsets
        # The jamo or bytes of one character have the same place: they cut nothing.
        edges = {edge for span in offsets for edge in span}
        found = set(places_inside_eojeols(text, edges))
        ours += len(found)
        theirs += len(places)
        both += len(found & set(places))
    return (both / ours if ours else 0.0), (both / theirs if theirs else 0.0)
