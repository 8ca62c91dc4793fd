"""Triggers of the tables, on both engines.

They hold for servers of the previous version, too. SQLite fires those of one event in the order in which they are
made, PostgreSQL in the order of their names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.rules.directory.records import Entity, Membership, Service, User
from corpid.rules.directory.words import searched_fields
from corpid.rules.oauth.records import Client
from corpid.stores.sql.audit import WRITING_LOCK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Searched = Mapping[str, tuple[str, Sequence[str]]]

SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"


def write_triggers(dialect: str) -> list[str]:
    """The statements that make every trigger, with its function on PostgreSQL."""
    searched = {
        "user": ("users", searched_fields(User)),
        "entity": ("entities", searched_fields(Entity)),
        "membership": ("memberships", searched_fields(Membership)),
        "service": ("services", searched_fields(Service)),
        "client": ("clients", searched_fields(Client)),
    }
    return [
        *_AUDIT[dialect],
        *_write_client_triggers(dialect),
        *_MEMBERSHIPS[dialect],
        *write_word_triggers(dialect, searched),
        *write_person_triggers(dialect, PERSONS_COPIES),
    ]


# The audit is append-only. On PostgreSQL its writers hold a lock, so that readers by number miss none: the trigger fires
# before the first row takes its number. SQLite has one writer at a time: numbers become visible in their order.

_APPEND_ONLY: Final = ("audit", "audit_details", "audit_seals", "audit_digests")
_AUDIT: Final = {
    SQLITE: tuple(
        f"""
CREATE TRIGGER {table}_refuses_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END
"""
        for table in _APPEND_ONLY
        for verb in ("UPDATE", "DELETE")
    ),
    POSTGRESQL: (
        """
CREATE FUNCTION audit_refuses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the audit table is append-only' USING ERRCODE = 'restrict_violation'; END $$
""",
        *(
            f"""
CREATE TRIGGER {table}_refuses BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION audit_refuses()
"""
            for table in _APPEND_ONLY
        ),
        f"""
CREATE FUNCTION audit_announces() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_advisory_xact_lock_shared({WRITING_LOCK}); RETURN NULL; END $$
""",
        """
CREATE TRIGGER audit_announces BEFORE INSERT ON audit
FOR EACH STATEMENT EXECUTE FUNCTION audit_announces()
""",
    ),
}

# An identifier belongs to one kind of client, whichever process writes it. On PostgreSQL two writers of the same
# identifier wait for each other, so that the second one sees the first one's row.

_KINDS_OF_CLIENTS: Final = (("clients", "api_clients"), ("api_clients", "clients"))
_TAKEN_IDENTIFIER: Final = {
    SQLITE: (
        """
CREATE TRIGGER {table}_refuses_taken_identifier BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM {other} WHERE client_id = NEW.client_id)
BEGIN SELECT RAISE(ABORT, 'a client of another kind has this identifier'); END
""",
    ),
    POSTGRESQL: (
        """
CREATE FUNCTION {table}_refuse_taken_identifier() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(1131375625, hashtext(NEW.client_id));
  IF EXISTS (SELECT 1 FROM {other} WHERE client_id = NEW.client_id) THEN
    RAISE unique_violation USING MESSAGE = 'a client of another kind has this identifier';
  END IF;
  RETURN NEW;
END $$
""",
        """
CREATE TRIGGER {table}_refuses_taken_identifier BEFORE INSERT ON {table}
FOR EACH ROW EXECUTE FUNCTION {table}_refuse_taken_identifier()
""",
    ),
}


def _write_client_triggers(dialect: str) -> list[str]:
    return [
        statement.format(table=table, other=other)
        for table, other in _KINDS_OF_CLIENTS
        for statement in _TAKEN_IDENTIFIER[dialect]
    ]


# The engine gives every membership its identifier, whichever version writes it: on insertion, and when a row without one
# is written. A placeholder ends with the invitation that it stands for, however that ends.

_UUID: Final = """
lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
|| substr('89ab', 1 + abs(random() % 4), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))
"""
_IDENTIFIED: Final = """
CREATE TRIGGER memberships_identified_after_{verb} AFTER {verb} ON memberships
WHEN NEW.membership_id = ''
BEGIN
  UPDATE memberships SET membership_id = {uuid}
  WHERE user_id = NEW.user_id AND entity_id = NEW.entity_id;
