"""Settings: from the environment (`CORPID_*`), from corpid.toml, or their defaults.

A bad setting is one sentence that names it, says what is wrong with its value and how to put it right.
A secret setting may also be in a file of its own, which `NAME_file` names; `fields.Secret` declares which are secret.
"""

from __future__ import annotations

import difflib
import os
import stat
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from pydantic import ValidationError

from corpid.settings.fields import PREFIX, PRESETS, SECRETS, IssuerSettings, Settings, SettingsError, contradictions
from corpid.settings.issuers import contradictions as between_issuers
from corpid.settings.issuers import issuers

__all__ = ["Settings", "SettingsError", "documentation", "load", "named_secret_files", "settings_file"]

FILE: Final = "corpid.toml"
_OF_A_TABLE: Final = 2
"""the parts before the key in an error's location: the setting, and the number of the table"""
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


def load(made: type[Settings] = Settings, /, **overrides: Any) -> Settings:  # noqa: ANN401
    """The settings, from overrides, environment and corpid.toml.

    `overrides` win over the environment, which wins over corpid.toml (or CORPID_CONFIG). The preset that they name
    comes last. Files with secrets are read now, and never again. Raises SettingsError.
    """
    path, written = settings_file()
    environment = _environment()
    files = _find_secret_files(environment, written, path)
    in_files = {each.secret: _read_secret(each) for each in files if each.secret not in overrides}
    from_file = {
        name: value
        for name, value in written.items()
        if PREFIX + name.upper() not in environment and name not in FILE_SETTINGS
    }
    named = {"preset": environment.get(f"{PREFIX}PRESET", ""), **from_file, **overrides}["preset"]
    preset = PRESETS[named].settings if isinstance(named, str) and named in PRESETS else {}
    in_environment = {
        name: environment[PREFIX + name.upper()] for name in made.model_fields if PREFIX + name.upper() in environment
    }
    try:
        return _consistent(made(**{**preset, **from_file, **in_environment, **in_files, **overrides}))
    except ValidationError as errors:
        error = errors.errors()[0]
        name = str(error["loc"][0]) if error["loc"] else ""
        places = {name: f"{name} in {path}" if name in from_file else PREFIX + name.upper()}
        places |= {each.secret: f"{each.place}: {each.path}" for each in files}
        raise SettingsError(_sentence(error, name if name in overrides else places[name])) from None


def named_secret_files() -> list[SecretFile]:
    """The files with secrets that environment and settings file name.

    Raises SettingsError.
    """
    path, written = settings_file()
    return _find_secret_files(_environment(), written, path)


def _environment() -> dict[str, str]:
    return {name.upper(): value for name, value in os.environ.items() if value}


def _consistent(settings: Settings) -> Settings:
    """Return the settings if each further issuer's are consistent with them."""
    for broken, sentence in between_issuers(settings):
        if broken:
            raise SettingsError(f"{sentence}.")
    for issuer_id, chosen in issuers(settings).items():
        for broken, sentence in contradictions(chosen):
            if broken:
                raise SettingsError(f"issuers: {issuer_id}: {sentence}.")
    return settings


def _find_secret_files(environment: Mapping[str, str], written: Mapping[str, object], file: Path) -> list[SecretFile]:
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


def _given(name: str, environment: Mapping[str, str], written: Mapping[str, object], file: Path) -> tuple[str, object]:
    """A setting's place and value; both empty if not set."""
    variable = PREFIX + name.upper()
    if variable in environment:
        return variable, environment[variable]
    return (f"{name} in {file}", written[name]) if written.get(name) else ("", None)


def _read_secret(file: SecretFile) -> str:
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


