"""Checks by requests from outside, through TLS and a proxy.

No request here can succeed: none is authenticated, none is signed. CorpID's error shows which parts of it arrived
(D28), its limits show the rest (D47), and its answers show what came back.
"""

from __future__ import annotations

import re
import secrets
import ssl
import time
import warnings
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import msgspec
from cryptography import x509

from corpid.cli.doctor.deployment import FORM, ExaminedDeployment, NoResponse, Origin, create_unchecked_context
from corpid.jose.encoding import base64url
from corpid.rules.diagnostics import Finding, count_noun, not_looked_at, ok, problem, warning
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
from corpid.web.http.middleware import PAGE_HEADERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from corpid.cli.doctor.deployment import ExaminedDeployment, RawResponse
    from corpid.rules.diagnostics import Reported

    Check = Callable[[ExaminedDeployment], Reported | Sequence[Reported] | None]

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


def check_tls(origin: Origin) -> Iterator[Finding]:
    """Certificate and versions, of an https origin. Raises NoResponse."""
    if not origin.secure:
        return
    yield _check_certificate(origin)
    yield _check_versions(origin)


def _check_certificate(origin: Origin) -> Finding:
    about = "certificate"
    try:
        connection = origin.connection()
        connection.connect()
    except ssl.SSLCertVerificationError as error:
        return problem(
            about, f"Callers refuse it: {error.verify_message}.", f"Change: {_certificate_remedy(origin, error)}."
        )
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
        return warning(about, seen, "Change: renew it, and check why it was not renewed automatically.")
    return ok(about, seen)


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
        change = "Change: allow TLS 1.2 and 1.3 only (nginx: ssl_protocols TLSv1.2 TLSv1.3)."
        return problem("TLS", "Versions before 1.2 are accepted.", change)
    if not _speaks(origin, ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3):
        return warning("TLS", "1.3 is not accepted.", "Change: allow TLS 1.3 in the proxy, too.")
    return ok("TLS", "1.3 is accepted, and nothing before 1.2.")


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
        return ok("base_url", f"The issuer is {claimed}; a proof's htu begins with it.")
    seen = (
        f"The issuer is {claimed}, and not {given}: a relying party that calls {given}{reached.token} signs that as "
        f"htu, and CorpID expects {claimed}{reached.token}."
    )
    return problem("base_url", seen, f"Change: set base_url to {given}, or publish only {claimed}.")


def check_endpoints(reached: ExaminedDeployment) -> Finding:
    """Check that each URL of the discovery document leads to CorpID.

    Through this origin. Source: Spec 2.1
    """
    about, foreign, lost = "endpoints", [], []
    for member, url in reached.document.items():
        if not (member.endswith(("_endpoint", "_uri")) and isinstance(url, str)):
            continue
        path = reached.path(member)
        if path is None:
            foreign.append(url)
        elif not _is_answered(reached.origin, path):
            lost.append(path)
    if foreign:
        seen = f"URLs in the discovery document are outside the issuer: {', '.join(foreign)}."
        return problem(about, seen, "Change: let the proxy pass on response bodies unchanged.")
    if lost:
        seen = f"Not answered by CorpID: {', '.join(lost)}."
        return problem(about, seen, "Change: let the proxy send every path of this host to CorpID, unchanged.")
    return ok(about, "CorpID answers at every endpoint of the discovery document.")


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
        change = "Change: check `corpid key list`, and let the proxy pass on responses unchanged."
        return problem("key set", f"The key set at {path} has no usable keys.", change)
    return ok("key set", f"{count_noun(len(signing), 'public key')}: {', '.join(str(key['kid']) for key in signing)}.")


def check_paths(reached: ExaminedDeployment) -> Finding:
    """Check that the proxy passes on paths unchanged.

    Source: Spec 2.1, D32
    """
    about, path = "paths", reached.token
    for changed, what in ((f"{path}/", "with a slash at its end"), (path.upper(), "in capitals")):
        answer = reached.origin.ask("GET", changed)
        if not (answer.is_corpid and answer.status == _NOT_FOUND):
            seen = f"{path} {what} is another path, but CorpID did not see it as one: {answer.summary()}."
            return warning(about, seen, "Change: let the proxy pass on paths unchanged, without its own redirects.")
    return ok(about, "Paths arrive as they were sent.")


