"""Projects: their texts, annotations, reviews and members."""

from datetime import datetime

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables of projects."""
    _make_projects()
    _make_texts()
    _make_scores()
    _make_annotations()
    _make_places()


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True)


def _foreign_key(name: str, table: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), sa.ForeignKey(f"{table}.id"), nullable=False)


def _moment(name: str, *, nullable: bool = False) -> sa.Column[datetime]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _make_projects() -> None:
    """Projects, and who may do what in them."""
    op.create_table(
        "malmoi_projects",
        _id(),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("annotators_per_text", sa.Integer(), nullable=False),
        sa.Column("show_suggestion", sa.Boolean(), nullable=False),
        sa.Column("text_order", sa.String(8), nullable=False),
        sa.Column("random_share", sa.Double(), nullable=False),
        sa.Column("lease_seconds", sa.Integer(), nullable=False),
        sa.Column("scores_version", sa.Integer()),
        sa.Column("created_by", sa.Text(), nullable=False),
        _moment("created_at"),
        _moment("archived_at", nullable=True),
    )
    op.create_table(
        "malmoi_project_labels",
        _id(),
        _foreign_key("project_id", "malmoi_projects"),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("meaning", sa.Text(), nullable=False),
        sa.Column("color", sa.String(7)),
        sa.Column("key", sa.String(1)),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("retired", sa.Boolean(), nullable=False),
        sa.UniqueConstraint("project_id", "name"),
    )
    op.create_table(
        "malmoi_guidelines",
        _id(),
        _foreign_key("project_id", "malmoi_projects"),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("markdown", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        _moment("created_at"),
        sa.UniqueConstraint("project_id", "version"),
    )
    op.create_table(
        "malmoi_members",
        _id(),
        _foreign_key("project_id", "malmoi_projects"),
        sa.Column("person", sa.String(320), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.UniqueConstraint("project_id", "person"),
    )
    op.create_table(
        "malmoi_audit",
        _id(),
        _foreign_key("project_id", "malmoi_projects"),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        _moment("created_at"),
    )
    op.create_index("ix_malmoi_audit_project", "malmoi_audit", ["project_id", "id"])


def _make_texts() -> None:
    """Texts, and where they came from."""
    op.create_table(
        "malmoi_text_imports",
        _id(),
        _foreign_key("project_id", "malmoi_projects"),
        sa.Column("content_key", sa.String(64), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("rows_read", sa.Integer(), nullable=False),
        sa.Column("new_texts", sa.Integer(), nullable=False),
        _moment("started_at"),
        _moment("finished_at", nullable=True),
        sa.UniqueConstraint("project_id", "content_key"),
    )
    op.create_table(
        "malmoi_texts",
        _id(),
        _foreign_key("project_id", "malmoi_projects"),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("text_sha256", sa.String(64), nullable=False),
        sa.Column("lottery", sa.Double(), nullable=False),
        sa.Column("votes", sa.Integer(), nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("disagrees", sa.Boolean(), nullable=False),
        sa.Column("adjudication_id", sa.Integer()),
        sa.UniqueConstraint("project_id", "text_sha256"),
    )
    op.create_index(
        "ix_malmoi_texts_disagreeing", "malmoi_texts", ["project_id", "disagrees", "id"]
    )
    op.create_index("ix_malmoi_texts_lottery", "malmoi_texts", ["project_id", "lottery"])
    op.create_index("ix_malmoi_texts_open", "malmoi_texts", ["project_id", "is_open", "id"])
    op.create_index(
        "ix_malmoi_texts_open_lottery", "malmoi_texts", ["project_id", "is_open", "lottery"]
    )
    op.create_table(
        "malmoi_text_sources",
        _id(),
        _foreign_key("text_id", "malmoi_texts"),
        _foreign_key("import_id", "malmoi_text_imports"),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("text", sa.Text()),
        sa.Column("cells", sa.Text(), nullable=False),
    )
    op.create_index("ix_malmoi_text_sources_text", "malmoi_text_sources", ["text_id"])


def _make_scores() -> None:
    """In which order a model wants the texts."""
    op.create_table(
        "malmoi_score_versions",
        _id(),
        _foreign_key("project_id", "malmoi_projects"),
        sa.Column("model", sa.Text(), nullable=False),
        _moment("created_at"),
    )
    op.create_table(
        "malmoi_text_scores",
        sa.Column(
            "version", sa.Integer(), sa.ForeignKey("malmoi_score_versions.id"), primary_key=True
        ),
        sa.Column("text_id", sa.Integer(), sa.ForeignKey("malmoi_texts.id"), primary_key=True),
        sa.Column("priority", sa.Double()),
        sa.Column("label", sa.Text()),
        sa.Column("score", sa.Double()),
    )
    op.create_index(
        "ix_malmoi_text_scores_priority", "malmoi_text_scores", ["version", "priority", "text_id"]
    )


def _make_annotations() -> None:
    """What annotators did."""
    op.create_table(
        "malmoi_annotations",
        _id(),
        _foreign_key("project_id", "malmoi_projects"),
        _foreign_key("text_id", "malmoi_texts"),
        sa.Column("annotator", sa.String(320), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("choice", sa.Text()),
        sa.Column("flagged", sa.Boolean()),
        sa.Column("note", sa.Text()),
        sa.Column("withdraws", sa.Integer(), sa.ForeignKey("malmoi_annotations.id")),
        sa.Column("guideline_version", sa.Integer(), nullable=False),
        sa.Column("suggested_label", sa.Text()),
        sa.Column("suggested_score", sa.Double()),
        sa.Column("suggested_model", sa.Text()),
        sa.Column("drawn", sa.String(8)),
        sa.Column("seconds", sa.Double()),
        sa.Column("request_id", sa.String(128), nullable=False, unique=True),
        _moment("created_at"),
    )
    op.create_index(
        "ix_malmoi_annotations_annotator", "malmoi_annotations", ["project_id", "annotator", "id"]
    )
    op.create_index(
        "ix_malmoi_annotations_text", "malmoi_annotations", ["text_id", "annotator", "id"]
    )
    op.create_index("ix_malmoi_annotations_withdraws", "malmoi_annotations", ["withdraws"])


def _make_places() -> None:
    """What each annotator has to do, and what reviewers decided."""
    op.create_table(
        "malmoi_places",
        _id(),
        _foreign_key("project_id", "malmoi_projects"),
        _foreign_key("text_id", "malmoi_texts"),
        sa.Column("annotator", sa.String(320), nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        _moment("expires_at", nullable=True),
        sa.Column("drawn", sa.String(8)),
        sa.Column("annotation_id", sa.Integer()),
        sa.Column("choice", sa.Text()),
        sa.UniqueConstraint("text_id", "annotator"),
    )
    op.create_index(
        "ix_malmoi_places_annotator",
        "malmoi_places",
        ["project_id", "annotator", "state", "drawn", "text_id"],
    )
    op.create_index("ix_malmoi_places_choice", "malmoi_places", ["project_id", "state", "choice"])
    op.create_table(
        "malmoi_adjudications",
        _id(),
        _foreign_key("project_id", "malmoi_projects"),
        _foreign_key("text_id", "malmoi_texts"),
        sa.Column("reviewer", sa.String(320), nullable=False),
        sa.Column("choice", sa.Text()),
        sa.Column("note", sa.Text()),
        sa.Column("guideline_version", sa.Integer(), nullable=False),
        sa.Column("request_id", sa.String(128), nullable=False, unique=True),
        _moment("created_at"),
    )
    op.create_index("ix_malmoi_adjudications_text", "malmoi_adjudications", ["text_id", "id"])
