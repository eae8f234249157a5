"""The tables of projects: their texts, what annotators did, who may do what.

Annotations, adjudications, guidelines and audit are logs: rows are only added. Places and the last
columns of texts are what holds now, kept beside the log in the same transaction so that no page has
to read all of it. The names begin with `malmoi_` because a server's database may hold other tables.
"""

from datetime import UTC, datetime
from typing import Annotated, Any

from sqlalchemy import DateTime, Double, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

# The kind of a project that was erased: only the entry of the audit trail that says so is left.
ERASED = "erased"


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC: SQLite forgets time zones, so they are put back on the way out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """What the migrations have to make; a change here needs one in `migrations/versions`."""


Id = Annotated[int, mapped_column(primary_key=True, autoincrement=True)]
ProjectId = Annotated[int, mapped_column(ForeignKey("malmoi_projects.id"))]
TextId = Annotated[int, mapped_column(ForeignKey("malmoi_texts.id"))]
RequestId = Annotated[str, mapped_column(String(128), unique=True)]
PersonName = Annotated[str, mapped_column(String(320))]
LongText = Annotated[str, mapped_column(Text)]
Number = Annotated[float, mapped_column(Double)]
Moment = Annotated[datetime, mapped_column(UtcDateTime)]


class InProject:
    """What belongs to a project."""

    id: Mapped[Id]
    project_id: Mapped[ProjectId]


class ProjectRow(Base):
    """A project with its settings."""

    __tablename__ = "malmoi_projects"

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(String(200), unique=True)
    kind: Mapped[str] = mapped_column(String(8))
    annotators_per_text: Mapped[int]
    show_suggestion: Mapped[bool]
    text_order: Mapped[str] = mapped_column(String(8))
    random_share: Mapped[Number]
    lease_seconds: Mapped[int]
    # The name of a model that suggests before enough is labelled to learn from; None: none does.
    model: Mapped[LongText | None]
    # Which of `score_versions` orders the texts; None: none was handed in yet.
    scores_version: Mapped[int | None]
    created_by: Mapped[LongText]
    created_at: Mapped[Moment]
    archived_at: Mapped[Moment | None]


class ProjectLabelRow(InProject, Base):
    """A label of a project. Annotations name it by id, so it can be renamed at any time."""

    __tablename__ = "malmoi_project_labels"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    name: Mapped[str] = mapped_column(String(200))
    title: Mapped[LongText]
    meaning: Mapped[LongText]
    color: Mapped[str | None] = mapped_column(String(7))
    key: Mapped[str | None] = mapped_column(String(1))
    position: Mapped[int]
    # No longer offered; what was labelled with it stays.
    retired: Mapped[bool]


class GuidelineRow(InProject, Base):
    """One version of a project's guideline, in Markdown."""

    __tablename__ = "malmoi_guidelines"
    __table_args__ = (UniqueConstraint("project_id", "version"),)

    version: Mapped[int]
    markdown: Mapped[LongText]
    author: Mapped[LongText]
    created_at: Mapped[Moment]


class MemberRow(InProject, Base):
    """Who may work on a project, and as what."""

    __tablename__ = "malmoi_members"
    __table_args__ = (UniqueConstraint("project_id", "person"),)

    person: Mapped[PersonName]
    role: Mapped[str] = mapped_column(String(16))


class AccessKeyRow(Base):
    """What lets one person in: the link of an invitation, or a token for a program.

    Of the secret only its hash is kept.
    """

    __tablename__ = "malmoi_access_keys"

    id: Mapped[Id]
    # None: it opens the whole database, with every right.
    project_id: Mapped[int | None] = mapped_column(ForeignKey("malmoi_projects.id"), index=True)
    person: Mapped[PersonName]
    role: Mapped[str] = mapped_column(String(16))
    kind: Mapped[str] = mapped_column(String(16))  # invitation, token
    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    created_by: Mapped[PersonName]
    created_at: Mapped[Moment]
    withdrawn_at: Mapped[Moment | None]
    last_used_at: Mapped[Moment | None]


class WebhookRow(InProject, Base):
    """An address that is told what happens in a project, until it is taken back."""

    __tablename__ = "malmoi_webhooks"
    __table_args__ = (Index("ix_malmoi_webhooks_project", "project_id"),)

    url: Mapped[LongText]
    events: Mapped[LongText]  # a JSON list of `malmoi.labels.webhooks.Event`
    # By which deliveries are signed: a hash of it would not do.
    secret: Mapped[str] = mapped_column(String(64))
    # Whether it may be an address that only this network reaches.
    may_be_private: Mapped[bool]
    created_by: Mapped[PersonName]
    created_at: Mapped[Moment]
    # Until when a server delivers to it, so that no other does.
    busy_until: Mapped[Moment | None]
    delivered_at: Mapped[Moment | None]
    # Why the last try failed; None: it did not.
    error: Mapped[LongText | None]


