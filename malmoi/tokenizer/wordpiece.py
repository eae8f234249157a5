"""WordPiece: BERT's own way of cutting, with a vocabulary from `tokenizers`' trainer."""

import unicodedata
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from tokenizers.trainers import WordPieceTrainer

from malmoi.tokenizer.alphabet import BASE_ALPHABET, Alphabet, build_normalizer, is_syllable
from malmoi.tokenizer.sampling import MAX_WORD_CHARACTERS, MORPHEME_MARK, iter_batches
from malmoi.transformers_models import SPECIAL_TOKENS

_PREFIX = "##"
# WordPiece replaces a whole word by [UNK] if one character is unknown, so symbols and emoji
# (category So, with skin tones) and each hanja stand as words of their own.
_SYMBOLS = r"[\p{So}\p{Han}\x{1F3FB}-\x{1F3FF}]"
# With --morphemes some pieces are learnt twice, at the beginning of a morpheme and inside one, and
# become one entry: 8% of them at 8,000 entries (measured).
_MORPHEME_SURPLUS = 1.25


def build_wordpiece(alphabet: Alphabet, vocabulary: dict[str, int]) -> Tokenizer:
    """A WordPiece tokenizer without frame: normalizer, pre-tokenizer, model, decoder."""
    tokenizer = Tokenizer(
        models.WordPiece(
            vocabulary,
            unk_token="[UNK]",
            max_input_chars_per_word=MAX_WORD_CHARACTERS,
            continuing_subword_prefix=_PREFIX,
        )
    )
    tokenizer.normalizer, _ = build_normalizer(alphabet)
    tokenizer.pre_tokenizer = _pre_tokenizer(alphabet)
    tokenizer.decoder = decoders.WordPiece(prefix=_PREFIX)
    return tokenizer


def train_wordpiece(
    texts: Iterable[str], alphabet: Alphabet, *, vocab_size: int, min_frequency: int
) -> Tokenizer:
    """Train a WordPiece tokenizer; special tokens and alphabet first, then pieces as learnt.

    Args:
        texts: with `MORPHEME_MARK` between morphemes if pieces shall not cross them.
        vocab_size: entries at most.
        min_frequency: pieces seen less often are not made.
    """
    alphabet = _with_room(alphabet, vocab_size)
    # A morpheme that continues a word must be learnt as ##에 and not as 에, which the trainer gives
    # only to a word's first character: so the mark is that first character.
    tokenizer = build_wordpiece(alphabet, {})
    tokenizer.pre_tokenizer = _pre_tokenizer(alphabet, marked=True)
    trainer = WordPieceTrainer(
        vocab_size=int(vocab_size * _MORPHEME_SURPLUS),
        min_frequency=min_frequency,
        # The alphabet is handed over as special tokens, with and without ##, because the trainer
        # numbers the characters it finds itself in hash order: ties between merges then fall
        # differently, and two trainings on one corpus give two vocabularies.
        special_tokens=[*SPECIAL_TOKENS, *_single_characters(alphabet), MORPHEME_MARK],
        limit_alphabet=0,
        continuing_subword_prefix=_PREFIX,
        show_progress=False,
    )
    tokenizer.train_from_iterator(iter_batches(texts, 1_000), trainer=trainer)
    learnt = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    entries: dict[str, None] = {}
    for piece, _ in learnt:
        if piece.startswith(MORPHEME_MARK):
            piece = _PREFIX + piece.removeprefix(MORPHEME_MARK)
        if piece != _PREFIX:
            entries[piece] = None
    kept = list(entries)[:vocab_size]
    return build_wordpiece(alphabet, {piece: index for index, piece in enumerate(kept)})


def _pre_tokenizer(alphabet: Alphabet, *, marked: bool = False) -> pre_tokenizers.PreTokenizer:
    """Words, punctuation, symbols and hanja; with `marked`, words cut at morpheme marks too."""
    known = [*alphabet.characters, *([MORPHEME_MARK] if marked else [])]
    # A run of unknown characters becomes one [UNK] and takes nothing around it along. Syllables
    # need not be listed one by one: rare ones do not come this far.
    unknown = rf"[^{_ranges(c for c in known if not '가' <= c <= '힣')}\x{{AC00}}-\x{{D7A3}}]+"
    steps = [
        pre_tokenizers.BertPreTokenizer(),
        pre_tokenizers.Split(Regex(f"{unknown}|{_SYMBOLS}"), behavior="isolated"),
        # The model gives up on longer words.
        pre_tokenizers.Split(Regex(f".{{{MAX_WORD_CHARACTERS}}}"), behavior="isolated"),
    ]
    if marked:
        steps.append(pre_tokenizers.Split(MORPHEME_MARK, behavior="merged_with_next"))
    return pre_tokenizers.Sequence(steps)


def _ranges(characters: Iterable[str]) -> str:
    """The inside of a regular expression's character class."""
    codes = sorted({ord(character) for character in characters})
    parts: list[str] = []
    while codes:
        first = codes[0]
        length = next((i for i, code in enumerate(codes) if code != first + i), len(codes))
        parts.append(f"\\x{{{first:X}}}-\\x{{{first + length - 1:X}}}")
        codes = codes[length:]
    return "".join(parts)


def _with_room(alphabet: Alphabet, vocab_size: int) -> Alphabet:
    """The alphabet without the rarest characters that a tiny vocabulary cannot hold twice.

    A syllable without an entry would be [UNK] with its whole word, so it is taken apart into jamo,
    and letters of other scripts are left out before syllables.
    """
    excess = len(SPECIAL_TOKENS) + len(_single_characters(alphabet)) - vocab_size
    rarest_first = reversed(alphabet.characters[len(BASE_ALPHABET) :])
    left_out: set[str] = set()
    for character in sorted(rarest_first, key=is_syllable):
        if excess <= 0:
            break
        left_out.add(character)
        excess -= 1 if _stands_alone(character) else 2
    return Alphabet(
        characters=tuple(c for c in alphabet.characters if c not in left_out),
        rare_syllables=(*alphabet.rare_syllables, *sorted(filter(is_syllable, left_out))),
    )


def _single_characters(alphabet: Alphabet) -> list[str]:
    """Each character as the first of a word and, where it can be, as a later one."""
    entries: list[str] = []
    for character in alphabet.characters:
        entries.append(character)
        if not _stands_alone(character):
            entries.append(_PREFIX + character)
    return entries


def _stands_alone(character: str) -> bool:
    """Hanja, punctuation and symbols are words of their own: they never continue one."""
    category = unicodedata.category(character)
    ascii_symbol = character.isascii() and not character.isalnum()
    skin_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    # \p{Han} as far as comments use it: the unified ideographs and their compatibility twins.
    hanja = "CJK" in unicodedata.name(character, "") and category == "Lo"
    return ascii_symbol or skin_tone or hanja or category[0] == "P" or category == "So"
