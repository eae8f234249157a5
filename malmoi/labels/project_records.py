"""The decided labels of a project, as records to train on."""

from collections.abc import Iterator

from sqlalchemy import Connection, Engine, inspect, select

from malmoi.labels.access import ProjectAccess
from malmoi.labels.final_labels import final_label, iter_reviewed
from malmoi.labels.people import Person
from malmoi.labels.project_models import ProjectRow
from malmoi.text.record import Record

# Whoever can open the database can read all of it anyway.
READER = Person(name="malmoi", is_local=True)


def project_id_of(connection: Connection, name: str) -> int | None:
    """The project of this name; None without one, or in a database from before there were any."""
    if not inspect(connection).has_table(ProjectRow.__tablename__):
        return None
    return connection.scalar(select(ProjectRow.id).where(ProjectRow.name == name))


def project_names(connection: Connection) -> list[str]:
    """The names of all projects; none in a database from before there were any."""
    if not inspect(connection).has_table(ProjectRow.__tablename__):
        return []
    return list(connection.scalars(select(ProjectRow.name).order_by(ProjectRow.name)))


def iter_project_records(engine: Engine, project_id: int, source: str) -> Iterator[Record]:
    """Texts with a decided label, in the order of import: a reviewer's, else that of all annotators
    or of more than half of them. Of a `multi` project the label is a JSON list.

    Args:
        engine: of the database; nothing is changed.
        project_id: which project.
        source: what records carry as theirs.
    """
    access = ProjectAccess(engine=engine, project_id=project_id, person=READER)
    with access.reading() as connection:
        kind = access.kind(connection)
        for texts in iter_reviewed(access, connection, labelled_only=True):
            for text in texts:
                final = final_label(text)
                if final is not None:
                    yield Record(
                        id=f"{source}:{text.text_id}",
                        text=text.text,
                        label=final.written(kind),
                        source=source,
                    )
