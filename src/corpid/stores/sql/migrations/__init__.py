"""Alembic's environment; `schema` runs it."""
