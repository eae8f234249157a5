"""Which characters a vocabulary holds, and what becomes of the others.

Hangul has 11,172 syllables; texts use some 2,000 of them often. All of them as entries would cost
5% more tokens at 32,000 entries (measured, docs/decisions.md), and what is left out must not
become [UNK]: rare syllables (뷁, and 핰 or 넼 of laughing comments) are taken apart into the
conjoining jamo they are made of, which are always entries. A table in the tokenizer itself does it,
so that whoever loads the tokenizer needs no code of ours; the pieces put together are the syllable
again in Unicode's canonical sense (NFC).
"""

import sys
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, normalizers

# Its classes are made at import, where a type checker does not see them.
_messages: Any = sentencepiece_model_pb2

_SYLLABLES = [chr(code) for code in range(0xAC00, 0xD7A4)]
# L, V and T of the Hangul Jamo block, out of which NFD makes every syllable.
_CONJOINING_JAMO = [
    *(chr(code) for code in range(0x1100, 0x1113)),
    *(chr(code) for code in range(0x1161, 0x1176)),
    *(chr(code) for code in range(0x11A8, 0x11C3)),
]
# Lone jamo carry the laughter and tears of comments (ㅋㅋ, ㅠㅠ, ㅇㅈ).
_LONE_JAMO = [chr(code) for code in range(0x3131, 0x3164)]
_ASCII = [chr(code) for code in range(0x21, 0x7F)]
# Skin tones and the letters of flags: parts of many emoji.
_EMOJI_PARTS = [chr(code) for code in (*range(0x1F3FB, 0x1F400), *range(0x1F1E6, 0x1F200))]
# Roughly by falling frequency, after Unicode's list of 2021 (its first ten and three further places
# were held against reports of it, the rest is from memory), and the signs for a person's sex in
# longer emoji. A corpus of old reviews holds hardly any of them but ♥, and without entries laughing
# and crying are the same [UNK].
COMMON_EMOJI = (
    "😂❤🤣👍😭🙏😘🥰😍😊🎉😁💕🥺😅🔥☺🤦♥🤷🙄😆🤗😉🎂🤔👏🙂😳🥳😎👌💜😔💪✨💖👀😋😏😢👉💗😩💯🌹💞🎈💙😃"
    "😡💐😜🙈🤞😄🤤🙌🤪❣😀💋💀👇💔😌💓🤩🙃😬😱😴🤭😐🌞😒😇🌸😈🎶✌🎊🥵😞💚☀🖤💰😚👑🎁💥🙋☹😑🥴👈"
    "💩✅👋🤮😤🤢🌟❗😥🌈💛😝😫😲🔴🌻🤯💃👊🤬😕⚡☕🍀💦⭐🦋🤨🌺😹🌷💝💤🤝🐰😓💘🍻😟😣🧐😠😻🌙😛♀♂"
)
# Show nothing, though they are letters and marks to Unicode: Hangul fillers, variation selectors.
_INVISIBLE = {*"\u115f\u1160\u3164\uffa0", *(chr(code) for code in range(0xFE00, 0xFE10))}
# In every vocabulary whatever the corpus holds.
BASE_ALPHABET = (*_ASCII, *_LONE_JAMO, *_CONJOINING_JAMO, *_EMOJI_PARTS)
# A syllable that is less than one character in a million is cheaper in jamo: 20 to 100 in the 24
# million characters measured (docs/decisions.md) gave the fewest tokens, with little between them.
_RARE_SYLLABLE_FRACTION = 1e-6
# At most this part of the vocabulary for characters other than syllables and the base alphabet
# (assumption): a corpus full of hanja would leave no room for words.
_OTHER_CHARACTERS_FRACTION = 0.125
# At most this part of the vocabulary for common emoji: at 2,304 entries and more all of them.
_EMOJI_FRACTION = 1 / 16


