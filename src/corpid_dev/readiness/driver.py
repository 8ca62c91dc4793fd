"""Sign-ins at a relying party, one case after the other."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from corpid_dev.developer_api import DeveloperApi, SignInRefused, developer_api
from corpid_dev.flows.readiness_runs import ReadinessError
from corpid_dev.readiness.case import (
    RESOURCE,
    Case,
    OpenedIn,
    judge,
    not_applicable,
    session_begins,
)
from corpid_dev.readiness.cases import BASELINE, CASES
from corpid_dev.readiness.observation import (
    Call,
    Facts,
    Finding,
    Observation,
    RelyingPartyPage,
    SignIn,
    Verdict,
    calls_to,
)
from corpid_dev.readiness.report import Report, Result, address
from corpid_dev.readiness.visitor import Marker, Visitor, learned, roles, visitor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from ssl import SSLContext


COOL_DOWN_SECONDS: Final = 61.0
"""libraries fetch a key set again after a minute, at the earliest"""
GRACE_SECONDS: Final = 1.0
POLL_SECONDS: Final = 0.2
_EVERY_CLIENT: Final = frozenset({"jwks", "discovery"})
"""endpoints that no client is known at"""
_CANCELLED: Final[Mapping[str, str]] = MappingProxyType(
    {"order": "callback", "fault": "error", "error": "access_denied"}
)
_RESOURCES: Final = ("userinfo", "authorization-info")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The relying party to check, and the cases."""

    url: str
    """where a login begins"""
    developer: str
    """address of the demo's developer mode, or its issuer"""
    user: str
    tls: SSLContext | None = None
    """None: the usual certificate authorities"""
    entity: str = ""
    marker: Marker | None = None
    """None: learned from the ordinary sign-in"""
    press: str = ""
    """the form or link that begins the login, if the URL does not"""
    cases: Sequence[Case] = tuple(CASES.values())
    cool_down: float = COOL_DOWN_SECONDS


async def check(options: Options, *, progress: Callable[[str], None], clock: Callable[[], float] = time.time) -> Report:
    """Try every case; `progress` gets a line about each.

    Raises NotDone if the demo cannot be asked, ReadinessError if nothing shows that somebody is signed in.
    """
    began = clock()
    async with developer_api(options.developer, tls=options.tls) as api:
        run = _Run(options, api, progress)
        results = await run.every_case()
    return Report(
        url=options.url,
        issuer=api.issuer,
        client_id=run.facts.client_id if run.facts else "",
        marker=str(run.marker or ""),
        user=options.user,
        at=began,
        seconds=clock() - began,
        results=tuple(results),
    )


