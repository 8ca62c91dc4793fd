"""`corpid user list` and `corpid user show`: people, and what one of them may do."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest

from corpid.flows.directory.people import load_person
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.authentication.records import EmailChange, Session
from corpid.rules.directory.records import Change
from corpid.rules.oauth.consent import Consent
from corpid.rules.oauth.records import Client
from tests.cli.directories import fill

if TYPE_CHECKING:
    from corpid.engines import Stores
    from tests.cli.conftest import Terminal


def sentences(terminal: Terminal, user_name: str) -> list[str]:
    return terminal.done("user", "show", user_name).partition("\n\n")[2].splitlines()


FILED = "(given by the file directory.yaml)"


def test_a_person_is_shown_with_what_they_may_do_for_whom_until_when(terminal: Terminal) -> None:
    """D23, D50, D53, R-21."""
    fill(terminal)
    assert sentences(terminal, "RINA") == [
        f"Acts for 209900042K (Saltwater Foods), an owner of it {FILED}.",
        f"Cannot act for B2 (Beta): the entity is disabled {FILED}.",
        f"May act as Approver at PERMITS for 209900042K (Saltwater Foods) until 31 December 2999 {FILED}.",
        f"May act as Approver at PERMITS (sub-entity North, ref two, Limit = 500) for 209900042K (Saltwater Foods) {FILED}.",
        f"Cannot act as Viewer at TAXES for 209900042K (Saltwater Foods): it starts on 1 January 2999 {FILED}.",
        f"Cannot act as Viewer at TAXES for B2 (Beta): it ended on 1 January 2020; the entity B2 is disabled {FILED}.",
        f"May act as Filer at PERMITS for C3 (Gamma) through 209900042K (Saltwater Foods) until 31 December 2998 {FILED}.",
    ]
    assert sentences(terminal, "arjun") == [
        f"Acts for 209900042K (Saltwater Foods), a sub-administrator of it (PERMITS) {FILED}.",
        "Has no role at a service.",
    ]
    assert sentences(terminal, "mei") == ["Acts for no entity.", "Has no role at a service."]


def test_a_disabled_person_can_do_nothing_of_it(terminal: Terminal) -> None:
    """D50."""
    fill(terminal)
    terminal.done("user", "disable", "rina")
    assert "State          disabled" in terminal.done("user", "show", "rina")
    said = sentences(terminal, "rina")
    assert all(each.startswith("Cannot act") and "the person is disabled" in each for each in said)
    assert len(said) == 7


def test_what_a_person_signs_in_with_is_shown_without_secrets(terminal: Terminal) -> None:
    """D44, D45."""
    fill(terminal)
    assert "nothing yet: `corpid user invite rina` makes a link" in terminal.done("user", "show", "rina")
    assert f"Operator       operator {FILED}\n" in terminal.done("user", "show", "mei")
    told = terminal.done("user", "add", "ravi", "--name", "Ravi", "--with-factors")
    shown = terminal.done("user", "show", "ravi")
    assert "Signs in with  a password, an authenticator app\n" in shown
    secrets = [line.split()[-1] for line in told.splitlines() if line.strip().startswith(("Password", "TOTP secret"))]
    assert len(secrets) == 2
    assert not any(secret in shown + terminal.done("user", "show", "ravi", "--json") for secret in secrets)


async def read(stores: Stores, days: int) -> int:
    shown = await load_person(stores.registry, stores.actor, "rina", limit=1, now=stores.clock() + days * 86400)
    return shown.invited_until


def test_an_invitation_is_shown_until_it_ends(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """D46: 72 hours."""
    fill(terminal)
    terminal.done("user", "invite", "rina")
    monkeypatch.setenv("CORPID_TIMEZONE", "UTC")
    said = terminal.done("user", "show", "rina").partition("Signs in with  nothing yet: invited until ")[2]
    until = datetime.strptime(said.partition("\n")[0], "%Y-%m-%d %H:%M (UTC)").replace(tzinfo=UTC)
    assert timedelta(hours=71) < until - datetime.now(UTC) < timedelta(hours=73)

    assert terminal.look(partial(read, days=2)) // 60 * 60 == until.timestamp()
    assert terminal.look(partial(read, days=4)) == 0


async def waits(stores: Stores) -> bool:
    """Let Rina prove a new address, which takes effect in 2030."""
    user = await stores.registry.directory.user_by_name("rina")
    assert user is not None
    session = Session(
        session_id="s", user_id=user.user_id, browser_id="b", auth_time=1, amr=("pwd", "otp"), level=2,
        expires_at=4_000_000_000, purpose="account",
    )  # fmt: skip
    await stores.registry.sessions.put(session)
    change = EmailChange(
        user_id=user.user_id, link_hash="h", old_email=user.email, new_email="rina@new.example",
        proved_at=1_900_000_000, effective_at=1_900_259_200,
    )  # fmt: skip
    event = AuditEvent(actor=f"user:{user.user_id}", action=AuditAction.USER_PROVE_EMAIL, object=user.user_id)
    return await stores.registry.email_changes.begin(change, event, session_id="s")


def test_a_new_address_that_waits_is_shown(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """D61: with when it takes effect; the address in effect stays the old one."""
    fill(terminal)
    monkeypatch.setenv("CORPID_TIMEZONE", "UTC")

    before = json.loads(terminal.done("user", "show", "rina", "--json"))
    assert before["email_change"] is None
    assert terminal.look(waits)
    assert "rina@new.example, proven by the person, from 2030-03-20 17:46 (UTC)" in terminal.done(
        "user", "show", "rina"
    )
    after = json.loads(terminal.done("user", "show", "rina", "--json"))
    assert after["email_change"] == {"email": "rina@new.example", "effective_at": 1_900_259_200}
    assert after["email"] == before["email"]
    assert "rina@new.example" not in terminal.done("export")


def test_a_restored_database_has_no_address_that_waits(terminal: Terminal) -> None:
    """docs/decisions/0008: it may have been undone since."""
    fill(terminal)
    assert terminal.look(waits)
    terminal.done("backup", "copy.corpid")
    terminal.done("restore", "copy.corpid")
    assert json.loads(terminal.done("user", "show", "rina", "--json"))["email_change"] is None


def test_a_person_is_shown_as_json(terminal: Terminal) -> None:
    file = fill(terminal)
    shown = json.loads(terminal.done("user", "show", "rina", "--json"))
    by_file = {"source": "file", "by": "the file directory.yaml", "actor": f"file:{file}"}
    given = {"given_by": by_file, "level_given_by": by_file}
    assert shown["memberships"] == [
        {"entity": "209900042K", "name": "Saltwater Foods", "enabled": True, "level": "owner", **given},
        {"entity": "B2", "name": "Beta", "enabled": False, "level": None, **given, "level_given_by": None},
    ]
    assert {json.dumps(each["given_by"]) for each in shown["roles"]} == {json.dumps(shown["roles"][0]["given_by"])}
    assert shown["roles"][0]["given_by"] == by_file
    assert [each["not_effective"] for each in shown["roles"][:2]] == [[], []]
    assert shown["third_party_roles"][0]["client_entity"] == "C3"
    assert (shown["factors"]["password"], shown["complete"]) == (False, True)


async def agree(stores: Stores) -> None:
    user = await stores.registry.directory.user_by_name("rina")
    client = Client(client_id="rp1", name="RP", redirect_uris=("https://rp.example/",), sector="private", scopes=())
    assert user is not None
    await stores.registry.directory.write([Change(None, client)])
    given = Consent(
        user_id=user.user_id, entity_id="209900042K", client_id="rp1", issuer_id="first",
        scopes=("openid", "user.name"), given_at=1_795_000_000, expires_at=4_000_000_000,
    )  # fmt: skip
    assert await stores.registry.consents.give(given, AuditEvent(actor="system", action="consent.give"))


def test_what_a_person_agreed_to_share_is_shown(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """D29: with whom, for whom, what, since when and until when."""
    fill(terminal)
    monkeypatch.setenv("CORPID_TIMEZONE", "UTC")

    terminal.look(agree)
    assert (
        "Agreed that rp1 receives, for 209900042K, since 2026-11-18 and until 2096-10-02: openid user.name."
        in sentences(terminal, "rina")
    )
    [shown] = json.loads(terminal.done("user", "show", "rina", "--json"))["consents"]
    assert (shown["client"], shown["scopes"], shown["until"]) == ("rp1", ["openid", "user.name"], 4_000_000_000)


def test_a_person_with_much_is_shown_in_part_and_says_so(terminal: Terminal) -> None:
    fill(terminal)
    said = terminal.done("user", "show", "rina", "--limit", "1")
    assert "Acts for more entities: `corpid entity list --user rina` pages through them." in said
    assert "Has more roles: `corpid role list --user rina` pages through them." in said
    assert json.loads(terminal.done("user", "show", "rina", "--limit", "1", "--json"))["complete"] is False


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ((), ["arjun", "mei", "rina"]),
        (("--search", "R"), ["rina"]),
        (("--search", "rx"), []),
        (("--entity", "209900042K"), ["arjun", "rina"]),
        (("--entity", "209900042K", "--search", "ar"), ["arjun"]),
        (("--entity", "C3"), []),
    ],
)  # fmt: skip
def test_people_are_listed_narrowed_and_paged(terminal: Terminal, filters: tuple[str, ...], names: list[str]) -> None:
    """D51: a user name is found however it is written."""
    fill(terminal)
    found, after = [], ""
    for _ in range(len(names) + 1):
        page = json.loads(terminal.done("user", "list", *filters, "--limit", "1", "--after", after, "--json"))
        found += [each["user_name"] for each in page["users"]]
        after = page["after"]
        if not after:
            break
    assert found == names


def test_members_of_an_entity_are_listed_with_their_level(terminal: Terminal) -> None:
    """D53."""
    fill(terminal)
    shown = terminal.done("user", "list", "--entity", "209900042K")
    [arjun, rina] = [line.split() for line in shown.splitlines() if line.startswith("│")]
    assert (arjun[5], rina[6]) == ("sub-administrator", "owner")
    terminal.done("apply", terminal.file("users: {arjun: {memberships: [{entity: 209900042K, enabled: false}]}}"))
    assert "suspended" in terminal.done("user", "list", "--entity", "209900042K")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("user", "show", "rnia"), "there is no user 'rnia'; did you mean 'rina'?"),
        (("user", "list", "--entity", "209900042"), "there is no entity '209900042'; did you mean '209900042K'?"),
        (("user", "list", "--search", "\udcff"), "characters that no record has"),
        (("user", "disable", "arjn"), "there is no user 'arjn'; did you mean 'arjun'?"),
    ],
)
def test_who_is_not_there_is_a_sentence_with_a_hint(
    terminal: Terminal, arguments: tuple[str, ...], reason: str
) -> None:
    fill(terminal)
    assert reason in terminal.refused(*arguments)