END
"""
_MEMBERSHIPS: Final = {
    SQLITE: (
        _IDENTIFIED.format(verb="INSERT", uuid=_UUID),
        _IDENTIFIED.format(verb="UPDATE", uuid=_UUID),
        """
CREATE TRIGGER memberships_end_placeholder AFTER DELETE ON memberships WHEN OLD.invited
BEGIN DELETE FROM users WHERE user_id = OLD.user_id AND placeholder; END
""",
    ),
    POSTGRESQL: (
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
    ),
}

# The engine keeps copies of the person with each membership, whichever version writes: of a row that has none when it is
# written, and of every membership of a person of whom something copied changes.

PERSONS_COPIES: Final = {"person_name_key": "user_name_key", "person_email": "email", "person_full_name": "name"}
"""column of a membership → the person's column that it copies; the first one is never empty in a copy"""
_WRITTEN: Final = ("INSERT", "UPDATE")


def write_person_triggers(dialect: str, copies: Mapping[str, str]) -> list[str]:
    """The statements that make the triggers of copies.

    PostgreSQL replaces those that are there.
    """
    originals = ", ".join(copies.values())
    changed = " OR ".join(f"OLD.{each} <> NEW.{each}" for each in copies.values())
    copy = ", ".join(f"{to} = NEW.{each}" for to, each in copies.items())
    others = f"  UPDATE memberships SET {copy} WHERE user_id = NEW.user_id;"
    lacking = f"NEW.{next(iter(copies))} = ''"
    if dialect == SQLITE:
        looked_up = ", ".join(
            f"{to} = coalesce((SELECT {each} FROM users WHERE user_id = NEW.user_id), '')"
            for to, each in copies.items()
        )
        own = f"  UPDATE memberships SET {looked_up} WHERE user_id = NEW.user_id AND entity_id = NEW.entity_id;"
        made = [(f"memberships_person_after_{verb}", f"{verb} ON memberships", lacking, own) for verb in _WRITTEN]
        made.append(("users_person_of_members", f"UPDATE OF {originals} ON users", changed, others))
        return [
            f"CREATE TRIGGER {name} AFTER {event} WHEN {condition}\nBEGIN\n{body}\nEND"
            for name, event, condition, body in made
        ]
    # The person's row is held until the end: a change of their name meanwhile waits, and then sees this row. It is not
    # held for a row that is there, whose copies stay: that change may wait for the row already.
    into = ", ".join(f"NEW.{to}" for to in copies)
    read = f"SELECT {originals} INTO {into} FROM users WHERE user_id = NEW.user_id"
    filled = "\n".join(f"  NEW.{to} := coalesce(NEW.{to}, '');" for to in copies)
    return [
        f"""
CREATE OR REPLACE FUNCTION memberships_copy_person() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' AND EXISTS (
    SELECT 1 FROM memberships WHERE user_id = NEW.user_id AND entity_id = NEW.entity_id
  ) THEN
    {read};
  ELSE
    {read} FOR SHARE;
  END IF;
{filled}
  RETURN NEW;
END $$
""",
        f"""
CREATE OR REPLACE TRIGGER memberships_person BEFORE INSERT OR UPDATE ON memberships
FOR EACH ROW WHEN ({lacking}) EXECUTE FUNCTION memberships_copy_person()
""",
        f"""
CREATE OR REPLACE FUNCTION users_person_of_members() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
{others}
  RETURN NULL;
END $$
""",
        f"""
CREATE OR REPLACE TRIGGER users_person_of_members AFTER UPDATE OF {originals} ON users
FOR EACH ROW WHEN ({changed}) EXECUTE FUNCTION users_person_of_members()
""",
    ]


# The engine writes the words with the record, whichever statement does. Of a member they are those that the entity
# wrote, and the person's where it wrote none (D61); the user name of the account finds them always (D68).

