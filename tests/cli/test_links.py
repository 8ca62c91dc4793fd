"""`corpid user invite`, `link` and `factors`: how people get in, and back in (D44, D45, D46)."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from corpid.flows.account import links
from corpid.rules.authentication import records
from corpid.rules.authentication.records import FactorChange, FactorLink
from tests.adapters.test_smtp import PostOffice, bodies, post_office
from tests.authenticator import Authenticator
from tests.cli.test_commands import events, person, value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.engines import Stores
    from corpid.rules.directory.records import User
    from tests.cli.conftest import Terminal

ADD = ("user", "add", "test.person", "--name", "Test Person")


async def user(stores: Stores) -> User:
    found = await stores.registry.directory.user_by_name("test.person")
    assert found is not None
    return found


def stored(terminal: Terminal, told: str) -> FactorLink | None:
    """The link that a command showed, as long as it opens something."""
    link_hash = records.hash_code(value(told, "Code"))
    assert records.hash_code(value(told, "Link")) == link_hash

    async def look(stores: Stores) -> FactorLink | None:
        found = await links.find_valid_link(stores.registry, link_hash, now=stores.clock())
        return found.link if found else None

    return terminal.look(look)


async def _more_factors(stores: Stores) -> None:
    found, held = await person(stores)
    change = FactorChange(
        before=held,
        after=held,
        add_passkey=Authenticator(user_handle=found.user_id.encode()).record(found.user_id),
        recovery_codes=(
            records.recovery_code_hash(found.user_id, "one"),
            records.recovery_code_hash(found.user_id, "two"),
        ),
    )
    [event, *_] = await events(stores)
    assert await stores.registry.factors.change(change, event)


def test_a_person_is_added_without_factors_and_invited(terminal: Terminal) -> None:
    """D46: nobody but them ever knows their password."""
    told = terminal.done(*ADD)
    assert "works once, for 72 hours" in told
    assert value(told, "Link").startswith("http://localhost:8080/enrol#")
    found = stored(terminal, told)
    assert found is not None
    assert (found.purpose, found.user_id) == ("invitation", terminal.look(user).user_id)
    assert [event.action for event in terminal.look(events)] == ["user.add", "link.invitation"]
    assert value(terminal.done("user", "factors", "test.person"), "Password") == "none"


def test_a_further_invitation_ends_the_one_before(terminal: Terminal) -> None:
    first = terminal.done(*ADD)
    second = terminal.done("user", "invite", "TEST.PERSON", "--print")
    assert stored(terminal, first) is None
    assert stored(terminal, second) is not None


def test_who_can_sign_in_is_not_invited_by_mistake(terminal: Terminal) -> None:
    """An invitation asks for nothing."""
    terminal.done(*ADD, "--with-factors")
    assert "can sign in already" in terminal.refused("user", "invite", "test.person")
    terminal.look(_more_factors)
    told = terminal.done("user", "invite", "test.person", "--anew")
    assert stored(terminal, told) is not None
    listed = terminal.done("user", "factors", "test.person")
    assert [value(listed, name) for name in ("Password", "Authenticator app", "Passkeys", "Recovery codes")] == [
        "none"
    ] * 4


@pytest.mark.parametrize(
    ("lost", "purpose", "lasts"),
    [("password", "password", "30 minutes"), ("second-factor", "second_factor", "24 hours")],
)
def test_a_link_renews_one_factor(terminal: Terminal, lost: str, purpose: str, lasts: str) -> None:
    """D44, D45"""
    terminal.done(*ADD, "--with-factors")
    told = terminal.done("user", "link", "test.person", "--for", lost)
    assert f"works once, for {lasts}" in told
    found = stored(terminal, told)
    assert found is not None
    assert found.purpose == purpose


@pytest.mark.parametrize(("lost", "lacks"), [("password", "no second factor"), ("second-factor", "no password")])
def test_a_link_is_refused_where_there_is_nothing_to_show_first(terminal: Terminal, lost: str, lacks: str) -> None:
    """The sentence says what to do instead."""
    terminal.done(*ADD)
    told = terminal.refused("user", "link", "test.person", "--for", lost)
    assert lacks in told
    assert "invite test.person --anew" in told


def test_factors_are_listed_without_secrets_and_reset_together(terminal: Terminal) -> None:
    """D45, D46"""
    told = terminal.done(*ADD, "--with-factors")
    terminal.look(_more_factors)
    listed = terminal.done("user", "factors", "test.person")
    assert value(listed, "Password") == "set"
    assert value(listed, "Authenticator app") == "set up"
    assert value(listed, "Passkeys") == "A key, made on 1970-01-01, never used"
    assert value(listed, "Recovery codes") == "2 left"
    assert value(told, "TOTP secret") not in listed
    assert "passkeys and recovery codes have been removed" in terminal.done("user", "reset-factors", "test.person")
    listed = terminal.done("user", "factors", "test.person")
    assert [value(listed, name) for name in ("Passkeys", "Recovery codes")] == ["none", "none"]


@pytest.fixture
def office(monkeypatch: pytest.MonkeyPatch) -> Iterator[PostOffice]:
    """A mail server in a thread of its own, which the settings name."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    serving = post_office()
    made = asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result(10)
    monkeypatch.setenv("CORPID_MAIL_URL", f"smtp://127.0.0.1:{made.port}")
    monkeypatch.setenv("CORPID_MAIL_FROM", "sign-in@corp.example")
    yield made
    asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def test_a_link_is_sent_where_there_is_mail_and_an_address(terminal: Terminal, office: PostOffice) -> None:
    told = terminal.done(*ADD, "--email", "test@example.org")
    assert "on its way to test@example.org" in told
    [(recipients, message)] = office.taken
    assert recipients == ["test@example.org"]
    for body in bodies(message):
        assert value(told, "Link") in body
    assert value(told, "Code") in bodies(message)[0].split()
    assert "Give them this link" in terminal.done("user", "invite", "test.person", "--print")
    assert len(office.taken) == 1
