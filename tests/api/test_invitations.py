"""Invitations by programs: made, read, sent again and revoked, for a client's own entity only (D59, D60)."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.flows.directory import approvals
from corpid.flows.directory.acceptance import accept_with_account
from corpid.rules.directory.access import CommandLine
from corpid.rules.directory.records import Administrator, Assignment, Membership
from corpid.rules.limits import INVITATIONS_PER_ADDRESS
from tests.api.calling import HARBOUR, ORCHARD, Api, bound, calling, pointers
from tests.protocol import directory
from tests.protocol.deployment import ISSUER
from tests.protocol.directory import ALICE, CAROL

if TYPE_CHECKING:
    from tests.protocol.provider import World

MEI = {"entity": HARBOUR, "name": "Tan Mei", "email": "mei@example.org"}
OPERATOR = CommandLine(by="lee@node1", reason="Ticket 4711")


def invited(api: Api, **more: Any) -> Any:
    return api.added("/invitations", {**MEI, **more})


def membership(world: World, invitation: Any) -> Membership:
    found = world.run(world.provider.registry.provisioning.member(invitation["id"]))
    assert found is not None
    return found.membership


def accept(world: World, invitation: Any) -> None:
    """Somebody who has an account accepts."""
    registry = world.provider.registry
    world.run(accept_with_account(registry, membership(world, invitation), CAROL, now=world.clock.now))


@pytest.mark.parametrize("is_bound", [False, True])
def test_a_program_invites_reads_sends_again_and_revokes(world: World, api: Api, is_bound: bool) -> None:
    """D59, D60: as `corpid membership invite` and `resend`."""
    own = bound(world) if is_bound else api
    body = {**MEI, "user_name": "mei", "external_id": "4711"}
    answer = own.post("/invitations", body)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert answer.headers["location"] == f"{ISSUER}/api/v1/invitations/{made['id']}"
    assert {name: made[name] for name in body} == body
    assert (made["state"], made["email_state"], made["email_sent_at"]) == ("invited", "no_mail", None)
    read = own.get(f"/invitations/{made['id']}")
    assert (read.json(), read.headers["etag"]) == (made, made["etag"])
    second = invited(own, email="lim@example.org")
    assert own.every(f"/invitations?entity={HARBOUR}") == sorted([made, second], key=lambda each: each["id"])
    again = own.post(f"/invitations/{made['id']}/resend")
    assert (again.status_code, again.json()) == (200, made)
    path = f"/invitations/{made['id']}"
    assert own.delete(path).status_code == 428
    assert own.delete(path, if_match='"other"').status_code == 412
    assert own.delete(path, if_match=made["etag"]).status_code == 204
    assert own.get(path).status_code == own.post(f"{path}/resend").status_code == 404
    assert own.every(f"/invitations?entity={HARBOUR}") == [second]
    actions = [each["action"] for each in own.get("/audit?action=membership.&limit=4").json()["items"]]
    assert actions == ["membership.remove", "membership.resend", "membership.invite", "membership.invite"]


def test_the_answer_is_the_same_whether_the_person_exists_or_not(world: World, api: Api) -> None:
    """D60: by user name and by address; of nobody more is shown than what was typed."""
    world.writes(replace(CAROL, email="carol@example.org"))
    answers = []
    for user_name, email in ((CAROL.user_name, "carol@example.org"), ("nobody", "nobody@example.org")):
        made = bound(world).post("/invitations", {"name": "Someone", "user_name": user_name, "email": email})
        answers.append(
            (made.status_code, {**made.json(), **dict.fromkeys(("id", "etag", "user_name", "email", "created_at"))})
        )
    assert answers[0] == answers[1]
    assert answers[0][0] == 201


def test_a_client_of_another_entity_reaches_nothing(world: World, api: Api) -> None:
    """D59: by guessed identifier, for each verb, in the words for what is not there."""
    made = invited(api)
    other = bound(world, ORCHARD)
    for path in (made["id"], "nothing", "0" * 200, "%00"):
        answers = [
            other.get(f"/invitations/{path}"),
            other.post(f"/invitations/{path}/resend"),
            other.delete(f"/invitations/{path}", if_match="*"),
        ]
        assert {(each.status_code, each.json()["detail"]) for each in answers} == {(404, "There is no such object")}
    refused = [other.post("/invitations", {**MEI, "entity": entity}) for entity in (HARBOUR, "E9999")]
    assert [each.status_code for each in refused] == [403, 403]
    assert refused[0].json()["detail"] == refused[1].json()["detail"]
    assert other.get(f"/invitations?entity={HARBOUR}").status_code == 403
    assert other.every("/invitations") == []
    assert invited(other, entity=ORCHARD)["entity"] == ORCHARD
    assert api.get(f"/invitations/{made['id']}").json() == made


def test_a_token_without_the_scope_of_writing_invites_nobody(world: World, api: Api) -> None:
    """D59; and one without that of reading is answered what it wrote."""
    made = invited(api)
    reader = calling(world, "reader", scopes=["directory.read"])
    assert reader.post("/invitations", MEI).status_code == 403
    assert reader.post(f"/invitations/{made['id']}/resend").status_code == 403
    assert reader.delete(f"/invitations/{made['id']}", if_match="*").status_code == 403
    writer = calling(world, "writer", scopes=["directory.write"])
    assert invited(writer, email="lim@example.org")["email"] == "lim@example.org"
    assert writer.get(f"/invitations/{made['id']}").status_code == 403


def test_an_accepted_invitation_is_told_and_neither_sent_nor_revoked(world: World, api: Api) -> None:
    """D60: which person accepted it is told by the membership, and a membership of a file was never an invitation."""
    made = invited(api)
    accept(world, made)
    path = f"/invitations/{made['id']}"
    shown = api.get(path).json()
    assert (shown["state"], shown["email_state"], shown["email"]) == ("accepted", "none", MEI["email"])
    assert api.post(f"{path}/resend").status_code == 409
    assert api.delete(path, if_match="*").status_code == 409
    assert api.every(f"/invitations?entity={HARBOUR}") == []
    held = world.run(world.provider.registry.directory.read(Membership, [(ALICE.user_id, HARBOUR)]))
    [other] = held.values()
    assert api.get(f"/invitations/{other.membership_id}").status_code == 404


def test_a_key_repeats_an_invitation_and_makes_no_other_one(world: World, api: Api) -> None:
    """D59: also when it was accepted meanwhile."""
    first, again = (api.post("/invitations", MEI, idempotency_key="k") for _ in range(2))
    assert (first.status_code, again.status_code, first.content) == (201, 201, again.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert api.post("/invitations", {**MEI, "name": "Other"}, idempotency_key="k").status_code == 422
    accept(world, first.json())
    assert api.post("/invitations", MEI, idempotency_key="k").json()["state"] == "accepted"
    ended = api.post("/invitations", {**MEI, "email": "ah@example.org"}, idempotency_key="e").json()
    assert api.delete(f"/invitations/{ended['id']}", if_match=ended["etag"]).status_code == 204
    gone = api.post("/invitations", {**MEI, "email": "ah@example.org"}, idempotency_key="e")
    assert (gone.status_code, gone.json()["detail"]) == (
        409,
        "The object that this request created has since been removed",
    )
    second = invited(api, email="lim@example.org")
    sent = [api.post(f"/invitations/{second['id']}/resend", idempotency_key="r") for _ in range(2)]
    assert [each.status_code for each in sent] == [200, 200]
    assert (
        len(
            api.get(f"/audit?action=membership.resend&object={membership(world, second).user_id}%2F{HARBOUR}").json()[
                "items"
            ]
        )
        == 1
    )


def test_every_fault_of_an_invitation_is_told_by_its_pointer_and_nothing_is_written(api: Api) -> None:
    """D59, RFC 9457."""
    for wrong, faults in (
        ({}, {"/entity", "/name", "/email"}),
        ({**MEI, "email": "no address"}, {"/email"}),
        ({**MEI, "entity": "E9999"}, {"/entity"}),
        ({**MEI, "name": 7, "send": "yes", "level": "owner"}, {"/name", "/send", "/level"}),
        ({**MEI, "name": "x" * 201}, {"/name"}),
        ([], {""}),
    ):
        answer = api.post("/invitations", wrong)
        assert (answer.status_code, set(pointers(answer))) == (422, faults), answer.text
    assert api.get("/invitations").status_code == 422
    assert api.every(f"/invitations?entity={HARBOUR}") == []
    invited(api, user_name="Mei")
    taken = api.post("/invitations", {**MEI, "user_name": "MEI"})
    assert (taken.status_code, set(pointers(taken))) == (409, {"/user_name"})


def test_an_address_is_invited_so_often_in_a_day(api: Api) -> None:
    """D60: also if the invitations end in between."""
    for _ in range(INVITATIONS_PER_ADDRESS):
        made = invited(api)
        assert api.delete(f"/invitations/{made['id']}", if_match=made["etag"]).status_code == 204
    refused = api.post("/invitations", MEI)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "3600")
    assert api.every(f"/invitations?entity={HARBOUR}") == []
    assert invited(api, email="lim@example.org")


def test_an_invitation_that_needs_approval_is_requested(world: World, api: Api) -> None:
    """D55: 202; it is made, and its e-mail due, once somebody has approved it."""
    world.writes(replace(directory.HARBOUR, approvals="all"))
    own = bound(world)
    assert own.post("/invitations", MEI).status_code == 422
    request = own.post("/invitations", MEI, change_reason="A new colleague")
    assert request.status_code == 202, request.text
    assert own.every("/invitations") == []
    asked = request.json()
    world.run(
        approvals.approve_request(
            world.provider.registry, asked["id"], actor=OPERATOR, reason="Seen", now=world.clock.now
        )
    )
    [made] = own.every("/invitations")
    assert (made["email"], made["email_state"]) == (MEI["email"], "no_mail")
    revoked = own.delete(f"/invitations/{made['id']}", if_match=made["etag"], change_reason="A mistake")
    assert revoked.status_code == 202
    assert own.every("/invitations") == [made]


def test_the_invitation_of_an_appointed_owner_is_out_of_a_programs_reach(world: World, api: Api) -> None:
    """D59: owners are appointed, and unappointed, by people."""
    made = invited(api)
    waiting = membership(world, made)
    world.writes(Administrator(user_id=waiting.user_id, entity_id=HARBOUR, level="owner"))
    for client in (api, bound(world)):
        assert client.delete(f"/invitations/{made['id']}", if_match=made["etag"]).status_code == 403
    assert api.get(f"/invitations/{made['id']}").status_code == 200


def test_a_row_of_somebody_invited_names_the_address_of_the_invitation(world: World, api: Api) -> None:
    """D68: in an answer, in lists and as CSV; a change may repeat it, and cannot alter it."""
    placeholder = membership(world, invited(api, email="Mei@example.org"))
    role = Assignment(user_id=placeholder.user_id, entity_id=HARBOUR, service_id="PERMITS", role="Checker")
    world.writes(Administrator(user_id=placeholder.user_id, entity_id=HARBOUR, level="administrator"))
    added = api.added(
        "/assignments", {"user": placeholder.user_id, "entity": HARBOUR, "service": "PERMITS", "role": role.role}
    )
    assert (added["user"], added["identity"]) == (placeholder.user_id, "mei@example.org")
    for path in ("/assignments", "/administrators", "/memberships"):
        [shown] = [each for each in api.every(f"{path}?entity={HARBOUR}") if each["user_id"] == placeholder.user_id]
        assert shown["identity"] == "mei@example.org"
        assert api.get(f"{path}/{shown['id']}").json() == shown
        rows = csv.DictReader(io.StringIO(api.get(f"{path}?entity={HARBOUR}&format=csv").text, newline=""))
        assert {each["id"]: each["identity"] for each in rows}[shown["id"]] == "mei@example.org"
        at, tag = f"{path}/{shown['id']}", shown["etag"]
        assert api.patch(at, {"identity": "mei@example.org"}, if_match=tag).status_code == 200
        assert list(pointers(api.patch(at, {"identity": "other"}, if_match=tag))) == ["/identity"]
    [alice] = api.every(f"/memberships?entity={HARBOUR}&user=alice")
    assert alice["identity"] == "alice"
