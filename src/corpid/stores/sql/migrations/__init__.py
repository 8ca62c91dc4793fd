"""Migrations of the schema; `schema` runs them."""
