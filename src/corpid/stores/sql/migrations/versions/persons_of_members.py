"""User name and address of the person, with each membership."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0021"
phase = "expand"
locks = "the tables users and memberships against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
# The engine keeps the copies, whichever version writes: of a row that has none when it is written, and of every
# membership of a person who gets another user name or address.
_COPIED = """
CREATE TRIGGER memberships_person_after_{verb} AFTER {verb} ON memberships
WHEN NEW.person_name_key = ''
BEGIN
  UPDATE memberships
  SET person_name_key = coalesce((SELECT user_name_key FROM users WHERE user_id = NEW.user_id), ''),
      person_email = coalesce((SELECT email FROM users WHERE user_id = NEW.user_id), '')
  WHERE user_id = NEW.user_id AND entity_id = NEW.entity_id;
END
"""
_SQLITE = (
    _COPIED.format(verb="INSERT"),
    _COPIED.format(verb="UPDATE"),
    """
CREATE TRIGGER users_person_of_members AFTER UPDATE OF user_name_key, email ON users
WHEN OLD.user_name_key <> NEW.user_name_key OR OLD.email <> NEW.email
BEGIN
  UPDATE memberships SET person_name_key = NEW.user_name_key, person_email = NEW.email WHERE user_id = NEW.user_id;
END
""",
)
_POSTGRESQL = (
    # The person's row is held until the end: a change of their name meanwhile waits, and then sees this row. It is not
    # held for a row that is there, whose copies stay: that change may wait for the row already.
    """
CREATE FUNCTION memberships_copy_person() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' AND EXISTS (
    SELECT 1 FROM memberships WHERE user_id = NEW.user_id AND entity_id = NEW.entity_id
  ) THEN
    SELECT user_name_key, email INTO NEW.person_name_key, NEW.person_email FROM users WHERE user_id = NEW.user_id;
  ELSE
    SELECT user_name_key, email INTO NEW.person_name_key, NEW.person_email
    FROM users WHERE user_id = NEW.user_id FOR SHARE;
  END IF;
  NEW.person_name_key := coalesce(NEW.person_name_key, '');
  NEW.person_email := coalesce(NEW.person_email, '');
  RETURN NEW;
END $$
""",
    """
CREATE TRIGGER memberships_person BEFORE INSERT OR UPDATE ON memberships
FOR EACH ROW WHEN (NEW.person_name_key = '') EXECUTE FUNCTION memberships_copy_person()
""",
    """
CREATE FUNCTION users_person_of_members() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE memberships SET person_name_key = NEW.user_name_key, person_email = NEW.email WHERE user_id = NEW.user_id;
  RETURN NULL;
END $$
""",
    """
CREATE TRIGGER users_person_of_members AFTER UPDATE OF user_name_key, email ON users
FOR EACH ROW WHEN (OLD.user_name_key <> NEW.user_name_key OR OLD.email <> NEW.email)
EXECUTE FUNCTION users_person_of_members()
""",
)
_STATEMENTS = {"sqlite": _SQLITE, "postgresql": _POSTGRESQL}


def upgrade(op: Operations) -> None:
    """Add columns and triggers.

    The previous version's servers do not use the columns.
    """
    for name in ("person_name_key", "person_email"):
        op.add_column("memberships", sa.Column(name, _TEXT, nullable=False, server_default=""))
    for statement in _STATEMENTS[op.get_context().dialect.name]:
        op.execute(statement)