class _Run:
    def __init__(self, options: Options, api: DeveloperApi, progress: Callable[[str], None]) -> None:
        self.options = options
        self.api = api
        self.progress = progress
        self.marker = options.marker
        self.facts: Facts | None = None

    async def every_case(self) -> list[Result]:
        """The baseline first: without it nothing can be judged."""
        await self._new_calls("")
        started = time.monotonic()
        found, observation = await self._baseline()
        results = [self._result(BASELINE, found, observation, started)]
        for case in self.options.cases:
            if case is BASELINE:
                continue
            started = time.monotonic()
            if found.verdict is not Verdict.PASSED or self.facts is None:
                unclear = Finding(verdict=Verdict.NOT_JUDGED, seen="the ordinary sign-in does not work")
                results.append(self._result(case, unclear, Observation(sign_ins=()), started))
                continue
            if unfit := not_applicable(case, self.facts):
                unclear = Finding(verdict=Verdict.NOT_JUDGED, seen=unfit)
                results.append(self._result(case, unclear, Observation(sign_ins=()), started))
                continue
            observation = await self._observed(case, self.facts)
            results.append(self._result(case, judge(case, observation, self.facts), observation, started))
        return results

    def _result(self, case: Case, found: Finding, observation: Observation, started: float) -> Result:
        self.progress(f"{found.verdict.upper()} {case.id}: {found.seen}")
        return Result(case=case, finding=found, observation=observation, seconds=time.monotonic() - started)

    # --- the ordinary sign-in -----------------------------------------------------------------------------------

    async def _baseline(self) -> tuple[Finding, Observation]:
        """Sign in, and learn what the other cases need to know."""
        sends_iss = (await self.api.metadata()).get("authorization_response_iss_parameter_supported") is True
        await self._new_calls("")
        sign_in = await self._sign_in(BASELINE)
        observation = Observation(sign_ins=(sign_in,))
        client_id = sign_in.request.get("client_id", "")
        facts = Facts(
            client_id=client_id,
            issuer=self.api.issuer,
            sends_iss=sends_iss,
            pushes=bool(calls_to(sign_in.login_calls, "par")),
            resource=next((call.endpoint for call in sign_in.calls if call.endpoint in _RESOURCES), "userinfo"),
            signs_resource=any(call.signed for call in sign_in.calls if call.endpoint in _RESOURCES),
        )
        if not sign_in.pages or sign_in.problem:
            return judge(BASELINE, observation, facts), observation
        await self._require_no_orders(client_id)
        async with self.api.placed([{**_CANCELLED, "client_id": client_id}]):
            cancelled = (await self._sign_in(BASELINE, client_id)).page
        page = sign_in.pages[-1]
        claims = [claim for call in sign_in.callback_calls for claim in call.signed]
        if self.marker is None and cancelled is not None:
            self.marker = learned(page, cancelled, claims)
            if self.marker is None and not page.is_error and calls_to(sign_in.callback_calls, "token"):
                raise ReadinessError(
                    f"the page after the sign-in ({address(page.url)}: {page}) does not show that somebody is signed in: "
                    "give --success-text or --success-url, or see in the inspector (/developer/traffic) what failed"
                )
        if self.marker is not None:
            signed_in = replace(page, session=self.marker.is_on(page))
            sign_in = replace(sign_in, pages=(signed_in,))
            observation = Observation(sign_ins=(sign_in,))
            url = await self._session_url(signed_in, sign_in.request.get("redirect_uri", ""))
            facts = replace(facts, session_url=url)
        if cancelled is not None:
            facts = replace(facts, roles=roles(claims, page, cancelled))
        self.facts = facts
        return judge(BASELINE, observation, facts), observation

    async def _require_no_orders(self, client_id: str) -> None:
        placed = await self.api.list_orders(client_id)
        if placed:
            names = ", ".join(str(each["order"]) for each in placed)
            raise ReadinessError(
                f"orders are in force for this relying party ({names}), and would change the results: withdraw them "
                "first (`corpid sandbox withdraw --all`)"
            )

    # --- one case -----------------------------------------------------------------------------------------------

    async def _observed(self, case: Case, facts: Facts) -> Observation:
        observation = await self._tried(case, facts)
        if case.new_key and not calls_to(observation.last.callback_calls, "jwks"):
            self.progress(f"({case.id}: the key set was not fetched again at once; waiting a minute for a second try)")
            await asyncio.sleep(self.options.cool_down)
            observation = replace(await self._tried(case, facts), waited=True)
        if session_begins in case.expects or observation.last.session:
            return observation
        if not _reached(observation):
            return observation
        return replace(observation, recovered=await self._recovers(case, facts))

    async def _tried(self, case: Case, facts: Facts) -> Observation:
        if case.prepared:
            async with self.api.placed(self._addressed(order, facts) for order in case.prepared):
                await self._recovers(case, facts)
        await self._new_calls("")
        async with self.api.placed(self._addressed(order, facts) for order in case.orders):
            sign_ins = [await self._sign_in(case, facts.client_id) for _ in range(case.sign_ins)]
        return Observation(sign_ins=tuple(sign_ins))

    async def _recovers(self, case: Case, facts: Facts) -> bool:
        """Return whether an ordinary sign-in works after a case."""
        touched = case.new_key or case.prepared
        if (await self._sign_in(BASELINE, facts.client_id)).session:
            return True
        if not touched:
            return False
        await asyncio.sleep(self.options.cool_down)
        return (await self._sign_in(BASELINE, facts.client_id)).session

    @staticmethod
    def _addressed(order: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
        endpoint = facts.resource if order.get("endpoint") == RESOURCE else order.get("endpoint")
        named = {**order, "endpoint": endpoint} if endpoint is not None else dict(order)
        whole = endpoint in _EVERY_CLIENT or order["order"] == "rotate-key"
        return {**named, "client_id": None if whole else facts.client_id}

    async def _sign_in(self, case: Case, client_id: str = "") -> SignIn:
        async with (
            visitor(issuer=self.api.issuer, marker=self.marker, tls=self.options.tls) as first,
            visitor(issuer=self.api.issuer, marker=self.marker, tls=self.options.tls) as other,
        ):
            url = await first.log_in(self.options.url, press=self.options.press)
            calls = await self._new_calls(client_id)
            request = _request(url, calls)
            if isinstance(url, RelyingPartyPage):
                return SignIn(login=url, request=request, login_calls=calls)
            try:
                callback = await self.api.sign_in(url, user=self.options.user, entity=self.options.entity)
            except SignInRefused as refused:
                return SignIn(problem=str(refused), request=request, login_calls=calls)
            calls += await self._new_calls(client_id)
            if urlsplit(callback).fragment:
                problem = "the callback is behind a # (response_mode=fragment), which only a script can read"
                return SignIn(problem=problem, request=request, login_calls=calls)
            browsers = _browsers(case.opened_in, first, other)
            pages = [await each.come_back(callback) for each in browsers]
            after = await self._calls_after(case, client_id)
            if session_begins not in case.expects:
                pages[-1] = await self._looked_again(browsers[-1], pages[-1])
            return SignIn(request=request, pages=tuple(pages), login_calls=calls, callback_calls=after)

    async def _looked_again(self, browser: Visitor, page: RelyingPartyPage) -> RelyingPartyPage:
        """The page of a session behind a refusal, else this page."""
        url = self.facts.session_url if self.facts else ""
        if not url or page.session or page.crashed:
            return page
        elsewhere = await browser.look_at(url)
        return elsewhere if elsewhere.session else page

    async def _session_url(self, signed_in: RelyingPartyPage, redirect_uri: str) -> str:
        """Address of a signed-in page that shows others no session."""
        if not signed_in.session or urlsplit(signed_in.url).path == urlsplit(redirect_uri).path:
            return ""
        async with visitor(issuer=self.api.issuer, marker=self.marker, tls=self.options.tls) as nobody:
            return "" if (await nobody.look_at(signed_in.url)).session else signed_in.url

    async def _new_calls(self, client_id: str) -> tuple[Call, ...]:
        """New calls of this client, and of no client in particular.

        Without a client_id everything.
        """
        calls = map(Call.from_exchange, await self.api.new_exchanges())
        return tuple(each for each in calls if not client_id or each.client_id in ("", client_id))

    async def _calls_after(self, case: Case, client_id: str) -> tuple[Call, ...]:
        """The calls of a callback, also late ones."""
        calls = await self._new_calls(client_id)
        late = sum(float(order["seconds"]) for order in case.orders if order["order"] == "latency")
        end = time.monotonic() + late + GRACE_SECONDS
        while late and not any(call.orders for call in calls) and time.monotonic() < end:
            await asyncio.sleep(POLL_SECONDS)
            calls += await self._new_calls(client_id)
        return calls


def _reached(observation: Observation) -> bool:
    """Return whether the relying party showed a page."""
    return bool(observation.last.pages or observation.last.login)


def _browsers(opened_in: OpenedIn, first: Visitor, other: Visitor) -> tuple[Visitor, ...]:
    match opened_in:
        case OpenedIn.SAME:
            return (first,)
        case OpenedIn.OTHER:
            return (other,)
        case OpenedIn.SAME_THEN_OTHER:
            return first, other


def _request(url: str | RelyingPartyPage, calls: Sequence[Call]) -> dict[str, str]:
    """The parameters of the authorization request, pushed or not."""
    query = dict(parse_qsl(urlsplit(url).query)) if isinstance(url, str) else {}
    pushed = next((call.parameters for call in reversed(calls) if call.endpoint == "par"), {})
    return {**query, **pushed}
