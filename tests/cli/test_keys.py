"""`corpid key` and `corpid client drop-keys`: the keys that sign, that seal, and that were fetched."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import typer

from corpid.cli import output
from corpid.ports import FetchedKeySet, NameTaken, SealedKey, Session
from tests.machine import key_file

if TYPE_CHECKING:
    from corpid.app import Stores
    from corpid.ports import AuditEntry
    from tests.cli.conftest import Terminal

FAR = 4_000_000_000


def listed(terminal: Terminal) -> dict[str, str]:
    return {key["kid"]: key["state"] for key in json.loads(terminal.done("key", "list", "--json"))}


async def events(stores: Stores) -> list[AuditEntry]:
    return await stores.registry.audit.entries()


async def own_keys(stores: Stores) -> list[SealedKey]:
    return await stores.registry.keys.all()


def test_a_key_is_rotated_and_revoked(terminal: Terminal) -> None:
    """D42: published two hours ahead; a revocation of the one that signs is replaced at once."""
    [first] = listed(terminal)
    terminal.done("key", "rotate")
    assert sorted(listed(terminal).values()) == ["in use", "published, not yet in use"]
    assert "signs from" in terminal.done("key", "revoke", first)
    assert listed(terminal)[first] == "revoked"
    assert "revoked already" in terminal.refused("key", "revoke", first)
    assert next(event.action for event in terminal.look(events)) == "key.rotate"


def test_rewrapping_moves_every_secret_to_the_present_key(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """D43: rewrap command."""
    terminal.done("user", "add", "test.person", "--name", "Test Person")
    before = terminal.look(own_keys)
    embedded = terminal.folder / "data" / "sealing.key"
    monkeypatch.setenv("CORPID_KEY_ENCRYPTION_KEY_FILE", key_file(terminal.folder / "new.key"))
    assert "was sealed with the key-encryption key" in terminal.refused("key", "list")
    monkeypatch.setenv("CORPID_OLD_KEY_ENCRYPTION_KEY_FILES", str(embedded))
    assert terminal.look(own_keys) == before
    assert "Sealed anew: 4 secrets" in terminal.done("key", "rewrap")
    assert "Sealed anew: 0 secrets" in terminal.done("key", "rewrap")
    monkeypatch.delenv("CORPID_OLD_KEY_ENCRYPTION_KEY_FILES")
    assert terminal.look(own_keys) == before
    assert [event.action for event in terminal.look(events)][-2:] == ["key.rewrap"] * 2


def test_what_the_database_refuses_is_one_clear_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Two commands at once, of which the other was quicker."""

    async def too_late() -> None:
        raise NameTaken("User u9: another user has this user name")

    with pytest.raises(typer.Exit):
        output.run(too_late())
    assert capsys.readouterr().err == "Error: The database refused this: User u9: another user has this user name\n"


def test_an_older_key_file_that_is_missing_is_named(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPID_OLD_KEY_ENCRYPTION_KEY_FILES", "gone.key")
    assert "gone.key does not exist" in terminal.refused("key", "rewrap")


def test_a_fetched_key_set_is_dropped(terminal: Terminal) -> None:
    """D27: an operator can drop the cache."""
    add = ("client", "add", "rp", "--name", "RP", "--redirect-uri", "https://rp.example/cb")
    terminal.done(*add, "--jwks-uri", "https://rp.example/jwks")

    async def keep(stores: Stores) -> None:
        fetched = FetchedKeySet(jwks_uri="https://rp.example/jwks", jwks='{"keys":[]}', fetched_at=1)
        await stores.registry.clients.keep_fetched_key_set("rp", fetched)

    async def kept(stores: Stores) -> FetchedKeySet | None:
        return await stores.registry.clients.fetched_key_set("rp")

    terminal.look(keep)
    assert terminal.look(kept) is not None
    terminal.done("client", "drop-keys", "rp")
    assert terminal.look(kept) is None
    last = terminal.look(events)[-1]
    assert (last.action, last.client_id) == ("client.drop_keys", "rp")
    assert "there is no client" in terminal.refused("client", "drop-keys", "nobody")


@pytest.mark.parametrize("command", [("reset-password",), ("reset-factors",), ("disable",)])
def test_what_an_operator_resets_ends_the_persons_sessions(terminal: Terminal, command: tuple[str, ...]) -> None:
    """D30, D50: nobody stays signed in with what was reset."""
    terminal.done("user", "add", "test.person", "--name", "Test Person")

    async def sign_in(stores: Stores) -> None:
        user = await stores.registry.directory.user_by_name("test.person")
        assert user is not None
        session = Session(
            session_id="s", user_id=user.user_id, browser_id="b", auth_time=1, amr=(), level=2, expires_at=FAR
        )
        await stores.registry.sessions.put(session)

    async def session(stores: Stores) -> Session | None:
        return await stores.registry.sessions.get("s", now=stores.clock())

    terminal.look(sign_in)
    assert terminal.look(session) is not None
    terminal.done("user", *command, "test.person")
    assert terminal.look(session) is None
