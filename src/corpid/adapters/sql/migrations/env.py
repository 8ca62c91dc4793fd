"""Runs migrations on the connection and in the transaction that `schema` hands over."""

from __future__ import annotations

from alembic import context

from corpid.adapters.sql.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transactional_ddl=True,
    render_as_batch=True,
)
context.run_migrations()
