"""What a proxy's configuration says and no request from outside shows: what it does when a node fails."""

from __future__ import annotations

import re
from typing import Final

from corpid.cli.doctor.findings import Finding, ok, problem

_NGINX: Final = re.compile(r"\bproxy_next_upstream\s[^;]*\bnon_idempotent\b")
_HAPROXY: Final = re.compile(r"^\s*retry-on\s+(.+)$", re.MULTILINE)
_NO_POST: Final = re.compile(r"\bdisable-l7-retry\b.*\bMETH_POST\b")
_NEVER_SENT: Final = frozenset({"none", "conn-failure"})
_COMMENT: Final = re.compile(r"#.*")


def look(text: str) -> Finding:
    """Whether requests that were sent are sent again: what they carry is spent by the first (RFC 9449 §11.1, D7, D8)."""
    told = _COMMENT.sub("", text)
    about = "retries"
    if _NGINX.search(told):
        seen = "proxy_next_upstream has non_idempotent: a POST is sent again, with a proof and a code that are spent."
        return problem(about, seen, "Change: take non_idempotent away.")
    reasons = {reason for line in _HAPROXY.findall(told) for reason in line.split()}
    if reasons - _NEVER_SENT and not _NO_POST.search(told):
        seen = f"retry-on has {', '.join(sorted(reasons - _NEVER_SENT))}: a POST is sent again, with what is spent by then."
        return problem(about, seen, "Change: write retry-on conn-failure.")
    return ok(about, "A request that was sent to a node is not sent again.")
