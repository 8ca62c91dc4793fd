"""`corpid doctor --proxy` reads what a proxy logs: no query strings, no secrets in paths (D48)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.cli.doctor import local_checks
from tests.operate.proxies import SHIPPED

MASK = "map $uri $shown { ~^/enrol/ /enrol/-; default $uri; }"


def nginx(around: str, within: str) -> str:
    return f"{around} server {{ {within} location / {{ proxy_pass http://corpid; }} }}"


NGINX = {
    "nothing said": (nginx("", ""), "problem"),
    "usual": (nginx("", "access_log /var/log/a;"), "problem"),
    "usual, by name": (nginx("", "access_log /var/log/a combined buffer=32k;"), "problem"),
    "usual, with options": (nginx("", "access_log /var/log/a buffer=32k;"), "problem"),
    "usual, inherited": ("http { access_log /var/log/a; " + nginx("", "") + " }", "problem"),
    "off": (nginx("", "access_log off;"), "ok"),
    "own, inherited": ("http { log_format f '$uri'; access_log /a f; " + nginx("", "") + " }", "warning"),
    "path": (nginx("log_format f '$remote_addr $uri';", "access_log /a f;"), "warning"),
    "masked": (nginx(f"{MASK} log_format f escape=json '$remote_addr ' '$shown';", "access_log /a f;"), "ok"),
    "masked, in braces": (nginx(f"{MASK} log_format f '${{shown}}x';", "access_log /a f;"), "ok"),
    "request": (nginx("log_format f '$request';", "access_log /a f;"), "problem"),
    "query": (nginx(f"{MASK} log_format f '$shown?$args';", "access_log /a f;"), "problem"),
    "one parameter": (nginx("log_format f '$arg_request_uri';", "access_log /a f;"), "problem"),
    "referrer": (nginx(f"{MASK} log_format f '$shown $http_referer';", "access_log /a f;"), "problem"),
    "mask of the whole": (
        nginx("map $uri $shown { ~/enrol/ -; default $request_uri; } log_format f '$shown';", "access_log /a f;"),
        "problem",
    ),
    "map without mask": (
        nginx("map $uri $shown { ~/other/ -; default $uri; } log_format f '$shown';", "access_log /a f;"),
        "warning",
    ),
    "map of itself": (nginx("map $uri $shown { default $shown; } log_format f '$shown';", "access_log /a f;"), "ok"),
    "elsewhere": (nginx("", "access_log /a f;"), "warning"),
    "of a location": (nginx("", "access_log off; location /x { access_log /a; proxy_pass http://x; }"), "problem"),
    "port 80": ("server { return 301 https://$host$request_uri; }" + nginx("", "access_log off;"), "problem"),
    "comment": (nginx("# log_format f '$request';\nlog_format f 'x';", "access_log /a f;"), "ok"),
    "another's": ("server { root /srv; }" + nginx("", "access_log off;"), "ok"),
}
HAPROXY = {
    "nothing said": ("frontend a\n  bind :443\n", "ok"),
    "usual": ("defaults\n  option httplog\n", "problem"),
    "usual, with TLS": ("frontend a\n  option httpslog\n", "problem"),
    "path": ('frontend a\n  log-format "%ci %HPO"\n', "warning"),
    "path, as an expression": ('frontend a\n  log-format "%ci %[path]"\n', "warning"),
    "request": ('frontend a\n  log-format "%ci %{+Q}r"\n', "problem"),
    "query": ('frontend a\n  log-format "%HPO%HQ"\n', "problem"),
    "of errors": ('frontend a\n  error-log-format "%HU"\n', "problem"),
    "of fields": ('frontend a\n  log-format-sd "%{+E}o [x@1 uri=%HU]"\n', "problem"),
    "query, as an expression": ('frontend a\n  log-format "%[capture.req.uri]"\n', "problem"),
    "referrer": ('frontend a\n  log-format "%[req.hdr(Referer)]"\n', "problem"),
    "masked": ('frontend a\n  http-request set-var(txn.p) path,regsub(/enrol/.*,-)\n  log-format "%[var(txn.p)]"\n', "ok"),
    "kept": ('frontend a\n  http-request set-var(txn.p) path\n  log-format "%[var(txn.p)]"\n', "warning"),
    "masked query": ('frontend a\n  http-request set-var(txn.p) pathq,regsub(/enrol/.*,-)\n  log-format "%[var(txn.p)]"\n', "problem"),
    "comment": ('frontend a\n  # log-format "%HU"\n  log-format "%ci"\n', "ok"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "verdict"), NGINX.values(), ids=NGINX)
def test_what_nginx_logs_is_found(text: str, verdict: str) -> None:
    assert local_checks.check_access_log(text).verdict == verdict


@pytest.mark.parametrize(("text", "verdict"), HAPROXY.values(), ids=HAPROXY)
def test_what_haproxy_logs_is_found(text: str, verdict: str) -> None:
    assert local_checks.check_access_log(text).verdict == verdict


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_configurations_log_neither_and_lead_to_the_configured_name(name: str) -> None:
    """docs/operate.md"""
    text = SHIPPED[name].read_text(encoding="utf-8")
    assert local_checks.check_access_log(text).verdict == "ok"
    assert "$host" not in text
    assert "redirect scheme" not in text


def test_a_file_that_shows_no_log_is_said_to_show_none() -> None:
    assert local_checks.check_access_log("proxy_next_upstream error timeout;").verdict == "warning"


@given(st.text(alphabet="server{}; access_log'\"\\$#\n f", max_size=200))
def test_whatever_a_file_holds_is_judged(text: str) -> None:
    assert local_checks.check_access_log(text).verdict in ("ok", "warning", "problem")


def test_quotes_escapes_and_blocks_are_read_as_nginx_does() -> None:
    [map_, tail] = local_checks.parse_directives(
        'map $a "$b" { "~x{2};" \'y z\'; # no ; }\n default \\;; } } last x${y}z;'
    )
    assert map_.words == ("map", "$a", "$b")
    assert [each.words for each in map_.block or []] == [("~x{2};", "y z"), ("default", "\\;")]
    assert tail.words == ("last", "x${y}z")
