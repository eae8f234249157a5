"""The sentences that people read: English in the code, other languages in a catalogue beside this.

As with gettext, the English sentence is the key: `say("{texts:text} saved", texts=3)`. Its facts
are named, so that another language may order them as it likes. `ko.po` has the Korean sentences;
`make messages` adds what is new in the code and drops what is gone.
"""

from __future__ import annotations

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
        return _fill(_catalogue(language).get(self.sentence, self.sentence), facts)

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
    from babel.messages.pofile import read_po  # of the extra "app", whose visitors choose

    with files(__name__).joinpath(f"{language}.po").open("rb") as file:
        return {str(one.id): str(one.string) for one in read_po(file) if one.id and one.string}