def check_authorization(reached: ExaminedDeployment) -> Reported:
    """Check that Authorization and the challenge pass, once each.

    Source: RFC 9110 §11.6.2, D24
    """
    about, path = "Authorization", reached.path("userinfo_endpoint")
    if path is None:
        return warning(about, "The discovery document names no userinfo endpoint.", "Change: check another URL.")
    found: list[RawResponse] = [
        reached.origin.ask("GET", path, [("Authorization", f"{scheme} corpid-doctor")]) for scheme in ("DPoP", "Bearer")
    ]
    challenges = [answer.all("www-authenticate") for answer in found]
    if any("invalid_token" in challenge for answered in challenges for challenge in answered):
        return ok(about, "The header arrives, and challenges are returned.")
    for answer in found:
        if answer.is_corpid and answer.status == _UNAVAILABLE:
            return not_looked_at(about, f"Userinfo did not read the token: {answer.summary()}. Run this again.")
    if not any(challenges):
        seen = f"Userinfo responds without a challenge: {found[0].summary()}."
        return problem(about, seen, "Change: let the proxy keep WWW-Authenticate in responses.")
    seen = "Userinfo was called with an Authorization header, but none arrived."
    return problem(about, seen, "Change: let the proxy pass on Authorization, and not ask for it itself.")


