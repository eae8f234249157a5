"""Korean morphemes and keywords by MeCab-ko: a tenth of Kiwi's time, and 30 to 90 MB of memory.

Classifiers and pages read these. Spacing, sentences and tokenizers need more than MeCab knows:
`malmoi.text.morphemes`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, Literal

from malmoi.text.characters import to_nfc

# What MeCab needs for n times the same letter grows with n squared, 1.8 s for 40,000 (measured).
# More than two say nothing that two do not.
_repeats = re.compile(r"(.)\1{2,}", re.DOTALL)
_PIECE_CHARACTERS = 10_000
# Surface, tag or tags, and what it consists of: 갔, VV+EP, 가/VV/*+았/EP/*. That is read of several
# tags alone: of one it tells the parts of a compound, or a wrong stem (듣 for 들).
_FORMAT = r'-F "%m\\t%f[0]\\t%f[7]\\n" -E ""'

WordClass = Literal["noun", "verb", "adjective"]
# Sejong tags (https://docs.google.com/spreadsheets/d/1-9blXKjtjeKZqsf4NzHeYJCrr49-nXeRF6D80udfcwY).
_WORD_CLASSES: dict[str, WordClass] = {
    "NNG": "noun",
    "NNP": "noun",
    "VV": "verb",
    "VA": "adjective",
}
# Words that stand in texts on anything: light verbs, demonstratives, and nouns that only carry a
# clause. Written by hand for reports; dependent nouns (것, 수), auxiliary verbs and pronouns have
# tags of their own and never come this far.
_STOP_WORDS = (
    "하다 되다 있다 없다 같다 이다 아니다 보다 주다 가다 오다 나오다 들다 그렇다 이렇다 저렇다 "
    "어떻다 그러다 이러다 어쩌다 말하다 때 정도 생각 사람 경우 이번 다음 전 후 중 안 속 위 "
    "말 일 점 오늘 지금"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())

_one_at_a_time = Lock()


@dataclass(frozen=True, kw_only=True, slots=True)
class Keyword:
    """A word in its dictionary form (verbs and adjectives with 다) and how many texts have it."""

    word: str
    word_class: WordClass
    texts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Keywords:
    """The most frequent words of some texts.

    Attributes:
        keywords: by falling number of texts, then in alphabetical order.
        texts: texts that were analysed.
    """

    keywords: list[Keyword]
    texts: int


def morphemes(text: str) -> list[tuple[str, str]]:
    """Form and Sejong tag of each morpheme of a text, in order: 가/VV, 았/EP, 다/EC of 갔다.

    A run of three or more of a character counts as two. Safe to use from several threads.
    """
    return [morpheme for line in mecab_lines(text) for morpheme in morphemes_of(line)]


def mecab_lines(text: str) -> list[str]:
    """What MeCab says of a text, a line for each piece of it; for `morphemes_of`."""
    lines: list[str] = []
    for piece in _pieces(_repeats.sub(r"\1\1", to_nfc(text))):
        with _one_at_a_time:
            analysed = _mecab().parse(piece)
        lines += analysed.split("\n")[:-1]
    return lines


def morphemes_of(line: str) -> list[tuple[str, str]]:
    """Form and tag of each morpheme in a line of `mecab_lines`."""
    form, tag, parts = line.split("\t")
    if parts and "+" in tag:
        return [_form_and_tag(part) for part in parts.split("+")]
    return [(form, tag)]


def content_words(text: str) -> set[tuple[str, WordClass]]:
    """The nouns, verbs and adjectives of a text in their dictionary form, less `STOP_WORDS`."""
    words = {word for word in map(_dictionary_word, morphemes(text)) if word is not None}
    return {word for word in words if word[0] not in STOP_WORDS}


def find_keywords(texts: Iterable[str], count: int = 30) -> Keywords:
    """The nouns, verbs and adjectives that stand in most texts, `STOP_WORDS` left out.

    Counted once a text, so that one text that repeats a word does not carry it.
    """
    counts: Counter[tuple[str, WordClass]] = Counter()
    analysed = 0
    for text in texts:
        analysed += 1
        counts.update(content_words(text))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    keywords = [
        Keyword(word=word, word_class=word_class, texts=number)
        for (word, word_class), number in ranked[:count]
    ]
    return Keywords(keywords=keywords, texts=analysed)


@cache
def _mecab() -> Any:
    import mecab_ko

    return mecab_ko.Tagger(_FORMAT)


def _pieces(text: str) -> Iterator[str]:
    """What MeCab can read of a text, in pieces: it ends at a NUL, and surrogates are no UTF-8."""
    text = text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
    for start in range(0, len(text), _PIECE_CHARACTERS):
        yield text[start : start + _PIECE_CHARACTERS]


def _form_and_tag(part: str) -> tuple[str, str]:
    form, tag, _ = part.split("/")
    return form, tag


def _dictionary_word(morpheme: tuple[str, str]) -> tuple[str, WordClass] | None:
    """Dictionary form and class of a content word; None for everything else."""
    form, tag = morpheme
    word_class = _WORD_CLASSES.get(tag)
    if word_class is None:
        return None
    return form + ("" if word_class == "noun" else "다"), word_class
