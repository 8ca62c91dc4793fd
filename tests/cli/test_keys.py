"""`corpid key` and `corpid client drop-keys`: the keys that sign, that seal, and that were fetched."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import typer
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from corpid.cli.running import run
from corpid.engines import Stores, at_command_line
from corpid.jose.certificates import pem
from corpid.rules.audit import AuditEntry, AuditEvent
from corpid.rules.authentication.records import Session
from corpid.rules.directory.records import NameTaken
from corpid.rules.oauth.records import FetchedKeySet
from tests.certificates import Authority
from tests.machine import key_file

if TYPE_CHECKING:
    from corpid.rules.signing_keys import ProviderKey
    from tests.cli.conftest import Terminal

FAR = 4_000_000_000


def listed(terminal: Terminal) -> dict[str, str]:
    return {key["kid"]: key["state"] for key in json.loads(terminal.done("key", "list", "--json"))}


async def events(stores: Stores) -> list[AuditEntry]:
    return await stores.registry.audit.entries()


async def signing_keys(stores: Stores) -> list[ProviderKey]:
    return await stores.registry.keys.list_all()


def test_a_key_is_rotated_and_revoked(terminal: Terminal) -> None:
    """D42: published two hours ahead; a revocation of the one that signs is replaced at once."""
    first, following = listed(terminal)
    terminal.done("key", "rotate")
    assert list(listed(terminal).values()) == ["in use", "published, not yet in use", "standby"]
    assert f"Key {following} signs from" in terminal.done("key", "revoke", first)
    assert "revoked already" in terminal.refused("key", "revoke", first)
    rotated, retired, published, revoked, *_ = terminal.look(events)
    assert (rotated.action, retired.action, retired.object) == ("key.rotate", "key.retire", first)
    assert (published.action, revoked.action, revoked.object) == ("key.publish", "key.revoke", first)


def test_the_list_names_only_dates_that_hold(terminal: Terminal) -> None:
    """A revoked key neither signs nor retires at a later date, and a standby key has none."""
    first, standby = listed(terminal)
    terminal.done("key", "rotate")
    terminal.done("key", "revoke", standby)
    keys = {key["kid"]: key for key in json.loads(terminal.done("key", "list", "--json"))}
    assert keys[standby]["state"] == "revoked"
    assert keys[standby]["signs_from"] == keys[standby]["retired_at"] == ""
    assert keys[standby]["revoked_at"]
    assert (keys[first]["state"], keys[first]["revoked_at"]) == ("in use", "")
    (scheduled,) = [key for key in keys.values() if key["state"] == "published, not yet in use"]
    assert keys[first]["retired_at"] == scheduled["signs_from"]
    (waiting,) = [key for key in keys.values() if key["state"] == "standby"]
    assert waiting["signs_from"] == waiting["retired_at"] == waiting["revoked_at"] == ""


def test_rewrapping_moves_every_secret_to_the_present_key(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """D43: rewrap command."""
    terminal.done("user", "add", "test.person", "--name", "Test Person", "--with-factors")
    before = terminal.look(signing_keys)
    embedded = terminal.folder / "data" / "sealing.key"
    monkeypatch.setenv("CORPID_KEY_ENCRYPTION_KEY_FILE", key_file(terminal.folder / "new.key"))
    assert "was sealed with the key-encryption key" in terminal.refused("key", "list")
    monkeypatch.setenv("CORPID_OLD_KEY_ENCRYPTION_KEY_FILES", str(embedded))
    assert terminal.look(signing_keys) == before
    assert "Encrypted again: 5 secrets" in terminal.done("key", "rewrap")
    assert "Encrypted again: 0 secrets" in terminal.done("key", "rewrap")
    monkeypatch.delenv("CORPID_OLD_KEY_ENCRYPTION_KEY_FILES")
    assert terminal.look(signing_keys) == before
    assert [event.action for event in terminal.look(events)][-2:] == ["key.rewrap"] * 2


def test_a_key_is_certified_by_an_authority_and_goes_back_to_its_own_certificate(terminal: Terminal) -> None:
    """Spec 2.9: an operator's own, asked for with a request, since the private key is sealed."""
    kid, _ = listed(terminal)
    request = x509.load_pem_x509_csr(terminal.done("key", "request-certificate", kid).encode())
    assert request.subject.rfc4514_string() == "CN=localhost"
    root, public = Authority("Root of the nation"), request.public_key()
    assert isinstance(public, ec.EllipticCurvePublicKey)
    leaf = root.certify(public, begin=int(time.time()) - 60, seconds=3600)
    file = terminal.file(pem([leaf, *root.chain]), "chain.pem")
    assert "issued by CN=Root of the nation, until" in terminal.done("key", "certify", kid, file)
    key, _ = json.loads(terminal.done("key", "list", "--json"))
    assert key["certificate"].startswith("issued by CN=Root of the nation")
    event = terminal.look(events)[-1]
    assert (event.action, event.object, event.actor) == ("key.certify", kid, at_command_line().name)
    assert "self-signed" in terminal.done("key", "certify", kid, "--remove")
    assert "no certificate is stored" in terminal.refused("key", "certify", kid, "--remove")


