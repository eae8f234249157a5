"""What a model learns while people label: its scores by number of labels, doubts, alike texts."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add columns; those that are there stay as they are."""
    _add("malmoi_text_scores", "second_label", sa.Text())
    _add("malmoi_text_scores", "second_score", sa.Double())
    _add("malmoi_text_scores", "doubt", sa.Double())
    op.create_index(
        "ix_malmoi_text_scores_doubt", "malmoi_text_scores", ["version", "doubt", "text_id"]
    )
    _add("malmoi_score_versions", "labels", sa.Integer())
    _add("malmoi_score_versions", "cross_validated_f1", sa.Double())
    _add("malmoi_score_versions", "sample_f1", sa.Double())
    _add("malmoi_score_versions", "sample_texts", sa.Integer())
    op.create_index("ix_malmoi_score_versions_project", "malmoi_score_versions", ["project_id"])
    _add("malmoi_texts", "alike", sa.Integer())
    op.create_index("ix_malmoi_texts_alike", "malmoi_texts", ["alike"])
    for name, place in (("first", "id"), ("first_lottery", "lottery")):
        op.create_index(
            f"ix_malmoi_texts_{name}",
            "malmoi_texts",
            ["project_id", "is_open", place],
            sqlite_where=sa.text("alike IS NULL OR alike = id"),
            postgresql_where=sa.text("alike IS NULL OR alike = id"),
        )
    op.create_index(
        "ix_malmoi_annotations_created", "malmoi_annotations", ["project_id", "created_at"]
    )
    op.create_index(
        "ix_malmoi_annotations_flags",
        "malmoi_annotations",
        ["project_id", "text_id"],
        sqlite_where=sa.text("kind = 'flag'"),
        postgresql_where=sa.text("kind = 'flag'"),
    )
    op.create_index("ix_malmoi_adjudications_project", "malmoi_adjudications", ["project_id", "id"])


def _add(table: str, name: str, kind: sa.types.TypeEngine[Any]) -> None:
    op.add_column(table, sa.Column(name, kind))
