"""The log of labels."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the table and its index."""
    op.create_table(
        "labels",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("text_sha256", sa.String(64), nullable=False),
        sa.Column("predicted_label", sa.Text()),
        sa.Column("confidence", sa.Double()),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("label_set", sa.Text()),
        sa.Column("model", sa.Text()),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("request_id", sa.String(128), nullable=False, unique=True),
    )
    op.create_index("ix_labels_text_sha256", "labels", ["text_sha256"])
