"""Reachability and identity of a deployment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from corpid.cli.doctor.findings import Finding, ok, problem, sentence
from corpid.cli.doctor.raw_http import NoResponse
from corpid.rules.oauth import discovery

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.cli.doctor.raw_http import Origin, RawResponse

_PAR: Final = "pushed_authorization_request_endpoint"
_GATEWAY_ERRORS: Final = frozenset({502, 503, 504})
_MISDIRECTED: Final = 421


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A deployment that answered with its discovery document."""

    origin: Origin
    answer: RawResponse
    document: Mapping[str, Any]

    @property
    def issuer(self) -> str:
        """The base_url of the deployment that answered."""
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
        change = "start the proxy, and look at its address, its certificate and the firewall"
        return problem(about, sentence(f"{origin.url} does not answer: {error}"), f"Change: {change}."), None
    document = answer.json
    if answer.status == 200 and isinstance(document.get("issuer"), str):
        return ok(about, "The discovery document is there."), Deployment(
            origin=origin, answer=answer, document=document
        )
    seen = f"The discovery document at {discovery.DISCOVERY_PATH} is not there: {answer.summary()}."
    return problem(about, seen, f"Change: {_remedy(answer)}."), None


def _remedy(answer: RawResponse) -> str:
    if answer.status == _MISDIRECTED:
        return (
            "let the proxy pass the caller's Host on (nginx: proxy_set_header Host $http_host), or set base_url to the "
            "host that callers use; Host reached CorpID as another one than base_url's"
        )
    if answer.is_corpid:
        return (
            "let the proxy pass paths on as they are, without putting a prefix before them or taking one off; if all "
            "paths are to begin with a prefix, it belongs to base_url, too"
        )
    if answer.status in _GATEWAY_ERRORS:
        return "start CorpID, and let the proxy send requests to the host and port it listens on; /readyz tells more"
    return "let the proxy send every path of this host to CorpID"


def issuer(reached: Deployment) -> Finding:
    """Check that base_url is what callers use.

    Proofs name URLs that begin with it (RFC 9449 §4.3, D7, D32).
    """
    given, claimed = reached.origin.url, reached.issuer
    if given == claimed:
        return ok("base_url", f"The issuer is {claimed}; a proof's htu begins with it.")
    seen = (
        f"The issuer is {claimed}, and not {given}: a relying party that calls {given}{reached.token} signs that as "
        f"htu, and CorpID expects {claimed}{reached.token}."
    )
    return problem("base_url", seen, f"Change: set base_url to {given}, or give out {claimed} only.")


def endpoints(reached: Deployment) -> Finding:
    """Check that each URL of the document leads to CorpID.

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
        seen = f"URLs of the discovery document lie outside of the issuer: {', '.join(foreign)}."
        return problem(about, seen, "Change: let the proxy leave the body of answers alone.")
    if lost:
        seen = f"Not answered by CorpID: {', '.join(lost)}."
        return problem(about, seen, "Change: let the proxy send every path of this host to CorpID, unchanged.")
    return ok(about, "Every endpoint of the discovery document is answered by CorpID.")


def _is_answered(origin: Origin, path: str) -> bool:
    """Return whether CorpID itself answers a plain GET.

    By its error, its challenge, its page, or its keys.
    """
    answer = origin.ask("GET", path)
    own = answer.is_corpid or "keys" in answer.json or answer.header("www-authenticate")
    return bool(own) or bool(answer.header("content-security-policy"))
