"""The layout from before there were projects: a table of labels, which nothing reads any more.

A database that has it keeps it as it is.
"""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make nothing."""
