"""Secrets at rest (D43)."""

from __future__ import annotations

import asyncio
import base64
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from corpid.rules.audit import AuditEvent
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.records import Change, User
from corpid.rules.signing_keys import ProviderKey
from corpid.stores.encryption_at_rest import (
    EncryptionError,
    SecretCipher,
    embedded_key,
    key_from_file,
    key_from_text,
    key_id,
)
from tests.adapters.opened import EVENT, KEY, sqlite

if TYPE_CHECKING:
    from pathlib import Path

    from tests.adapters.databases import Place

NEW_KEY = bytes(reversed(range(32)))
TEXT = base64.b64encode(KEY).decode()
PLACE = ("keys", "k1", "secret")
PERSON = User(user_id="u1", user_name="tan", name="Tan")
FACTORS = Credentials(user_id="u1", totp_secret="JBSWY3DPEHPK3PXP")
SIGNING = ProviderKey(kid="k1", use="sig", secret='{"d":"private"}', created_at=1, active_from=2)


def test_what_is_sealed_opens_at_its_own_place() -> None:
    cipher = SecretCipher(KEY)
    assert cipher.open(*PLACE, cipher.seal(*PLACE, "sécret")) == "sécret"


@pytest.mark.parametrize("place", [("credentials", "k1", "secret"), ("keys", "k2", "secret"), ("keys", "k1", "use")])
def test_a_sealed_text_copied_elsewhere_does_not_open(place: tuple[str, str, str]) -> None:
    """AAD = table, row, column."""
    cipher = SecretCipher(KEY)
    with pytest.raises(EncryptionError, match="belongs to another row"):
        cipher.open(*place, cipher.seal(*PLACE, "secret"))


def test_places_are_told_apart_by_more_than_their_text_run_together() -> None:
    cipher = SecretCipher(KEY)
    with pytest.raises(EncryptionError):
        cipher.open("key", "sk1", "secret", cipher.seal("keys", "k1", "secret", "secret"))


def test_sealing_twice_gives_two_texts_with_the_key_id_in_front() -> None:
    """Fresh nonce; key id in front."""
    cipher = SecretCipher(KEY)
    one, two = (cipher.seal(*PLACE, "secret") for _ in range(2))
    assert one != two
    assert one.startswith(f"{key_id(KEY)}.")
    assert "secret" not in one


@pytest.mark.parametrize(
    "damage", [lambda text: text[:-2], lambda text: text[:20] + "AAAA" + text[24:], lambda t: t[:12]]
)
def test_a_changed_text_does_not_open(damage: object) -> None:
    cipher = SecretCipher(KEY)
    with pytest.raises(EncryptionError, match=r"keys\.secret of 'k1'"):
        cipher.open(*PLACE, damage(cipher.seal(*PLACE, "secret")))  # type: ignore[operator]


def test_another_key_is_named_by_its_id_in_the_error() -> None:
    with pytest.raises(EncryptionError, match=key_id(KEY)):
        SecretCipher(NEW_KEY).open(*PLACE, SecretCipher(KEY).seal(*PLACE, "secret"))


def test_an_older_key_opens_and_the_current_one_seals() -> None:
    both = SecretCipher(NEW_KEY, older=[KEY])
    old = SecretCipher(KEY).seal(*PLACE, "secret")
    assert both.open(*PLACE, old) == "secret"
    assert not both.is_current(old)
    assert both.is_current(both.seal(*PLACE, "secret"))


@pytest.mark.parametrize("text", [TEXT, TEXT.rstrip("="), base64.urlsafe_b64encode(KEY).decode() + "\n"])
def test_a_key_is_read_from_base64_text_of_either_alphabet(text: str) -> None:
    assert key_from_text(text, "CORPID_KEY_ENCRYPTION_KEY") == KEY


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "CORPID_KEY is empty"),
        ("not base64!", "CORPID_KEY is not base64"),
        ("A", "CORPID_KEY is not base64"),
        (base64.b64encode(bytes(16)).decode(), "CORPID_KEY has 16 bytes"),
    ],
)
def test_a_bad_key_text_is_refused_with_its_source_and_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(EncryptionError, match=complaint):
        key_from_text(text, "CORPID_KEY")


def test_a_key_file_must_be_there_and_its_owners_alone(tmp_path: Path) -> None:
    """A file (0600)."""
    path = tmp_path / "key"
    with pytest.raises(EncryptionError, match="does not exist"):
        key_from_file(path)
    path.write_text(TEXT)
    path.chmod(0o640)
    with pytest.raises(EncryptionError, match="chmod 600"):
        key_from_file(path)
    path.chmod(0o600)
    assert key_from_file(path) == KEY


