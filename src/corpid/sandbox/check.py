"""`corpid demo --check`: people's sign-ins without people, through the real pages and over real sockets.

Each scenario is a sign-in of its own. Nothing the provider says is believed: tokens and userinfo are
verified by the relying party in code, and compared with the directory file that was applied.
"""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import httpx

from corpid.sandbox import walk
from corpid.sandbox.answers import ProviderError
from corpid.sandbox.browser import Browser, StrandedError
from corpid.sandbox.demo_rp import CLIENT_ID, SCOPES
from corpid.sandbox.example_directory import told
from corpid.sandbox.relying_party import RelyingParty
from corpid.sandbox.verification import CheckFailed, Checklist

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from datetime import date

    from corpid.sandbox.demo import Demo
    from corpid.sandbox.person import Person

SCOPE: Final = " ".join(["openid", *SCOPES])
TIMEOUT_SECONDS: Final = 30.0
FAILURES: Final = (CheckFailed, ProviderError, StrandedError, httpx.HTTPError, LookupError, ValueError, RuntimeError)
"""what a scenario may end with that is a finding, not a fault of the check"""


@dataclass(slots=True)
class Outcome:
    """What one scenario came to; `problem` is empty if everything checked out."""

    scenario: str
    person: str = ""
    entity: str = ""
    problem: str = ""
    checks: Checklist = field(default_factory=Checklist)


