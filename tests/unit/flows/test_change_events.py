"""The audit event of one change of a record (D57)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from corpid.flows.directory.write import ACTIONS, audit_event, build_change_event, find_action
from corpid.rules.audit import AuditAction
from corpid.rules.directory.access import Actor, CommandLine, DirectoryFile
from corpid.rules.directory.document import KINDS
from corpid.rules.directory.records import Change, Entity, Membership, ThirdPartyAssignment, ThirdPartyGrant, User

if TYPE_CHECKING:
    from corpid.rules.fields import KeyedRecord

LEE = CommandLine(by="lee@node1")
TICKET = msgspec.structs.replace(LEE, reason="Ticket 4711")
LIM = User(user_id="u2", user_name="lim", name="Lim")
ACME = Entity(entity_id="E1", type="UEN", registration_number="E1", country="SG", name="Acme")


def changed(was: KeyedRecord, becomes: KeyedRecord, *, kind: str, key: tuple[str, ...]) -> Change:
    return Change(was, becomes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("verb", "word"), [("add", "add"), ("change", "update"), ("remove", "remove")])
def test_every_kind_of_record_has_an_action_for_each_verb(kind: str, verb: str, word: str) -> None:
    """D57: a closed list."""
    noun, _, said = ACTIONS[kind, verb].value.partition(".")  # type: ignore[index]
    assert said == word
    assert noun == kind or (noun, kind) == ("third_party_assignment", "third-party row")


def test_the_event_of_a_change_names_record_and_entity() -> None:
    was = Membership(user_id="u2", entity_id="E1")
    change = changed(was, msgspec.structs.replace(was, enabled=False), kind="membership", key=was.key)
    event = build_change_event(LEE, change)
    assert (event.actor, event.action, event.object, event.entity_id) == (
        "command:lee@node1",
        "membership.update",
        "u2/E1",
        "E1",
    )


def test_an_authorisation_of_a_third_party_is_in_the_history_of_both_sides() -> None:
    """D56."""
    grant = ThirdPartyGrant(client_entity_id="E1", entity_id="E2", service_id="s")
    row = ThirdPartyAssignment(user_id="u2", entity_id="E2", client_entity_id="E1", service_id="s")
    granted = build_change_event(LEE, Change(None, grant))
    given = build_change_event(LEE, Change(row, None))
    assert (granted.entity_id, granted.other_entity_id) == ("E1", "E2")
    assert (given.entity_id, given.other_entity_id) == ("E2", "E1")


def test_the_actor_of_what_a_file_changes_is_the_file() -> None:
    """D54, D57, D65: with its digest, and who applies it."""
    file = DirectoryFile.from_content("people.yaml", b"users: {}\n", by=LEE)
    change = changed(LIM, msgspec.structs.replace(LIM, name="Lim B"), kind="user", key=LIM.key)
    event = build_change_event(file, change)
    digest = "6c2bbaa7874bc3d9214a2ad93ae43f7e77b0d849667ce047fcad4d753a93bbbe"
    assert (event.actor, event.detail) == ("file:people.yaml", {"sha256": digest, "by": "lee@node1"})


@pytest.mark.parametrize("actor", [TICKET, DirectoryFile(file="f", sha256="", by=TICKET)])
def test_the_reason_given_to_a_command_stands_with_its_events(actor: Actor) -> None:
    """D54, D57."""
    change = Change(None, LIM)
    events = build_change_event(actor, change), audit_event(actor, AuditAction.KEY_ROTATE, "k1", at_once="True")
    assert [event.detail["reason_given"] for event in events] == ["Ticket 4711"] * 2


@pytest.mark.parametrize(
    ("was", "becomes", "kind", "action"),
    [
        (LIM, msgspec.structs.replace(LIM, enabled=False), "user", AuditAction.USER_DISABLE),
        (msgspec.structs.replace(LIM, enabled=False), LIM, "user", AuditAction.USER_ENABLE),
        (ACME, msgspec.structs.replace(ACME, enabled=False), "entity", AuditAction.ENTITY_DISABLE),
        (ACME, msgspec.structs.replace(ACME, enabled=False, name="Acme Ltd"), "entity", AuditAction.ENTITY_UPDATE),
    ],
)
def test_a_switch_that_is_all_that_changes_has_its_own_action_also_in_a_file(
    was: User | Entity, becomes: User | Entity, kind: str, action: AuditAction
) -> None:
    """D50, D57: who looks for disabled people finds those that a file disabled, too."""
    assert find_action(changed(was, becomes, kind=kind, key=was.key)) is action