def test_a_credential_of_systemd_may_have_the_mask_of_its_access_control_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LoadCredential of systemd.exec(5): 0440 there means one user more, and no group."""
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    path = credentials / "sealing.key"
    path.write_text(TEXT)
    path.chmod(0o440)
    with pytest.raises(EncryptionError, match="others may read"):
        key_from_file(path)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(credentials))
    assert key_from_file(path) == KEY
    path.chmod(0o444)
    with pytest.raises(EncryptionError, match="others may read"):
        key_from_file(path)


def test_a_directory_is_no_key_file(tmp_path: Path) -> None:
    with pytest.raises(EncryptionError, match="cannot be read"):
        key_from_file(tmp_path)


def test_the_embedded_key_is_made_once_and_read_afterwards(tmp_path: Path) -> None:
    """The embedded default generates one in the data directory."""
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(embedded_key, [tmp_path] * 8))
    assert len(keys) == 1
    assert embedded_key(tmp_path) in keys
    assert [(path.name, path.stat().st_mode & 0o777) for path in tmp_path.iterdir()] == [("sealing.key", 0o600)]


def test_a_data_directory_that_cannot_hold_the_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(EncryptionError, match="cannot be made"):
        embedded_key(tmp_path / "missing")


async def test_secrets_never_stand_in_the_database_file(tmp_path: Path) -> None:
    async with sqlite(tmp_path) as stores:
        await stores.registry.directory.write([Change(None, PERSON), Change(None, FACTORS)], EVENT)
        await stores.registry.keys.add(SIGNING, EVENT)
        assert await stores.registry.factors.credentials("u1") == FACTORS
        assert await stores.registry.keys.list_all() == [SIGNING]
    content = (tmp_path / "corpid.db").read_bytes()
    assert b"JBSWY3DPEHPK3PXP" not in content
    assert b"private" not in content


async def test_a_database_of_another_key_is_refused_at_start(place: Place) -> None:
    async with place.opened():
        pass
    with pytest.raises(EncryptionError, match=f"sealed with the key-encryption key '{key_id(KEY)}'"):
        async with place.opened(cipher=SecretCipher(NEW_KEY)):
            pass
    async with place.opened():
        pass


async def test_after_a_rewrap_the_older_key_is_not_needed(place: Place) -> None:
    """Rewrap command."""
    both = SecretCipher(NEW_KEY, older=[KEY])
    event = AuditEvent(actor="operator", action="key.rewrap")

    async with place.opened() as stores:
        await stores.registry.directory.write([Change(None, PERSON), Change(None, FACTORS)], EVENT)
        await stores.registry.keys.add(SIGNING, EVENT)
    async with place.opened(cipher=both) as stores:
        assert await stores.registry.keys.rewrap(event) == 3
        assert await stores.registry.keys.rewrap(event) == 0
    async with place.opened(cipher=SecretCipher(NEW_KEY)) as stores:
        assert await stores.registry.keys.list_all() == [SIGNING]
        assert await stores.registry.factors.credentials("u1") == FACTORS
        assert [entry.action for entry in await stores.registry.audit.entries()][-1] == "key.rewrap"


async def test_a_rewrap_that_meets_a_damaged_row_changes_nothing(place: Place) -> None:
    both = SecretCipher(NEW_KEY, older=[KEY])
    stored = "SELECT secret FROM keys ORDER BY kid"

    async with place.opened() as stores:
        await stores.registry.keys.add(SIGNING, EVENT)
        await stores.registry.keys.add(ProviderKey(kid="k2", use="mac", secret="s", created_at=1, active_from=1), EVENT)
    place.sql("UPDATE keys SET secret = substr(secret, 1, length(secret) - 3) || 'AAA' WHERE kid = 'k2'")
    async with place.opened(cipher=both) as stores:
        before = place.sql(stored)
        with pytest.raises(EncryptionError, match="'k2'"):
            await stores.registry.keys.rewrap(EVENT)
        assert place.sql(stored) == before


async def test_of_two_first_starts_with_different_keys_one_is_refused(place: Place) -> None:
    """Hosts that start at once must not leave a database that neither key opens."""

    async def start(key: bytes) -> bytes:
        async with place.opened(cipher=SecretCipher(key)):
            return key

    started = await asyncio.gather(start(KEY), start(NEW_KEY), return_exceptions=True)
    assert sorted(type(one).__name__ for one in started) == ["EncryptionError", "bytes"]
    (winner,) = (one for one in started if isinstance(one, bytes))
    assert await start(winner) == winner