@dataclass(slots=True)
class Inspector:
    """Runs the scenarios against a running demo; each person is used once, so that no code is met twice."""

    demo: Demo
    http: httpx.AsyncClient
    used: list[str] = field(default_factory=list)

    async def scenarios(self) -> list[Outcome]:
        """Every scenario, whether or not one before it failed."""
        outcomes = []
        for name, scenario in (
            ("one entity, every claim", self.one_entity),
            ("one of several entities", self.several_entities),
            ("third party", self.third_party),
            ("cancel", self.cancelled),
            ("the demo RP's own pages", self.own_pages),
        ):
            outcomes.append(await self._outcome(name, scenario))
        return outcomes

    async def one_entity(self, outcome: Outcome) -> None:
        """The only usable entity is not asked for; a spent code kills its token (D18)."""
        person = self._person(lambda one, usable: len(usable) == 1 and self._roles(one, usable[0]))
        entity = self.demo.directory.usable(person)[0]
        relying_party = await self._signed_in(outcome, person, entity, choose=None)
        again = await relying_party.token(relying_party.sign_in.code)
        outcome.checks.equal("code used again: refused", again.json().get("error"), "invalid_grant")
        dead = await relying_party.resource()
        outcome.checks.equal("code used again: its token is dead", dead.status_code, 401)

    async def several_entities(self, outcome: Outcome) -> None:
        """Whoever acts for the most entities chooses the last of them, through the search where it is not shown."""
        usable = self.demo.directory.usable
        person = max(self._unused(), key=lambda one: len(usable(one)))
        self.used.append(person.user_name)
        outcome.checks.that("directory: has a person with several entities", len(usable(person)) > 1, "has none")
        entity = usable(person)[-1]
        await self._signed_in(outcome, person, entity, choose=entity)

    async def third_party(self, outcome: Outcome) -> None:
        """Roles for other entities arrive in tp_auth_info."""
        directory, today = self.demo.directory, self._today()
        chains = [
            (person, entity)
            for person in self._unused()
            for entity in directory.usable(person)
            if directory.third_party_roles(person, entity, today)
        ]
        outcome.checks.that("directory: has a third-party chain", bool(chains), "nobody acts for a third party")
        person, entity = chains[0]
        self.used.append(person.user_name)
        relying_party = await self._signed_in(outcome, person, entity, choose=entity)
        claims = await relying_party.userinfo("POST")
        outcome.checks.that("userinfo by POST: tp_auth_info", "tp_auth_info" in claims, "is absent")

    async def cancelled(self, outcome: Outcome) -> None:
        """Cancel leads back with access_denied and the state (D17)."""
        relying_party = self._relying_party(outcome)
        async with self._browser() as browser:
            await browser.open(await relying_party.begin())
            callback_url = await walk.cancel(browser)
        try:
            relying_party.callback(callback_url)
        except ProviderError as refusal:
            outcome.checks.equal("cancel: error", refusal.error, "access_denied")
            return
        raise outcome.checks.failed("cancel: error", "the callback carries a code")

    async def own_pages(self, outcome: Outcome) -> None:
        """From the start page of the demo RP to its page of results."""
        person = self._person(lambda _, usable: bool(usable))
        entity = self.demo.directory.usable(person)[0]
        outcome.person, outcome.entity = person.user_name, entity
        async with self._browser(self.demo.relying_party_url) as browser:
            await browser.open(self.demo.relying_party_url + "/", site="none")
            outcome.checks.that("start page: Log in", bool(browser.page.forms), "has no form")
            await browser.submit(browser.page.forms[0], "Log in")
            while browser.url.startswith(self.demo.issuer):
                await walk.answer_page(browser, person, entity)
            outcome.checks.equal("result page: status", browser.response and browser.response.status_code, 200)
            outcome.checks.equal("result page: heading", browser.page.heading, "You are signed in")

    async def _signed_in(self, outcome: Outcome, person: Person, entity: str, *, choose: str | None) -> RelyingParty:
        outcome.person, outcome.entity = person.user_name, entity
        relying_party = self._relying_party(outcome)
        async with self._browser() as browser:
            callback_url = await walk.sign_in(browser, await relying_party.begin(), person, choose)
        tokens = await relying_party.redeem(callback_url)
        outcome.checks.equal("directory: everything asked for was granted", tokens.scope, SCOPE)
        self._compare_identity(outcome, tokens.id_token, person, entity)
        self._compare_roles(outcome, await relying_party.userinfo(), person, entity)
        return relying_party

    def _compare_identity(self, outcome: Outcome, claims: dict[str, Any], person: Person, entity: str) -> None:
        expected = self.demo.directory.id_token_attributes(person, entity)
        outcome.checks.equal("directory: acts for the chosen entity", claims["entity"]["sub"], entity)
        outcome.checks.equal("directory: the person's attributes", claims.get("sub_attributes"), expected["user"])
        told_of_entity = claims["entity"].get("sub_attributes")
        outcome.checks.equal("directory: the entity's attributes", told_of_entity, expected["entity"])

    def _compare_roles(self, outcome: Outcome, claims: dict[str, Any], person: Person, entity: str) -> None:
        own, others = told(claims)
        directory, today = self.demo.directory, self._today()
        outcome.checks.equal("directory: roles in auth_info", own, directory.roles(person, entity, today))
        expected = directory.third_party_roles(person, entity, today)
        outcome.checks.equal("directory: roles in tp_auth_info", others, expected)
        outcome.checks.equal("directory: tp_auth_info only with rows", "tp_auth_info" in claims, bool(expected))

    async def _outcome(self, name: str, scenario: Callable[[Outcome], Awaitable[None]]) -> Outcome:
        outcome = Outcome(name)
        try:
            await scenario(outcome)
        except FAILURES as failure:
            outcome.problem = str(failure) or type(failure).__name__
        return outcome

    def _relying_party(self, outcome: Outcome) -> RelyingParty:
        return RelyingParty(
            client_id=CLIENT_ID,
            issuer=self.demo.issuer,
            http=self.http,
            redirect_uri=self.demo.registration.redirect_uri,
            scope=SCOPE,
            parameters={"authentication_context_message": "A check of the demo"},
            keys=self.demo.registration.keys,
            checks=outcome.checks,
        )

    def _person(self, fits: Callable[[Person, list[str]], object]) -> Person:
        for person in self._unused():
            if fits(person, self.demo.directory.usable(person)):
                self.used.append(person.user_name)
                return person
        raise LookupError("the directory has no person left for this scenario")

    def _unused(self) -> list[Person]:
        return [person for person in self.demo.registration.persons if person.user_name not in self.used]

    def _roles(self, person: Person, entity: str) -> bool:
        return bool(self.demo.directory.roles(person, entity, self._today()))

    def _today(self) -> date:
        return datetime.fromtimestamp(time.time(), self.demo.timezone).date()

    @asynccontextmanager
    async def _browser(self, *further_origins: str) -> AsyncIterator[Browser]:
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False) as http:
            yield Browser(http, frozenset({self.demo.issuer, *further_origins}))


async def run(demo: Demo) -> list[Outcome]:
    """Every scenario against a running demo."""
    async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False) as http:
        return await Inspector(demo, http).scenarios()


def report(demo: Demo, outcomes: list[Outcome]) -> dict[str, Any]:
    """The outcomes for machines."""
    return {
        "ok": bool(outcomes) and not any(outcome.problem for outcome in outcomes),
        "issuer": demo.issuer,
        "scenarios": [
            {
                "name": outcome.scenario,
                "ok": not outcome.problem,
                "person": outcome.person,
                "entity": outcome.entity,
                "problem": outcome.problem,
                "checks": [
                    {"name": check.name, "passed": check.passed, "seen": check.seen} for check in outcome.checks.checks
                ],
            }
            for outcome in outcomes
        ],
    }
