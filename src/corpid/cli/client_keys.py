"""`corpid client keys`: key pairs for a relying party."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from corpid.cli import output
from corpid.jose.key_ring import generate_private_jwk
from corpid.stores import private_files

if TYPE_CHECKING:
    from collections.abc import Mapping

_PUBLIC = ("kty", "crv", "x", "y", "use", "kid", "alg")


def keys(
    file: Annotated[Path, typer.Argument(help="The new file for the private keys, such as keys.json.")],
) -> None:
    """Make key pairs for a relying party: one signs, one decrypts.

    The private keys go to the file (mode 0600), in the form that the examples read; the public JSON Web Key Set goes to
    a file of the same name with .public at its end, for `corpid client add --jwks`. Nothing is registered.
    """
    suffix = secrets.token_hex(4)
    private = {
        "signing": _new_key(use="sig", kid=f"rp-sig-{suffix}", alg="ES256"),
        "encryption": _new_key(use="enc", kid=f"rp-enc-{suffix}", alg="ECDH-ES+A256KW"),
    }
    public = file.with_name(f"{file.name}.public")
    try:
        for each in (file, public):
            if os.path.lexists(each):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(each))
        with private_files.new_file(file) as written:
            written.write(_written(private))
        public.write_bytes(_written({"keys": [_public(each) for each in private.values()]}))
    except FileExistsError as error:
        output.fail(f"{error.filename} exists already; its keys are kept")
    except OSError as error:
        output.fail(f"{error.filename} cannot be written: {error.strerror}")
    output.say(f"{file} has the private keys: keep it secret, like a password. Register {public}.")


def _new_key(**described: str) -> dict[str, Any]:
    """A private JWK (RFC 7517 §4), described."""
    return {**msgspec.json.decode(generate_private_jwk(), type=dict[str, Any]), **described}


def _public(key: Mapping[str, Any]) -> dict[str, Any]:
    return {name: key[name] for name in _PUBLIC}


def _written(document: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
