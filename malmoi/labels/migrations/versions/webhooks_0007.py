"""Addresses that are told what happens in a project, and what they have still to be told."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the tables."""
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "malmoi_webhooks",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        _reference("project_id", "malmoi_projects.id"),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("secret", sa.String(64), nullable=False),
        sa.Column("may_be_private", sa.Boolean(), nullable=False),
        sa.Column("created_by", sa.String(320), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("busy_until", moment),
        sa.Column("delivered_at", moment),
        sa.Column("error", sa.Text()),
    )
    op.create_index("ix_malmoi_webhooks_project", "malmoi_webhooks", ["project_id"])
    table = "malmoi_webhook_deliveries"
    op.create_table(
        table,
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        _reference("project_id", "malmoi_projects.id"),
        _reference("webhook_id", "malmoi_webhooks.id"),
        sa.Column("event", sa.String(16), nullable=False),
        sa.Column("row_id", sa.Integer(), nullable=False),
        sa.Column("text_id", sa.Integer(), sa.ForeignKey("malmoi_texts.id")),
        sa.Column("message_id", sa.String(40), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("due_at", moment),
    )
    op.create_index("ix_malmoi_webhook_deliveries_due", table, ["webhook_id", "due_at"])
    op.create_index("ix_malmoi_webhook_deliveries_text", table, ["text_id"])


def _reference(name: str, target: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), sa.ForeignKey(target), nullable=False)