class WebhookDeliveryRow(InProject, Base):
    """What an address has still to be told. Its words are those of the rows it names, when sent."""

    __tablename__ = "malmoi_webhook_deliveries"
    __table_args__ = (
        Index("ix_malmoi_webhook_deliveries_due", "webhook_id", "due_at"),
        Index("ix_malmoi_webhook_deliveries_text", "text_id"),
    )

    webhook_id: Mapped[int] = mapped_column(ForeignKey("malmoi_webhooks.id"))
    event: Mapped[str] = mapped_column(String(16))
    # The id of the annotation, the adjudication or the score version.
    row_id: Mapped[int]
    text_id: Mapped[int | None] = mapped_column(ForeignKey("malmoi_texts.id"))
    # By which whoever gets it twice knows it.
    message_id: Mapped[str] = mapped_column(String(40))
    created_at: Mapped[Moment]
    # When it is tried next; None: it was given up.
    due_at: Mapped[Moment | None]


class AuditRow(InProject, Base):
    """Who changed what about a project."""

    __tablename__ = "malmoi_audit"
    __table_args__ = (Index("ix_malmoi_audit_project", "project_id", "id"),)

    person: Mapped[LongText]
    action: Mapped[str] = mapped_column(String(32))
    details: Mapped[LongText]  # a JSON object
    created_at: Mapped[Moment]


class TextImportRow(InProject, Base):
    """One import of files, and how far it has come."""

    __tablename__ = "malmoi_text_imports"
    __table_args__ = (UniqueConstraint("project_id", "content_key"),)

    # Hash of the files and of how they are read: the same import again goes on or does nothing.
    content_key: Mapped[str] = mapped_column(String(64))
    person: Mapped[LongText]
    rows_read: Mapped[int]
    new_texts: Mapped[int]
    # JSON: by file, what its columns are called, in their order, and which of them has the texts.
    columns: Mapped[LongText | None]
    started_at: Mapped[Moment]
    finished_at: Mapped[Moment | None]


class TextRow(InProject, Base):
    """A text of a project; those that are equal once clean are one."""

    __tablename__ = "malmoi_texts"
    __table_args__ = (
        UniqueConstraint("project_id", "text_sha256"),
        Index("ix_malmoi_texts_open", "project_id", "is_open", "id"),
        Index("ix_malmoi_texts_lottery", "project_id", "lottery"),
        Index("ix_malmoi_texts_open_lottery", "project_id", "is_open", "lottery"),
        Index("ix_malmoi_texts_disagreeing", "project_id", "disagrees", "id"),
        Index("ix_malmoi_texts_alike", "alike"),
        Index(
            "ix_malmoi_texts_assigned",
            *("project_id", "assigned_to", "id"),
            sqlite_where=text("assigned_to IS NOT NULL"),
            postgresql_where=text("assigned_to IS NOT NULL"),
        ),
        # Of the texts that are handed out first, so that no queue looks through the others.
        *(
            Index(
                f"ix_malmoi_texts_{name}",
                "project_id",
                "is_open",
                place,
                sqlite_where=text("alike IS NULL OR alike = id"),
                postgresql_where=text("alike IS NULL OR alike = id"),
            )
            for name, place in (("first", "id"), ("first_lottery", "lottery"))
        ),
    )

    text: Mapped[LongText]
    # As `Label.text_sha256`.
    text_sha256: Mapped[str] = mapped_column(String(64))
    # Drawn once, evenly from 0 to 1: the lowest are a random sample, whatever else is labelled.
    lottery: Mapped[Number]
    # How many annotators have labelled it, whether that are too few, and whether they differ.
    votes: Mapped[int]
    is_open: Mapped[bool]
    disagrees: Mapped[bool]
    # The adjudication that holds now.
    adjudication_id: Mapped[int | None]
    # The id of the first of the texts that are nearly the same as this one; None: none was found.
    alike: Mapped[int | None]
    # Who is to label it before others may; None: anybody.
    assigned_to: Mapped[PersonName | None]


class TextSourceRow(Base):
    """A row of a file that a text came from; duplicates have several."""

    __tablename__ = "malmoi_text_sources"
    __table_args__ = (Index("ix_malmoi_text_sources_text", "text_id"),)

    id: Mapped[Id]
    text_id: Mapped[TextId]
    import_id: Mapped[int] = mapped_column(ForeignKey("malmoi_text_imports.id"))
    source: Mapped[LongText]
    place: Mapped[LongText]
    # The text as it stood in this row, where it differs from that of `texts`.
    text: Mapped[LongText | None]
    cells: Mapped[LongText]  # the other columns, a JSON object


