"""Checks of what a node receives: it answers probes with it (`rules.probes`).

Only a command with the settings of a node can make a probe. Source: D47, D49
"""

from __future__ import annotations

import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.cli.doctor.deployment import NoResponse
from corpid.rules import probes
from corpid.rules.diagnostics import not_looked_at, ok, problem, warning
from corpid.rules.oauth import discovery
from corpid.rules.probes import Probe, RequestReport
from corpid.web.http.addresses import ClientAddresses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from corpid.cli.doctor.deployment import ExaminedDeployment, Fields, RawResponse
    from corpid.rules.diagnostics import Reported
    from corpid.settings import Settings

    Check = Callable[["ProbeResult"], Reported]

_PATH: Final = "/corpid-doctor"
_ENCODED_PATH: Final = f"{_PATH}/a%2Fb//c%20d"
_FORGED: Final = {"x-forwarded-for": "198.51.100.77", "forwarded": "for=198.51.100.78"}
"""addresses that nobody has (RFC 5737), in the headers of a proxy"""
_FORGED_ADDRESSES: Final = frozenset(value.rpartition("=")[2] for value in _FORGED.values())
_TRIES: Final = 3
"""a node of the version before answers no probe, and another one may"""
_NODES: Final = 6
"""further requests, since each node has settings of its own"""
_PADDING_BYTES: Final = probes.MOST_PADDING_BYTES
"""more than a redirect with the longest state"""
_QUERY_BYTES: Final = 6 * 1024
"""a request of LEGACY with the longest state"""
_SLOW_SECONDS: Final = 7
"""CorpID gives up on an engine within 6"""
_KIB: Final = 1024


_ADDRESSES: Final = "callers' addresses"
_TRUST: Final = "Change: name the addresses from which the proxy connects in trusted_proxies, on every node."
_NO_PROXY: Final = warning(
    _ADDRESSES, "No proxy is trusted: behind a proxy, all callers have the same address.", _TRUST
)


class NoReport(Exception):
    """The answer to a probe is not a node's report."""

    def __init__(self, answer: RawResponse) -> None:
        super().__init__(answer.summary())


class Prober:
    """Sends probes to a deployment."""

    def __init__(self, there: ExaminedDeployment, settings: Settings, seal: Callable[[str], str]) -> None:
        """`seal` makes a token of its text, as a node opens it."""
        self.there: Final = there
        self.settings: Final = settings
        self._seal = seal

    def ask(
        self, path: str, fields: Fields = (), *, wait: int = 0, padding: int = 0
    ) -> tuple[RequestReport, RawResponse]:
        """A node's report of a request. Raises NoReport, NoResponse."""
        probe = Probe(id=secrets.token_hex(8), at=int(time.time()), wait=wait, padding=padding)
        token = self._seal(msgspec.json.encode(probe).decode())
        # with a query that nobody else sends, so that a cache which keeps the answer gives it to nobody else
        target = path if "?" in path else f"{path}?corpid-doctor={probe.id}"
        answer = self.there.origin.ask("GET", target, [(probes.HEADER, token), *fields])
        try:
            received = msgspec.json.decode(answer.body, type=RequestReport)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise NoReport(answer) from None
        if received.probe != probe.id:
            raise NoReport(answer)
        return received, answer

    def ask_retrying(self, path: str, fields: Fields = ()) -> tuple[RequestReport, RawResponse]:
        """The first report of a few probes.

        Raises NoReport, NoResponse.
        """
        for _ in range(_TRIES - 1):
            try:
                return self.ask(path, fields)
            except NoReport:
                continue
        return self.ask(path, fields)


