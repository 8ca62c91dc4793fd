"""Migrations of a schema that is there; `schema` runs them."""
