"""The sign-ins that the demo RP remembers: in memory, the newest two hundred."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx

from corpid.sandbox.answers import ProviderError
from corpid.sandbox.verification import CheckFailed

if TYPE_CHECKING:
    from corpid.sandbox.callback import Callback
    from corpid.sandbox.relying_party import RelyingParty

KEPT: Final = 200


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One sign-in of one browser, from the request to userinfo or to what went wrong."""

    browser_id: str
    relying_party: RelyingParty
    attempt_id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    answered: bool = False
    posted: Callback | None = None
    """an answer that came as a form of another site, so without the cookie: it waits for its own browser"""
    userinfo: dict[str, Any] | None = None
    entity_info: dict[str, Any] | None = None
    problem: Exception | None = None

    @property
    def complete(self) -> bool:
        """Whether everything came back and was verified."""
        return self.userinfo is not None

    async def begin(self) -> str | None:
        """Make the request, and push it where that is how; the URL for the browser, None if it failed (then `problem` says why)."""
        try:
            return await self.relying_party.begin()
        except (CheckFailed, ProviderError, httpx.HTTPError) as problem:
            self.problem = problem
            return None

    async def finish(self, callback: Callback) -> None:
        """Redeem the callback's code and ask the resources, once; what fails is kept in `problem`."""
        if self.answered:
            return
        self.answered = True
        try:
            tokens = await self.relying_party.redeem(callback)
            if self.relying_party.interface.entity_info and "entity." in tokens.scope:
                self.entity_info = await self.relying_party.entity_info()
            self.userinfo = await self.relying_party.userinfo()
        except (CheckFailed, ProviderError, httpx.HTTPError) as problem:
            self.problem = problem


class Attempts:
    """Found by number or by state, and only by the browser that began them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Attempt] = OrderedDict()

    def keep(self, attempt: Attempt) -> None:
        """Remember an attempt; the oldest is forgotten for it."""
        self._kept[attempt.attempt_id] = attempt
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def of_browser(self, browser_id: str, attempt_id: str) -> Attempt:
        """The attempt with this number. Raises KeyError if it is not this browser's."""
        attempt = self._kept[attempt_id]
        if attempt.browser_id != browser_id:
            raise KeyError(attempt_id)
        return attempt

    def with_state(self, state: str) -> Attempt:
        """The attempt that sent this state, whoever began it. Raises KeyError."""
        for attempt in reversed(self._kept.values()):
            if attempt.relying_party.sign_in.state == state:
                return attempt
        raise KeyError(state)

    def of_browser_with_state(self, browser_id: str, state: str) -> Attempt:
        """The attempt that sent this state. Raises KeyError if this browser began none such (Spec 4.2)."""
        return self.of_browser(browser_id, self.with_state(state).attempt_id)

    def forget(self, browser_id: str) -> None:
        """Forget everything of a browser."""
        for attempt in [one for one in self._kept.values() if one.browser_id == browser_id]:
            del self._kept[attempt.attempt_id]
