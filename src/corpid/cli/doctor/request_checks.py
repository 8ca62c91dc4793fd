"""Checks of requests that pass a proxy: paths, headers, sizes.

No request here can succeed: none is authenticated, none is signed. CorpID's error shows which parts
of it arrived (D28); its limits show the rest (D47).
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.cli.doctor.findings import Finding, ok, problem, warning
from corpid.jose.encoding import base64url
from corpid.rules.limits import BODY_BYTES, HEAD_BYTES
from corpid.rules.oauth.client_assertion import ASSERTION_TYPE

if TYPE_CHECKING:
    from corpid.cli.doctor.raw_http import RawResponse
    from corpid.cli.doctor.reachability import Deployment

EXPIRED_SECONDS: Final = 3600
"""how long ago the assertion expired that is sent"""
_HEADERS_TOO_LARGE: Final = 431
_BODY_TOO_LARGE: Final = 413
_NOT_FOUND: Final = 404
_FIELDS: Final = 140
"""header fields, more than CorpID takes"""
_KIB: Final = 1024
_LARGEST_FIELD: Final = 9 * _KIB
"""a token or proof of the longest that is accepted, and a little more"""
_USUAL_FIELD: Final = 3 * _KIB


def expired_assertion(reached: Deployment, now: float) -> bytes:
    """A form with an unsigned assertion that expired EXPIRED_SECONDS before `now`."""
    named = reached.document.get("token_endpoint_auth_signing_alg_values_supported")
    algorithm = named[0] if isinstance(named, list) and named else "ES256"
    claims = {
        "iss": "corpid-doctor",
        "sub": "corpid-doctor",
        "aud": reached.issuer,
        "jti": secrets.token_urlsafe(),
        "iat": int(now) - EXPIRED_SECONDS - 60,
        "exp": int(now) - EXPIRED_SECONDS,
    }
    parts = (msgspec.json.encode({"alg": algorithm, "typ": "JWT"}), msgspec.json.encode(claims), bytes(64))
    kind = ASSERTION_TYPE.replace(":", "%3A")
    return f"client_assertion_type={kind}&client_assertion={'.'.join(map(base64url, parts))}".encode()


def paths(reached: Deployment) -> Finding:
    """Check that the proxy passes paths on letter by letter.

    Source: Spec 2.1, D32
    """
    about, path = "paths", reached.token
    for changed, what in ((f"{path}/", "with a slash at its end"), (path.upper(), "in capitals")):
        answer = reached.origin.ask("GET", changed)
        if not (answer.is_corpid and answer.status == _NOT_FOUND):
            seen = f"{path} {what} is another path, and was not told to be: {answer.summary()}."
            return warning(about, seen, "Change: let the proxy pass paths on unchanged, without redirects of its own.")
    return ok(about, "Paths arrive as they were sent.")


def authorization(reached: Deployment) -> Finding:
    """Check that Authorization and the challenge pass, once each.

    Source: RFC 9110 §11.6.2, D24
    """
    about, path = "Authorization", reached.path("userinfo_endpoint")
    if path is None:
        return warning(about, "The discovery document names no userinfo endpoint.", "Change: ask another URL.")
    found: list[RawResponse] = [
        reached.origin.ask("GET", path, [("Authorization", f"{scheme} corpid-doctor")]) for scheme in ("DPoP", "Bearer")
    ]
    challenges = [answer.all("www-authenticate") for answer in found]
    if any("invalid_token" in challenge for answered in challenges for challenge in answered):
        return ok(about, "The header arrives, and challenges come back.")
    if not any(challenges):
        seen = f"Userinfo answers without a challenge: {found[0].summary()}."
        return problem(about, seen, "Change: let the proxy leave WWW-Authenticate in answers.")
    seen = "Userinfo was called with an Authorization header, and none arrived."
    return problem(about, seen, "Change: let the proxy pass Authorization on, and not ask for it itself.")


def dpop(reached: Deployment) -> Finding:
    """Check that DPoP headers arrive.

    CorpID refuses as many as the check sends. Source: RFC 9449 §4.3, D47
    """
    about, path = "DPoP", reached.pushing or reached.token
    answers = []
    for fields in ([("DPoP", "x")] * _FIELDS, [("DPoP", "x" * (HEAD_BYTES // 4))] * 5):
        answer = reached.origin.offer(path, fields)
        if answer.is_corpid and answer.status == _HEADERS_TOO_LARGE:
            return ok(about, "The header arrives, and as often as it was sent.")
        answers.append(answer)
    if any(answer.is_corpid for answer in answers):
        seen = f"DPoP headers do not arrive as they were sent: {_FIELDS} of them did not count."
        return problem(about, seen, "Change: let the proxy pass every DPoP header on, neither removed nor joined.")
    seen = f"Whether DPoP headers arrive cannot be told, for they were refused on the way: {answers[-1].summary()}."
    return warning(about, seen, "Change: allow heads of 36 KiB in the proxy, so that CorpID's own limit is what holds.")


def heads(reached: Deployment) -> Finding:
    """Check that large heads arrive, and that CorpID refuses larger ones.

    Source: D33, D47
    """
    about = "header sizes"
    for size, judge in ((_USUAL_FIELD, problem), (_LARGEST_FIELD, warning)):
        answer = _padded(reached, size, 2 * size)
        if not answer.is_corpid or answer.status == _HEADERS_TOO_LARGE:
            seen = f"Two headers of {size // _KIB} KiB are refused: {answer.summary()}."
            return judge(
                about, seen, "Change: allow 32 KiB a header in the proxy (nginx: large_client_header_buffers)."
            )
    answer = _padded(reached, _LARGEST_FIELD, 40 * _KIB)
    if answer.status == _HEADERS_TOO_LARGE:
        return ok(about, f"Headers of 9 KiB arrive; 40 KiB in all are refused with {_refusing_party(answer, 431)}.")
    seen = f"40 KiB of headers are not refused with 431: {answer.summary()}."
    return warning(about, seen, "Change: allow 64 KiB of headers in the proxy, so that it is CorpID who refuses.")


def _padded(reached: Deployment, size: int, total: int) -> RawResponse:
    count = -(-total // size)
    fields = [(f"X-Padding-{number}", "x" * size) for number in range(count)]
    return reached.origin.offer(reached.pushing or reached.token, fields)


def bodies(reached: Deployment) -> Finding:
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
    return problem(about, seen, "Change: let the proxy pass bodies on, so that it is CorpID who refuses.")


def _refusing_party(answer: RawResponse, status: int) -> str:
    return f"{status} by {'CorpID' if answer.is_corpid else 'the proxy'}"
