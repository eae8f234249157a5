"""The sentences that people read: English in the code, other languages in a catalogue beside this.

As with gettext, the English sentence is the key: `say("{texts:text} saved", texts=3)`. Its facts
are named, so that another language may order them as it likes. `ko.po` has the Korean sentences;
`make messages` adds what is new in the code and drops what is gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any, Self


class Phrase(str):
    """A sentence, or a part of one, with its facts; as a string it is the English one.

    It goes where strings go, is compared and written like one, and can be said in another language
    later: so can facts that are phrases or errors themselves.

    Args:
        sentence: in English, with the names of its facts in braces, formatted as by `str.format`;
            without facts it is taken as it is, braces and all. Of a number, the format may be a
            noun, which takes an s for several: `{texts:new text}` is "1 new text" and "2,000 new
            texts". Of a list it is what stands between its items: `{names: or }`.
        facts: by their names.
    """

    sentence: str
    facts: Mapping[str, object]

    def __new__(cls, sentence: str, /, **facts: object) -> Self:
        """Fill it in; one that is a phrase already keeps its facts beside the new ones."""
        if isinstance(sentence, cls):
            if not facts:
                return sentence
            facts = {**sentence.facts, **facts}
            sentence = sentence.sentence
        made = super().__new__(cls, _fill(sentence, facts))
        # Exceptions of libraries may not go to another process.
        made.sentence, made.facts = sentence, {name: _kept(fact) for name, fact in facts.items()}
        return made

    def in_language(self, language: str) -> str:
        """The same in Korean ("ko"); as it is in a language that has no words for it."""
        if language == "en":
            return str(self)
        facts = {name: _said(fact, language) for name, fact in self.facts.items()}
        return _in_korean(_catalogue(language).get(self.sentence, self.sentence), facts)

    def as_json(self) -> dict[str, Any]:
        """What `of_json` makes the same phrase of, in another process."""
        facts = {name: _plain(fact) for name, fact in self.facts.items()}
        return {"sentence": self.sentence, "facts": facts}

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> Phrase:
        """The phrase that was written by `as_json`; of an error, its reason."""
        facts = {name: _of_plain(fact) for name, fact in told["facts"].items()}
        return cls(told["sentence"], **facts)

    def spelled(self, spell: Callable[[Flag], str]) -> Phrase:
        """The same for a command that has other words for its flags, also those in its parts."""
        facts = {name: _spelled(fact, spell) for name, fact in self.facts.items()}
        return Phrase(self.sentence, **facts)


class Flag(str):
    """A flag that several commands advise, as a fact: one of them may have a key in its place.

    Args:
        name: such as `--delimiter`.
        value: what is advised to stand behind it; "" where nothing is.
    """

    name: str
    value: str

    def __new__(cls, name: str, value: str = "") -> Self:
        """As most commands write it."""
        made = super().__new__(cls, f"{name} {value}" if value else name)
        made.name, made.value = name, value
        return made


def _fill(sentence: str, facts: Mapping[str, object]) -> str:
    return _FORMATTER.vformat(sentence, (), facts) if facts else sentence


def _kept(fact: object) -> object:
    return str(fact) if isinstance(fact, Exception) and not hasattr(fact, "in_language") else fact


def _said(fact: Any, language: str) -> Any:
    if isinstance(fact, list | tuple):
        return [_said(one, language) for one in fact]
    return fact.in_language(language) if hasattr(fact, "in_language") else fact


def _spelled(fact: Any, spell: Callable[[Flag], str]) -> Any:
    if isinstance(fact, list | tuple):
        return [_spelled(one, spell) for one in fact]
    if isinstance(fact, Flag):
        return spell(fact)
    return fact.spelled(spell) if hasattr(fact, "spelled") else fact


def _plain(fact: Any) -> Any:
    if isinstance(fact, list | tuple):
        return list(map(_plain, fact))
    if hasattr(fact, "as_json"):
        return fact.as_json()
    return fact if isinstance(fact, int | float) else str(fact)


def _of_plain(fact: Any) -> Any:
    if isinstance(fact, list):
        return list(map(_of_plain, fact))
    if not isinstance(fact, dict):
        return fact
    said, where = Phrase.of_json(fact), fact.get("place")
    return Phrase("{where}: {said}", where=where, said=said) if where else said


Say = Callable[..., str]


def language_of(language: str) -> Say:
    """What puts sentences into a language, `ko` or `en`."""

    def say(sentence: str, **facts: object) -> str:
        return Phrase(sentence, **facts).in_language(language)

    return say


# Both forms of a particle: that behind a final consonant, and the other.
_PARTICLES = {
    **{"이(가)": "이가", "을(를)": "을를", "은(는)": "은는", "과(와)": "과와", "와(과)": "과와"},
    **{"(으)로": ("으로", "로"), "(이)라": ("이라", "라")},
}
_BOTH_FORMS = "|".join(map(re.escape, _PARTICLES))
# Marks those of a sentence, for what is filled in may hold some of its own.
_MARK = "\0"
_both_forms = re.compile(_BOTH_FORMS)
_marked = re.compile(rf"(\w?)([^\w\s{_MARK}]*){_MARK}({_BOTH_FORMS})")
# As they are read: 영, 일, 삼, 육, 칠, 팔; of Latin words, as they are spelled in Hangul.
_FINAL, _FINAL_L = "013678lmnLMNR", "178lLR"
_FIRST_SYLLABLE, _LAST_SYLLABLE, _FINALS, _RIEUL = ord("가"), ord("힣"), 28, 8


def _in_korean(sentence: str, facts: Mapping[str, object]) -> str:
    """With the form of each particle that fits the word before it."""
    marked = _both_forms.sub(rf"{_MARK}\g<0>", sentence)
    return _marked.sub(_agreeing, _fill(marked, facts))


def _agreeing(found: re.Match[str]) -> str:
    last, between, particle = found.groups()
    if not last:
        return f"{between}{particle}"
    final, is_l = last in _FINAL, last in _FINAL_L
    if _FIRST_SYLLABLE <= ord(last) <= _LAST_SYLLABLE:
        code = (ord(last) - _FIRST_SYLLABLE) % _FINALS
        final, is_l = code > 0, code == _RIEUL
    if particle == "(으)로" and is_l:
        final = False
    return f"{last}{between}{_PARTICLES[particle][0 if final else 1]}"


class _Formatter(Formatter):
    def format_field(self, value: object, format_spec: str) -> str:
        if isinstance(value, list | tuple) and format_spec:
            return format_spec.join(map(str, value))
        if isinstance(value, int) and len(format_spec) > 1 and format_spec[0].isalpha():
            return f"{value:,} {format_spec}{'' if value == 1 else 's'}"
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()


@cache
def _catalogue(language: str) -> dict[str, str]:
    from babel.messages.pofile import read_po  # of the extra "report", whose pages are in both

    with files(__name__).joinpath(f"{language}.po").open("rb") as file:
        return {str(one.id): str(one.string) for one in read_po(file) if one.id and one.string}
