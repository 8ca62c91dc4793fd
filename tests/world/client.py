"""A client of an application in the test's own process: httpx, without what only a network needs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class InProcessClient(httpx.AsyncClient):
    """Keeps cookies, and sends a request in one call.

    httpx prepares the request after a redirect even if it follows none, and looks for cookies in answers that set none.
    """

    def __init__(self, app: ASGIApp, address: str = "127.0.0.1", **options: Any) -> None:
        self._application = httpx.ASGITransport(app=app, client=(address, 50000))
        super().__init__(transport=self._application, **options)

    async def send(
        self, request: httpx.Request, *, stream: bool = False, auth: Any = httpx.USE_CLIENT_DEFAULT,
        follow_redirects: Any = httpx.USE_CLIENT_DEFAULT,
    ) -> httpx.Response:  # fmt: skip
        if self.is_closed or follow_redirects is True or auth is not httpx.USE_CLIENT_DEFAULT:
            return await super().send(request, stream=stream, auth=auth, follow_redirects=follow_redirects)
        for hook in self.event_hooks["request"]:
            await hook(request)
        answer = await self._application.handle_async_request(request)
        answer.request = request
        answer.elapsed = timedelta(0)
        if "set-cookie" in answer.headers:
            self.cookies.extract_cookies(answer)
        for hook in self.event_hooks["response"]:
            await hook(answer)
        if not stream:
            await answer.aread()
        return answer
