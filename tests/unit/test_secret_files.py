"""Secrets in files of their own, `NAME_file`, and what is refused (D43)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corpid.settings import FILE_SETTINGS, KNOWN, LONGEST, SettingsError, load
from corpid.settings.diagnostics import examine_settings
from corpid.settings.fields import SECRETS

URL = "postgresql://corpid:word@db.example/corpid"
VALUES = {
    "database_url": URL,
    "transient_url": "rediss://:word@cache.example/0",
    "mail_url": "smtps://corpid:word@mail.example:465",
}


@pytest.fixture(autouse=True)
def _somewhere_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("config", *KNOWN):
        monkeypatch.delenv(f"CORPID_{name.upper()}", raising=False)
    monkeypatch.setenv("CORPID_MAIL_FROM", "sign-in@example.org")
    monkeypatch.setenv("CORPID_MAIL_URL", "smtp://mail.example")


def refusal() -> str:
    with pytest.raises(SettingsError) as refused:
        load()
    sentence = str(refused.value)
    assert sentence.endswith(".")
    assert "word" not in sentence
    return sentence


def secret_file(content: bytes = URL.encode(), mode: int = 0o600) -> Path:
    file = Path("secret")
    file.write_bytes(content)
    file.chmod(mode)
    return file


def test_every_secret_has_a_file() -> None:
    """D43: whatever is marked as a secret."""
    assert {f"{name}_file" for name in SECRETS} <= set(KNOWN)
    assert set(VALUES) == set(FILE_SETTINGS.values())


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_secret_is_read_from_the_file_that_the_environment_names(
    name: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "mail_url":
        monkeypatch.delenv("CORPID_MAIL_URL")
    monkeypatch.setenv(f"CORPID_{name.upper()}_FILE", str(secret_file(f"{VALUES[name]}{end}".encode())))
    assert getattr(load(), name) == VALUES[name]


def test_a_secret_is_read_from_the_file_that_the_settings_file_names(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("corpid.toml").write_text('database_url_file = "secret"\n')
    secret_file()
    assert load().database_url == URL
    Path("other").write_text("sqlite:///other.sqlite")
    monkeypatch.setenv("CORPID_DATABASE_URL_FILE", "other")
    assert load().database_url == "sqlite:///other.sqlite"


def test_both_ways_at_once_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("corpid.toml").write_text('database_url_file = "secret"\n')
    secret_file()
    monkeypatch.setenv("CORPID_DATABASE_URL", URL)
    expected = "CORPID_DATABASE_URL and database_url_file in corpid.toml are both set: keep one of them."
    assert refusal() == expected


def test_the_file_is_read_at_the_start_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPID_DATABASE_URL_FILE", str(secret_file()))
    settings = load()
    Path("secret").write_text("sqlite:///another")
    assert settings.database_url == URL


def test_what_a_caller_sets_leaves_the_file_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPID_DATABASE_URL_FILE", "nowhere")
    assert load(database_url="").is_embedded


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"x" * (LONGEST + 1), f"has more than {LONGEST} bytes"),
        (f"{URL}\nword\n".encode(), "one line of text"),
        (b"\xff\xfe", "one line of text"),
        (b"postgresql://\0", "one line of text"),
        (b"mysql://corpid:hunter2@db.example", "mysql is not a database"),
        (b"hunter2", "a value without :// is not a database"),
        (b"corpid:hunter2@db.example", "a value without :// is not a database"),
    ],
)
def test_a_file_without_a_usable_value_is_refused_without_the_value(
    content: bytes, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORPID_DATABASE_URL_FILE", str(secret_file(content)))
    sentence = refusal()
    assert sentence.startswith("CORPID_DATABASE_URL_FILE: secret")
    assert says in sentence
    assert "hunter2" not in sentence


def test_a_file_that_cannot_be_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPID_DATABASE_URL_FILE", "nowhere")
    assert refusal() == "CORPID_DATABASE_URL_FILE: nowhere cannot be read: No such file or directory."
    os.mkfifo("pipe")
    monkeypatch.setenv("CORPID_DATABASE_URL_FILE", "pipe")
    assert "is not a regular file" in refusal()


@pytest.mark.parametrize("written", [f'"{URL}"', f'["{URL}"]', '"a\\u0000word"', "7"])
def test_what_is_no_path_is_refused_without_its_text(written: str) -> None:
    """D43: also the URL itself, with its password."""
    Path("corpid.toml").write_text(f"database_url_file = {written}\n")
    assert refusal().startswith("database_url_file in corpid.toml is not the path of a file: ")


@pytest.mark.parametrize(("mode", "open_to_all"), [(0o644, True), (0o604, True), (0o640, False), (0o400, False)])
def test_a_file_that_every_user_can_read_is_a_problem(
    mode: int, open_to_all: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D43: as for a settings file with passwords."""
    monkeypatch.setenv("CORPID_DATABASE_URL_FILE", str(secret_file(mode=mode)))
    found = [each for each in examine_settings(load()) if each.about == "database_url_file"]
    assert [each.verdict for each in found] == ["problem"] * open_to_all
    assert all("Every user of this machine can read secret" in each.seen for each in found)