class ProbeResult:
    """A request with forged headers, and the report of it."""

    def __init__(self, prober: Prober) -> None:
        """Send it. Raises NoReport, NoResponse."""
        self.prober: Final = prober
        self.settings: Final = prober.settings
        self.traceparent: Final = f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"
        self._fields: Final = [*_FORGED.items(), ("traceparent", self.traceparent)]
        self.received, self.answer = prober.ask_retrying(_PATH, self._fields)

    def again(self) -> RequestReport:
        """The report of the same request, perhaps by another node.

        Raises NoReport, NoResponse.
        """
        return self.prober.ask_retrying(_PATH, self._fields)[0]


def check_addresses(probed: ProbeResult) -> Reported:
    """Check that nodes see callers' addresses, and no forged ones (D47)."""
    found = _judge_addresses(probed, probed.received)
    for _ in range(_NODES):
        if found.verdict != "ok":
            break
        found = _judge_addresses(probed, probed.again())
    return found


def _judge_addresses(probed: ProbeResult, got: RequestReport) -> Reported:
    about, settings = _ADDRESSES, probed.settings
    header = str(settings.forwarded_header)
    values = got.headers.get(header.lower(), [])
    if got.address in _FORGED_ADDRESSES:
        seen = f"A caller can choose its address: this one wrote {got.address} into {header}, and the node believed it."
        return problem(about, seen, f"Change: {_advise_replacing(header)}.")
    if _has_no_proxy(settings):
        return _NO_PROXY
    if not settings.trusted_proxies:
        return ok(about, f"CorpID serves TLS itself, and sees this machine as {got.address}.")
    if not got.is_trusted:
        seen = f"The proxy connects from {got.peer}, which is not in trusted_proxies: all callers have that address."
        return problem(about, seen, _TRUST)
    if not values:
        seen = f"{header} does not arrive: all callers have the address of the proxy, {got.peer}."
        return problem(about, seen, f"Change: {_advise_replacing(header)}.")
    if any(forged in value for value in values for forged in _FORGED_ADDRESSES):
        seen = f"{header} is appended to: what callers write into it arrives, too, and only its last part is right."
        return warning(about, seen, f"Change: {_advise_replacing(header)}.")
    local = probed.answer.local
    if got.address == local:
        return ok(about, f"They arrive, and forged ones do not: this machine is {got.address}.")
    if ClientAddresses(settings.trusted_proxies).trusts(got.address):
        seen = (
            f"The node sees this machine as {got.address}, which is a trusted proxy: callers' addresses do not arrive."
        )
        return problem(about, seen, f"Change: {_advise_replacing(header)}.")
    seen = (
        f"Forged ones do not arrive. But this machine connects from {local}, and the node sees it as {got.address}: "
        "compare that with the address that others see of this machine."
    )
    return not_looked_at(about, seen)


def _advise_replacing(header: str) -> str:
    if header == "Forwarded":
        return "let the proxy replace Forwarded by one with the caller's address, and not append to it"
    return (
        f"let the proxy replace {header} by the caller's address, and not append to it (nginx: proxy_set_header "
        f"{header} $remote_addr; HAProxy: http-request set-header {header} %[src])"
    )


def check_trace_context(probed: ProbeResult) -> Reported:
    """Check that callers do not choose what is traced (D48)."""
    values = probed.received.headers.get("traceparent", [])
    if probed.traceparent in values:
        change = 'Change: let the proxy drop traceparent, or set its own (nginx: proxy_set_header traceparent "").'
        return warning("trace context", "A caller's traceparent arrives: callers can choose what is traced.", change)
    return ok("trace context", "A caller's traceparent does not arrive.")


def check_host(probed: ProbeResult) -> Reported:
    """Check that Host arrives as it was sent (D35)."""
    sent, values = probed.prober.there.origin.netloc, probed.received.headers.get("host", [])
    if values == [sent]:
        return ok("Host", "It arrives as it was sent.")
    seen = f"{sent} was sent, and {' and '.join(values) or 'nothing'} arrived."
    return warning(
        "Host", seen, "Change: let the proxy pass on the caller's Host (nginx: proxy_set_header Host $http_host)."
    )


