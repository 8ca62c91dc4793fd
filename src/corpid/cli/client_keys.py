"""`corpid client keys`: key pairs for a relying party."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it
from typing import Annotated

import typer

from corpid.cli import output


def keys(
    file: Annotated[Path, typer.Argument(help="The new file for the private keys, such as keys.json.")],
) -> None:
    """Make key pairs for a relying party: one signs, one decrypts.

    The private keys go to the file (mode 0600), in the form that the examples read; the public JSON Web Key Set goes to
    a file of the same name with .public at its end, for `corpid client add --jwks`. Nothing is registered.
    """
    from corpid.stores import relying_party_keys  # noqa: PLC0415 - no other command on clients needs it

    try:
        public = relying_party_keys.write(file)
    except FileExistsError as error:
        output.fail(f"{error.filename} exists already; its keys are kept")
    except OSError as error:
        output.fail(f"{error.filename} cannot be written: {error.strerror}")
    output.say(f"{file} has the private keys: keep it secret, like a password. Register {public}.")
