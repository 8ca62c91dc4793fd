"""New key pairs of a relying party, in files."""

from __future__ import annotations

import errno
import os
import secrets
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.jose.key_ring import generate_private_jwk
from corpid.stores import private_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PUBLIC: Final = ("kty", "crv", "x", "y", "use", "kid", "alg")


def write(file: Path) -> Path:
    """Write a signing and an encryption key, and their public key set.

    The private keys go to `file` (mode 0600); the public JSON Web Key Set goes to a file of the same name with
    `.public` at its end, which is returned. Raises FileExistsError for either, and other OSError.
    """
    public = file.with_name(f"{file.name}.public")
    for each in (file, public):
        if os.path.lexists(each):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(each))
    private = write_private(file)
    public.write_bytes(_document({"keys": [_public(each) for each in private.values()]}))
    return public


def write_private(file: Path) -> Mapping[str, Mapping[str, Any]]:
    """Write a signing and an encryption key to a new file (0600).

    They are returned as private JWKs. Raises FileExistsError and other OSError.
    """
    suffix = secrets.token_hex(4)
    private = {
        "signing": _new_key(use="sig", kid=f"rp-sig-{suffix}", alg="ES256"),
        "encryption": _new_key(use="enc", kid=f"rp-enc-{suffix}", alg="ECDH-ES+A256KW"),
    }
    with private_files.new_file(file) as written:
        written.write(_document(private))
    return private


def _new_key(**described: str) -> dict[str, Any]:
    """A private JWK (RFC 7517 §4), described."""
    return {**msgspec.json.decode(generate_private_jwk(), type=dict[str, Any]), **described}


def _public(key: Mapping[str, Any]) -> dict[str, Any]:
    return {name: key[name] for name in _PUBLIC}


def _document(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
