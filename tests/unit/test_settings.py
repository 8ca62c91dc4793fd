"""Settings, and the sentence that a bad one is refused with."""

from __future__ import annotations

import base64
import os
from ipaddress import ip_network
from pathlib import Path

import pytest

from corpid.settings import Settings, SettingsError, documentation, load
from corpid.settings.diagnostics import examine_settings, machine_memory

KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture(autouse=True)
def _somewhere_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CORPID_CONFIG", raising=False)
    for name in Settings.model_fields:
        monkeypatch.delenv(f"CORPID_{name.upper()}", raising=False)


def refusal(**overrides: object) -> str:
    with pytest.raises(SettingsError) as refused:
        load(**overrides)
    sentence = str(refused.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "validation error" not in sentence
    return sentence


def test_without_any_setting_corpid_is_a_provider_on_this_machine(tmp_path: Path) -> None:
    settings = load()
    assert settings.base_url == "http://localhost:8080"
    assert settings.generations == ("current",)
    assert settings.session_seconds == 0  # D30
    assert settings.consent_days == 365  # D29
    assert settings.timezone.key == "UTC"
    assert settings.hashing_threads >= 1
    assert settings.return_iss is None
    assert settings.preset == ""
    assert settings.dpop_mismatch_error == "invalid_grant"  # D6
    assert settings.data_dir == tmp_path / "data"
    assert settings.database_url == f"sqlite:///{tmp_path}/data/corpid.sqlite"
    assert settings.is_embedded


def test_the_environment_wins_over_the_file_and_an_override_over_both(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("corpid.toml").write_text('name = "file"\nport = 1111\nhost = "::1"\ngenerations = ["current"]\n')
    monkeypatch.setenv("CORPID_NAME", "environment")
    monkeypatch.setenv("CORPID_PORT", "2222")
    settings = load(port=3333)
    assert (settings.name, settings.port, settings.host) == ("environment", 3333, ("::1",))


def test_corpid_config_names_another_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('name = "other"\n')
    monkeypatch.setenv("CORPID_CONFIG", "other.toml")
    assert load().name == "other"


def test_addresses_to_listen_on_are_a_list_with_or_without_brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    """D76."""
    Path("corpid.toml").write_text('host = ["10.0.0.11", "[fd00::11]"]\n')
    settings = load()
    assert settings.host == ("10.0.0.11", "fd00::11")
    assert settings.addresses == ("10.0.0.11:8080", "[fd00::11]:8080")
    monkeypatch.setenv("CORPID_HOST", "127.0.0.1, ::1")
    assert load().host == ("127.0.0.1", "::1")
    monkeypatch.setenv("CORPID_HOST", ",")
    assert refusal() == "CORPID_HOST: no address is named: write at least one, such as 127.0.0.1."


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPID_TRUSTED_PROXIES", "10.0.0.0/8, ::1,192.0.2.7")
    monkeypatch.setenv("CORPID_ALLOWED_HOSTS", "a.example,b.example:8443")
    settings = load()
    assert settings.trusted_proxies == tuple(map(ip_network, ("10.0.0.0/8", "::1", "192.0.2.7")))
    assert settings.allowed_hosts == ("a.example", "b.example:8443")


def test_an_unknown_key_of_the_file_is_refused_with_the_name_that_was_meant() -> None:
    Path("corpid.toml").write_text('base_ulr = "http://localhost"\n')
    assert refusal() == "corpid.toml: there is no setting 'base_ulr'; did you mean 'base_url'."


def test_a_refusal_says_where_the_value_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("corpid.toml").write_text("port = 0\n")
    assert refusal().startswith("port in corpid.toml: 0 ")
    monkeypatch.setenv("CORPID_PORT", "99999999")
    assert refusal().startswith("CORPID_PORT: '99999999' ")
    assert refusal(port="x").startswith("port: 'x' ")


@pytest.mark.parametrize(
    ("text", "says"), [("port = ", "corpid.toml is not valid TOML"), ("[port]\nx=1", "port in corpid.toml: ")]
)
def test_a_file_that_cannot_be_understood_is_refused(text: str, says: str) -> None:
    Path("corpid.toml").write_text(text)
    assert refusal().startswith(says)


def test_a_named_file_that_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPID_CONFIG", "nowhere.toml")
    assert refusal() == "CORPID_CONFIG: nowhere.toml cannot be read: No such file or directory."


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:1",
        "http://127.0.0.1:1",
        "http://[::1]:1",
        "http://idp.localhost",
        "http://localhost/a/b",
        "http://localhost/..a/healthz",
    ],
)
def test_http_is_fine_on_this_machine(url: str) -> None:
    """D52"""
    assert load(base_url=url + "/").base_url == url


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ftp://localhost", "must begin with https://"),
        ("localhost:8080", "must begin with https://"),
        ("http://", "must begin with https://"),
        ("http://localhost:x", "is not a URL"),
        ("http://localhost?a", "must be plain"),
        ("http://localhost#a", "must be plain"),
        ("http://me@localhost", "must be plain"),
        ("http://LOCALHOST", "must be plain"),
        ("http://localhost:80", "must be plain"),
        ("http://localhost/a%2Fb", "must be plain"),
        ("http://localhost//", "must be plain"),
        ("http://localhost /", "must be plain"),
        ("http://localhost/a/../b", "must be plain"),
        ("http://localhost/.", "must be plain"),
        ("https://m\u00fcnchen.example", "such as https://xn--mnchen-3ya.example"),
        ("https://M\u00dcNCHEN.example:8443/id", "such as https://xn--mnchen-3ya.example:8443"),
        ("https://-\u00fc.example", "such as https://login.example.org"),
        ("http://localhost/healthz", "/healthz and /readyz say whether this process runs; choose another path"),
        ("http://localhost/readyz/", "/healthz and /readyz say whether this process runs; choose another path"),
        ("http://idp.example", "use https, or name your proxy in trusted_proxies"),
        ("https://idp.example", "set tls_certificate and tls_key, or name the proxy"),
    ],
)
def test_other_base_urls_are_refused(url: str, says: str) -> None:
    """D32, D52"""
    assert says in refusal(base_url=url)


