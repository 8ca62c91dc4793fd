"""Outgoing HTTP by a client that is loaded when it is needed.

Many providers fetch nothing: their clients' keys are registered inline.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from corpid.event_log import log
from corpid.outbound.destinations import INTERNET

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from corpid.outbound.destinations import Rules
    from corpid.outbound.http_client import HttpClient


class Egress:
    """Fetches over the open internet, by an `HttpClient` made on demand.

    httpx and the trusted authorities take long to load.
    """

    def __init__(
        self,
        *,
        own_url: str,
        further_urls: Sequence[str] = (),
        rules: Rules = INTERNET,
        own_chain: Path | None = None,
    ) -> None:
        """`own_chain` is our own certificate chain.

        If the rules are lifted its authority is trusted, too: developers' websites may be certified by it.
        """
        self._own_url = own_url
        self._further_urls = further_urls
        self._rules = rules
        self._authorities = None if rules is INTERNET else own_chain
        self._making = asyncio.Lock()
        self._client: HttpClient | None = None
        if rules is not INTERNET:
            log().warning(
                "egress_rules_lifted", detail=f"key sets are fetched by {', '.join(rules.schemes)} from any address"
            )

    async def load(self) -> HttpClient:
        """The client, made in a thread if there is none yet."""
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(self._made)
        return self._client

    async def fetch(self, url: str) -> bytes:
        """The body of the 200 response at `url`.

        Raises HttpClientError. Source: D27
        """
        client = self._client or await self.load()
        return await client.fetch(url)

    def _made(self) -> HttpClient:
        from corpid.outbound.http_client import HttpClient, trusting  # noqa: PLC0415 - see above

        return HttpClient(
            own_url=self._own_url,
            further_urls=self._further_urls,
            rules=self._rules,
            ssl_context=trusting(self._authorities) if self._authorities else None,
        )