@dataclass(frozen=True, kw_only=True)
class Alphabet:
    """The single characters of a vocabulary.

    Attributes:
        characters: base alphabet, the corpus's own by falling frequency, common emoji besides.
        rare_syllables: Hangul syllables that are taken apart into jamo.
    """

    characters: tuple[str, ...]
    rare_syllables: tuple[str, ...]


def choose_alphabet(
    counts: Mapping[str, int], *, vocab_size: int, min_frequency: int = 2
) -> Alphabet:
    """Choose the characters that become entries.

    Args:
        counts: how often each character occurs, in NFC text.
        vocab_size: entries of the vocabulary it is for.
        min_frequency: characters seen less often are left out.
    """
    total = sum(counts.values())
    least = max(min_frequency, total * _RARE_SYLLABLE_FRACTION)
    visible = (c for c in counts if not c.isspace() and unicodedata.category(c)[0] != "C")
    ranked = sorted(
        (c for c in visible if counts[c] >= min_frequency), key=lambda c: (-counts[c], c)
    )
    syllables = [c for c in ranked if is_syllable(c) and counts[c] >= least]
    base = set(BASE_ALPHABET)
    others = [c for c in ranked if not is_syllable(c) and c not in base]
    others = others[: int(vocab_size * _OTHER_CHARACTERS_FRACTION)]
    # A quarter of the vocabulary at most, for tiny ones.
    syllables = syllables[: vocab_size // 4]
    own = sorted((*syllables, *others), key=lambda c: (-counts[c], c))
    kept = set(syllables)
    emoji = [c for c in COMMON_EMOJI[: int(vocab_size * _EMOJI_FRACTION)] if c not in others]
    return Alphabet(
        characters=(*BASE_ALPHABET, *own, *emoji),
        rare_syllables=tuple(c for c in _SYLLABLES if c not in kept),
    )


def is_syllable(character: str) -> bool:
    """Whether it is a whole Hangul syllable (U+AC00 to U+D7A3), not a jamo."""
    return "가" <= character <= "힣"


def count_characters(words: Mapping[str, int]) -> Counter[str]:
    """How often each character occurs in counted words."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    return counts


def build_normalizer(alphabet: Alphabet) -> tuple[normalizers.Normalizer, bytes]:
    """NFC, white space single, nothing invisible, rare syllables in jamo.

    `tokenizers` reads the table by grapheme, sentencepiece by character: a combining mark after a
    character that the table changes ("뷁" with an acute accent) is lost in the one and kept in the
    other. So is what follows a sign that the table deletes and that Unicode joins to the next
    character (U+0600 and its like, before Arabic numbers). No other difference is known.

    Returns:
        The normalizer, and the table inside it in sentencepiece's own form
        (`precompiled_charsmap`), for a sentencepiece model that shall read NFC text alike.
    """
    table = {
        syllable: unicodedata.normalize("NFD", syllable) for syllable in alphabet.rare_syllables
    }
    for code in range(1, sys.maxunicode + 1):
        character = chr(code)
        if character.isspace():
            table[character] = " "
        elif unicodedata.category(character) in ("Cc", "Cf") or character in _INVISIBLE:
            # Controls, zero-width and bidirectional marks; joiners and variation selectors too, so
            # that the parts of an emoji have one form.
            table[character] = ""
    del table[" "]
    # U+2581 stands for a space inside sentencepiece, and for an underscore in comments (ㅡ▁ㅡ).
    table["\u2581"] = "_"
    # Otherwise it logs the size of the table.
    sentencepiece.set_min_log_level(2)
    spec = _messages.NormalizerSpec.FromString(
        sentencepiece.SentencePieceNormalizer(
            norm_map=sorted(table.items())
        ).serialized_normalizer_spec()
    )
    charsmap: bytes = spec.precompiled_charsmap
    return (
        normalizers.Sequence(
            [
                normalizers.NFC(),
                normalizers.Replace("\0", ""),  # the table cannot hold it
                normalizers.Precompiled(charsmap),
                normalizers.Replace(Regex(" {2,}"), " "),
                normalizers.Strip(),
            ]
        ),
        charsmap,
    )
