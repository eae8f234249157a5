"""The same words in other pieces in every epoch, so that no one cut is learnt by heart."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from transformers import PreTrainedTokenizerBase

from malmoi.errors import InputError
from malmoi.inference.batching import TokenizedTexts


@dataclass(frozen=True, kw_only=True)
class WordPieces:
    """What cutting a word takes.

    Attributes:
        pieces: every piece by its id.
        prefix: what begins a piece that goes on with a word, such as `##`.
        whole: ids that are no part of a word: [CLS], [UNK] and others that were added.
    """

    pieces: list[str]
    prefix: str
    whole: frozenset[int]


def word_pieces_of(tokenizer: PreTrainedTokenizerBase) -> WordPieces:
    """The pieces of a WordPiece tokenizer.

    Raises:
        InputError: it is of another kind.
    """
    backend: Tokenizer | None = getattr(tokenizer, "backend_tokenizer", None)
    model = getattr(backend, "model", None)
    if backend is None or not isinstance(model, WordPiece):
        kind = type(model if model is not None else tokenizer).__name__
        raise InputError(
            "training.subword_dropout cuts words anew into WordPiece's pieces, found a tokenizer "
            "of the kind {kind}; leave it out, or take an encoder with WordPiece",
            kind=kind,
        )
    vocabulary = backend.get_vocab(with_added_tokens=True)
    pieces = [""] * (max(vocabulary.values()) + 1)
    for piece, number in vocabulary.items():
        pieces[number] = piece
    added = {*tokenizer.all_special_ids, *backend.get_added_tokens_decoder()}
    return WordPieces(pieces=pieces, prefix=model.continuing_subword_prefix, whole=frozenset(added))


class SubwordDropout:
    """MaxMatch-Dropout (Hiraoka 2022, section 3): WordPiece that overlooks pieces by chance.

    WordPiece takes the longest piece that a word goes on with. Here each such piece but a single
    character is overlooked with probability `rate`, and the next shorter one looked for.
    """

    def __init__(self, words: WordPieces, rate: float) -> None:
        """`rate` from 0 to below 1; with 0 every word is cut as WordPiece does."""
        self._words, self._rate = words, rate
        self._number = {
            piece: number for number, piece in enumerate(words.pieces) if number not in words.whole
        }
        self._longest = max(map(len, words.pieces))

    def cut_anew(
        self, tokens: TokenizedTexts, places: np.ndarray, max_length: int, draw: random.Random
    ) -> TokenizedTexts:
        """All texts, those at `places` with their words cut anew.

        A text, or pair, that would have more than `max_length` tokens stays as it is: the end of
        it would be lost otherwise.

        Args:
            tokens: N texts, as the tokenizer of these pieces cut them.
            places: int64, of the texts to cut.
            max_length: in tokens, [CLS] and [SEP] included.
            draw: decides what is overlooked; goes on from call to call.
        """
        chosen = np.zeros(len(tokens.lengths), dtype=bool)
        chosen[places] = True
        flat, offsets = tokens.flat.tolist(), tokens.offsets.tolist()
        second = None if tokens.second_from is None else tokens.second_from.tolist()
        parts: list[list[int]] = []
        for place in range(len(chosen)):
            ids = flat[offsets[place] : offsets[place + 1]]
            if chosen[place]:
                # A pair's two texts are cut apart, so that it is known where the second begins.
                middle = len(ids) if second is None else second[place]
                first = self._cut_text(ids[:middle], draw)
                new = first + self._cut_text(ids[middle:], draw)
                if len(new) <= max_length:
                    ids = new
                    if second is not None:
                        second[place] = len(first)
            parts.append(ids)
        return replace(
            tokens,
            flat=np.array([number for ids in parts for number in ids], dtype=np.int32),
            offsets=np.cumsum([0, *map(len, parts)], dtype=np.int64),
            second_from=None if second is None else np.array(second, dtype=np.int32),
        )

    def _cut_text(self, ids: list[int], draw: random.Random) -> list[int]:
        return [number for word in self._words_in(ids) for number in self._cut_word(word, draw)]

    def _words_in(self, ids: list[int]) -> Iterator[list[int]]:
        """The ids word by word; one that is no part of a word by itself."""
        word: list[int] = []
        for number in ids:
            if word and not (self._goes_on(number) and word[-1] not in self._words.whole):
                yield word
                word = []
            word.append(number)
        if word:
            yield word

    def _goes_on(self, number: int) -> bool:
        piece = self._words.pieces[number]
        return number not in self._words.whole and piece.startswith(self._words.prefix)

    def _cut_word(self, ids: list[int], draw: random.Random) -> list[int]:
        if ids[0] in self._words.whole or self._goes_on(ids[0]):
            return ids
        first, *rest = (self._words.pieces[number] for number in ids)
        word = first + "".join(piece.removeprefix(self._words.prefix) for piece in rest)
        cut: list[int] = []
        start = 0
        while start < len(word):
            found = self._next_piece(word, start, draw)
            # A character that is no piece by itself: the word can be cut in fewer ways.
            if found is None:
                return ids
            number, start = found
            cut.append(number)
        return cut

    def _next_piece(self, word: str, start: int, draw: random.Random) -> tuple[int, int] | None:
        """Id of the piece that is taken at `start`, and where it ends."""
        before = self._words.prefix if start else ""
        for end in range(min(len(word), start + self._longest), start, -1):
            number = self._number.get(before + word[start:end])
            if number is not None and (end == start + 1 or draw.random() >= self._rate):
                return number, end
        return None
