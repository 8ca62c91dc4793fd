"""Checks of TLS as callers see it, and of plain HTTP (D52)."""

from __future__ import annotations

import re
import ssl
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from cryptography import x509

from corpid.cli.doctor.findings import Finding, ok, problem, warning
from corpid.cli.doctor.raw_http import NoResponse, Origin
from corpid.rules.oauth import discovery
from corpid.rules.oauth.urls import DEFAULT_PORTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from corpid.cli.doctor.reachability import Deployment

_SOON_DAYS: Final = 14
_HALF_A_YEAR: Final = 15_552_000
_MOVED: Final = frozenset({301, 302, 307, 308})
_AGE: Final = re.compile(r"max-age=(\d{1,12})(?!\d)")
_CHAIN: Final = "local issuer certificate"


def trusting(authority: Path | None) -> ssl.SSLContext:
    """Believes the machine's certification authorities, or those in a file.

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


def look(origin: Origin) -> Iterator[Finding]:
    """Certificate and versions, of an https origin. Raises NoAnswer."""
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
        return problem(about, f"Callers refuse it: {error.verify_message}.", f"Change: {_remedy(origin, error)}.")
    except OSError as error:
        raise NoResponse(str(error)) from error
    assert isinstance(connection.sock, ssl.SSLSocket)  # noqa: S101
    try:
        given = x509.load_der_x509_certificate(connection.sock.getpeercert(binary_form=True) or b"")
    finally:
        connection.close()
    left = (given.not_valid_after_utc - datetime.now(UTC)).days
    seen = f"Whole, for {origin.host}, and valid for {left} days."
    if left < _SOON_DAYS:
        return warning(about, seen, "Change: renew it, and look at what should have renewed it.")
    return ok(about, seen)


def _remedy(origin: Origin, error: ssl.SSLCertVerificationError) -> str:
    if _CHAIN in error.verify_message:
        return (
            "give the proxy the whole chain, with the certificates between its own and the root; a root of one's own is "
            "named with --ca"
        )
    if "expired" in error.verify_message:
        return "renew it"
    return f"give the proxy a certificate for {origin.host}"


def _versions(origin: Origin) -> Finding:
    if _speaks(origin, ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        change = "Change: allow TLS 1.2 and 1.3 only (nginx: ssl_protocols TLSv1.2 TLSv1.3)."
        return problem("TLS", "Versions before 1.2 are spoken.", change)
    if not _speaks(origin, ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3):
        return warning("TLS", "1.3 is not spoken.", "Change: allow TLS 1.3 in the proxy, too.")
    return ok("TLS", "1.3 is spoken, and nothing before 1.2.")


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


def hsts(reached: Deployment) -> Finding | None:
    """Check that browsers are to stay on https (RFC 6797).

    None for http.
    """
    if not reached.origin.secure:
        return None
    values = reached.answer.all("strict-transport-security")
    age = _AGE.search(values[0]) if len(values) == 1 else None
    if age is not None and int(age[1]) >= _HALF_A_YEAR:
        return ok("HSTS", f"Browsers are told to stay on https for {int(age[1]) // 86400} days.")
    seen = f"Strict-Transport-Security is {' and '.join(values) or 'missing'}."
    return warning("HSTS", seen, "Change: let the proxy leave this header as CorpID sets it, and add none of its own.")


def plain(reached: Deployment) -> Finding | None:
    """The finding on port 80 of the host.

    None unless the URL is https on 443.
    """
    origin = reached.origin
    if not origin.secure or origin.port != DEFAULT_PORTS["https"]:
        return None
    try:
        answer = Origin(f"http://{origin.host}").ask("GET", discovery.DISCOVERY_PATH)
    except NoResponse:
        return ok("plain HTTP", "Port 80 does not answer.")
    where = answer.header("location")
    if answer.status in _MOVED and where.startswith("https://"):
        return ok("plain HTTP", "Port 80 sends browsers on to https.")
    if answer.json.get("issuer"):
        change = "Change: let port 80 redirect to https, and answer nothing else."
        return problem("plain HTTP", "Port 80 leads to CorpID without TLS.", change)
    return ok("plain HTTP", f"Port 80 does not lead to CorpID ({answer.status}).")
