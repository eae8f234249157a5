"""A model that is chosen for a project, and how good it was at each round of learning."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add columns; those that are there stay as they are."""
    op.add_column("malmoi_projects", sa.Column("model", sa.Text()))
    op.add_column("malmoi_score_versions", sa.Column("chosen_f1", sa.Double()))
