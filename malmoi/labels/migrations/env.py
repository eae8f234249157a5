"""Runs the migrations on the connection that `malmoi.labels.schema` hands over.

To change the layout: change `malmoi/labels/tables.py`, write the next file of `versions/` by
the example of the last, and raise `schema.HEAD`. A test compares the models with what migrations
make.
"""

from alembic import context

from malmoi.labels.schema import VERSION_TABLE
from malmoi.labels.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
