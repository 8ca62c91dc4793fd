"""Encryption of stored secrets: AES-256-GCM under a key-encryption key (D43).

That key is never in the database. A ciphertext is `key id . base64url(nonce ‖ ciphertext)`. Its place (table, row,
column) and the key id are authenticated, so it cannot be decrypted in another row.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from corpid.jose.encoding import base64url
from corpid.rules.failures import SecretUnreadable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

KEY_BYTES: Final = 32
EMBEDDED_KEY_NAME: Final = "sealing.key"
_LONGEST_FILE: Final = 1024
"""characters of a file with a key that are read: a longer one has none"""
_NONCE_BYTES: Final = 12
_KEY_ID_BYTES: Final = 6


class EncryptionError(SecretUnreadable):
    """A key-encryption key is missing, malformed, or the wrong one."""


class SecretCipher:
    """Seals with the current key-encryption key.

    Opens with it and with older ones.

    Keys are 32 bytes each. Raises EncryptionError for a key of another length. D43.
    """

    __slots__ = ("_ciphers", "current")

    def __init__(self, current: bytes, older: Sequence[bytes] = ()) -> None:
        for key in (current, *older):
            _checked_length(key, "a key-encryption key")
        self.current: Final = key_id(current)
        """id of the key that encrypts"""
        self._ciphers: Final = {key_id(key): AESGCM(key) for key in (*older, current)}

    def seal(self, table: str, row: str, column: str, secret: str) -> str:
        """Encrypt a secret for this table, row and column only (D43)."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        place = _place(self.current, table, row, column)
        ciphertext = self._ciphers[self.current].encrypt(nonce, secret.encode(), place)
        return f"{self.current}.{base64url(nonce + ciphertext)}"

    def open(self, table: str, row: str, column: str, sealed: str) -> str:
        """Decrypt a secret of this table, row and column.

        Raises EncryptionError, naming the key it needs (D43).
        """
        key, _, text = sealed.partition(".")
        cipher = self._ciphers.get(key)
        if cipher is None:
            raise EncryptionError(
                f"{table}.{column} of {row!r} was sealed with the key-encryption key {key!r}, but the configured "
                f"ones are {', '.join(self._ciphers)}: configure that key (as an older one, to move away from it)"
            )
        try:
            sealed_bytes = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            nonce, ciphertext = sealed_bytes[:_NONCE_BYTES], sealed_bytes[_NONCE_BYTES:]
            return cipher.decrypt(nonce, ciphertext, _place(key, table, row, column)).decode()
        except (InvalidTag, ValueError):
            raise EncryptionError(
                f"{table}.{column} of {row!r} does not open: the stored text was changed or belongs to another row"
            ) from None

    def is_current(self, sealed: str) -> bool:
        """Return whether a ciphertext was made with the current key."""
        return sealed.partition(".")[0] == self.current


def key_id(key: bytes) -> str:
    """The identifier of a key-encryption key: the start of its hash."""
    return base64url(hashlib.sha256(b"corpid key-encryption key" + key).digest()[:_KEY_ID_BYTES])


def key_from_text(text: str, source: str) -> bytes:
    """A key-encryption key from base64 text (either alphabet) of 32 bytes.

    `source` names the origin of the text in errors. Raises EncryptionError. D43.
    """
    standard = "".join(text.split()).rstrip("=").translate(str.maketrans("-_", "+/"))
    if not standard:
        raise EncryptionError(f"{source} is empty: it must hold the base64 of {KEY_BYTES} random bytes")
    try:
        key = base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except binascii.Error:
        raise EncryptionError(f"{source} is not base64: it must hold the base64 of {KEY_BYTES} random bytes") from None
    return _checked_length(key, source)


def key_from_file(path: Path) -> bytes:
    """A key-encryption key from a base64 file of mode 0600.

    Raises EncryptionError if the file is missing, unreadable, open to others or malformed. Source: D43
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        with path.open(encoding="ascii", errors="replace") as readable:
            text = readable.read(_LONGEST_FILE)
    except FileNotFoundError:
        raise EncryptionError(
            f"the key-encryption key file {path} does not exist: name the file that was used so far, "
            f"or make one for a new deployment with `(umask 077; openssl rand -base64 32 > {path})`"
        ) from None
    except OSError as error:
        raise EncryptionError(f"the key-encryption key file {path} cannot be read: {error.strerror}") from None
    if mode & (stat.S_IRWXO if _is_credential(path) else stat.S_IRWXG | stat.S_IRWXO):
        raise EncryptionError(f"others may read the key-encryption key file {path} (mode {mode:04o}): chmod 600 {path}")
    return key_from_text(text, f"the key-encryption key file {path}")


def _is_credential(path: Path) -> bool:
    """Return whether systemd gave this file to this service alone.

    It does so by an access control list, whose mask then stands where the group's permissions are (acl(5)).
    """
    directory = os.environ.get("CREDENTIALS_DIRECTORY")
    return directory is not None and os.fspath(path.parent) == directory.rstrip("/")


def embedded_key(directory: Path) -> bytes:
    """The key of the embedded default, made at the first start.

    It is in the file `sealing.key` in the data directory. Of several processes that start at once, one makes it and all
    read it. Raises EncryptionError. Source: D43
    """
    path = directory / EMBEDDED_KEY_NAME
    if not path.exists():
        try:
            _make_key_file(path)
        except OSError as error:
            raise EncryptionError(f"the key-encryption key file {path} cannot be made: {error.strerror}") from None
    return key_from_file(path)


def _make_key_file(path: Path) -> None:
    """Write a key file atomically: a crash never leaves half a key."""
    from corpid.stores import private_files  # noqa: PLC0415 - once in the life of a deployment

    with suppress(FileExistsError), private_files.new_file(path) as file:
        file.write(base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")


def _place(key: str, table: str, row: str, column: str) -> bytes:
    place = b""
    for part in (key, table, row, column):
        text = part.encode()
        place += len(text).to_bytes(4, "big") + text
    return place


def _checked_length(key: bytes, source: str) -> bytes:
    if len(key) != KEY_BYTES:
        raise EncryptionError(f"{source} has {len(key)} bytes: an AES-256 key has {KEY_BYTES}")
    return key