async def store(kid: Any, leaf: Any, stores: Stores) -> None:
    (key,) = [key for key in await signing_keys(stores) if key.kid == kid]
    event = AuditEvent(actor="operator", action="test.change")
    await stores.registry.keys.update(msgspec.structs.replace(key, certificate_chain=pem([leaf])), event)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(-1, "(expired: renew it)"), (86400, "(expires within 30 days: renew it)"), (31 * 86400, None)],
)
def test_the_list_says_when_a_certificate_ends_soon(terminal: Terminal, seconds: int, told: str | None) -> None:
    """Nothing else does before relying parties refuse it."""
    kid, _ = listed(terminal)
    request = x509.load_pem_x509_csr(terminal.done("key", "request-certificate", kid).encode())
    public = request.public_key()
    assert isinstance(public, ec.EllipticCurvePublicKey)
    leaf = Authority("Root").certify(public, begin=int(time.time()) - 3600, seconds=3600 + seconds)

    terminal.look(partial(store, kid, leaf))
    key, _ = json.loads(terminal.done("key", "list", "--json"))
    if told is None:
        assert "(" not in key["certificate"]
    else:
        assert key["certificate"].endswith(told)


def test_a_certificate_request_has_the_name_that_is_asked_for(terminal: Terminal) -> None:
    kid, _ = listed(terminal)
    text = terminal.done("key", "request-certificate", kid, "--subject-name", "login.example")
    assert x509.load_pem_x509_csr(text.encode()).subject.rfc4514_string() == "CN=login.example"
    assert "--subject-name" in terminal.refused("key", "request-certificate", kid, "--subject-name", "a" * 65)
    assert "printable" in terminal.refused("key", "request-certificate", kid, "--subject-name", "a\x1b[2Jb")
    assert "no signing key with the kid nothing" in terminal.refused("key", "request-certificate", "nothing")


def test_what_is_no_chain_of_the_key_is_refused_with_the_reason(terminal: Terminal) -> None:
    kid, _ = listed(terminal)
    stranger = terminal.file(pem(Authority("Root").chain), "chain.pem")
    assert "is not of this key" in terminal.refused("key", "certify", kid, stranger)
    assert "missing.pem cannot be read: No such file" in terminal.refused("key", "certify", kid, "missing.pem")
    huge = terminal.file("-----BEGIN " * 6000, "huge.pem")
    assert "huge.pem is larger than 64 KiB" in terminal.refused("key", "certify", kid, huge)
    for arguments in ((), (stranger, "--remove")):
        assert "either the file" in terminal.refused("key", "certify", kid, *arguments)


async def too_late() -> None:
    raise NameTaken("User u9: another user has this user name")


def test_what_the_database_refuses_is_one_clear_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Two commands at once, of which the other was quicker."""
    with pytest.raises(typer.Exit):
        run(too_late())
    assert capsys.readouterr().err == "Error: The database refused this: User u9: another user has this user name\n"


def test_an_older_key_file_that_is_missing_is_named(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPID_OLD_KEY_ENCRYPTION_KEY_FILES", "gone.key")
    assert "gone.key does not exist" in terminal.refused("key", "rewrap")


async def keep(stores: Stores) -> None:
    fetched = FetchedKeySet(jwks_uri="https://rp.example/jwks", jwks='{"keys":[]}', fetched_at=1)
    await stores.registry.clients.keep_fetched_key_set("rp", fetched)


async def kept(stores: Stores) -> FetchedKeySet | None:
    return await stores.registry.clients.fetched_key_set("rp")


def test_a_fetched_key_set_is_dropped(terminal: Terminal) -> None:
    """D27: an operator can drop the cache."""
    add = ("client", "add", "rp", "--name", "RP", "--redirect-uri", "https://rp.example/cb")
    terminal.done(*add, "--jwks-uri", "https://rp.example/jwks")

    terminal.look(keep)
    assert terminal.look(kept) is not None
    terminal.done("client", "drop-keys", "rp")
    assert terminal.look(kept) is None
    last = terminal.look(events)[-1]
    assert (last.action, last.client_id) == ("client.drop_keys", "rp")
    assert "there is no client" in terminal.refused("client", "drop-keys", "nobody")


async def sign_in(stores: Stores) -> None:
    user = await stores.registry.directory.user_by_name("test.person")
    assert user is not None
    session = Session(
        session_id="s", user_id=user.user_id, browser_id="b", auth_time=1, amr=(), level=2, expires_at=FAR
    )
    await stores.registry.sessions.put(session)


async def session(stores: Stores) -> Session | None:
    return await stores.registry.sessions.get("s", now=stores.clock())


@pytest.mark.parametrize("command", [("reset-password",), ("reset-factors",), ("disable",)])
def test_what_an_operator_resets_ends_the_persons_sessions(terminal: Terminal, command: tuple[str, ...]) -> None:
    """D30, D50: nobody stays signed in with what was reset."""
    terminal.done("user", "add", "test.person", "--name", "Test Person", "--with-factors")

    terminal.look(sign_in)
    assert terminal.look(session) is not None
    terminal.done("user", *command, "test.person")
    assert terminal.look(session) is None


def test_keys_of_a_relying_party_are_made_once(terminal: Terminal) -> None:
    """docs/relying-parties.md: the private file is for its owner alone, and the public one can be registered."""
    private, public = terminal.folder / "rp.json", terminal.folder / "rp.json.public"
    terminal.done("client", "keys", str(private))
    made = private.read_text()
    assert private.stat().st_mode & 0o777 == 0o600
    assert '"d"' not in public.read_text()
    callback = ("--redirect-uri", "https://rp.example/callback")
    terminal.done("client", "add", "with-keys", "--name", "RP", *callback, "--jwks", str(public))
    assert "its keys are kept" in terminal.refused("client", "keys", str(private))
    assert private.read_text() == made


def test_keys_in_a_folder_that_is_missing_are_refused_in_one_sentence(terminal: Terminal) -> None:
    """D29: no traceback."""
    assert "cannot be written" in terminal.refused("client", "keys", str(terminal.folder / "none" / "rp.json"))
