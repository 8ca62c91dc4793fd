"""Who is let in: a token of one entity, valid now; nothing of another entity shows (D60)."""

from __future__ import annotations

import json as jsons
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from corpid.rules.directory.records import ENTERPRISE_USER
from tests.protocol import directory
from tests.scim.calling import (
    GROUP,
    HARBOUR,
    ORCHARD,
    PATCH,
    ROOT,
    USER,
    YEAR,
    Scim,
    address_of,
    metered,
    provisioning,
    refused,
    token_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.protocol.provider import World, Worlds

PATHS = [
    ("GET", "/Users"), ("POST", "/Users"), ("GET", "/Users/x"), ("PUT", "/Users/x"), ("PATCH", "/Users/x"),
    ("DELETE", "/Users/x"), ("GET", "/Groups"), ("PATCH", "/Groups/x"), ("GET", "/ServiceProviderConfig"),
    ("GET", "/Schemas"), ("GET", "/ResourceTypes"), ("POST", "/Bulk"), ("GET", "/Me"), ("GET", "/nothing"),
]  # fmt: skip


def test_nobody_comes_in_without_a_token(world: World) -> None:
    """RFC 6750 §3, RFC 7644 §2: a bare challenge without a token, and one with an error for a wrong one."""
    for method, path in PATHS:
        _is_turned_away(world, method, path)


def _is_turned_away(world: World, method: str, path: str) -> None:
    body = b"{}" if method in {"POST", "PUT", "PATCH"} else None
    bare = world.run(world.http.request(method, f"{ROOT}{path}", content=body))
    refused(bare, 401)
    assert bare.headers["www-authenticate"] == f'Bearer realm="{world.issuer}"'
    wrong = Scim(world=world, token="A" * 43).call(method, path, body=body)
    assert refused(wrong, 401) == "The provisioning token is unknown, was revoked or has expired"
    assert wrong.headers["www-authenticate"] == f'Bearer realm="{world.issuer}", error="invalid_token"'


def test_every_reason_to_refuse_a_token_looks_alike(world: World) -> None:
    """D60: unknown, revoked, expired, of a disabled entity: nothing says which."""
    scim = provisioning(world)
    assert scim.get("/Users").status_code == 200
    _, record = token_of(HARBOUR, world)
    answers = [Scim(world=world, token=text).get("/Users") for text in ("A" * 43, "short", "!" * 43, "A" * 5000)]
    world.writes(replace(directory.HARBOUR, enabled=False))
    answers.append(scim.get("/Users"))
    world.writes(directory.HARBOUR)
    assert scim.get("/Users").status_code == 200
    world.deletes(record)
    answers.append(scim.get("/Users"))
    world.writes(record)
    world.clock.now += YEAR
    answers.append(scim.get("/Users"))
    assert {answer.status_code for answer in answers} == {401}
    malformed = {"The access token is missing or malformed"}
    told = {answer.json()["detail"] for answer in answers}
    assert told - malformed == {"The provisioning token is unknown, was revoked or has expired"}


def test_how_much_of_a_token_was_guessed_costs_no_more(world: World) -> None:
    """D60: it is found by its hash, so that nothing tells a good guess from a bad one."""
    scim = provisioning(world)
    guesses = {
        "warm": "A" * 43,
        "none of it": "A" * 43,
        "all but one": f"{scim.token[:-1]}{'0' if scim.token[-1] != '0' else '1'}",
    }
    with metered(world) as meter:
        for meter.heading, guess in guesses.items():
            assert Scim(world=world, token=guess).get("/Users").status_code == 401
        bad, good = (meter.counted[f"{heading}: GET /scim/v2/Users"] for heading in ("none of it", "all but one"))
    assert bad.calls > 0
    assert bad == good


def test_other_credentials_are_none(world: World) -> None:
    """D59, D60: tokens of one interface are refused at the other."""
    scim = provisioning(world)
    assert scim.get("/Users", authorization=f"DPoP {scim.token}").status_code == 401
    assert scim.get("/Users", authorization=f"Basic {scim.token}").status_code == 401
    api = world.run(
        world.http.get(f"{world.issuer}/api/v1/entities", headers={"authorization": f"Bearer {scim.token}"})
    )
    assert api.status_code == 401


def test_nothing_of_another_entity_shows(world: World) -> None:
    """D60: another tenant's id is answered as one that never was."""
    ours, theirs = provisioning(world), provisioning(world, ORCHARD)
    user = theirs.added("eve", externalId="7", emails=[{"value": "eve@orchard.example"}])
    where = f"/Users/{user['id']}"
    never = "/Users/7c6f1b52-0000-4000-8000-00000000ffff"
    for path in (where, never):
        answers = [
            ours.get(path),
            ours.delete(path),
            ours.put(path, {"schemas": [USER], "userName": "mine"}),
            ours.call(
                "PATCH", path, {"schemas": [PATCH], "Operations": [{"op": "replace", "path": "active", "value": False}]}
            ),
        ]
        assert {refused(answer, 404) for answer in answers} == {"There is no such resource"}
    assert theirs.get(where).json() == user
    for condition in ('userName eq "eve"', 'externalId eq "7"', f'id eq "{user["id"]}"', 'emails co "orchard"'):
        assert ours.found("Users", condition) == []
    assert ours.found("Groups", f'members eq "{user["id"]}"') == []
    ours.added("eve", externalId="7")
    group = ours.group()
    theirs_too = f"/Groups/{group['id']}"
    theirs.patch(theirs_too, {"op": "add", "path": "members", "value": [{"value": user["id"]}]})
    assert ours.members() == set()
    ours.put(theirs_too, {"schemas": [GROUP], "members": []})
    assert theirs.members() == {user["id"]}


def test_members_of_third_parties_are_none_of_the_entitys(world: World) -> None:
    """D61: users are those who belong to the entity."""
    listed = provisioning(world).get("/Users?count=200").json()["Resources"]
    assert "carol" not in {each["userName"] for each in listed}


async def body(world: Any, ends: str) -> AsyncIterator[bytes]:
    sent = jsons.dumps({"schemas": [USER], "userName": "mei", **address_of("mei")}).encode()
    yield sent[:10]
    provider = world.provider
    [token] = await provider.registry.provisioning.tokens(HARBOUR)
    if ends == "removed":
        await world.running.delete(token)
    elif ends == "disabled":
        await world.running.write(replace(directory.HARBOUR, enabled=False))
    else:
        world.clock.now = token.expires_at
    yield sent[10:]


@pytest.mark.parametrize("ends", ["removed", "expired", "disabled"])
def test_a_token_that_ends_while_the_body_arrives_changes_nothing(scim: Scim, ends: str) -> None:
    """D50, D60: a slow body does not outlive the right to send it."""
    world = scim.world

    headers = {"content-type": "application/scim+json", "authorization": f"Bearer {scim.token}"}
    answer = world.run(world.http.post(f"{world.issuer}/scim/v2/Users", content=body(world, ends), headers=headers))
    assert answer.status_code == 401, answer.text
    invited = world.run(world.provider.registry.invitations.of_entity(HARBOUR, after="", limit=1))
    assert invited == []


@pytest.mark.parametrize("limited", ["scim_per_client", "scim_per_address"])
def test_a_client_that_calls_too_often_waits(worlds: Worlds, limited: str) -> None:
    """D47: 429 with Retry-After; in developer mode one's own machine is not counted."""
    here = {"base_url": "http://localhost:8080", limited: 4}
    scim, spared = (provisioning(worlds.fresh(developer_mode=spares, **here)) for spares in (False, True))
    answers = [scim.get("/ServiceProviderConfig") for _ in range(7)]
    assert [answer.status_code for answer in answers[:4]] == [200] * 4
    refused(answers[-1], 429)
    assert int(answers[-1].headers["retry-after"]) <= 60
    assert {spared.get("/ServiceProviderConfig").status_code for _ in range(7)} == {200}


def test_every_change_names_the_token_in_the_audit(scim: Scim) -> None:
    """D57, D60."""
    user = scim.added("mei")
    scim.patch(f"/Groups/{scim.group()['id']}", {"op": "add", "path": "members", "value": [{"value": user["id"]}]})
    scim.delete(f"/Users/{user['id']}")
    assert scim.world.audited() != []


def test_discovery_says_what_there_is(scim: Scim) -> None:
    """RFC 7644 §4."""
    told = scim.get("/ServiceProviderConfig").json()
    supported = {
        name: part["supported"] for name, part in told.items() if isinstance(part, dict) and "supported" in part
    }
    assert supported == {
        "patch": True, "bulk": False, "filter": True, "changePassword": False, "sort": True, "etag": True,
    }  # fmt: skip
    assert [each["name"] for each in scim.get("/ResourceTypes").json()["Resources"]] == ["User", "Group"]
    assert {each["id"] for each in scim.get("/Schemas").json()["Resources"]} == {USER, GROUP, ENTERPRISE_USER}
    user = scim.get(f"/Schemas/{USER}").json()
    assert user["name"] == "User"
    [groups] = [each for each in user["attributes"] if each["name"] == "groups"]
    [reference] = [each for each in groups["subAttributes"] if each["name"] == "$ref"]
    assert (reference["type"], reference["mutability"]) == ("reference", "readOnly")
    assert reference["referenceTypes"] == ["Group"]
    refused(scim.get(f"/Users?filter={quote('title pr')}"), 400, "invalidFilter")
    refused(scim.call("POST", "/Bulk", {}), 501)
    refused(scim.get("/Me"), 501)
    refused(scim.get("/Nothing"), 404)
    head = scim.call("HEAD", "/ServiceProviderConfig")
    assert head.status_code == 200
    assert head.headers["content-type"] == "application/scim+json"


@pytest.mark.parametrize("method", ["DELETE", "OPTIONS", "TRACE", "PROPFIND"])
def test_a_method_that_is_not_served_is_refused_with_those_that_are(scim: Scim, method: str) -> None:
    """RFC 9110 §15.5.6: also one that no interface of CorpID knows."""
    wrong = scim.call(method, "/Users")
    refused(wrong, 405)
    assert wrong.headers["allow"] == "GET, POST, HEAD"
    assert scim.call("OPTIONS", "/Schemas").headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "", 404), ("POST", "", 404), ("GET", "/", 501), ("GET", "//Users", 404), ("GET", "/nothing", 404),
        ("GET", "/a/b/c/d", 404), ("GET", "/Users%2f1", 404), ("GET", "/Users//1", 404), ("DELETE", "/Users", 405),
    ],
)  # fmt: skip
def test_every_path_below_answers_in_scims_form(scim: Scim, method: str, path: str, status: int) -> None:
    """RFC 7644 §3.12."""
    assert refused(scim.call(method, path), status)
    assert refused(scim.call(method, path, authorization="Bearer x"), 401)
