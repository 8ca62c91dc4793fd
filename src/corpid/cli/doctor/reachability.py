"""Access to a deployment: TLS, identity, endpoints, plain HTTP (D32, D52)."""

from __future__ import annotations

import re
import ssl
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509

from corpid.cli.doctor.findings import not_looked_at
from corpid.cli.doctor.raw_http import NoResponse, Origin
from corpid.rules.diagnostics import Finding, ok, problem, sentence, warning
from corpid.rules.oauth import discovery
from corpid.rules.oauth.urls import DEFAULT_PORTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from corpid.cli.doctor.findings import Reported
    from corpid.cli.doctor.raw_http import RawResponse

_PAR: Final = "pushed_authorization_request_endpoint"
_GATEWAY_ERRORS: Final = frozenset({502, 503, 504})
_MISDIRECTED: Final = 421
_FORGED_HOST: Final = "corpid-doctor.invalid"
_SOON_DAYS: Final = 14
_HALF_A_YEAR: Final = 15_552_000
_MOVED: Final = frozenset({301, 302, 307, 308})
_AGE: Final = re.compile(r"max-age=(\d{1,12})(?!\d)")
_CHAIN: Final = "local issuer certificate"


def trusting(authority: Path | None) -> ssl.SSLContext:
    """A TLS context with the machine's, or given, certification authorities.

    Raises OSError, ssl.SSLError.
    """
    context = ssl.create_default_context(cafile=None if authority is None else str(authority))
    context.set_alpn_protocols(["http/1.1"])
    return context


def unchecked() -> ssl.SSLContext:
    """A TLS context that trusts everyone, to continue after a wrong certificate.

    No secret is sent.
    """
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def tls(origin: Origin) -> Iterator[Finding]:
    """Certificate and versions, of an https origin. Raises NoResponse."""
    if not origin.secure:
        return
    yield _certificate(origin)
    yield _versions(origin)


def _certificate(origin: Origin) -> Finding:
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


def _versions(origin: Origin) -> Finding:
    if _speaks(origin, ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        change = "Change: allow TLS 1.2 and 1.3 only (nginx: ssl_protocols TLSv1.2 TLSv1.3)."
        return problem("TLS", "Versions before 1.2 are accepted.", change)
    if not _speaks(origin, ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3):
        return warning("TLS", "1.3 is not accepted.", "Change: allow TLS 1.3 in the proxy, too.")
    return ok("TLS", "1.3 is accepted, and nothing before 1.2.")


def _speaks(origin: Origin, lowest: ssl.TLSVersion, highest: ssl.TLSVersion) -> bool:
    context = unchecked()
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A deployment that returned its discovery document."""

    origin: Origin
    answer: RawResponse
    document: Mapping[str, Any]

    @property
    def issuer(self) -> str:
        """The base_url of the deployment that responded."""
        return str(self.document["issuer"])

    def path(self, member: str) -> str | None:
        """The path of an endpoint, under base_url.

        None if the document does not name it.
        """
        url = self.document.get(member)
        return url.removeprefix(self.issuer) if isinstance(url, str) and url.startswith(self.issuer + "/") else None

    @property
    def pushing(self) -> str | None:
        """The path of PAR; None if requests are not pushed."""
        return self.path(_PAR)

    @property
    def token(self) -> str:
        """The path of the token endpoint."""
        return self.path("token_endpoint") or discovery.TOKEN_PATH


def reach(origin: Origin) -> tuple[Finding, Deployment | None]:
    """Fetch the discovery document.

    None without one, which ends the checks (Spec 4.6).
    """
    about = "reachable"
    try:
        answer = origin.ask("GET", discovery.DISCOVERY_PATH, [("Accept", "application/json")])
    except NoResponse as error:
        change = "start the proxy, and check its address, its certificate and the firewall"
        return problem(about, sentence(f"{origin.url} does not answer: {error}"), f"Change: {change}."), None
    document = answer.json
    if answer.status == 200 and isinstance(document.get("issuer"), str):
        return ok(about, "The discovery document was found."), Deployment(
            origin=origin, answer=answer, document=document
        )
    seen = f"There is no discovery document at {discovery.DISCOVERY_PATH}: {answer.summary()}."
    return problem(about, seen, f"Change: {_remedy(answer)}."), None


def _remedy(answer: RawResponse) -> str:
    if answer.status == _MISDIRECTED:
        return (
            "let the proxy pass on the caller's Host (nginx: proxy_set_header Host $http_host), or set base_url to "
            "the host that callers use; the Host that reaches CorpID is not that of base_url"
        )
    if answer.is_corpid:
        return (
            "let the proxy pass on paths unchanged, without adding or removing a prefix; if all paths are to have a "
            "prefix, include it in base_url"
        )
    if answer.status in _GATEWAY_ERRORS:
        return "start CorpID, and let the proxy send requests to the host and port it listens on; /readyz says more"
    return "let the proxy send every path of this host to CorpID"


def issuer(reached: Deployment) -> Finding:
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


def endpoints(reached: Deployment) -> Finding:
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


def hsts(reached: Deployment) -> Finding | None:
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


def plain_http(reached: Deployment) -> Reported | None:
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
