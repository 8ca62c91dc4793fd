"""User names that an entity wrote, compared with those of accounts (D68)."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from corpid.rules.directory.changes import NameRefused
from corpid.stores.sql.codecs import columns
from corpid.stores.sql.directory_tables import memberships
from corpid.stores.sql.mappers import MEMBERSHIPS, user_name_key


def namesakes() -> sa.Select[Any]:
    """`user_id`, `name` → members of the same entities with this written name."""
    own, other = memberships.alias("own"), memberships.alias("other")
    same = other.c.entity_id == own.c.entity_id, other.c.user_id != own.c.user_id
    return (
        sa.select(*columns(other, MEMBERSHIPS))
        .select_from(own.join(other, sa.and_(*same)))
        .where(
            own.c.user_id == sa.bindparam("user_id", type_=sa.Text),
            sa.not_(own.c.invited),
            other.c.user_name_key == sa.bindparam("name", type_=sa.Text),
            other.c.user_name_key != sa.literal_column("''", sa.Text),  # its index has no other rows
        )
    )


def account_named() -> sa.Select[Any]:
    """`user_id`, `entity_id`, `name` → another member whose account has this name."""
    same = memberships.c.entity_id == sa.bindparam("entity_id", type_=sa.Text)
    named = memberships.c.person_name_key == sa.bindparam("name", type_=sa.Text)
    another = memberships.c.user_id != sa.bindparam("user_id", type_=sa.Text)
    return sa.select(memberships.c.user_id).where(same, named, another).limit(1)


def is_account_name(written: str, user_name: str) -> bool:
    """Return whether a written user name means the account of another."""
    try:
        return user_name_key(written) == user_name_key(user_name)
    except NameRefused:
        return False
