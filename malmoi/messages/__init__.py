"""The sentences that people read: English in the code, other languages in a catalogue beside this.

As with gettext, the English sentence is the key: `say("{texts:text} saved", texts=3)`. Its facts
are named, so that another language may order them as it likes. `ko.po` has the Korean sentences;
`make messages` adds what is new in the code and drops what is gone.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Self


class Phrase(str):
    """A sentence, or a part of one, with its facts; as a string it is the English one.

    It goes where strings go, is compared and written like one, and can be said in another language
    later. A fact that is a Phrase itself is said in that language, too.

    Args:
        sentence: in English, with the names of its facts in braces; see `fill`.
        facts: by their names.
    """

    sentence: str
    facts: Mapping[str, object]

    def __new__(cls, sentence: str, /, **facts: object) -> Self:
        """Fill it in."""
        made = super().__new__(cls, fill(sentence, facts))
        made.sentence, made.facts = sentence, facts
        return made

    def in_language(self, language: str) -> str:
        """The same in Korean ("ko"); as it is in a language that has no words for it."""
        if language == "en":
            return str(self)
        facts = {
            name: fact.in_language(language) if isinstance(fact, Phrase) else fact
            for name, fact in self.facts.items()
        }
        return fill(_catalogue(language).get(self.sentence, self.sentence), facts)


def fill(sentence: str, facts: Mapping[str, object]) -> str:
    """A sentence with its facts; one without facts as it is, braces and all.

    A field is one of `str.format`, or a number and a noun: `{texts:new text}` is "1 new text" and
    "2,000 new texts". The noun takes an s for several.
    """
    return _FORMATTER.vformat(sentence, (), facts) if facts else sentence


class _Formatter(Formatter):
    def format_field(self, value: object, format_spec: str) -> str:
        if isinstance(value, int) and len(format_spec) > 1 and format_spec[0].isalpha():
            return f"{value:,} {format_spec}{'' if value == 1 else 's'}"
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()


@cache
def _catalogue(language: str) -> dict[str, str]:
    from babel.messages.pofile import read_po  # of the extra "app", whose visitors choose

    with files(__name__).joinpath(f"{language}.po").open("rb") as file:
        return {str(one.id): str(one.string) for one in read_po(file) if one.id and one.string}
