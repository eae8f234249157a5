"""Who works on a project."""

from dataclasses import dataclass

from malmoi.errors import InputError
from malmoi.labels.stored_text import checked_name
from malmoi.messages import Phrase

# Before somebody gives a name, all that is labelled is by one person.
LOCAL_NAME = "local"
_LONGEST_NAME = 320  # of an e-mail address


class AccessError(InputError):
    """A person asked for what their role in the project does not allow."""


@dataclass(frozen=True, kw_only=True)
class Person:
    """Whoever acts.

    Attributes:
        name: unique among the people of a database: what they typed, or their e-mail address.
        is_local: the app runs without login, so they have every right everywhere.
        only_project: the id of the one project that a key of theirs opens; None: all of theirs.

    Raises:
        InputError: the name is empty, too long or cannot be stored.
    """

    name: str
    is_local: bool = False
    only_project: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", person_name(self.name))


def person_name(name: str) -> str:
    """The one spelling of a person's name.

    Raises:
        InputError: it is empty, too long or cannot be stored.
    """
    return checked_name(name, Phrase("a person"), _LONGEST_NAME)
