"""What every room raises for input it cannot use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Self

from malmoi.messages import Flag, Phrase


class InputError(ValueError):
    """Something the user gave cannot be used.

    As a string it is one line in English: what was expected, what was found, where (file and line),
    what to do. The command line prints it without a traceback and exits with code 2. The app says
    it in the visitor's language. Nobody takes the line apart: what it is about are its facts.

    Attributes:
        place: the file, or file and line, with which the line begins; "" where there is none.
        reason: the rest of it.

    Args:
        sentence: the reason in English, with the names of its facts in braces; see
            `malmoi.messages`. The Korean one stands in the catalogue.
        place: see above.
        facts: by their names. Exceptions are kept as what they say.
    """

    def __init__(self, sentence: str, /, *, place: object = "", **facts: object) -> None:
        self.reason = Phrase(sentence, **facts)
        self.place = str(place)
        super().__init__(self.in_language("en"))

    def at(self, place: object) -> Self:
        """The same error at a place, where it has been raised without one."""
        placed = copy(self)
        placed.place = f"{place}: {self.place}" if self.place else str(place)
        placed.args = (placed.in_language("en"),)
        return placed

    def spelled(self, spell: Callable[[Flag], str]) -> Self:
        """The same error, by a command that has other words for its flags."""
        changed = copy(self)
        changed.reason = self.reason.spelled(spell)
        changed.args = (changed.in_language("en"),)
        return changed

    def as_json(self) -> dict[str, Any]:
        """What `of_json` makes the same error of, in another process."""
        facts = {name: _plain(fact) for name, fact in self.reason.facts.items()}
        return {"sentence": self.reason.sentence, "place": self.place, "facts": facts}

    @staticmethod
    def of_json(told: Mapping[str, Any]) -> InputError:
        """The error that was written by `as_json`."""
        return InputError(told["sentence"], place=told["place"], **told["facts"])

    def in_language(self, language: str) -> str:
        """The line in another language; see `Phrase.in_language`."""
        reason = self.reason.in_language(language)
        return f"{self.place}: {reason}" if self.place else reason


def _plain(fact: object) -> Any:
    if isinstance(fact, list | tuple):
        return list(map(_plain, fact))
    return fact if isinstance(fact, int | float) else str(fact)


class UnfinishedError(InputError):
    """Long work ended before its output could appear; what it finished stays, to go on from."""
