"""What every room raises for input it cannot use."""

from copy import copy
from typing import Self

from malmoi.messages import Phrase


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

    def in_language(self, language: str) -> str:
        """The line in another language; see `Phrase.in_language`."""
        reason = self.reason.in_language(language)
        return f"{self.place}: {reason}" if self.place else reason


class UnfinishedError(InputError):
    """Long work ended before its output could appear; what it finished stays, to go on from."""
