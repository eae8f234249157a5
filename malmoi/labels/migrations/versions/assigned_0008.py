"""Whom a text is given to."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column; no text is given to anybody."""
    op.add_column("malmoi_texts", sa.Column("assigned_to", sa.String(320)))
    op.create_index(
        "ix_malmoi_texts_assigned",
        "malmoi_texts",
        ["project_id", "assigned_to", "id"],
        sqlite_where=sa.text("assigned_to IS NOT NULL"),
        postgresql_where=sa.text("assigned_to IS NOT NULL"),
    )
