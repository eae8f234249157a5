"""The columns of imported files in their order; how right a model is on texts drawn by chance."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add columns; those that are there stay as they are."""
    op.add_column("malmoi_text_imports", sa.Column("columns", sa.Text()))
    for name in ("kinds", "drawn_texts", "drawn_right"):
        op.add_column("malmoi_score_versions", sa.Column(name, sa.Integer()))
