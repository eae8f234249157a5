"""What every room raises for input it cannot use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from hashlib import sha256
from typing import Any, Self

from malmoi.messages import Flag, Phrase

# Names a file that gets the error of a command as JSON, for who started the command.
ERROR_VARIABLE = "MALMOI_ERROR"


class InputError(ValueError):
    """Something the user gave cannot be used.

    As a string it is one line in English: what was expected, what was found, where (file and line),
    what to do. The command line prints it without a traceback and exits with code 2. The app says
    it in the visitor's language. Nobody takes the line apart: what it is about are its facts.

    Attributes:
        place: the file, or file and line, with which the line begins; "" where there is none.
        reason: the rest of it, a sentence with its facts.

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

    @property
    def code(self) -> str:
        """Tells apart what is wrong, for programs; the same for all facts, in every language."""
        return sha256(self.reason.sentence.encode()).hexdigest()[:8]

    @property
    def facts(self) -> Mapping[str, object]:
        """What the sentence is about, by name."""
        return self.reason.facts

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows of it: the one line."""
        return [f"{type(self).__name__}: {self}"]

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
        return {**self.reason.as_json(), "place": self.place}

    @staticmethod
    def of_json(told: Mapping[str, Any]) -> InputError:
        """The error that was written by `as_json`."""
        return InputError(Phrase.of_json(told), place=told["place"])

    def in_language(self, language: str) -> str:
        """The line in another language; see `Phrase.in_language`."""
        reason = self.reason.in_language(language)
        return f"{self.place}: {reason}" if self.place else reason


class UnfinishedError(InputError):
    """Long work ended before its output could appear; what it finished stays, to go on from."""


class UnexpectedError(InputError):
    """A defect of ours, and nothing that the user could do better."""

    def __init__(self, error: object) -> None:
        """Of an exception that nobody has expected; its traceback is for the log."""
        kind = type(error).__name__
        super().__init__(Phrase("unexpected {kind}; the log says more", kind=kind))
