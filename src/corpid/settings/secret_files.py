"""Secrets in files of their own: `NAME_file` instead of NAME.

Each secret setting has one; which ones are secret is declared with the settings (`fields.Secret`).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.settings.fields import PREFIX, SECRETS, Settings, SettingsError

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

FILE_SETTINGS: Final = {f"{name}_file": name for name in SECRETS if f"{name}_file" not in Settings.model_fields}
"""name of the further setting → the secret; the key-encryption key's file is a setting that commands name"""
KNOWN: Final = (*Settings.model_fields, *FILE_SETTINGS)
"""the names that corpid.toml may have"""
LONGEST: Final = 16 * 1024
"""bytes of a secret; the URL of a large cluster has some hundred"""


class SecretFile(msgspec.Struct, frozen=True, kw_only=True):
    secret: str
    """the setting"""
    path: Path
    place: str
    """where the file was named, for messages"""


def find_secret_files(environment: Mapping[str, str], written: Mapping[str, object], file: Path) -> list[SecretFile]:
    """The files that the environment or the settings file names.

    Raises SettingsError if a secret is given in both ways.
    """
    found = []
    for setting, secret in FILE_SETTINGS.items():
        place, path = _given(setting, environment, written, file)
        if not place:
            continue
        other, _ = _given(secret, environment, written, file)
        if other:
            raise SettingsError(f"{other} and {place} are both set: keep one of them.")
        # Each secret is a URL: who writes it here must not read its password in the log.
        if not isinstance(path, str) or "\0" in path or "://" in path:
            raise SettingsError(
                f"{place} is not the path of a file: write the value of {secret} into a file and name it."
            )
        found.append(SecretFile(secret=secret, path=Path(path), place=place))
    return found


def values(files: list[SecretFile], overrides: Container[str]) -> dict[str, str]:
    """The contents of the files, by setting, without overridden ones.

    Raises SettingsError.
    """
    return {each.secret: _read(each) for each in files if each.secret not in overrides}


def _given(name: str, environment: Mapping[str, str], written: Mapping[str, object], file: Path) -> tuple[str, object]:
    """A setting's place and value; both empty if not set."""
    variable = PREFIX + name.upper()
    if variable in environment:
        return variable, environment[variable]
    return (f"{name} in {file}", written[name]) if written.get(name) else ("", None)


def _read(file: SecretFile) -> str:
    where = f"{file.place}: {file.path}"
    try:
        # A pipe would let the start wait for ever.
        opened = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") as readable:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise SettingsError(f"{where} is not a regular file: write the value of {file.secret} into one.")
            content = readable.read(LONGEST + 1)
    except OSError as error:
        raise SettingsError(f"{where} cannot be read: {error.strerror}.") from error
    if len(content) > LONGEST:
        raise SettingsError(f"{where} has more than {LONGEST} bytes: write only the value of {file.secret} into it.")
    text = content.removesuffix(b"\n").removesuffix(b"\r").decode(errors="replace")
    if not text:
        raise SettingsError(f"{where} is empty: write the value of {file.secret} into it.")
    if not text.isprintable() or "\N{REPLACEMENT CHARACTER}" in text:
        raise SettingsError(f"{where} must have one line of text: write only the value of {file.secret} into it.")
    return text