def check_dpop(reached: ExaminedDeployment) -> Finding:
    """Check that DPoP headers arrive.

    CorpID refuses as many as the check sends. Source: RFC 9449 §4.3, D47
    """
    about, path = "DPoP", reached.pushing or reached.token
    answers = []
    for fields in ([("DPoP", "x")] * _FIELDS, [("DPoP", "x" * (HEAD_BYTES // 4))] * 5):
        answer = reached.origin.offer(path, fields)
        if answer.is_corpid and answer.status == _HEADERS_TOO_LARGE:
            return ok(about, "The header arrives as often as it was sent.")
        answers.append(answer)
    if any(answer.is_corpid for answer in answers):
        seen = f"DPoP headers do not arrive as they were sent: {_FIELDS} of them had no effect."
        return problem(about, seen, "Change: let the proxy pass on every DPoP header, neither removed nor joined.")
    seen = f"It is unknown whether DPoP headers arrive, because they were refused on the way: {answers[-1].summary()}."
    return warning(about, seen, "Change: allow 36 KiB of headers in the proxy, so that CorpID's own limit applies.")


def check_header_sizes(reached: ExaminedDeployment) -> Finding:
    """Check that large headers arrive, and that CorpID refuses larger ones.

    Source: D33, D47
    """
    about = "header sizes"
    for size, judge in ((_USUAL_FIELD, problem), (_LARGEST_FIELD, warning)):
        answer = _send_padded(reached, size, 2 * size)
        if not answer.is_corpid or answer.status == _HEADERS_TOO_LARGE:
            seen = f"Two headers of {size // _KIB} KiB are refused: {answer.summary()}."
            return judge(
                about, seen, "Change: allow 32 KiB a header in the proxy (nginx: large_client_header_buffers)."
            )
    answer = _send_padded(reached, _LARGEST_FIELD, 40 * _KIB)
    if answer.status == _HEADERS_TOO_LARGE:
        return ok(about, f"Headers of 9 KiB arrive; 40 KiB in all are refused with {_refusing_party(answer, 431)}.")
    seen = f"40 KiB of headers are not refused with 431: {answer.summary()}."
    return warning(about, seen, "Change: allow 64 KiB of headers in the proxy, so that CorpID refuses them itself.")


def _send_padded(reached: ExaminedDeployment, size: int, total: int) -> RawResponse:
    count = -(-total // size)
    fields = [(f"X-Padding-{number}", "x" * size) for number in range(count)]
    return reached.origin.offer(reached.pushing or reached.token, fields)


def check_body_sizes(reached: ExaminedDeployment) -> Finding:
    """Check that large bodies arrive, and that CorpID refuses larger ones.

    Source: D47
    """
    about, path = "body sizes", reached.pushing or reached.token
    largest = reached.origin.offer(path, (), b"x=" + b"x" * (60 * _KIB))
    if not largest.is_corpid or largest.status == _BODY_TOO_LARGE:
        seen = f"A body of 60 KiB is refused: {largest.summary()}."
        return problem(about, seen, "Change: allow 64 KiB in the proxy (nginx: client_max_body_size 128k).")
    answer = reached.origin.offer(path, (), b"x=" + b"x" * (BODY_BYTES + 4 * _KIB))
    if answer.status == _BODY_TOO_LARGE:
        return ok(about, f"A body of 60 KiB arrives; one of 68 KiB is refused with {_refusing_party(answer, 413)}.")
    seen = f"A body of 68 KiB is not refused with 413: {answer.summary()}."
    return problem(about, seen, "Change: let the proxy pass on bodies, so that CorpID refuses them itself.")


def _refusing_party(answer: RawResponse, status: int) -> str:
    return f"{status} by {'CorpID' if answer.is_corpid else 'the proxy'}"


def check_caching(reached: ExaminedDeployment) -> Finding:
    """Check that cache headers are returned, and responses are not cached (D31)."""
    about, path = "caching", reached.pushing or reached.token
    refused = [reached.origin.ask("POST", path, [FORM], b"x=y") for _ in range(2)]
    if refused[0].reference and refused[0].reference == refused[1].reference:
        return problem(about, "Two requests got the same response.", "Change: let the proxy cache nothing.")
    lifetime = f"max-age={METADATA_CACHE_SECONDS}"
    expected = [(refused[0], "no-store"), (reached.answer, lifetime)]
    for answer, wanted in expected:
        if wanted not in answer.header("cache-control"):
            seen = f"Cache-Control should have {wanted} and is {answer.header('cache-control') or 'missing'}."
            return problem(about, seen, "Change: let the proxy keep Cache-Control as CorpID sets it.")
    return ok(about, "Cache-Control is returned unchanged, and no response is reused.")


def check_compression(reached: ExaminedDeployment) -> Finding:
    """Check that pages are not compressed.

    Their form tokens could be guessed by length.
    """
    answer = reached.origin.ask("GET", "/", [_COMPRESSING, ("Accept", "text/html")])
    encoding = answer.header("content-encoding")
    if encoding in {"", "identity"}:
        return ok("compression", "Pages are not compressed.")
    seen = f"Pages are compressed on the way ({encoding}), so their length reveals something about their content."
    return warning("compression", seen, "Change: turn off compression for this host (nginx: gzip off).")


def check_page_headers(reached: ExaminedDeployment) -> Finding:
    """Check that the headers that protect pages are returned, once each (D36, RFC 6797)."""
    about = "page headers"
    answer = reached.origin.ask("GET", "/", [("Accept", "text/html")])
    changed = [name.decode() for name, value in PAGE_HEADERS if answer.all(name.decode()) != [value.decode()]]
    if not answer.header("content-type").startswith("text/html"):
        changed.append("content-type")
    if changed:
        seen = f"Pages come with other headers than CorpID's: {', '.join(changed)}."
        return problem(about, seen, "Change: let the proxy keep these headers, and add none of its own.")
    return ok(about, "Pages have their security headers, once each.")


def check_media_types(reached: ExaminedDeployment) -> Finding:
    """Check that documents keep their Content-Type (RFC 8414 §3.2, RFC 7517 §8.5)."""
    about, path = "media types", reached.path("jwks_uri") or discovery.JWKS_PATH
    answers = {discovery.DISCOVERY_PATH: reached.answer, path: reached.origin.ask("GET", path)}
    for name, answer in answers.items():
        kind = answer.header("content-type").partition(";")[0].strip()
        if not (kind.startswith("application/") and kind.endswith("json")):
            seen = f"{name} comes as {kind or 'nothing'}, and libraries expect JSON."
            return problem(about, seen, "Change: let the proxy keep Content-Type as CorpID sets it.")
    return ok(about, "Documents come as JSON.")


def check_metrics(reached: ExaminedDeployment) -> Finding:
    """Check that nobody outside can read the metrics (D48)."""
    about = "metrics"
    origin = reached.origin
    for place in {origin.path: origin, "": Origin(origin.url.removesuffix(origin.path), origin.trusting)}.values():
        answer = place.ask("GET", "/metrics")
        if answer.status == _OK and b"corpid_" in answer.body:
            seen = f"Everybody can read the metrics, at {place.path}/metrics."
            return problem(about, seen, "Change: let the proxy send nothing to metrics_address.")
    return ok(about, "They cannot be read from outside.")


def check_other_names(reached: ExaminedDeployment) -> Finding:
    """Check that requests for another host are not answered (D35)."""
    about = "other names"
    answer = reached.origin.ask("GET", discovery.DISCOVERY_PATH, host=_FORGED_HOST)
    if answer.json.get("issuer") == reached.issuer:
        seen = f"Requests for other hosts, such as {_FORGED_HOST}, are answered, because the proxy replaces Host."
        change = "Change: let the proxy pass on the caller's Host (nginx: proxy_set_header Host $http_host)."
        return warning(about, seen, change)
    return ok(about, "Other hosts are not answered.")


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


def check_clocks(reached: ExaminedDeployment) -> list[Finding]:
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
        seen = f"One node has the issuer {reached.issuer}, and another has {other[1]}."
        return [problem("nodes", seen, "Change: give every node the same base_url.")]
    return [_judge_distance(answer.description, answer.header("date"), before, time.time())]


def _judge_distance(description: str, date: str, before: float, after: float) -> Finding:
    expired = _EXPIRED.search(description)
    if expired:
        at, clock_owner = float(int(before) - _EXPIRED_SECONDS + int(expired[1])), "CorpID's clock"
    elif date:
        at, clock_owner = parsedate_to_datetime(date).timestamp(), "The clock of the responding server"
    else:
        return warning(
            "clock", "No response has the time of the nodes.", "Change: let the proxy keep Date in responses."
        )
    # the clock has whole seconds, and the request itself took a while
    apart = max(0.0, before - at - 1, at - after - 1)
    seen = f"{clock_owner} and this machine's are {apart:.0f} s apart."
    if apart <= CLOCKS_APART_SECONDS:
        return ok("clock", seen)
    change = "Change: synchronise the clocks of the nodes and of this machine (NTP)."
    return (problem if apart > CLOCK_AHEAD_SECONDS else warning)("clock", seen, change)


def check_readiness(reached: ExaminedDeployment) -> Reported:
    """Check that a node is ready.

    /readyz lies outside base_url's path, and a proxy may not forward it (D49).
    """
    if reached.origin.path:
        return not_looked_at("readiness", "base_url has a path, and /readyz is outside it.")
    about = "readiness"
    reason = "/readyz is not passed on by the proxy: run this on a node, with its settings."
    return judge_readiness(about, reached.origin.ask("GET", READY)) or not_looked_at(about, reason)


def judge_readiness(about: str, answer: RawResponse) -> Finding | None:
    """The finding about a node by its answer at /readyz.

    None if the answer is not a node's. Source: D49, D67
    """
    status = answer.json.get("status")
    if answer.status == _OK and status == "ready" and answer.json.get("recovering"):
        seen = f"It lost its {answer.json['recovering']}; until {answer.json.get('until')} callers may be told to wait."
        change = "Change: nothing, if the engine was restarted. Otherwise look at its log, and at its memory and disk."
        return warning(about, seen, change)
    if answer.status == _OK and status == "ready":
        return ok(about, "The node that responded is ready.")
    if answer.status == _UNAVAILABLE and isinstance(status, str):
        part = answer.json.get("part", status)
        return problem(about, f"The node that responded is not ready: {part}.", "Change: check the log of that node.")
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
        return ok("HSTS", f"Browsers stay on https for {int(age[1]) // 86400} days.")
    seen = f"Strict-Transport-Security is {' and '.join(values) or 'missing'}."
    return warning("HSTS", seen, "Change: let the proxy keep this header as CorpID sets it, and add none of its own.")


def check_plain_http(reached: ExaminedDeployment) -> Reported | None:
    """Check that port 80 only redirects, to the configured name.

    None for http.
    """
    origin = reached.origin
    if not origin.secure:
        return None
    if origin.port != DEFAULT_PORTS["https"]:
        return not_looked_at("plain HTTP", "base_url has a port of its own, so port 80 may be another server's.")
    try:
        answer = Origin(f"http://{origin.host}").ask("GET", discovery.DISCOVERY_PATH)
    except NoResponse:
        return ok("plain HTTP", "Port 80 does not answer.")
    where = answer.header("location")
    if answer.status in _MOVED and _is_forged(origin):
        seen = "Port 80 redirects to the host that a caller names."
        return warning(
            "plain HTTP", seen, "Change: let it redirect to the configured name (nginx: $server_name, not $host)."
        )
    if answer.status in _MOVED and where.startswith("https://"):
        return ok("plain HTTP", "Port 80 redirects browsers to https.")
    if answer.is_corpid or answer.json.get("issuer"):
        change = "Change: let port 80 only redirect to https."
        return problem("plain HTTP", "Port 80 leads to CorpID without TLS.", change)
    return ok("plain HTTP", f"Port 80 does not lead to CorpID ({answer.status}).")


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
