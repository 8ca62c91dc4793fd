"""Members that entities provision and invite, and provisioning tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0017"
phase = "expand"
locks = "the tables users, memberships and entities against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
_TEXTS = ("membership_id", "user_name", "user_name_key", "external_id", "name", "given_name", "family_name", "email")
_MOMENTS = ("created_at", "changed_at", "invitation_sent_at")
# The engine gives every row its identifier, whichever version writes it: on insertion, and when a row without one is
# written. A placeholder ends with the invitation that it stands for, however that ends.
_UUID = """
lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
|| substr('89ab', 1 + abs(random() % 4), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))
"""
_IDENTIFIED = """
CREATE TRIGGER memberships_identified_after_{verb} AFTER {verb} ON memberships
WHEN NEW.membership_id = ''
BEGIN
  UPDATE memberships SET membership_id = {uuid}
  WHERE user_id = NEW.user_id AND entity_id = NEW.entity_id;
END
"""
_SQLITE = (
    _IDENTIFIED.format(verb="INSERT", uuid=_UUID),
    _IDENTIFIED.format(verb="UPDATE", uuid=_UUID),
    """
CREATE TRIGGER memberships_end_placeholder AFTER DELETE ON memberships WHEN OLD.invited
BEGIN DELETE FROM users WHERE user_id = OLD.user_id AND placeholder; END
""",
)
_POSTGRESQL = (
    """
CREATE FUNCTION memberships_identify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.membership_id := gen_random_uuid()::text;
  RETURN NEW;
END $$
""",
    """
CREATE TRIGGER memberships_identified BEFORE INSERT OR UPDATE ON memberships
FOR EACH ROW WHEN (NEW.membership_id = '') EXECUTE FUNCTION memberships_identify()
""",
    """
CREATE FUNCTION memberships_end_placeholder() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM users WHERE user_id = OLD.user_id AND placeholder;
  RETURN NULL;
END $$
""",
    """
CREATE TRIGGER memberships_end_placeholder AFTER DELETE ON memberships
FOR EACH ROW WHEN (OLD.invited) EXECUTE FUNCTION memberships_end_placeholder()
""",
)
_STATEMENTS = {"sqlite": _SQLITE, "postgresql": _POSTGRESQL}


def upgrade(op: Operations) -> None:
    """Add columns, a table and triggers.

    The previous version's servers do not use columns and table. They read a placeholder as a person without factors.
    """
    for name in _TEXTS:
        op.add_column("memberships", sa.Column(name, _TEXT, nullable=False, server_default=""))
    for name in _MOMENTS:
        op.add_column("memberships", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("memberships", sa.Column("invited", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("users", sa.Column("placeholder", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "provisioning_tokens",
        *(sa.Column(name, _TEXT, nullable=False) for name in ("token_id", "entity_id", "name", "token_hash")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("created_at", "expires_at")),
        sa.Column("created_by", _TEXT, nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["entity_id"], ["entities.entity_id"], name="fk_provisioning_tokens_entity_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("token_id", name="pk_provisioning_tokens"),
        sa.UniqueConstraint("token_hash", name="uq_provisioning_tokens_token_hash"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_provisioning_tokens_entity_id", "provisioning_tokens", ["entity_id"])
    for statement in _STATEMENTS[op.get_context().dialect.name]:
        op.execute(statement)