class AnnotationRow(InProject, Base):
    """One act of one annotator on one text."""

    __tablename__ = "malmoi_annotations"
    __table_args__ = (
        Index("ix_malmoi_annotations_text", "text_id", "annotator", "id"),
        Index("ix_malmoi_annotations_annotator", "project_id", "annotator", "id"),
        Index("ix_malmoi_annotations_created", "project_id", "created_at"),
        # Flags are few: those of a project are found without its labels.
        Index(
            "ix_malmoi_annotations_flags",
            "project_id",
            "text_id",
            sqlite_where=text("kind = 'flag'"),
            postgresql_where=text("kind = 'flag'"),
        ),
    )

    text_id: Mapped[TextId]
    annotator: Mapped[PersonName]
    kind: Mapped[str] = mapped_column(String(8))  # label, skip, flag, note, undo
    # Of a label: ids of `project_labels`, sorted, as a JSON list.
    choice: Mapped[LongText | None]
    flagged: Mapped[bool | None]
    note: Mapped[LongText | None]
    # Of an undo: the row that holds no longer.
    withdraws: Mapped[int | None] = mapped_column(ForeignKey("malmoi_annotations.id"), index=True)
    guideline_version: Mapped[int]
    suggested_label: Mapped[LongText | None]
    suggested_score: Mapped[Number | None]
    suggested_model: Mapped[LongText | None]
    # How the text had come to the annotator: plain, scores, random; None: by the annotator.
    drawn: Mapped[str | None] = mapped_column(String(8))
    seconds: Mapped[Number | None]
    request_id: Mapped[RequestId]
    created_at: Mapped[Moment]


class PlaceRow(InProject, Base):
    """What one annotator has to do with one text now."""

    __tablename__ = "malmoi_places"
    __table_args__ = (
        UniqueConstraint("text_id", "annotator"),
        Index("ix_malmoi_places_annotator", "project_id", "annotator", "state", "drawn", "text_id"),
        Index("ix_malmoi_places_choice", "project_id", "state", "choice"),
    )

    text_id: Mapped[TextId]
    annotator: Mapped[PersonName]
    state: Mapped[str] = mapped_column(String(8))  # leased, labelled, skipped, returned
    expires_at: Mapped[Moment | None]
    drawn: Mapped[str | None] = mapped_column(String(8))
    # The row of the log that holds, and its choice.
    annotation_id: Mapped[int | None]
    choice: Mapped[LongText | None]


class AdjudicationRow(InProject, Base):
    """One decision of a reviewer about a text, or the withdrawal of one."""

    __tablename__ = "malmoi_adjudications"
    __table_args__ = (
        Index("ix_malmoi_adjudications_text", "text_id", "id"),
        Index("ix_malmoi_adjudications_project", "project_id", "id"),
    )

    text_id: Mapped[TextId]
    reviewer: Mapped[PersonName]
    # As of an annotation; None: what was decided before is withdrawn.
    choice: Mapped[LongText | None]
    note: Mapped[LongText | None]
    guideline_version: Mapped[int]
    request_id: Mapped[RequestId]
    created_at: Mapped[Moment]


class ScoreVersionRow(InProject, Base):
    """One order of the texts, as a model wrote it, and how good that model was."""

    __tablename__ = "malmoi_score_versions"
    __table_args__ = (Index("ix_malmoi_score_versions_project", "project_id"),)

    model: Mapped[LongText]
    created_at: Mapped[Moment]
    # How many labelled texts it had learnt from, and its macro F1: in folds over all of them, and
    # over those of the random sample (`sample_texts` of them). None: not measured.
    labels: Mapped[int | None]
    cross_validated_f1: Mapped[Number | None]
    sample_f1: Mapped[Number | None]
    sample_texts: Mapped[int | None]
    # The macro F1 of the model that is chosen for the project, over those of these texts that it
    # had not learnt from. None: none is chosen, or these were too few.
    chosen_f1: Mapped[Number | None]
    # How many labels it knew, and of how many texts that were drawn by chance it gave as many the
    # label of people, before it had learnt them.
    kinds: Mapped[int | None]
    drawn_texts: Mapped[int | None]
    drawn_right: Mapped[int | None]


class TextScoreRow(Base):
    """How much a label of this text would help, and what the model would say."""

    __tablename__ = "malmoi_text_scores"
    __table_args__ = (
        Index("ix_malmoi_text_scores_priority", "version", "priority", "text_id"),
        Index("ix_malmoi_text_scores_doubt", "version", "doubt", "text_id"),
    )

    version: Mapped[int] = mapped_column(ForeignKey("malmoi_score_versions.id"), primary_key=True)
    text_id: Mapped[int] = mapped_column(ForeignKey("malmoi_texts.id"), primary_key=True)
    # None: the text has all its votes.
    priority: Mapped[Number | None]
    # What the model would say first and second, and its probabilities.
    label: Mapped[LongText | None]
    score: Mapped[Number | None]
    second_label: Mapped[LongText | None]
    second_score: Mapped[Number | None]
    # Of a labelled text: one less the probability of its label, when the model had not learnt from
    # it. The highest are the likeliest errors.
    doubt: Mapped[Number | None]


# Where people stand by name, but as members and in the trail.
NAMES = (
    *(AnnotationRow.annotator, PlaceRow.annotator, AdjudicationRow.reviewer, GuidelineRow.author),
    *(TextImportRow.person, AccessKeyRow.person, AccessKeyRow.created_by),
    *(WebhookRow.created_by, TextRow.assigned_to),
)