def test_behind_a_declared_proxy_http_and_https_are_fine() -> None:
    """D52"""
    for url in ("http://idp.example", "https://idp.example/sso"):
        assert load(base_url=url, trusted_proxies="10.0.0.1").base_url == url


@pytest.mark.parametrize(
    ("overrides", "makes"),
    [
        ({"developer_mode": True, "base_url": "https://localhost:8080"}, True),
        ({"developer_mode": True, "base_url": "https://127.0.0.1:8080/sso"}, True),
        ({"developer_mode": True, "base_url": "https://localhost", "trusted_proxies": "127.0.0.1"}, False),
        ({"developer_mode": True, "base_url": "https://localhost", "tls_certificate": "a", "tls_key": "b"}, False),
        ({"developer_mode": True, "base_url": "http://localhost:8080"}, False),
    ],
)
def test_developer_mode_makes_a_certificate_where_nothing_else_has_one(
    overrides: dict[str, object], makes: object
) -> None:
    """D52"""
    assert load(**overrides).makes_certificate is makes


@pytest.mark.parametrize("developer_mode", [False, True])
def test_a_certificate_is_made_for_nobody_else(developer_mode: object) -> None:
    """D52: neither outside developer mode nor beyond this machine."""
    url = "https://idp.example" if developer_mode else "https://localhost:8080"
    assert "set tls_certificate and tls_key" in refusal(base_url=url, developer_mode=developer_mode)


