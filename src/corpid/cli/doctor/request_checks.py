"""Checks by requests from outside, and by probes.

No request here can succeed: none is authenticated, none is signed. CorpID's error shows which parts of it arrived
(D28), its limits show the rest (D47), and its answers show what came back. To a probe a node answers with what it
received (`rules.probes`); only a command with the settings of a node can make one. Source: D47, D49
"""

from __future__ import annotations

import re
import secrets
import ssl
import time
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import msgspec
from cryptography import x509

from corpid.cli.doctor.deployment import FORM, ExaminedDeployment, NoResponse, Origin, create_unchecked_context
from corpid.jose.encoding import base64url
from corpid.rules import probes
from corpid.rules.diagnostics import Finding, Reported, count_noun, named, not_looked_at, ok, problem, warning
from corpid.rules.limits import (
    BODY_BYTES,
    CLOCK_AHEAD_SECONDS,
    CLOCKS_APART_SECONDS,
    HEAD_BYTES,
    METADATA_CACHE_SECONDS,
)
from corpid.rules.oauth import discovery
from corpid.rules.oauth.client_assertion import ASSERTION_TYPE
from corpid.rules.oauth.urls import DEFAULT_PORTS
from corpid.rules.probes import Probe, RequestReport
from corpid.web.http.addresses import ClientAddresses
from corpid.web.http.middleware import PAGE_HEADERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from corpid.cli.doctor.deployment import ExaminedDeployment, Fields, RawResponse
    from corpid.settings import Settings

    Check = Callable[[ExaminedDeployment], Reported | None]
    ProbeCheck = Callable[["ProbeResult"], Reported]

_EXPIRED_SECONDS: Final = 3600
"""how long ago the sent assertion expired"""
_HEADERS_TOO_LARGE: Final = 431
_UNAVAILABLE: Final = 503
_BODY_TOO_LARGE: Final = 413
_NOT_FOUND: Final = 404
_FIELDS: Final = 140
"""header fields, more than CorpID accepts"""
_KIB: Final = 1024
_LARGEST_FIELD: Final = 9 * _KIB
"""the longest accepted token or proof, and a little more"""
_USUAL_FIELD: Final = 3 * _KIB
_EXPIRED: Final = re.compile(r"expired (\d{1,12}) s ago")
_AUDIENCE: Final = re.compile(r"aud must be the issuer (\S+), as one string")
_COMPRESSING: Final = ("Accept-Encoding", "gzip, br, zstd")
READY: Final = "/readyz"
_OK: Final = 200


_FORGED_HOST: Final = "corpid-doctor.invalid"
_SOON_DAYS: Final = 14
_HALF_A_YEAR: Final = 15_552_000
_MOVED: Final = frozenset({301, 302, 307, 308})
_AGE: Final = re.compile(r"max-age=(\d{1,12})(?!\d)")
_CHAIN: Final = "local issuer certificate"


def check_tls(origin: Origin) -> Iterator[Reported]:
    """Certificate and versions, of an https origin. Raises NoResponse."""
    if origin.secure:
        yield _check_certificate(origin)
        yield from named("TLS", _check_versions(origin))


def _check_certificate(origin: Origin) -> Finding:
    try:
        connection = origin.connection()
        connection.connect()
    except ssl.SSLCertVerificationError as error:
        return problem(f"Callers refuse it: {error.verify_message}.", _certificate_remedy(origin, error))
    except OSError as error:
        raise NoResponse(str(error)) from error
    assert isinstance(connection.sock, ssl.SSLSocket)  # noqa: S101
    try:
        given = x509.load_der_x509_certificate(connection.sock.getpeercert(binary_form=True) or b"")
    finally:
        connection.close()
    left = (given.not_valid_after_utc - datetime.now(UTC)).days
    seen = f"Complete, for {origin.host}, and valid for {left} days."
    if left < _SOON_DAYS:
        return warning(seen, "renew it, and check why it was not renewed automatically")
    return ok(seen)


