"""Who works on a project, and what that lets them do."""

from dataclasses import dataclass
from typing import Literal

from malmoi.errors import InputError
from malmoi.labels.label_names import normal_label
from malmoi.labels.stored_text import checked
from malmoi.messages import Phrase

Role = Literal["annotator", "reviewer", "admin"]
# Each may do what those before it may.
ROLES: tuple[Role, ...] = ("annotator", "reviewer", "admin")
_LONGEST_NAME = 320  # of an e-mail address


class AccessError(InputError):
    """A person asked for what their role in the project does not allow."""


@dataclass(frozen=True, kw_only=True)
class Person:
    """Whoever acts.

    Attributes:
        name: unique among the people of a database: what they typed, or their e-mail address.
        is_local: the app runs without login, so they have every right everywhere.

    Raises:
        InputError: the name is empty, too long or cannot be stored.
    """

    name: str
    is_local: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", person_name(self.name))


def person_name(name: str) -> str:
    """The one spelling of a person's name.

    Raises:
        InputError: it is empty, too long or cannot be stored.
    """
    plain = normal_label(checked(name, Phrase("the name of a person")))
    if not plain or len(plain) > _LONGEST_NAME:
        raise InputError(
            "expected a person's name of 1 to {longest} characters, found {count}",
            longest=_LONGEST_NAME,
            count=len(plain),
        )
    return plain


def allows(role: Role | None, needed: Role) -> bool:
    """Whether somebody with this role, or without any, may do what needs another."""
    return role is not None and ROLES.index(role) >= ROLES.index(needed)


def checked_role(role: str) -> Role:
    """The role of this name.

    Raises:
        InputError: there is none.
    """
    for known in ROLES:
        if role == known:
            return known
    raise InputError(
        "expected a role of {roles}, found {role!r}", roles=", ".join(ROLES), role=role
    )
