"""Words of people, entities and members, by which they are found (D83)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "0041"
phase = "expand"
locks = "the tables users, entities and memberships against readers and writers, for a moment"

_TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
_WORDS = (
    ("user_words", ("word", "user_id"), ("user_id", "word"), "users", ("user_id",)),
    ("entity_words", ("word", "entity_id"), ("entity_id", "word"), "entities", ("entity_id",)),
    (
        "member_words",
        ("entity_id", "word", "user_id"),
        ("user_id", "entity_id", "word"),
        "memberships",
        ("user_id", "entity_id"),
    ),
)
"""table, its columns, those of its index, and the table and columns that it refers to"""
_SEARCHED = {
    "user": ("users", ("user_name", "name", "email")),
    "entity": ("entities", ("entity_id", "registration_number", "name")),
    "membership": ("memberships", ("user_name", "name", "email", "department", "job_title")),
}

# The engine writes the words with the record, whichever statement does. Of a member they are those that the entity
# wrote, and the person's where it wrote none (D61); the user name of the account finds them always (D68).
_OF_RECORD = "SELECT DISTINCT word.value, NEW.{key} FROM {fields} WHERE {condition}"
_OF_MEMBERS = """
  INSERT INTO member_words (entity_id, word, user_id)
  SELECT m.entity_id, word.value, m.user_id FROM memberships m, {own} WHERE {which}
  UNION
  SELECT m.entity_id, word.value, m.user_id FROM memberships m JOIN users u ON u.user_id = m.user_id, {persons}
  WHERE {which} AND NOT u.placeholder AND (
    field.key = 'user_name' OR (field.key = 'name' AND m.name = '') OR (field.key = 'email' AND m.email = ''))
  UNION
  SELECT m.entity_id, CASE WHEN m.invited THEN ' invited' WHEN NOT m.enabled THEN ' suspended'
    WHEN u.enabled THEN ' active' ELSE ' locked' END, m.user_id
  FROM memberships m JOIN users u ON u.user_id = m.user_id WHERE {which}"""
_OF_PERSON = "m.user_id = NEW.user_id"
_OF_MEMBER = "m.user_id = NEW.user_id AND m.entity_id = NEW.entity_id"
_USER_CHANGED = "OLD.words <> NEW.words OR OLD.enabled <> NEW.enabled OR OLD.placeholder <> NEW.placeholder"
_MEMBER_CHANGED = (
    "OLD.words <> NEW.words OR OLD.name <> NEW.name OR OLD.email <> NEW.email OR OLD.invited <> NEW.invited "
    "OR OLD.enabled <> NEW.enabled"
)


def _fields(row: str, dialect: str) -> str:
    if dialect == "sqlite":
        return f"json_each({row}.words) AS field, json_each(field.value) AS word"
    return f"jsonb_each({row}.words::jsonb) AS field, jsonb_array_elements_text(field.value) AS word"


def _write_record(table: str, key: str, dialect: str, condition: str = "true") -> str:
    found = _OF_RECORD.format(key=key, fields=_fields("NEW", dialect), condition=condition)
    return f"  INSERT INTO {table} (word, {key}) {found}"


def _write_members(which: str, dialect: str) -> str:
    return _OF_MEMBERS.format(own=_fields("m", dialect), persons=_fields("u", dialect), which=which)


def _triggers(dialect: str) -> list[str]:
    """The body of each trigger, with its table, verb and condition."""
    persons = _write_record("user_words", "user_id", dialect, "NOT NEW.placeholder")
    entitys = _write_record("entity_words", "entity_id", dialect)
    member = _write_members(_OF_MEMBER, dialect)
    # Whoever writes one of the memberships meanwhile comes before or after.
    held = "  PERFORM 1 FROM memberships m WHERE m.user_id = NEW.user_id ORDER BY m.entity_id FOR NO KEY UPDATE;\n"
    update = (
        "  DELETE FROM user_words WHERE user_id = NEW.user_id;\n"
        f"{persons};\n{held if dialect == 'postgresql' else ''}"
        "  DELETE FROM member_words WHERE user_id = NEW.user_id;\n"
        f"{_write_members(_OF_PERSON, dialect)}"
    )
    made = [
        ("users_words_insert", "INSERT ON users", "true", persons),
        ("users_words_update", "UPDATE OF words, enabled, placeholder ON users", _USER_CHANGED, update),
        ("entities_words_insert", "INSERT ON entities", "true", entitys),
        (
            "entities_words_update",
            "UPDATE OF words ON entities",
            "OLD.words <> NEW.words",
            f"  DELETE FROM entity_words WHERE entity_id = NEW.entity_id;\n{entitys}",
        ),
        ("memberships_words_insert", "INSERT ON memberships", "true", member),
        (
            "memberships_words_update",
            "UPDATE OF words, name, email, invited, enabled ON memberships",
            _MEMBER_CHANGED,
            "  DELETE FROM member_words WHERE user_id = NEW.user_id AND entity_id = NEW.entity_id;\n" + member,
        ),
    ]
    for record, (table, columns) in _SEARCHED.items():
        user, entity = ("''" if record == each else f"NEW.{key}" for each, key in _OTHERS)
        noted = (
            f"  INSERT INTO outdated_words (record, user_id, entity_id) VALUES ('{record}', {user}, {entity})"
            " ON CONFLICT DO NOTHING"
        )
        filled = " OR ".join(f"NEW.{each} <> ''" for each in columns)
        changed = " OR ".join(f"OLD.{each} <> NEW.{each}" for each in columns)
        made += [
            (f"{table}_outdated_insert", f"INSERT ON {table}", f"NEW.words = '{{}}' AND ({filled})", noted),
            (
                f"{table}_outdated_update",
                f"UPDATE OF {', '.join(columns)} ON {table}",
                f"OLD.words = NEW.words AND ({changed})",
                noted,
            ),
        ]
    if dialect == "sqlite":
        return [
            f"CREATE TRIGGER {name} AFTER {event} WHEN {condition}\nBEGIN\n{body};\nEND"
            for name, event, condition, body in made
        ]
    statements = []
    for name, event, condition, body in made:
        statements += [
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$\nBEGIN\n{body};\n  RETURN NULL;\nEND $$",
            f"CREATE TRIGGER {name} AFTER {event}\nFOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {name}()",
        ]
    return statements


_OTHERS = (("entity", "user_id"), ("user", "entity_id"))
"""the record that has no such identifier"""


def upgrade(op: Operations) -> None:
    """Add columns, tables and triggers.

    The previous version's servers write no words; a trigger notes the records that they write.
    """
    for table in ("users", "entities", "memberships"):
        op.add_column(table, sa.Column("words", _TEXT, nullable=False, server_default="{}"))
    for name, columns, indexed, referred, keys in _WORDS:
        op.create_table(
            name,
            *(sa.Column(each, _TEXT, nullable=False) for each in columns),
            sa.ForeignKeyConstraint(
                keys, [f"{referred}.{each}" for each in keys], name=f"fk_{name}_{'_'.join(keys)}", ondelete="CASCADE"
            ),
            sa.PrimaryKeyConstraint(*columns, name=f"pk_{name}"),
            sqlite_with_rowid=False,
        )
        op.create_index(f"ix_{name}_{'_'.join(indexed)}", name, list(indexed))
    op.create_table(
        "outdated_words",
        *(sa.Column(each, _TEXT, nullable=False) for each in ("record", "user_id", "entity_id")),
        sa.PrimaryKeyConstraint("record", "user_id", "entity_id", name="pk_outdated_words"),
        sqlite_with_rowid=False,
    )
    for statement in _triggers(op.get_context().dialect.name):
        op.execute(statement)
