"""Requests and answers of the API for labels, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from malmoi.labels.annotating import Act, ActKind, Saved
from malmoi.labels.project import NewProject, Project, ProjectLabel, ProjectSettings, TaskKind
from malmoi.labels.roles import Role
from malmoi.labels.searching import MOST_ON_PAGE, FoundText, Search, SearchOrder, SearchState
from malmoi.labels.stored_text import sha256_of
from malmoi.labels.webhooks import EVENTS, Event, Webhook

# A column of ids holds no more.
Id = Annotated[int, Field(ge=1, le=2**31 - 1)]
# As a search gives it: the value of its order, if that is not the id, and the id.
_CURSOR = r"^(-?[0-9]+(\.[0-9]+)?(e-?[0-9]{1,2})?:)?[0-9]{1,9}$"
_NONE: Mapping[str, Any] = MappingProxyType({})
ExportFormat = Literal["csv", "xlsx", "jsonl", "json", "parquet", "label-studio", "doccano"]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class NewLabel(_Body):
    """A label that can be chosen."""

    name: str = Field(examples=["긍정"])
    title: str = ""
    meaning: str = ""


class NewProjectBody(_Body):
    """A project, whose admin is whoever makes it."""

    name: str = Field(examples=["reviews"])
    labels: list[NewLabel] = Field(min_length=1, max_length=1_000)
    kind: TaskKind = Field("single", description="Whether a text has one label or several.")
    guideline: str = Field("", description="Markdown.")
    annotators_per_text: int = Field(1, ge=1, le=100)

    def as_project(self) -> NewProject:
        """What is made; InputError where it is none."""
        return NewProject(
            name=self.name,
            labels=[ProjectLabel(**label.model_dump()) for label in self.labels],
            kind=self.kind,
            guideline=self.guideline,
            settings=ProjectSettings(annotators_per_text=self.annotators_per_text),
        )


class NewText(_Body):
    """A text with what else is known of it."""

    text: str = Field(examples=["배송이 빨라요"])
    columns: dict[str, str | bool | int | Annotated[float, Field(allow_inf_nan=False)] | None] = (
        Field(default={}, max_length=100, examples=[{"상품": "장갑", "별점": 5}])
    )


# Each form has errors of its own: a wrong column is not told as a text that is none.
_TextOrWhole = Annotated[
    Annotated[NewText, Tag("object")] | Annotated[str, Tag("str")],
    Discriminator(lambda value: "object" if isinstance(value, dict | NewText) else "str"),
]


class NewTexts(_Body):
    """Texts that become part of a project; those that it has stay."""

    texts: list[_TextOrWhole] = Field(min_length=1, max_length=1_000, examples=[["배송이 빨라요"]])
    source: str = Field("api", max_length=200, description="Where they come from.")


class NewAct(_Body):
    """One act of the annotator whose token it is, on one text."""

    text_id: Id
    kind: ActKind = "label"
    request_id: str = Field(
        min_length=1,
        max_length=128,
        description="Your own name for this act: sent again, it is saved once.",
        examples=["import-7-of-monday"],
    )
    labels: list[str] = Field([], examples=[["긍정"]], description="Of a label, by name.")
    shown: str | None = Field(None, description="`sha256` of the text that was looked at.")
    flagged: bool = Field(True, description="Of a flag: up or down.")
    note: str = Field("", description="Of a note.")
    withdraws: str | None = Field(None, description="Of an undo: the `request_id` of the act.")
    seconds: float | None = Field(None, ge=0, description="That the act took.")
    guideline_version: Id | None = None

    def as_act(self) -> Act:
        """What is saved; InputError where it is none."""
        return Act(**self.model_dump())


class NewActs(_Body):
    """Acts in the order in which they were done; all of them are saved, or none."""

    acts: list[NewAct] = Field(min_length=1, max_length=1_000)


class NewDecision(_Body):
    """What a reviewer decides about a text."""

    text_id: Id
    labels: list[str] | None = Field(
        examples=[["긍정"]], description="null withdraws the decision before."
    )
    request_id: str = Field(min_length=1, max_length=128, examples=["decision-7"])
    note: str = Field("", description="Why.")
    shown: str | None = Field(None, description="`sha256` of the text that was looked at.")


class NewWebhook(_Body):
    """An address that is told what happens in a project from now on."""

    url: str = Field(max_length=2_000, examples=["https://example.com/labels"])
    events: list[Event] = Field(list(EVENTS), min_length=1, max_length=len(EVENTS))


class SearchQuery(BaseModel):
    """What is looked for; every part that is given has to hold."""

    model_config = ConfigDict(extra="forbid")

    words: str = Field("", max_length=200, description="Parts of the text, with space between.")
    label: str | None = None
    suggested: str | None = Field(None, description="What the model says.")
    annotator: str | None = None
    assigned_to: str | None = Field(None, description="To whom it was given to label.")
    source: str = ""
    state: SearchState | None = None
    order: SearchOrder = "imported"
    after: str | None = Field(None, pattern=_CURSOR, description="`next` of the page before.")
    limit: int = Field(50, ge=1, le=MOST_ON_PAGE)

    def as_search(self) -> Search:
        """What is looked for, but the page."""
        return Search(**self.model_dump(exclude={"after", "limit"}))

    @property
    def cursor(self) -> tuple[float | None, int] | None:
        """Where the page begins."""
        if self.after is None:
            return None
        value, _, text_id = self.after.rpartition(":")
        return (float(value) if value else None, int(text_id))


class OfferedLabel(BaseModel):
    """A label that can be chosen."""

    name: str = Field(examples=["긍정"])
    title: str
    meaning: str


class ProjectAnswer(BaseModel):
    """A project, and what the person is in it."""

    id: int
    name: str = Field(examples=["reviews"])
    kind: TaskKind
    role: Role
    labels: list[OfferedLabel]
    guideline: str = Field(description="Markdown.")
    guideline_version: int

    @staticmethod
    def of(project: Project) -> ProjectAnswer:
        """Of a project that was read."""
        labels = [
            OfferedLabel(name=one.name, title=one.title, meaning=one.meaning)
            for one in project.offered_labels
        ]
        names = ("id", "name", "kind", "role", "guideline", "guideline_version")
        return ProjectAnswer(labels=labels, **{name: getattr(project, name) for name in names})


class ProjectsAnswer(BaseModel):
    """Those of which the person is a member."""

    projects: list[ProjectAnswer]


class VoteAnswer(BaseModel):
    """What one annotator says about a text now; no label for a skip."""

    annotator: str
    labels: list[str]
    skipped: bool
    flagged: bool
    note: str


class CommentAnswer(BaseModel):
    """A note of the thread of annotators and reviewers about a text."""

    person: str
    text: str
    written_at: datetime


class TextAnswer(BaseModel):
    """A text with what the person may see of it: annotators see no label of others."""

    text_id: int
    text: str
    sha256: str = Field(description="Send it as `shown`, so that no other text gets the label.")
    votes: list[VoteAnswer]
    comments: list[CommentAnswer] = Field(description="The thread, oldest first.")
    decided: list[str] | None = Field(description="By a reviewer.")
    reviewer: str | None
    suggested: str | None = Field(description="What the model says.")
    score: float | None
    labelled_at: datetime | None
    source: str = Field(description="Where it came from first, such as a file.")
    columns: dict[str, Any] = Field(description="The other columns that it had there.")

    @staticmethod
    def of(text: FoundText, source: str = "", columns: Mapping[str, Any] = _NONE) -> TextAnswer:
        """Of a text that was found."""
        names = ("annotator", "skipped", "flagged", "note")
        votes = [
            VoteAnswer(labels=list(vote.labels), **{name: getattr(vote, name) for name in names})
            for vote in text.votes
        ]
        return TextAnswer(
            text_id=text.text_id,
            text=text.text,
            sha256=sha256_of(text.text),
            votes=votes,
            comments=[CommentAnswer(**asdict(one)) for one in text.comments],
            decided=None if text.adjudicated is None else list(text.adjudicated),
            reviewer=text.reviewer,
            suggested=None if text.view is None else text.view.label,
            score=None if text.view is None else text.view.score,
            labelled_at=text.labelled_at,
            source=source,
            columns=dict(columns),
        )


class TextsAnswer(BaseModel):
    """A page of a search."""

    texts: list[TextAnswer]
    next: str | None = Field(description="Send it as `after`; null after the last page.")


class TextIds(BaseModel):
    """The id of each text, in the order of the request."""

    text_ids: list[int]


class SavedAnswer(BaseModel):
    """The row of an act or a decision, and whether this request wrote it."""

    id: int
    new: bool

    @staticmethod
    def of(saved: Saved) -> SavedAnswer:
        """Of a row."""
        return SavedAnswer(id=saved.id, new=saved.new)


class SavedActs(BaseModel):
    """For each act its row, in the order of the request."""

    saved: list[SavedAnswer]


class WebhookAnswer(BaseModel):
    """An address, and how it takes what it is sent; its secret is not shown again."""

    id: int
    url: str
    events: list[Event]
    created_by: str
    created_at: datetime
    delivered_at: datetime | None
    error: str | None = Field(description="Why the last try failed.")
    waiting: int = Field(description="Deliveries to come.")
    given_up: int

    @staticmethod
    def of(webhook: Webhook) -> WebhookAnswer:
        """Of one that was read."""
        return WebhookAnswer(**asdict(webhook))


class WebhooksAnswer(BaseModel):
    """Those of a project, newest first."""

    webhooks: list[WebhookAnswer]


class WebhookSecret(BaseModel):
    """A webhook that was made."""

    id: int
    secret: str = Field(description="Signs what is sent, see standardwebhooks.com; shown once.")