_OF_RECORD: Final = "SELECT DISTINCT word.value, NEW.{key} FROM {fields} WHERE {condition}"
_OF_MEMBERS: Final = """
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
_OF_PERSON: Final = "m.user_id = NEW.user_id"
_OF_MEMBER: Final = "m.user_id = NEW.user_id AND m.entity_id = NEW.entity_id"
_USER_CHANGED: Final = "OLD.words <> NEW.words OR OLD.enabled <> NEW.enabled OR OLD.placeholder <> NEW.placeholder"
_MEMBER_CHANGED: Final = (
    "OLD.words <> NEW.words OR OLD.name <> NEW.name OR OLD.email <> NEW.email OR OLD.invited <> NEW.invited "
    "OR OLD.enabled <> NEW.enabled"
)
_NOTED: Final = {
    "user": "NEW.user_id, ''", "entity": "'', NEW.entity_id", "membership": "NEW.user_id, NEW.entity_id",
    "service": "'', NEW.service_id", "client": "'', NEW.client_id",
}  # fmt: skip
"""what names a record among those whose words are to be found again"""
_ALONE: Final = {"entity": "entity_id", "service": "service_id", "client": "client_id"}
"""records whose words are their own, and the identifier of each"""


def _fields(row: str, dialect: str) -> str:
    if dialect == SQLITE:
        return f"json_each({row}.words) AS field, json_each(field.value) AS word"
    return f"jsonb_each({row}.words::jsonb) AS field, jsonb_array_elements_text(field.value) AS word"


def _write_record(table: str, key: str, dialect: str, condition: str = "true") -> str:
    found = _OF_RECORD.format(key=key, fields=_fields("NEW", dialect), condition=condition)
    return f"  INSERT INTO {table} (word, {key}) {found}"


def _write_members(which: str, dialect: str) -> str:
    return _OF_MEMBERS.format(own=_fields("m", dialect), persons=_fields("u", dialect), which=which)


def write_word_triggers(dialect: str, searched: Searched) -> list[str]:
    """The statements that make the triggers of words.

    PostgreSQL replaces those that are there. `searched` has the table and the searched columns of each kind of record.
    """
    made = _write_people_triggers(dialect) if "user" in searched else []
    for record, (table, columns) in searched.items():
        if key := _ALONE.get(record):
            words = _write_record(f"{record}_words", key, dialect)
            written = f"  DELETE FROM {record}_words WHERE {key} = NEW.{key};\n{words}"
            made += [
                (f"{table}_words_insert", f"INSERT ON {table}", "true", words),
                (f"{table}_words_update", f"UPDATE OF words ON {table}", "OLD.words <> NEW.words", written),
            ]
        noted = (
            f"  INSERT INTO outdated_words (record, user_id, entity_id) VALUES ('{record}', {_NOTED[record]})"
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
    if dialect == SQLITE:
        return [
            f"CREATE TRIGGER {name} AFTER {event} WHEN {condition}\nBEGIN\n{body};\nEND"
            for name, event, condition, body in made
        ]
    statements = []
    for name, event, condition, body in made:
        statements += [
            f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$\nBEGIN\n{body};\n  RETURN NULL;\nEND $$",
            f"CREATE OR REPLACE TRIGGER {name} AFTER {event}\nFOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {name}()",
        ]
    return statements


def _write_people_triggers(dialect: str) -> list[tuple[str, str, str, str]]:
    """Name, event, condition and body of those of people and members."""
    persons = _write_record("user_words", "user_id", dialect, "NOT NEW.placeholder")
    member = _write_members(_OF_MEMBER, dialect)
    # Whoever writes one of the memberships meanwhile comes before or after.
    held = "  PERFORM 1 FROM memberships m WHERE m.user_id = NEW.user_id ORDER BY m.entity_id FOR NO KEY UPDATE;\n"
    update = (
        "  DELETE FROM user_words WHERE user_id = NEW.user_id;\n"
        f"{persons};\n{held if dialect == POSTGRESQL else ''}"
        "  DELETE FROM member_words WHERE user_id = NEW.user_id;\n"
        f"{_write_members(_OF_PERSON, dialect)}"
    )
    return [
        ("users_words_insert", "INSERT ON users", "true", persons),
        ("users_words_update", "UPDATE OF words, enabled, placeholder ON users", _USER_CHANGED, update),
        ("memberships_words_insert", "INSERT ON memberships", "true", member),
        (
            "memberships_words_update",
            "UPDATE OF words, name, email, invited, enabled ON memberships",
            _MEMBER_CHANGED,
            "  DELETE FROM member_words WHERE user_id = NEW.user_id AND entity_id = NEW.entity_id;\n" + member,
        ),
    ]
