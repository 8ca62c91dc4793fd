"""Selection of a request's issuer by Host header and path (D62).

Each issuer has a Provider and a Router; they share stores, people, caches, limits and signing keys. What keeps them
apart: the issuer in the key of short-lived data (`flows.namespaces`), a secret of each for authenticated data
(`flows.operations.signing_keys`), and `RegistryCache.of_issuer` for clients. Counters against guessing are shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from corpid.rules.oauth.discovery import AUTHORIZATION_SERVER_PATH
from corpid.rules.oauth.urls import DEFAULT_PORTS
from corpid.web.http.middleware import named_hosts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from corpid.web.telemetry.access_log import LogFields


class Issuers:
    """The ASGI application of a deployment with several issuers.

    It is below the shell and passes each request on. Of the issuers of a host, the one with the longest path that is a
    prefix of the request's path answers. A host that is no issuer's own, but only in allowed_hosts, belongs to the
    first issuer. So does a path under none of its host's issuers, unless the host belongs only to another issuer, and
    so do the metadata of the admin API and the paths at the root of the host, which only the first one has. The
    metadata of an authorization server stand before the path of its issuer. Source: D35, D62, RFC 8414 §3.1
    """

    def __init__(self, applications: Mapping[tuple[str, str], ASGIApp], *, of_first: frozenset[str]) -> None:
        """Take the application of each issuer, the first one's first.

        The keys of `applications` are id and base_url of each issuer; `of_first` are paths at the root of its host that
        only the first one has.
        """
        self._paths_of_first: Final = of_first
        self._of_host: Final[dict[str, list[tuple[str, str, ASGIApp]]]] = {}
        for (issuer_id, base_url), application in applications.items():
            parts = urlsplit(base_url)
            self._port = f":{DEFAULT_PORTS.get(parts.scheme, '')}"
            self._of_host.setdefault(parts.netloc, []).append((parts.path, issuer_id, application))
        self._of_first_host: Final = next(iter(self._of_host.values()))
        self._first: Final = self._of_first_host[0]
        self._metadata_of_first: Final = f"{AUTHORIZATION_SERVER_PATH}{self._first[0]}/"
        for issuers in self._of_host.values():
            issuers.sort(key=lambda each: -len(each[0]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on to its issuer, which the log line names."""
        _, issuer_id, application = self._of(scope)
        log: LogFields = scope["state"]["log"]
        log["issuer"] = issuer_id
        await application(scope, receive, send)

    def _of(self, scope: Scope) -> tuple[str, str, ASGIApp]:
        [host] = named_hosts(scope["state"]["headers"])
        issuers = self._of_host.get(host.decode("latin-1").lower().removesuffix(self._port), self._of_first_host)
        path = scope["path"]
        if path.startswith(AUTHORIZATION_SERVER_PATH):
            of_issuer = path.removeprefix(AUTHORIZATION_SERVER_PATH)
            for issuer in issuers:
                if of_issuer == issuer[0]:
                    return issuer
        if issuers is self._of_first_host and (
            path in self._paths_of_first or path.startswith(self._metadata_of_first)
        ):
            return self._first
        for issuer in issuers:
            if path == issuer[0] or path.startswith(f"{issuer[0]}/"):
                return issuer
        return self._first if issuers is self._of_first_host else issuers[-1]
