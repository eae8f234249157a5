"""How queries are helped to an index, where SQLite would take a worse one."""

from typing import Any

from sqlalchemy import ColumnElement, Connection
from sqlalchemy.sql.expression import UnaryExpression
from sqlalchemy.sql.operators import custom_op


def without_index(connection: Connection, column: Any) -> ColumnElement[Any]:
    """The column, so that SQLite looks for no index of it (https://sqlite.org/optoverview.html).

    It knows nothing of how often a value occurs, so it would find the texts of a project by an
    index of another order than is wanted and sort them all. PostgreSQL counts, and is left alone.
    """
    if connection.dialect.name != "sqlite":
        found: ColumnElement[Any] = column
        return found
    return UnaryExpression(column, operator=custom_op("+"))
