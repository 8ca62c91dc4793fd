"""Secrets of the people of a demo that other machines reach.

Those of the example directory are published, so that nobody could tell who on the network signs in with them.
"""

from __future__ import annotations

import json
import secrets
from base64 import b32encode
from typing import TYPE_CHECKING, Any, Final

from corpid.stores import private_files
from corpid_dev.demo.example_directory import ExampleDirectory

if TYPE_CHECKING:
    from pathlib import Path

_NAMES: Final = ("password", "totp_secret")
_TOTP_BYTES: Final = 20
_GROUPS: Final = 4


def with_own_secrets(directory: ExampleDirectory, path: Path) -> ExampleDirectory:
    """The directory with secrets of this demo alone.

    They are kept in a file (0600), so that they stay the same at the next start.
    """
    kept = _read(path)
    users: dict[str, Any] = {}
    for user_name, user in directory.sections["users"].items():
        known = kept.get(user_name, {})
        own = {"password": known.get("password") or _password(), "totp_secret": known.get("totp_secret") or _totp()}
        users[user_name] = {**user, **{name: own[name] for name in _NAMES if name in user}}
    own_of = {user_name: {name: user[name] for name in _NAMES if name in user} for user_name, user in users.items()}
    private_files.replace(path, json.dumps(own_of, indent=1).encode())
    return ExampleDirectory({**directory.sections, "users": users})


def _read(path: Path) -> dict[str, dict[str, str]]:
    if not path.exists():
        return {}
    try:
        kept: dict[str, dict[str, str]] = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} does not hold the people's secrets; delete it or use --fresh") from error
    return kept


def _password() -> str:
    """Sixteen letters and digits, in groups for typing."""
    text = b32encode(secrets.token_bytes(10)).decode().lower()
    size = len(text) // _GROUPS
    return "-".join(text[start : start + size] for start in range(0, len(text), size))


def _totp() -> str:
    return b32encode(secrets.token_bytes(_TOTP_BYTES)).decode()