def _certificate_remedy(origin: Origin, error: ssl.SSLCertVerificationError) -> str:
    if _CHAIN in error.verify_message:
        return (
            "give the proxy the whole chain, with the certificates between its own and the root; name your own root "
            "with --ca"
        )
    if "expired" in error.verify_message:
        return "renew it"
    return f"give the proxy a certificate for {origin.host}"


def _check_versions(origin: Origin) -> Finding:
    if _speaks(origin, ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        return problem(
            "Versions before 1.2 are accepted.", "allow TLS 1.2 and 1.3 only (nginx: ssl_protocols TLSv1.2 TLSv1.3)"
        )
    if not _speaks(origin, ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3):
        return warning("1.3 is not accepted.", "allow TLS 1.3 in the proxy, too")
    return ok("1.3 is accepted, and nothing before 1.2.")


def _speaks(origin: Origin, lowest: ssl.TLSVersion, highest: ssl.TLSVersion) -> bool:
    context = create_unchecked_context()
    with warnings.catch_warnings():
        # that they are old is why they are asked for
        warnings.simplefilter("ignore", DeprecationWarning)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version, context.maximum_version = lowest, highest
    connection = origin.connection(context)
    try:
        connection.connect()
    except OSError:
        return False
    finally:
        connection.close()
    return True


def check_issuer(reached: ExaminedDeployment) -> Finding:
    """Check that base_url is the address that callers use.

    Proofs name URLs that begin with it (RFC 9449 §4.3, D7, D32).
    """
    given, claimed = reached.origin.url, reached.issuer
    if given == claimed:
        return ok(f"The issuer is {claimed}; a proof's htu begins with it.")
    return problem(
        f"The issuer is {claimed}, and not {given}: a relying party that calls {given}{reached.token} signs that as "
        f"htu, and CorpID expects {claimed}{reached.token}.",
        f"set base_url to {given}, or publish only {claimed}",
    )


def check_endpoints(reached: ExaminedDeployment) -> Finding:
    """Check that each URL of the discovery document leads to CorpID.

    Through this origin. Source: Spec 2.1
    """
    foreign, lost = [], []
    for member, url in reached.document.items():
        if not (member.endswith(("_endpoint", "_uri")) and isinstance(url, str)):
            continue
        path = reached.path(member)
        if path is None:
            foreign.append(url)
        elif not _is_answered(reached.origin, path):
            lost.append(path)
    if foreign:
        return problem(
            f"URLs in the discovery document are outside the issuer: {', '.join(foreign)}.",
            "let the proxy pass on response bodies unchanged",
        )
    if lost:
        return problem(
            f"Not answered by CorpID: {', '.join(lost)}.",
            "let the proxy send every path of this host to CorpID, unchanged",
        )
    return ok("CorpID answers at every endpoint of the discovery document.")


def _is_answered(origin: Origin, path: str) -> bool:
    """Return whether CorpID itself answers a plain GET.

    By its error, its challenge, its page, or its keys.
    """
    answer = origin.ask("GET", path)
    own = answer.is_corpid or "keys" in answer.json or answer.header("www-authenticate")
    return bool(own) or bool(answer.header("content-security-policy"))


def check_key_set(reached: ExaminedDeployment) -> Finding:
    """Check that the key set can be read and has public keys.

    Source: Spec 4.7
    """
    path = reached.path("jwks_uri") or discovery.JWKS_PATH
    found = reached.origin.ask("GET", path).json.get("keys")
    signing = [key for key in found if isinstance(key, dict)] if isinstance(found, list) else []
    if not signing or any("kid" not in key or "d" in key for key in signing):
        return problem(
            f"The key set at {path} has no usable keys.",
            "check `corpid key list`, and let the proxy pass on responses unchanged",
        )
    return ok(f"{count_noun(len(signing), 'public key')}: {', '.join(str(key['kid']) for key in signing)}.")


def check_paths(reached: ExaminedDeployment) -> Finding:
    """Check that the proxy passes on paths unchanged.

    Source: Spec 2.1, D32
    """
    path = reached.token
    for changed, what in ((f"{path}/", "with a slash at its end"), (path.upper(), "in capitals")):
        answer = reached.origin.ask("GET", changed)
        if not (answer.is_corpid and answer.status == _NOT_FOUND):
            return warning(
                f"{path} {what} is another path, but CorpID did not see it as one: {answer.summary()}.",
                "let the proxy pass on paths unchanged, without its own redirects",
            )
    return ok("Paths arrive as they were sent.")


def check_authorization(reached: ExaminedDeployment) -> Reported:
    """Check that Authorization and the challenge pass, once each.

    Source: RFC 9110 §11.6.2, D24
    """
    path = reached.path("userinfo_endpoint")
    if path is None:
        return warning("The discovery document names no userinfo endpoint.", "check another URL")
    found: list[RawResponse] = [
        reached.origin.ask("GET", path, [("Authorization", f"{scheme} corpid-doctor")]) for scheme in ("DPoP", "Bearer")
    ]
    challenges = [answer.all("www-authenticate") for answer in found]
    if any("invalid_token" in challenge for answered in challenges for challenge in answered):
        return ok("The header arrives, and challenges are returned.")
    for answer in found:
        if answer.is_corpid and answer.status == _UNAVAILABLE:
            return not_looked_at(f"Userinfo did not read the token: {answer.summary()}. Run this again.")
    if not any(challenges):
        return problem(
            f"Userinfo responds without a challenge: {found[0].summary()}.",
            "let the proxy keep WWW-Authenticate in responses",
        )
    return problem(
        "Userinfo was called with an Authorization header, but none arrived.",
        "let the proxy pass on Authorization, and not ask for it itself",
    )


def check_dpop(reached: ExaminedDeployment) -> Finding:
    """Check that DPoP headers arrive.

    CorpID refuses as many as the check sends. Source: RFC 9449 §4.3, D47
    """
    path = reached.pushing or reached.token
    answers = []
    for fields in ([("DPoP", "x")] * _FIELDS, [("DPoP", "x" * (HEAD_BYTES // 4))] * 5):
        answer = reached.origin.offer(path, fields)
        if answer.is_corpid and answer.status == _HEADERS_TOO_LARGE:
            return ok("The header arrives as often as it was sent.")
        answers.append(answer)
    if any(answer.is_corpid for answer in answers):
        return problem(
            f"DPoP headers do not arrive as they were sent: {_FIELDS} of them had no effect.",
            "let the proxy pass on every DPoP header, neither removed nor joined",
        )
    return warning(
        f"It is unknown whether DPoP headers arrive, because they were refused on the way: {answers[-1].summary()}.",
        "allow 36 KiB of headers in the proxy, so that CorpID's own limit applies",
    )


def check_header_sizes(reached: ExaminedDeployment) -> Finding:
    """Check that large headers arrive, and that CorpID refuses larger ones.

    Source: D33, D47
    """
    for size, judge in ((_USUAL_FIELD, problem), (_LARGEST_FIELD, warning)):
        answer = _send_padded(reached, size, 2 * size)
        if not answer.is_corpid or answer.status == _HEADERS_TOO_LARGE:
            return judge(
                f"Two headers of {size // _KIB} KiB are refused: {answer.summary()}.",
                "allow 32 KiB a header in the proxy (nginx: large_client_header_buffers)",
            )
    answer = _send_padded(reached, _LARGEST_FIELD, 40 * _KIB)
    if answer.status == _HEADERS_TOO_LARGE:
        return ok(f"Headers of 9 KiB arrive; 40 KiB in all are refused with {_refusing_party(answer, 431)}.")
    return warning(
        f"40 KiB of headers are not refused with 431: {answer.summary()}.",
        "allow 64 KiB of headers in the proxy, so that CorpID refuses them itself",
    )


def _send_padded(reached: ExaminedDeployment, size: int, total: int) -> RawResponse:
    count = -(-total // size)
    fields = [(f"X-Padding-{number}", "x" * size) for number in range(count)]
    return reached.origin.offer(reached.pushing or reached.token, fields)


def check_body_sizes(reached: ExaminedDeployment) -> Finding:
    """Check that large bodies arrive, and that CorpID refuses larger ones.

    Source: D47
    """
    path = reached.pushing or reached.token
    largest = reached.origin.offer(path, (), b"x=" + b"x" * (60 * _KIB))
    if not largest.is_corpid or largest.status == _BODY_TOO_LARGE:
        return problem(
            f"A body of 60 KiB is refused: {largest.summary()}.",
            "allow 64 KiB in the proxy (nginx: client_max_body_size 128k)",
        )
    answer = reached.origin.offer(path, (), b"x=" + b"x" * (BODY_BYTES + 4 * _KIB))
    if answer.status == _BODY_TOO_LARGE:
        return ok(f"A body of 60 KiB arrives; one of 68 KiB is refused with {_refusing_party(answer, 413)}.")
    return problem(
        f"A body of 68 KiB is not refused with 413: {answer.summary()}.",
        "let the proxy pass on bodies, so that CorpID refuses them itself",
    )


def _refusing_party(answer: RawResponse, status: int) -> str:
    return f"{status} by {'CorpID' if answer.is_corpid else 'the proxy'}"


def check_caching(reached: ExaminedDeployment) -> Finding:
    """Check that cache headers are returned, and responses are not cached (D31)."""
    path = reached.pushing or reached.token
    refused = [reached.origin.ask("POST", path, [FORM], b"x=y") for _ in range(2)]
    if refused[0].reference and refused[0].reference == refused[1].reference:
        return problem("Two requests got the same response.", "let the proxy cache nothing")
    lifetime = f"max-age={METADATA_CACHE_SECONDS}"
    expected = [(refused[0], "no-store"), (reached.answer, lifetime)]
    for answer, wanted in expected:
        if wanted not in answer.header("cache-control"):
            return problem(
                f"Cache-Control should have {wanted} and is {answer.header('cache-control') or 'missing'}.",
                "let the proxy keep Cache-Control as CorpID sets it",
            )
    return ok("Cache-Control is returned unchanged, and no response is reused.")


def check_compression(reached: ExaminedDeployment) -> Finding:
    """Check that pages are not compressed.

    Their form tokens could be guessed by length.
    """
    answer = reached.origin.ask("GET", "/", [_COMPRESSING, ("Accept", "text/html")])
    encoding = answer.header("content-encoding")
    if encoding in {"", "identity"}:
        return ok("Pages are not compressed.")
    return warning(
        f"Pages are compressed on the way ({encoding}), so their length reveals something about their content.",
        "turn off compression for this host (nginx: gzip off)",
    )


def check_page_headers(reached: ExaminedDeployment) -> Finding:
    """Check that the headers that protect pages are returned, once each (D36, RFC 6797)."""
    answer = reached.origin.ask("GET", "/", [("Accept", "text/html")])
    changed = [name.decode() for name, value in PAGE_HEADERS if answer.all(name.decode()) != [value.decode()]]
    if not answer.header("content-type").startswith("text/html"):
        changed.append("content-type")
    if changed:
        return problem(
            f"Pages come with other headers than CorpID's: {', '.join(changed)}.",
            "let the proxy keep these headers, and add none of its own",
        )
    return ok("Pages have their security headers, once each.")


def check_media_types(reached: ExaminedDeployment) -> Finding:
    """Check that documents keep their Content-Type (RFC 8414 §3.2, RFC 7517 §8.5)."""
    path = reached.path("jwks_uri") or discovery.JWKS_PATH
    answers = {discovery.DISCOVERY_PATH: reached.answer, path: reached.origin.ask("GET", path)}
    for name, answer in answers.items():
        kind = answer.header("content-type").partition(";")[0].strip()
        if not (kind.startswith("application/") and kind.endswith("json")):
            return problem(
                f"{name} comes as {kind or 'nothing'}, and libraries expect JSON.",
                "let the proxy keep Content-Type as CorpID sets it",
            )
    return ok("Documents come as JSON.")


def check_metrics(reached: ExaminedDeployment) -> Finding:
    """Check that nobody outside can read the metrics (D48)."""
    origin = reached.origin
    for place in {origin.path: origin, "": Origin(origin.url.removesuffix(origin.path), origin.trusting)}.values():
        answer = place.ask("GET", "/metrics")
        if answer.status == _OK and b"corpid_" in answer.body:
            return problem(
                f"Everybody can read the metrics, at {place.path}/metrics.",
                "let the proxy send nothing to metrics_address",
            )
    return ok("They cannot be read from outside.")


def check_other_names(reached: ExaminedDeployment) -> Finding:
    """Check that requests for another host are not answered (D35)."""
    answer = reached.origin.ask("GET", discovery.DISCOVERY_PATH, host=_FORGED_HOST)
    if answer.json.get("issuer") == reached.issuer:
        return warning(
            f"Requests for other hosts, such as {_FORGED_HOST}, are answered, because the proxy replaces Host.",
            "let the proxy pass on the caller's Host (nginx: proxy_set_header Host $http_host)",
        )
    return ok("Other hosts are not answered.")


def _form_of_expired_assertion(reached: ExaminedDeployment, now: float) -> bytes:
    """A form with an unsigned assertion that expired _EXPIRED_SECONDS before `now`."""
    named = reached.document.get("token_endpoint_auth_signing_alg_values_supported")
    algorithm = named[0] if isinstance(named, list) and named else "ES256"
    claims = {
        "iss": "corpid-doctor",
        "sub": "corpid-doctor",
        "aud": reached.issuer,
        "jti": secrets.token_urlsafe(),
        "iat": int(now) - _EXPIRED_SECONDS - 60,
        "exp": int(now) - _EXPIRED_SECONDS,
    }
    parts = (msgspec.json.encode({"alg": algorithm, "typ": "JWT"}), msgspec.json.encode(claims), bytes(64))
    kind = ASSERTION_TYPE.replace(":", "%3A")
    return f"client_assertion_type={kind}&client_assertion={'.'.join(map(base64url, parts))}".encode()


def check_clocks(reached: ExaminedDeployment) -> Finding:
    """Check that clocks and issuers of the nodes agree.

    By an assertion that expired an hour ago: the refusal names the node's time, or another issuer.
    """
    before = time.time()
    form = _form_of_expired_assertion(reached, before)
    if reached.pushing is None:  # the token endpoint looks at these before it looks at the assertion
        form += b"&grant_type=authorization_code&code=corpid-doctor&redirect_uri=corpid-doctor"
    answer = reached.origin.ask("POST", reached.pushing or reached.token, [FORM], form)
    other = _AUDIENCE.search(answer.description)
    if other:
        return problem(
            f"One node has the issuer {reached.issuer}, and another has {other[1]}.",
            "give every node the same base_url",
            about="nodes",
        )
    return _judge_distance(answer.description, answer.header("date"), before, time.time())


def _judge_distance(description: str, date: str, before: float, after: float) -> Finding:
    expired = _EXPIRED.search(description)
    if expired:
        at, clock_owner = float(int(before) - _EXPIRED_SECONDS + int(expired[1])), "CorpID's clock"
    elif date:
        at, clock_owner = parsedate_to_datetime(date).timestamp(), "The clock of the responding server"
    else:
        return warning("No response has the time of the nodes.", "let the proxy keep Date in responses")
    # the clock has whole seconds, and the request itself took a while
    apart = max(0.0, before - at - 1, at - after - 1)
    seen = f"{clock_owner} and this machine's are {apart:.0f} s apart."
    if apart <= CLOCKS_APART_SECONDS:
        return ok(seen)
    judge = problem if apart > CLOCK_AHEAD_SECONDS else warning
    return judge(seen, "synchronise the clocks of the nodes and of this machine (NTP)")


def check_readiness(reached: ExaminedDeployment) -> Reported:
    """Check that a node is ready.

    /readyz lies outside base_url's path, and a proxy may not forward it (D49).
    """
    if reached.origin.path:
        return not_looked_at("base_url has a path, and /readyz is outside it.")
    return judge_readiness(reached.origin.ask("GET", READY)) or not_looked_at(
        "/readyz is not passed on by the proxy: run this on a node, with its settings."
    )


def judge_readiness(answer: RawResponse) -> Finding | None:
    """The finding about a node by its answer at /readyz.

    None if the answer is not a node's. Source: D49, D67
    """
    status = answer.json.get("status")
    if answer.status == _OK and status == "ready" and answer.json.get("recovering"):
        return warning(
            f"It lost its {answer.json['recovering']}; until {answer.json.get('until')} callers may be told to wait.",
            "nothing, if the engine was restarted. Otherwise look at its log, and at its memory and disk",
        )
    if answer.status == _OK and status == "ready":
        return ok("The node that responded is ready.")
    if answer.status == _UNAVAILABLE and isinstance(status, str):
        part = answer.json.get("part", status)
        return problem(f"The node that responded is not ready: {part}.", "check the log of that node")
    return None


def check_hsts(reached: ExaminedDeployment) -> Finding | None:
    """Check that browsers must stay on https (RFC 6797).

    None for http.
    """
    if not reached.origin.secure:
        return None
    values = reached.answer.all("strict-transport-security")
    age = _AGE.search(values[0]) if len(values) == 1 else None
    if age is not None and int(age[1]) >= _HALF_A_YEAR:
        return ok(f"Browsers stay on https for {int(age[1]) // 86400} days.")
    return warning(
        f"Strict-Transport-Security is {' and '.join(values) or 'missing'}.",
        "let the proxy keep this header as CorpID sets it, and add none of its own",
    )


def check_plain_http(reached: ExaminedDeployment) -> Reported | None:
    """Check that port 80 only redirects, to the configured name.

    None for http.
    """
    origin = reached.origin
    if not origin.secure:
        return None
    if origin.port != DEFAULT_PORTS["https"]:
        return not_looked_at("base_url has a port of its own, so port 80 may be another server's.")
    try:
        answer = Origin(f"http://{origin.host}").ask("GET", discovery.DISCOVERY_PATH)
    except NoResponse:
        return ok("Port 80 does not answer.")
    where = answer.header("location")
    if answer.status in _MOVED and _is_forged(origin):
        return warning(
            "Port 80 redirects to the host that a caller names.",
            "let it redirect to the configured name (nginx: $server_name, not $host)",
        )
    if answer.status in _MOVED and where.startswith("https://"):
        return ok("Port 80 redirects browsers to https.")
    if answer.is_corpid or answer.json.get("issuer"):
        return problem("Port 80 leads to CorpID without TLS.", "let port 80 only redirect to https")
    return ok(f"Port 80 does not lead to CorpID ({answer.status}).")


def _is_forged(origin: Origin) -> bool:
    """Return whether port 80 redirects to the host in Host."""
    try:
        answer = Origin(f"http://{origin.host}").ask("GET", discovery.DISCOVERY_PATH, host=_FORGED_HOST)
    except NoResponse:
        return False
    return _FORGED_HOST in answer.header("location")


CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("base_url", check_issuer),
    ("endpoints", check_endpoints),
    ("key set", check_key_set),
    ("paths", check_paths),
    ("Authorization", check_authorization),
    ("DPoP", check_dpop),
    ("header sizes", check_header_sizes),
    ("body sizes", check_body_sizes),
    ("caching", check_caching),
    ("compression", check_compression),
    ("page headers", check_page_headers),
    ("media types", check_media_types),
    ("metrics", check_metrics),
    ("other names", check_other_names),
    ("clock", check_clocks),
    ("readiness", check_readiness),
    ("HSTS", check_hsts),
    ("plain HTTP", check_plain_http),
)


# --- probes


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


_ADDRESSES: Final = "callers' addresses"
_TRUST: Final = "name the addresses from which the proxy connects in trusted_proxies, on every node"
_NO_PROXY: Final = warning("No proxy is trusted: behind a proxy, all callers have the same address.", _TRUST)


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
    settings = probed.settings
    header = str(settings.forwarded_header)
    values = got.headers.get(header.lower(), [])
    if got.address in _FORGED_ADDRESSES:
        return problem(
            f"A caller can choose its address: this one wrote {got.address} into {header}, and the node believed it.",
            _advise_replacing(header),
        )
    if _has_no_proxy(settings):
        return _NO_PROXY
    if not settings.trusted_proxies:
        return ok(f"CorpID serves TLS itself, and sees this machine as {got.address}.")
    if not got.is_trusted:
        return problem(
            f"The proxy connects from {got.peer}, which is not in trusted_proxies: all callers have that address.",
            _TRUST,
        )
    if not values:
        return problem(
            f"{header} does not arrive: all callers have the address of the proxy, {got.peer}.",
            _advise_replacing(header),
        )
    if any(forged in value for value in values for forged in _FORGED_ADDRESSES):
        return warning(
            f"{header} is appended to: what callers write into it arrives, too, and only its last part is right.",
            _advise_replacing(header),
        )
    local = probed.answer.local
    if got.address == local:
        return ok(f"They arrive, and forged ones do not: this machine is {got.address}.")
    if ClientAddresses(settings.trusted_proxies).trusts(got.address):
        return problem(
            f"The node sees this machine as {got.address}, which is a trusted proxy: callers' addresses do not arrive.",
            _advise_replacing(header),
        )
    return not_looked_at(
        f"Forged ones do not arrive. But this machine connects from {local}, and the node sees it as {got.address}: "
        "compare that with the address that others see of this machine."
    )


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
        return warning(
            "A caller's traceparent arrives: callers can choose what is traced.",
            'let the proxy drop traceparent, or set its own (nginx: proxy_set_header traceparent "")',
        )
    return ok("A caller's traceparent does not arrive.")


def check_host(probed: ProbeResult) -> Reported:
    """Check that Host arrives as it was sent (D35)."""
    sent, values = probed.prober.there.origin.netloc, probed.received.headers.get("host", [])
    if values == [sent]:
        return ok("It arrives as it was sent.")
    return warning(
        f"{sent} was sent, and {' and '.join(values) or 'nothing'} arrived.",
        "let the proxy pass on the caller's Host (nginx: proxy_set_header Host $http_host)",
    )


def check_connections(probed: ProbeResult) -> Reported:
    """Check that the proxy keeps connections to the nodes (RFC 9112 §9.3)."""
    got = probed.received
    remedy = 'let the proxy keep connections (nginx: proxy_http_version 1.1; proxy_set_header Connection "")'
    if got.http_version == "1.0":
        return warning("The proxy speaks HTTP/1.0 with the nodes, and connects for every request.", remedy)
    # the probe's own Connection header ends at a proxy, which has one of its own (RFC 9110 §7.6.1)
    if got.is_trusted and "close" in ", ".join(got.headers.get("connection", [])).lower():
        return warning("The proxy closes its connection to a node after every request.", remedy)
    return ok(f"HTTP/{got.http_version}, kept open." if got.is_trusted else f"HTTP/{got.http_version}.")


def check_returned_headers(probed: ProbeResult) -> Reported:
    """Check that headers of answers come back unchanged."""
    expected: dict[str, list[str]] = {}
    for name, value in probes.RETURNED:
        expected.setdefault(name, []).append(value)
    changed = [name for name, values in expected.items() if probed.answer.all(name) != values]
    if not probed.answer.header("content-type").startswith("application/json"):
        changed.append("Content-Type")
    if changed:
        return problem(
            f"Not as the node sent them: {', '.join(changed)}.",
            "let the proxy pass on the headers of answers unchanged",
        )
    return ok(f"{', '.join(expected)} come back unchanged.")


def check_encoded_paths(probed: ProbeResult) -> Reported:
    """Check that paths arrive undecoded."""
    remedy = (
        "let the proxy pass on paths as they were sent (nginx: nothing after the name in proxy_pass, not even a slash)"
    )
    sent = probed.prober.there.origin.path + _ENCODED_PATH
    try:
        got, _ = probed.prober.ask_retrying(_ENCODED_PATH)
    except NoReport as error:
        return warning(f"{sent} does not arrive: {error}.", remedy)
    if got.path == sent:
        return ok("Paths arrive undecoded.")
    return warning(f"{sent} was sent, and {got.path} arrived.", remedy)


def check_response_headers(probed: ProbeResult) -> Reported:
    """Check that answers with long headers come back (D13)."""
    try:
        _, answer = probed.prober.ask(_PATH, padding=_PADDING_BYTES)
    except (NoReport, NoResponse) as error:
        said = str(error)
    else:
        if len(answer.header(probes.PADDING)) == _PADDING_BYTES:
            return ok(f"Answers with {_PADDING_BYTES // _KIB} KiB of headers come back.")
        said = "a header is missing"
    return problem(
        f"An answer with {_PADDING_BYTES // _KIB} KiB of headers does not come back: {said}. A redirect can be as long.",
        "allow 16 KiB in the proxy (nginx: proxy_buffer_size 16k)",
    )


def check_long_queries(probed: ProbeResult) -> Reported:
    """Check that long queries arrive (D13)."""
    remedy = "allow 32 KiB a request line in the proxy (nginx: large_client_header_buffers)"
    try:
        got, _ = probed.prober.ask(f"{_PATH}?x={'x' * (_QUERY_BYTES - 2)}")
    except NoReport as error:
        return problem(f"A query of {_QUERY_BYTES // _KIB} KiB does not arrive: {error}.", remedy)
    if got.query_bytes == _QUERY_BYTES:
        return ok(f"A query of {_QUERY_BYTES // _KIB} KiB arrives.")
    return problem(f"Of a query of {_QUERY_BYTES} bytes, {got.query_bytes} arrive.", remedy)


def check_cached_answers(probed: ProbeResult) -> Reported:
    """Check that no cache answers in the place of a node.

    Each address is asked for as anybody would, which fills a cache, and then with a probe. Its query is one that nobody
    else sends, so that a cache gives what it kept to nobody else. Source: D31
    """
    found = []
    for path in (discovery.DISCOVERY_PATH, probed.prober.there.path("jwks_uri") or discovery.JWKS_PATH, "/"):
        url = f"{path}?corpid-doctor={secrets.token_hex(8)}"
        for _ in range(2):
            probed.prober.there.origin.ask("GET", url)
        try:
            probed.prober.ask_retrying(url)
        except NoReport:
            found.append(path)
    if not found:
        return ok("Every answer comes from a node.")
    seen = f"These come from a cache, and not from a node: {', '.join(found)}. "
    if "/" in found:
        seen += "One person can get the page of another."
    else:
        seen += "After `corpid key revoke`, the key is still published."
    return problem(seen, "let the proxy cache nothing (nginx: no proxy_cache)")


def check_slow_responses(slow: Future[object]) -> Reported:
    """Check that the proxy waits as long as CorpID may take."""
    remedy = "let the proxy wait 30 seconds for a response (nginx: proxy_read_timeout; HAProxy: timeout server)"
    try:
        slow.result()
    except (NoReport, NoResponse) as error:
        return problem(f"A response that takes {_SLOW_SECONDS} seconds does not come back: {error}.", remedy)
    return ok(f"The proxy waits for more than {_SLOW_SECONDS} seconds.")


PROBE_CHECKS: Final[tuple[tuple[str, ProbeCheck], ...]] = (
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
SLOW_PROBE: Final = ("slow responses", check_slow_responses)
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
        for about, check in PROBE_CHECKS:
            yield from named(about, _checked(check, probed))
        waited = check_slow_responses(slow) if slow else not_looked_at("No proxy is trusted, so none was tried.")
        yield from named(SLOW_PROBE[0], waited)


def _checked(check: ProbeCheck, probed: ProbeResult) -> Reported:
    try:
        return check(probed)
    except NoReport as error:
        return not_looked_at(f"A probe was not answered by a node: {error}.")
    except NoResponse as error:
        return problem(f"A request was not answered: {error}.", "check the logs of the proxy and of the nodes")


def skip_probes(reason: str, settings: Settings | None) -> Iterator[Reported]:
    """Every check as not made.

    Without a trusted proxy one of them needs no probe.
    """
    for about, check in PROBE_CHECKS:
        needs_none = check is check_addresses and settings is not None and _has_no_proxy(settings)
        yield from named(about, _NO_PROXY if needs_none else not_looked_at(reason))
    yield not_looked_at(reason, about=SLOW_PROBE[0])


def _has_no_proxy(settings: Settings) -> bool:
    return not settings.trusted_proxies and settings.tls_certificate is None
