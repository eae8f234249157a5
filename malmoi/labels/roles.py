"""What the members of a project may do."""

from typing import Literal

from malmoi.errors import InputError

Role = Literal["annotator", "reviewer", "admin"]
# Each may do what those before it may.
ROLES: tuple[Role, ...] = ("annotator", "reviewer", "admin")


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