def check_connections(probed: ProbeResult) -> Reported:
    """Check that the proxy keeps connections to the nodes (RFC 9112 §9.3)."""
    about, got = "proxy's connections", probed.received
    change = 'Change: let the proxy keep connections (nginx: proxy_http_version 1.1; proxy_set_header Connection "").'
    if got.http_version == "1.0":
        return warning(about, "The proxy speaks HTTP/1.0 with the nodes, and connects for every request.", change)
    # the probe's own Connection header ends at a proxy, which has one of its own (RFC 9110 §7.6.1)
    if got.is_trusted and "close" in ", ".join(got.headers.get("connection", [])).lower():
        return warning(about, "The proxy closes its connection to a node after every request.", change)
    return ok(about, f"HTTP/{got.http_version}, kept open." if got.is_trusted else f"HTTP/{got.http_version}.")


def check_returned_headers(probed: ProbeResult) -> Reported:
    """Check that headers of answers come back unchanged."""
    expected: dict[str, list[str]] = {}
    for name, value in probes.RETURNED:
        expected.setdefault(name, []).append(value)
    changed = [name for name, values in expected.items() if probed.answer.all(name) != values]
    if not probed.answer.header("content-type").startswith("application/json"):
        changed.append("Content-Type")
    if changed:
        seen = f"Not as the node sent them: {', '.join(changed)}."
        return problem("returned headers", seen, "Change: let the proxy pass on the headers of answers unchanged.")
    return ok("returned headers", f"{', '.join(expected)} come back unchanged.")


def check_encoded_paths(probed: ProbeResult) -> Reported:
    """Check that paths arrive undecoded."""
    about = "encoded paths"
    change = (
        "Change: let the proxy pass on paths as they were sent (nginx: nothing after the name in proxy_pass, not even a "
        "slash)."
    )
    sent = probed.prober.there.origin.path + _ENCODED_PATH
    try:
        got, _ = probed.prober.ask_retrying(_ENCODED_PATH)
    except NoReport as error:
        return warning(about, f"{sent} does not arrive: {error}.", change)
    if got.path == sent:
        return ok(about, "Paths arrive undecoded.")
    return warning(about, f"{sent} was sent, and {got.path} arrived.", change)


def check_response_headers(probed: ProbeResult) -> Reported:
    """Check that answers with long headers come back (D13)."""
    about = "response headers"
    try:
        _, answer = probed.prober.ask(_PATH, padding=_PADDING_BYTES)
    except (NoReport, NoResponse) as error:
        said = str(error)
    else:
        if len(answer.header(probes.PADDING)) == _PADDING_BYTES:
            return ok(about, f"Answers with {_PADDING_BYTES // _KIB} KiB of headers come back.")
        said = "a header is missing"
    seen = (
        f"An answer with {_PADDING_BYTES // _KIB} KiB of headers does not come back: {said}. A redirect can be as long."
    )
    return problem(about, seen, "Change: allow 16 KiB in the proxy (nginx: proxy_buffer_size 16k).")


def check_long_queries(probed: ProbeResult) -> Reported:
    """Check that long queries arrive (D13)."""
    about = "long queries"
    change = "Change: allow 32 KiB a request line in the proxy (nginx: large_client_header_buffers)."
    try:
        got, _ = probed.prober.ask(f"{_PATH}?x={'x' * (_QUERY_BYTES - 2)}")
    except NoReport as error:
        return problem(about, f"A query of {_QUERY_BYTES // _KIB} KiB does not arrive: {error}.", change)
    if got.query_bytes == _QUERY_BYTES:
        return ok(about, f"A query of {_QUERY_BYTES // _KIB} KiB arrives.")
    return problem(about, f"Of a query of {_QUERY_BYTES} bytes, {got.query_bytes} arrive.", change)


