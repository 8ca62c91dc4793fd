"""Settings: from the environment (`CORPID_*`), from corpid.toml, or their defaults.

A bad setting is one sentence that names it, says what is wrong with its value and how to put it right.
"""

from __future__ import annotations

import difflib
import os
import textwrap
import tomllib
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from corpid.settings.fields import PREFIX, IssuerSettings, Settings, SettingsError, contradictions
from corpid.settings.issuers import contradictions as between_issuers
from corpid.settings.issuers import issuers
from corpid.settings.presets import PRESETS

__all__ = ["Settings", "SettingsError", "documentation", "load", "settings_file"]

FILE: Final = "corpid.toml"
SECRET: Final = "key_encryption_key"
_OF_A_TABLE: Final = 2
"""the parts before the key in an error's location: the setting, and the number of the table"""


def load(made: type[Settings] = Settings, /, **overrides: Any) -> Settings:  # noqa: ANN401
    """The settings, from overrides, environment and corpid.toml.

    `overrides` win over the environment, which wins over corpid.toml (or CORPID_CONFIG). The preset that they name
    comes last. Raises SettingsError.
    """
    path, written = settings_file()
    environment = {name.upper(): value for name, value in os.environ.items() if value}
    from_file = {name: value for name, value in written.items() if PREFIX + name.upper() not in environment}
    named = {"preset": environment.get(f"{PREFIX}PRESET", ""), **from_file, **overrides}["preset"]
    preset = PRESETS[named].settings if isinstance(named, str) and named in PRESETS else {}
    lowest = {name: value for name, value in preset.items() if PREFIX + name.upper() not in environment}
    try:
        return _consistent(made(**{**lowest, **from_file, **overrides}))
    except ValidationError as errors:
        error = errors.errors()[0]
        name = str(error["loc"][0]) if error["loc"] else ""
        places = {name: f"{name} in {path}" if name in from_file else PREFIX + name.upper()}
        raise SettingsError(_sentence(error, name if name in overrides else places[name])) from None


def _consistent(settings: Settings) -> Settings:
    """Return the settings if each further issuer's are consistent with them.

    Raises SettingsError.
    """
    for broken, sentence in between_issuers(settings):
        if broken:
            raise SettingsError(f"{sentence}.")
    for issuer_id, chosen in issuers(settings).items():
        for broken, sentence in contradictions(chosen):
            if broken:
                raise SettingsError(f"issuers: {issuer_id}: {sentence}.")
    return settings


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
    for name in PRESETS:
        lines += _preset_lines(name)
    return "\n".join(lines) + "\n"


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
    try:
        written = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{PREFIX}CONFIG: {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}.") from error
    for name in written:
        if name not in Settings.model_fields:
            raise SettingsError(f"{path}: there is no setting {name!r}{_did_you_mean(name)}.")
    return path, written


def _did_you_mean(name: str) -> str:
    close = difflib.get_close_matches(name.lower().removeprefix(PREFIX.lower()), Settings.model_fields, n=1)
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
        value = "its value" if name == SECRET else repr(error["input"])
        reason = f"{value} cannot be used, its {error['msg'][:1].lower()}{error['msg'][1:]}"
    return f"{place}: {reason}." if name else f"{reason}."