@pytest.mark.parametrize(
    ("url", "verdicts"), [("http://idp.example", ["problem"]), ("https://idp.example", []), ("http://localhost", [])]
)
def test_http_between_callers_and_a_proxy_is_a_problem(url: str, verdicts: list[str]) -> None:
    """D52: the proxy may serve TLS, but then base_url begins with https."""
    found = [
        each for each in examine_settings(load(base_url=url, trusted_proxies="10.0.0.1")) if "scheme" in each.about
    ]
    assert [each.verdict for each in found] == verdicts
    assert all("begin base_url with https://" in each.change for each in found)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"database_url": "mysql://db/corpid"}, "mysql is not a database that CorpID can use"),
        ({"transient_url": "memcached://memory"}, "memcached cannot store short-lived data"),
        ({"preset": "public"}, "its input should be '' or 'public-service'"),
        ({"preset": ["public-service"]}, "its input should be '' or 'public-service'"),
        ({"dpop_mismatch_error": "invalid_token"}, "its input should be 'invalid_grant' or 'invalid_dpop_proof'"),
        ({"timezone": "Mars/Base"}, "Mars/Base is not a time zone: write a name such as"),
        ({"timezone": "/etc/passwd"}, "is not a time zone"),
        ({"trusted_proxies": "10.0.0.1/8"}, "has host bits set"),
        ({"trusted_proxies": "proxy"}, "write 10.0.0.7 or 10.0.0.0/8"),
        ({"trusted_proxies": "10.0.0.1, 0.0.0.0/0"}, "would trust everybody"),
        ({"hashing_threads": 0}, "greater than or equal to 1"),
        ({"password_hash": "argon2"}, "write rfc9106, owasp, or numbers such as m=65536,t=3,p=4"),
        ({"password_hash": "m=19456,t=1,p=1"}, "outside the safe bounds: at least m=19456,t=2,p=1 or an equivalent"),
        ({"session_seconds": -1}, "greater than or equal to 0"),
        ({"session_seconds": 599}, "write 600 or more, or 0"),
        ({"log_level": "loud"}, "'debug', 'info', 'warning' or 'error'"),
        ({"port": "tcp://10.0.0.1:80"}, "set enableServiceLinks: false"),
        ({"tls_certificate": "a.pem"}, "tls_certificate and tls_key belong together"),
        ({"tls_certificate": "a.pem", "tls_key": "b.pem"}, "base_url must begin with https://"),
        ({"developer_mode": True, "base_url": "https://idp.example", "trusted_proxies": "10.0.0.1"}, "developer_mode"),
        ({"key_encryption_key": KEY, "key_encryption_key_file": "k"}, "keep one of them"),
        ({"nmae": "x"}, "There is no setting 'nmae'; did you mean 'name'"),
        ({"acr_prefix": "a b"}, "acr_prefix: "),
    ],
)
def test_a_value_that_cannot_work_is_refused_with_what_to_do(overrides: dict[str, object], says: str) -> None:
    assert says in refusal(**overrides)


@pytest.mark.parametrize(
    "generations",
    ["current", "intermediate", "fapi2", "legacy", "current,legacy", "legacy,current", "intermediate,legacy"],
)
def test_one_pushed_and_one_query_generation_are_served_side_by_side_or_either_alone(generations: str) -> None:
    """Spec "Generations"."""
    assert load(generations=generations).generations == tuple(generations.split(","))


@pytest.mark.parametrize(
    ("generations", "says"),
    [
        ("fapi2,legacy", "fapi2 must be the only generation of an issuer, not together with legacy: write fapi2 or legacy"),
        ("current,fapi2", "fapi2 must be the only generation of an issuer, not together with current: write fapi2 or current"),
        ("fapi2,current,legacy", "not together with current,legacy: write fapi2 or current,legacy"),
        ("current,intermediate", "current and intermediate both take pushed requests, and only one of them can be served"),
        ("current,intermediate,legacy", "only one of them can be served: choose one"),
        ("legacy,legacy", "legacy is named more than once: write it once"),
        ("current,curent", "curent is not a generation that CorpID serves: choose from legacy, intermediate, current, fapi2"),
        ("", "no generation is named: write at least one of legacy, intermediate, current, fapi2"),
    ],
)  # fmt: skip
def test_generations_that_do_not_go_together_are_refused(generations: str, says: str) -> None:
    """Spec "Side by side": FAPI2 together with LEGACY refuses to start."""
    sentence = refusal(generations=generations)
    assert sentence.startswith("generations: ")
    assert says in sentence


def test_a_secret_is_not_shown_when_it_is_refused() -> None:
    """D43"""
    assert "hunter2" not in refusal(key_encryption_key=["hunter2"])


def test_every_setting_is_described_and_the_page_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "settings.md"
    assert page.read_text(encoding="utf-8") == documentation(), "run `make tables`"
    assert all(field.description for field in Settings.model_fields.values())


@pytest.mark.parametrize("scheme", ["redis", "rediss", "valkey", "valkeys"])
def test_what_lives_for_minutes_may_be_on_redis_or_valkey_with_tls_or_without(scheme: str) -> None:
    assert load(transient_url=f"{scheme}://memory:6379").transient_url == f"{scheme}://memory:6379"


def test_a_secret_does_not_show_in_the_settings() -> None:
    assert KEY not in repr(load(key_encryption_key=KEY))


def test_mail_needs_both_an_address_and_a_server() -> None:
    server, sender = "smtp://corpid:se%2Fcret@mail.example", "sign-in@example.org"
    assert load(mail_url=server, mail_from=sender).mail_from == sender
    assert "set both or neither" in refusal(mail_url=server)
    assert "set both or neither" in refusal(mail_from=sender)
    assert "se%2Fcret" not in repr(load(mail_url=server, mail_from=sender))


