"""The decided labels of a project, as records to train on."""

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.connection import reading_engine, reason
from malmoi.labels.database import LabelDatabase, as_part
from malmoi.labels.final_label_rule import final_label, iter_reviewed
from malmoi.labels.label_names import normal_label
from malmoi.labels.people import Person
from malmoi.labels.tables import ProjectRow
from malmoi.text.record import Record

# Whoever can open the database can read all of it anyway.
READER = Person(name="malmoi", is_local=True)
# Projects that an error names.
_NAMED = 10


def iter_label_records(database: LabelDatabase) -> Iterator[Record]:
    """Texts with a decided label, in the order of import; nothing is changed.

    The label is a reviewer's, else that of all annotators or of more than half of them. Of a
    `multi` project it is a JSON list.

    Args:
        database: of the app; its part names the project, which the only one needs not.

    Raises:
        InputError: there is no such database, it is not the app's, damaged or locked for long, it
            has no such project, or several of which none is named.
    """
    try:
        engine = reading_engine(database)
        with engine.connect() as connection:
            project_id = _project_id(connection, database)
        access = ProjectAccess(engine=engine, project_id=project_id, person=READER)
        with access.reading() as connection:
            kind = access.kind(connection)
            for texts in iter_reviewed(access, connection, labelled_only=True):
                for text in texts:
                    final = final_label(text)
                    if final is not None:
                        yield Record(
                            id=f"{database.name}:{text.text_id}",
                            text=text.text,
                            label=final.written(kind),
                            source=database.name,
                        )
    except (SQLAlchemyError, ImportError) as error:
        raise InputError(
            "expected the label database of the app, found {error}; export the labels in the app "
            "as CSV instead",
            place=database,
            error=reason(error),
        ) from error


def _project_id(connection: Connection, database: LabelDatabase) -> int:
    """The project that the part names, or the only one."""
    known: dict[str, int] = {}
    if inspect(connection).has_table(ProjectRow.__tablename__):
        query = select(ProjectRow.name, ProjectRow.id).order_by(ProjectRow.name)
        known = {name: identifier for name, identifier in connection.execute(query)}
    if not known:
        raise InputError(
            "expected a label database with a project, found none in it; make one in the app",
            place=database,
        )
    if database.part is None:
        if len(known) > 1:
            raise InputError(
                "expected the name of a project behind it, {names}, found none; write it at the "
                "end of --data",
                place=database,
                names=_behind(list(known)),
            )
        return next(iter(known.values()))
    name = normal_label(database.part)
    if name not in known:
        raise InputError(
            "expected one of the projects of this database, {names}, found #{part}",
            place=database,
            names=_behind(list(known)),
            part=database.part,
        )
    return known[name]


def _behind(names: Sequence[str]) -> str:
    """Names of projects as they are written behind a database, the first of many."""
    shown = [f"#{as_part(name)}" for name in names[:_NAMED]]
    return ", ".join(shown) + (" …" if len(names) > _NAMED else "")