def documentation() -> str:
    """docs/settings.md: every setting with its variable, default and meaning."""
    lines = [
        "# Settings",
        "",
        "Each setting is an environment variable, or a key of `corpid.toml`: the file that `CORPID_CONFIG` names, or else",
        "the one in the working directory. The environment wins. Relative paths are relative to the working directory.",
        "`make tables` writes this page.",
        "",
        "| In corpid.toml | In the environment | Default | Meaning |",
        "|---|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        default = "" if field.default_factory else _shown(field.default)
        lines.append(f"| `{name}` | `{PREFIX}{name.upper()}` | {default} | {field.description} |")
        if (file := f"{name}_file") in FILE_SETTINGS:
            meaning = f"File with the value of {name}, see [secrets in files](#secrets-in-files)."
            lines.append(f"| `{file}` | `{PREFIX}{file.upper()}` |  | {meaning} |")
    lines += _SECRETS_IN_FILES
    for name in PRESETS:
        lines += _preset_lines(name)
    return "\n".join(lines) + "\n"


_SECRETS_IN_FILES: Final = f"""
## Secrets in files

A setting that can hold a password or a key can be in a file of its own: set `NAME_file` (in the environment
`{PREFIX}NAME_FILE`) to the path of the file, and leave NAME out. These are
{", ".join(f"`{name}_file`" for name in SECRETS)}.

- Set one of the two, in whichever place: with both, CorpID does not start, and names both.
- The file has only the value, in one line of at most {LONGEST // 1024} KiB. A newline at its end does not count.
- CorpID reads it when it starts, and never again: after a change, restart every node.
- If every user of the machine can read the file, this is `settings_problem` in the log at start, and a problem for
  `corpid doctor`. The file of the key-encryption key must belong to the service's user alone (mode 0600), or be a
  credential of systemd.

With systemd 250 and later the files can belong to root alone: `LoadCredential=database.url:/etc/corpid/database.url` and
`Environment={PREFIX}DATABASE_URL_FILE=%d/database.url` in the unit. In containers, secrets:
`{PREFIX}DATABASE_URL_FILE: /run/secrets/database.url`.
""".rstrip().split("\n")


def _preset_lines(name: str) -> list[str]:
    preset = PRESETS[name]
    return [
        "",
        f"## The preset `{name}`",
        "",
        *textwrap.wrap(
            f"{preset.purpose} With `{PREFIX}PRESET={name}` these are the defaults:", 120, break_on_hyphens=False
        ),
        "",
        "| Setting | Value |",
        "|---|---|",
        *(f"| `{setting}` | {_shown(value)} |" for setting, value in preset.settings.items()),
        "",
        "A client that you register afterwards gets these values, unless its file or command says otherwise. Existing",
        "clients keep their values.",
        "",
        "| Key of a client | Value |",
        "|---|---|",
        *(f"| `{member}` | {_shown(value)} |" for member, value in preset.new_client.items()),
    ]


def _shown(default: object) -> str:
    if isinstance(default, tuple):
        default = ", ".join(default)
    text = str(default).lower() if isinstance(default, bool) else str(default)
    return f"`{text}`" if default not in {None, ""} else ""


def settings_file() -> tuple[Path, dict[str, Any]]:
    """The settings file and its content, empty if there is none.

    Raises SettingsError.
    """
    named = os.environ.get(f"{PREFIX}CONFIG")
    path = Path(named or FILE)
    if not named and not path.exists():
        return path, {}
    import tomllib  # noqa: PLC0415 - most commands have their settings from the environment

    try:
        written = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{PREFIX}CONFIG: {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}.") from error
    for name in written:
        if name not in KNOWN:
            raise SettingsError(f"{path}: there is no setting {name!r}{_did_you_mean(name)}.")
    return path, written


def _did_you_mean(name: str) -> str:
    close = difflib.get_close_matches(name.lower().removeprefix(PREFIX.lower()), KNOWN, n=1)
    return f"; did you mean {close[0]!r}" if close else "; docs/settings.md lists them"


def _sentence(error: Any, place: str) -> str:  # noqa: ANN401
    name = str(error["loc"][0]) if error["loc"] else ""
    if len(error["loc"]) > 1 and name == "issuers":
        place = f"{place}: number {error['loc'][1] + 1}" if isinstance(error["loc"][1], int) else place
        place = f"{place}, {error['loc'][2]}" if len(error["loc"]) > _OF_A_TABLE else place
    if error["type"] == "extra_forbidden" and place.endswith(f", {error['loc'][-1]}"):
        return f"{place}: an issuer has no such setting; it may have {', '.join(('id', *IssuerSettings.model_fields))}."
    if error["type"] == "extra_forbidden":
        return f"There is no setting {name!r}{_did_you_mean(name)}."
    if error["type"] == "missing":
        return f"{place}: it is missing, and every issuer needs it."
    if error["type"] == "value_error":
        reason = str(error["ctx"]["error"])
    else:
        value = "its value" if name in SECRETS else repr(error["input"])
        reason = f"{value} cannot be used, its {error['msg'][:1].lower()}{error['msg'][1:]}"
    return f"{place}: {reason}." if name else f"{reason}."