@pytest.mark.parametrize(
    "sender",
    [
        "nobody",
        "A <a@example.org>",
        "a@b, c@example.org",
        "a@example.org\nBcc: x@example.org",
        "ü@example.org",
        "a@host",
    ],
)
def test_emails_come_from_one_plain_address(sender: str) -> None:
    assert "not a plain e-mail address" in refusal(mail_url="smtp://mail.example", mail_from=sender)


@pytest.mark.parametrize(
    "contact", ["security@example.org", "mailto:a@b\nContact: x", "http://example.org", "tel:", "nobody"]
)
def test_security_contacts_are_uris(contact: str) -> None:
    """RFC 9116 §2.5.3: web addresses over https."""
    assert "not a contact: write for example mailto:" in refusal(security_contact=[contact])


def test_a_mail_server_that_is_none_is_refused_without_its_password() -> None:
    sentence = refusal(mail_url="smpt://corpid:secret@mail.example", mail_from="a@example.org")
    assert "secret" not in sentence
    assert "smtp://USER" in sentence


@pytest.mark.parametrize(
    ("written", "mode", "named"),
    [
        ('database_url = "postgresql://corpid:word@db.example/corpid"', 0o644, ["database_url"]),
        (
            'transient_url = "rediss://:word@cache.example/0"\nmail_url = "smtp://mail.example"\nmail_from = "a@b.example"',
            0o604,
            ["transient_url"],
        ),
        (f'key_encryption_key = "{"A" * 43}="', 0o606, ["key_encryption_key"]),
        ('database_url = "postgresql://corpid:word@db.example/corpid"', 0o640, []),
        ('database_url = "postgresql://corpid:word@db.example/corpid"', 0o600, []),
        ('database_url = "postgresql://corpid@db.example/corpid"', 0o644, []),
    ],
)
def test_a_settings_file_with_secrets_that_others_can_read_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, mode: int, named: list[str]
) -> None:
    """D43: a password in a file is its owner's alone."""
    file = tmp_path / "corpid.toml"
    file.write_text(written, encoding="utf-8")
    file.chmod(mode)
    monkeypatch.setenv("CORPID_CONFIG", str(file))
    found = [each for each in examine_settings(load()) if each.about == "settings file"]
    assert [each.verdict for each in found] == ["problem"] * len(named)
    assert all(f"secrets: {', '.join(named)}." in each.seen and "chmod o-rwx" in each.change for each in found)
    assert all("word" not in each.seen for each in found)


@pytest.mark.parametrize(
    ("chosen", "verdicts"),
    [
        ({"workers": 4, "hashing_threads": 4}, ["problem"]),
        ({"workers": 4, "hashing_threads": 4, "password_hash": "owasp"}, []),
        ({"workers": 4, "hashing_threads": 2}, []),
    ],
)
def test_more_password_checks_at_a_time_than_memory_holds_are_a_problem(
    chosen: dict[str, object], verdicts: list[str]
) -> None:
    """docs/capacity.md, "Memory": 64 or 19 MiB each."""
    found = [each for each in examine_settings(load(**chosen), memory=1000 << 20) if each.about == "hashing_threads"]
    assert [each.verdict for each in found] == verdicts
    assert all("16 password checks" in each.seen and "1024 MiB of 1000" in each.seen for each in found)


@pytest.mark.parametrize(("written", "limit"), [("268435456\n", 256 << 20), ("max\n", None), (None, None)])
def test_a_container_has_the_memory_of_its_limit(tmp_path: Path, written: str | None, limit: int | None) -> None:
    if written is not None:
        (tmp_path / "memory.max").write_text(written, encoding="ascii")
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert machine_memory(tmp_path / "memory.max") == (limit or physical)


@pytest.mark.parametrize(
    ("to", "verdicts"),
    [
        ("", []),
        ("/var/log/audit.jsonl", []),
        ("syslog+tls://siem.example:6514", []),
        ("syslog+tcp://127.0.0.1:601", []),
        ("syslog+tcp://siem.example:601", ["problem"]),
    ],
)
def test_an_audit_that_leaves_this_machine_unencrypted_is_a_problem(to: str, verdicts: list[str]) -> None:
    """docs/decisions/0030: it has addresses and names of people."""
    found = [each for each in examine_settings(load(audit_stream=to)) if each.about == "audit_stream"]
    assert [each.verdict for each in found] == verdicts
