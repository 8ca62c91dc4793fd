"""Checks of responses: cache headers, compression, keys, the clock, readiness."""

from __future__ import annotations

import re
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from corpid.cli.doctor.findings import Finding, counted, ok, problem, warning
from corpid.cli.doctor.raw_http import FORM
from corpid.cli.doctor.request_checks import EXPIRED_SECONDS, expired_assertion
from corpid.rules.limits import CLOCK_AHEAD_SECONDS, CLOCKS_APART_SECONDS, METADATA_CACHE_SECONDS
from corpid.rules.oauth import discovery

if TYPE_CHECKING:
    from corpid.cli.doctor.reachability import Deployment

_EXPIRED: Final = re.compile(r"expired (\d{1,12}) s ago")
_AUDIENCE: Final = re.compile(r"aud must be the issuer (\S+), as one string")
_COMPRESSING: Final = ("Accept-Encoding", "gzip, br, zstd")
_READY, _OK, _NOT_READY = "/readyz", 200, 503


def caching(reached: Deployment) -> Finding:
    """Check that cache headers come back, and answers are not cached (D31)."""
    about, path = "caching", reached.pushing or reached.token
    refused = [reached.origin.ask("POST", path, [FORM], b"x=y") for _ in range(2)]
    if refused[0].reference and refused[0].reference == refused[1].reference:
        return problem(about, "Two requests got one and the same answer.", "Change: let the proxy cache nothing.")
    lifetime = f"max-age={METADATA_CACHE_SECONDS}"
    expected = [(refused[0], "no-store"), (reached.answer, lifetime)]
    for answer, wanted in expected:
        if wanted not in answer.header("cache-control"):
            seen = f"Cache-Control should have {wanted} and is {answer.header('cache-control') or 'missing'}."
            return problem(about, seen, "Change: let the proxy leave Cache-Control as CorpID sets it.")
    return ok(about, "Cache-Control comes back as it was set, and nothing is answered twice.")


def compression(reached: Deployment) -> Finding:
    """Check that pages are not compressed.

    Their form tokens could be guessed by length.
    """
    answer = reached.origin.ask("GET", "/", [_COMPRESSING, ("Accept", "text/html")])
    encoding = answer.header("content-encoding")
    if encoding in {"", "identity"}:
        return ok("compression", "Pages are not compressed.")
    seen = f"Pages are compressed on the way ({encoding}), which lets their length tell of what they hold."
    return warning("compression", seen, "Change: switch compression off for this host (nginx: gzip off).")


def keys(reached: Deployment) -> Finding:
    """Check that the key set can be read and has public keys.

    Source: Spec 4.7
    """
    path = reached.path("jwks_uri") or discovery.JWKS_PATH
    found = reached.origin.ask("GET", path).json.get("keys")
    signing = [key for key in found if isinstance(key, dict)] if isinstance(found, list) else []
    if not signing or any("kid" not in key or "d" in key for key in signing):
        change = "Change: look at `corpid key list`, and let the proxy leave answers alone."
        return problem("key set", f"The key set at {path} has no keys that can be used.", change)
    return ok("key set", f"{counted(len(signing), 'public key')}: {', '.join(str(key['kid']) for key in signing)}.")


def clock(reached: Deployment) -> list[Finding]:
    """Check the nodes' clocks and issuers by an expired assertion.

    It expired an hour ago: the refusal names the node's time, or another issuer.
    """
    before = time.time()
    path = reached.pushing or reached.token
    answer = reached.origin.ask("POST", path, [FORM], expired_assertion(reached, before))
    other = _AUDIENCE.search(answer.description)
    if other:
        seen = f"One node has the issuer {reached.issuer}, and another {other[1]}."
        return [problem("nodes", seen, "Change: give every node the same base_url.")]
    return [_distance(answer.description, answer.header("date"), before, time.time())]


def _distance(description: str, date: str, before: float, after: float) -> Finding:
    expired = _EXPIRED.search(description)
    if expired:
        at, clock_owner = float(int(before) - EXPIRED_SECONDS + int(expired[1])), "CorpID's clock"
    elif date:
        at, clock_owner = parsedate_to_datetime(date).timestamp(), "The clock of whoever answers"
    else:
        return warning("clock", "Nothing tells the time of the nodes.", "Change: let the proxy leave Date in answers.")
    # the clock has whole seconds, and the request itself took a while
    apart = max(0.0, before - at - 1, at - after - 1)
    seen = f"{clock_owner} and this machine's are {apart:.0f} s apart."
    if apart <= CLOCKS_APART_SECONDS:
        return ok("clock", seen)
    change = "Change: synchronise the clocks of the nodes and of this machine (NTP)."
    return (problem if apart > CLOCK_AHEAD_SECONDS else warning)("clock", seen, change)


def ready(reached: Deployment) -> Finding:
    """Check /readyz.

    It lies outside base_url's path, and a proxy may not forward it (D49).
    """
    if reached.origin.path:
        return ok("readiness", "Not asked: base_url has a path, and /readyz is outside of it.")
    answer = reached.origin.ask("GET", _READY)
    status = answer.json.get("status")
    if answer.status == _OK and status == "ready":
        return ok("readiness", "The node that answered is ready.")
    if answer.status == _NOT_READY and isinstance(status, str):
        part = answer.json.get("part", status)
        return problem("readiness", f"A node is not ready: {part}.", "Change: look at the log of that node.")
    return ok("readiness", "Not told to the outside.")