def check_cached_answers(probed: ProbeResult) -> Reported:
    """Check that no cache answers in the place of a node.

    Each address is asked for as anybody would, which fills a cache, and then with a probe. Its query is one that nobody
    else sends, so that a cache gives what it kept to nobody else. Source: D31
    """
    about, found = "cached answers", []
    for path in (discovery.DISCOVERY_PATH, probed.prober.there.path("jwks_uri") or discovery.JWKS_PATH, "/"):
        url = f"{path}?corpid-doctor={secrets.token_hex(8)}"
        for _ in range(2):
            probed.prober.there.origin.ask("GET", url)
        try:
            probed.prober.ask_retrying(url)
        except NoReport:
            found.append(path)
    if not found:
        return ok(about, "Every answer comes from a node.")
    seen = f"These come from a cache, and not from a node: {', '.join(found)}. "
    if "/" in found:
        seen += "One person can get the page of another."
    else:
        seen += "After `corpid key revoke`, the key is still published."
    return problem(about, seen, "Change: let the proxy cache nothing (nginx: no proxy_cache).")


def check_slow_responses(slow: Future[object]) -> Reported:
    """Check that the proxy waits as long as CorpID may take."""
    about = "slow responses"
    change = (
        "Change: let the proxy wait 30 seconds for a response (nginx: proxy_read_timeout; HAProxy: timeout server)."
    )
    try:
        slow.result()
    except (NoReport, NoResponse) as error:
        seen = f"A response that takes {_SLOW_SECONDS} seconds does not come back: {error}."
        return problem(about, seen, change)
    return ok(about, f"The proxy waits for more than {_SLOW_SECONDS} seconds.")


CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    (_ADDRESSES, check_addresses),
    ("Host", check_host),
    ("trace context", check_trace_context),
    ("proxy's connections", check_connections),
    ("encoded paths", check_encoded_paths),
    ("long queries", check_long_queries),
    ("response headers", check_response_headers),
    ("returned headers", check_returned_headers),
    ("cached answers", check_cached_answers),
)
SLOW: Final = ("slow responses", check_slow_responses)
"""made while the others are"""


def check_probes(prober: Prober) -> Iterator[Reported]:
    """Every check; what cannot be looked at is said to be so."""
    try:
        probed = ProbeResult(prober)
    except NoReport:
        reason = (
            "No node knows this machine's probes: run this with the key-encryption key, the version and the time of the "
            "nodes, and let the proxy pass on the header CorpID-Probe."
        )
        yield from skip_probes(reason, prober.settings)
        return
    except NoResponse as error:
        yield from skip_probes(f"A request was not answered: {error}.", prober.settings)
        return
    with ThreadPoolExecutor(1) as pool:
        waits = bool(prober.settings.trusted_proxies)
        slow: Future[object] | None = pool.submit(prober.ask, _PATH, wait=_SLOW_SECONDS) if waits else None
        for about, check in CHECKS:
            yield _checked(about, check, probed)
        yield check_slow_responses(slow) if slow else not_looked_at(SLOW[0], "No proxy is trusted, so none was tried.")


def _checked(about: str, check: Check, probed: ProbeResult) -> Reported:
    try:
        return check(probed)
    except NoReport as error:
        return not_looked_at(about, f"A probe was not answered by a node: {error}.")
    except NoResponse as error:
        return problem(
            about, f"A request was not answered: {error}.", "Change: check the logs of the proxy and of the nodes."
        )


def skip_probes(reason: str, settings: Settings | None) -> Iterator[Reported]:
    """Every check as not made.

    Without a trusted proxy one of them needs no probe.
    """
    for about, check in CHECKS:
        if check is check_addresses and settings is not None and _has_no_proxy(settings):
            yield _NO_PROXY
        else:
            yield not_looked_at(about, reason)
    yield not_looked_at(SLOW[0], reason)


def _has_no_proxy(settings: Settings) -> bool:
    return not settings.trusted_proxies and settings.tls_certificate is None
