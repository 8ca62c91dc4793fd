"""Sessions and locks of a person, seen and ended by a program (D30, D45, D53, D59)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.directory.people import derive_session_name
from corpid.rules.authentication.sign_in import fingerprint
from corpid.rules.authentication.throttling import CodeGuesses, CodesPaused, one_more
from corpid.rules.directory.records import Operator
from tests.api.calling import Api, bound, calling, pointers
from tests.protocol.directory import ALICE, CAROL

if TYPE_CHECKING:
    from tests.protocol.provider import World


def test_a_persons_sessions_are_listed_and_one_is_ended(world: World, api: Api) -> None:
    """D30: in every browser, the latest first; what ends them is in the history."""
    world.sign_in()
    world.sign_in(browser=world.new_browser())
    listed = api.every("/sessions?user=alice")
    assert len(listed) == len(api.get("/sessions?user=alice").json()["items"]) >= 2
    assert [each["signed_in_at"] for each in listed] == sorted((each["signed_in_at"] for each in listed), reverse=True)
    live = world.run(world.provider.registry.sessions.list_for_user(ALICE.user_id, now=world.clock.now))
    assert not any(each.session_id in str(listed) or each.browser_id in str(listed) for each in live)
    one = listed[0]
    assert (one["user"], one["user_id"]) == ("alice", ALICE.user_id)
    shown = api.get(f"/sessions/{one['id']}")
    assert (shown.json(), shown.headers["etag"]) == (one, one["etag"])
    assert api.delete(f"/sessions/{one['id']}").status_code == 428
    assert api.delete(f"/sessions/{one['id']}", if_match='"another"').status_code == 412
    assert api.delete(f"/sessions/{one['id']}", if_match=one["etag"]).status_code == 204
    assert api.delete(f"/sessions/{one['id']}", if_match="*").status_code == 404
    assert one not in api.every("/sessions?user=alice")
    event = api.get("/audit?action=session.end&limit=1").json()["items"][0]
    assert (event["actor"], event["object"]) == ("client:api-1", ALICE.user_id)


def test_all_sessions_of_a_person_are_ended(world: World, api: Api) -> None:
    """D30: the others' stay."""
    world.sign_in()
    world.sign_in(user="carol", browser=world.new_browser())
    assert api.delete("/sessions?user=alice").status_code == 204
    assert api.every("/sessions?user=alice") == []
    assert api.every("/sessions?user=carol")
    event = api.get("/audit?action=session.end_all&limit=1").json()["items"][0]
    assert (event["actor"], event["object"]) == ("client:api-1", ALICE.user_id)


def test_pauses_after_wrong_codes_are_listed_and_ended(world: World, api: Api) -> None:
    """D45: those that hold now; what was counted before a factor changed does not."""
    registry = world.provider.registry
    factors = fingerprint(world.run(registry.factors.credentials(ALICE.user_id))).hex()

    def guess(browser: str, factors: str) -> CodeGuesses:
        seen = world.run(registry.code_guesses.get(ALICE.user_id, browser))
        try:
            after = one_more(seen, factors, world.clock.now)
        except CodesPaused:
            return seen
        assert world.run(registry.code_guesses.replace(seen, after))
        return guess(browser, factors)

    paused = guess("", factors)
    guess("link", "others")
    told = {"user": "alice", "user_id": ALICE.user_id, "browser": "new", "guesses": 20}
    assert api.get("/locks?user=alice").json() == {"items": [{**told, "ends_at": paused.paused_until}]}
    assert api.delete("/locks?user=alice").status_code == 204
    assert api.get("/locks?user=alice").json() == {"items": []}
    event = api.get("/audit?action=user.unlock&limit=1").json()["items"][0]
    assert (event["actor"], event["object"]) == ("client:api-1", ALICE.user_id)


def test_operators_are_out_of_reach(world: World, api: Api) -> None:
    """D53."""
    world.sign_in()
    live = world.run(world.provider.registry.sessions.list_for_user(ALICE.user_id, now=world.clock.now))
    named = api.get("/sessions?user=alice").json()["items"][0]["id"]
    assert derive_session_name(live[0])
    world.writes(Operator(user_id=ALICE.user_id, level="support"))
    for method, path in (
        ("GET", "/sessions?user=alice"), ("DELETE", "/sessions?user=alice"), ("GET", f"/sessions/{named}"),
        ("DELETE", f"/sessions/{named}"), ("GET", "/locks?user=alice"), ("DELETE", "/locks?user=alice"),
    ):  # fmt: skip
        answer = api.call(method, path, if_match="*")
        assert (answer.status_code, answer.json()["detail"]) == (403, "Operators cannot be changed here"), (
            method,
            path,
        )
    assert world.run(world.provider.registry.sessions.list_for_user(ALICE.user_id, now=world.clock.now)) == live


def test_it_takes_the_scope_operations_and_no_entity(world: World) -> None:
    """D59."""
    only = calling(world, "other", scopes=["operations"])
    assert only.get("/sessions?user=carol").json() == {"items": []}
    reader = calling(world, "reader", scopes=["directory.read", "directory.write", "audit.read"])
    for method, path in (("GET", "/sessions"), ("DELETE", "/sessions"), ("GET", "/locks"), ("DELETE", "/locks")):
        assert reader.call(method, f"{path}?user=carol").status_code == 403
        assert bound(world).call(method, f"{path}?user=carol").status_code == 403


def test_nobody_of_that_name_has_none(world: World, api: Api) -> None:
    """D59: a filter that names nothing gives an empty list, and what is not there cannot be ended."""
    assert CAROL.user_id
    for user in ("nobody", "%00x", "a" * 2000):
        assert api.get(f"/sessions?user={user}").status_code in {200, 400}
        assert api.get(f"/locks?user={user}").status_code in {200, 400}
    assert api.get("/sessions?user=nobody").json() == api.get("/locks?user=nobody").json() == {"items": []}
    assert [api.delete(f"/{path}?user=nobody").status_code for path in ("sessions", "locks")] == [404, 404]
    for path in ("x", "WyJhIiwiYiJd", "WyIxIl0"):
        assert api.get(f"/sessions/{path}").status_code == 404
    assert pointers(api.get("/sessions")) == {"user": "Field required"}
    for cursor in ("x", "WyJhIiwiYiJd"):
        assert api.get(f"/sessions?user=alice&cursor={cursor}").status_code == 400
