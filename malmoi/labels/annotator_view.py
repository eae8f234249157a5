"""What a page shows an annotator beside the queue: how far the project is, and one text."""

from dataclasses import dataclass

from sqlalchemy import func, select

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.tables import PlaceRow, TextRow


@dataclass(frozen=True, kw_only=True)
class TextCounts:
    """How many texts a project has, and how many of them need labels."""

    total: int
    open: int


def has_texts(access: ProjectAccess) -> bool:
    """Whether the project has any text.

    Raises:
        AccessError: the person is no member.
    """
    query = select(TextRow.id).where(TextRow.project_id == access.project_id).limit(1)
    with access.reading() as connection:
        return connection.scalar(query) is not None


def text_counts(access: ProjectAccess) -> TextCounts:
    """Counted from an index; on a million texts it takes a tenth of a second, so keep the answer.

    Raises:
        AccessError: the person is no member.
    """
    mine = select(func.count()).where(TextRow.project_id == access.project_id)
    with access.reading() as connection:
        return TextCounts(
            total=connection.scalar(mine) or 0,
            open=connection.scalar(mine.where(TextRow.is_open)) or 0,
        )


def count_own_labels(access: ProjectAccess) -> int:
    """How many texts the person has labelled; counted from an index, so keep the answer.

    Raises:
        AccessError: the person is no member.
    """
    query = select(func.count()).where(
        PlaceRow.project_id == access.project_id,
        PlaceRow.annotator == access.person.name,
        PlaceRow.state == "labelled",
    )
    with access.reading() as connection:
        return connection.scalar(query) or 0


def read_text(access: ProjectAccess, text_id: int) -> str:
    """A text of the project, as it was imported.

    Raises:
        InputError: there is none of this id in the project, or the person is no member.
    """
    query = select(TextRow.text).where(
        TextRow.project_id == access.project_id, TextRow.id == text_id
    )
    with access.reading() as connection:
        found = connection.scalar(query)
    if found is None:
        raise InputError(
            "expected the id of a text of project {project_id}, found {text_id}",
            project_id=access.project_id,
            text_id=text_id,
        )
    return found
