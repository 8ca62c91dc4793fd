"""`corpid demo --check`: scripted sign-ins through real pages and sockets.

Each scenario is a separate sign-in, and runs whether or not one before it failed. Nothing the provider says is
believed: tokens and resources are verified by the relying party in code, and compared with the directory file that was
applied and with what the generation promises.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

import httpx

from corpid.rules.authentication.totp import STEP_SECONDS
from corpid_dev.demo.demo_rp import CLIENT_ID
from corpid_dev.demo.example_directory import roles_in
from corpid_dev.relying_party import people, verification
from corpid_dev.relying_party.browser import Browser, DeadEndError
from corpid_dev.relying_party.relying_party import RelyingParty
from corpid_dev.relying_party.verification import CheckFailed, Checklist, ProviderError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from corpid_dev.demo.demo import Demo
    from corpid_dev.relying_party.interfaces import Interface
    from corpid_dev.relying_party.people import Person

TIMEOUT_SECONDS: Final = 30.0


@dataclass(slots=True)
class Outcome:
    """The result of one scenario; `problem` is empty if every check passed."""

    scenario: str
    person: str = ""
    entity: str = ""
    problem: str = ""
    checks: Checklist = field(default_factory=Checklist)


@dataclass(slots=True)
class Inspector:
    """Looks at a running demo.

    Each person is used once, so that no code of an app is met twice.
    """

    demo: Demo
    http: httpx.AsyncClient
    used: list[str] = field(default_factory=list)

    @property
    def interface(self) -> Interface:
        """The generation that the demo runs in."""
        return self.demo.registration.interface

    @property
    def scope(self) -> str:
        """Everything that can be asked for."""
        return " ".join(("openid", *self.interface.scopes))

    def relying_party(self, outcome: Outcome, *, response_mode: str | None = None) -> RelyingParty:
        """The demo's client, with the scenario's checks."""
        message = {"authentication_context_message": "A check of the demo"} if self.interface.message else {}
        return RelyingParty(
            client_id=CLIENT_ID,
            issuer=self.demo.issuer,
            http=self.http,
            interface=self.interface,
            response_mode=response_mode,
            redirect_uri=self.demo.registration.redirect_uri,
            scope=self.scope,
            parameters=message,
            keys=self.demo.registration.keys,
            id_token_enc=self.demo.registration.id_token_enc,
            userinfo_enc=self.demo.registration.userinfo_enc,
            stringified_blocks=self.demo.registration.stringified_blocks,
            checks=outcome.checks,
        )

    @asynccontextmanager
    async def browser(self, *further_origins: str) -> AsyncIterator[Browser]:
        """A new browser for the pages of the provider and others."""
        async with self.demo.hosting.http(TIMEOUT_SECONDS) as http:
            parts = urlsplit(self.demo.issuer)
            yield Browser(http, frozenset({f"{parts.scheme}://{parts.netloc}", *further_origins}))

    async def signed_in(
        self, outcome: Outcome, person: Person, entity: str, *, choose: str | None, response_mode: str | None = None
    ) -> RelyingParty:
        """A sign-in from the request to the resources, compared with the directory.

        `choose` None: nothing is asked.
        """
        outcome.person, outcome.entity = person.user_name, entity
        relying_party = self.relying_party(outcome, response_mode=response_mode)
        async with self.browser() as browser:
            callback = await people.sign_in(browser, await relying_party.begin(), person, choose)
        tokens = await relying_party.redeem(callback)
        outcome.checks.equal("directory: everything asked for was granted", tokens.scope, self.scope)
        if self.interface.packed_subject:
            self._compare_packed(outcome, tokens.id_token, person, entity)
        else:
            self._compare_identity(outcome, tokens.id_token, person, entity)
        if self.interface.entity_info is not None:
            expected = self.demo.directory.id_token_attributes(person, entity)["entity"]
            entity_attributes = (await relying_party.entity_info())["entity_info"]
            outcome.checks.equal("directory: the entity's attributes in entity-info", entity_attributes, expected)
        self._compare_roles(outcome, await relying_party.userinfo(), person, entity)
        return relying_party

    def person(self, fits: Callable[[Person, list[str]], object] = lambda _, usable: usable) -> Person:
        """An unused person who fits, with their selectable entities.

        Raises LookupError.
        """
        for person in self.unused():
            if fits(person, self.demo.directory.usable(person)):
                self.used.append(person.user_name)
                return person
        raise LookupError("the directory has no person left for this scenario")

    def unused(self) -> list[Person]:
        """The people not used yet."""
        return [person for person in self.demo.registration.persons if person.user_name not in self.used]

    def today(self) -> date:
        """The day at the provider."""
        return datetime.fromtimestamp(time.time(), self.demo.timezone).date()

    def _compare_identity(self, outcome: Outcome, claims: dict[str, Any], person: Person, entity: str) -> None:
        expected = self.demo.directory.id_token_attributes(person, entity)
        outcome.checks.equal("registration: whom sub names", claims["sub_type"], self.demo.registration.subject)
        of_person, of_entity = verification.parties_of(claims)
        outcome.checks.equal("directory: acts for the chosen entity", of_entity["sub"], entity)
        outcome.checks.equal("directory: the person's attributes", of_person.get("sub_attributes"), expected["user"])
        entity_attributes = of_entity.get("sub_attributes")
        outcome.checks.equal("directory: the entity's attributes", entity_attributes, expected["entity"])

    def _compare_packed(self, outcome: Outcome, claims: dict[str, Any], person: Person, entity: str) -> None:
        expected = self.demo.directory.packed_parties(person, entity)
        outcome.checks.equal("directory: acts for the chosen entity", claims["entityInfo"]["CPEntID"], entity)
        outcome.checks.equal("directory: the person in sub", verification.members(claims["sub"]), expected["sub"])
        outcome.checks.equal("directory: the person's attributes", claims["userInfo"], expected["userInfo"])
        outcome.checks.equal("directory: the entity's attributes", claims["entityInfo"], expected["entityInfo"])

    def _compare_roles(self, outcome: Outcome, claims: dict[str, Any], person: Person, entity: str) -> None:
        blocks, directory, today = self.interface.userinfo.blocks, self.demo.directory, self.today()
        own_block, others_block = blocks["authinfo"], blocks["tpauthinfo"]
        own, others = roles_in(claims.get(own_block)), roles_in(claims.get(others_block))
        outcome.checks.equal(f"directory: roles in {own_block}", own, directory.roles(person, entity, today))
        expected = directory.third_party_roles(person, entity, today)
        outcome.checks.equal(f"directory: roles in {others_block}", others, expected)
        outcome.checks.equal(f"directory: {others_block} only with rows", others_block in claims, bool(expected))


Scenario: TypeAlias = "Callable[[Inspector, Outcome], Awaitable[None]]"
FAILURES: Final = (CheckFailed, ProviderError, DeadEndError, httpx.HTTPError, LookupError, ValueError, RuntimeError)
"""exceptions that are findings of a scenario, not faults of the check"""


async def published(inspector: Inspector, outcome: Outcome) -> None:
    """Check discovery of a generation served alone, and certificates of keys.

    Source: Spec 2.8, 2.9
    """
    checks, interface = outcome.checks, inspector.interface
    relying_party = inspector.relying_party(outcome)
    document = await relying_party.discover()
    for name, expected in interface.alone.items():
        checks.equal(f"discovery: {name}", _unordered(document.get(name)), _unordered(expected))
    reading = document[interface.userinfo.endpoint]
    checks.equal("discovery: userinfo_endpoint", document.get("userinfo_endpoint"), reading)
    certified = {key.get("x5c") is not None for key in await relying_party.fetch_provider_keys()}
    checks.equal("provider keys: certificates only where they belong", certified, {interface.certificates})


async def one_entity(inspector: Inspector, outcome: Outcome) -> None:
    """The only usable entity is not asked for.

    Another scheme is not served. A spent code kills its token (D18, D24).
    """
    directory, today = inspector.demo.directory, inspector.today()
    person = inspector.person(
        lambda one, usable: len(usable) == 1 and directory.roles(one, usable[0], today),
    )
    relying_party = await inspector.signed_in(outcome, person, directory.usable(person)[0], choose=None)
    await _another_scheme(relying_party)
    again = await relying_party.token(relying_party.sign_in.code)
    outcome.checks.equal("code used again: refused", again.json().get("error"), "invalid_grant")
    dead = await relying_party.resource()
    outcome.checks.equal("code used again: its token is dead", dead.status_code, 401)


async def several_entities(inspector: Inspector, outcome: Outcome) -> None:
    """The person with most entities chooses the last one.

    By search if it is not rendered.
    """
    usable = inspector.demo.directory.usable
    most = max(inspector.unused(), key=lambda one: len(usable(one)))
    person = inspector.person(lambda one, _: one is most)
    outcome.checks.that("directory: has a person with several entities", len(usable(person)) > 1, "has none")
    entity = usable(person)[-1]
    await inspector.signed_in(outcome, person, entity, choose=entity)


async def third_party(inspector: Inspector, outcome: Outcome) -> None:
    """Roles for other entities arrive, by the other method too."""
    directory, today = inspector.demo.directory, inspector.today()
    chains = {
        person.user_name: entity
        for person in inspector.unused()
        for entity in directory.usable(person)
        if directory.third_party_roles(person, entity, today)
    }
    outcome.checks.that("directory: has a third-party chain", bool(chains), "nobody acts for a third party")
    person = inspector.person(lambda one, _: one.user_name in chains)
    entity = chains[person.user_name]
    relying_party = await inspector.signed_in(outcome, person, entity, choose=entity)
    reading = inspector.interface.userinfo
    other = "GET" if reading.method == "POST" else "POST"
    block = reading.blocks["tpauthinfo"]
    outcome.checks.that(
        f"{reading.name} by {other}: {block}", block in await relying_party.userinfo(other), "is absent"
    )


async def cancelled(inspector: Inspector, outcome: Outcome, *, response_mode: str | None = None) -> None:
    """Cancel leads back with access_denied and the state (D17)."""
    relying_party = inspector.relying_party(outcome, response_mode=response_mode)
    async with inspector.browser() as browser:
        await browser.open(await relying_party.begin())
        callback = await people.cancel(browser)
    try:
        relying_party.callback(callback)
    except ProviderError as refusal:
        outcome.checks.equal("cancel: error", refusal.error, "access_denied")
        return
    raise outcome.checks.failed("cancel: error", "the callback carries a code")


async def in_mode(inspector: Inspector, outcome: Outcome, *, response_mode: str) -> None:
    """The response comes back in the requested mode (D37, D38)."""
    person = inspector.person()
    entity = inspector.demo.directory.usable(person)[0]
    await inspector.signed_in(outcome, person, entity, choose=entity, response_mode=response_mode)


async def proof_with_a_code(inspector: Inspector, outcome: Outcome) -> None:
    """Codes for bearer tokens ignore a DPoP proof.

    At the token endpoint. Source: Spec "Generations"
    """
    person = inspector.person()
    outcome.person, outcome.entity = person.user_name, inspector.demo.directory.usable(person)[0]
    relying_party = inspector.relying_party(outcome)
    async with inspector.browser() as browser:
        callback = await people.sign_in(browser, await relying_party.begin(), person, outcome.entity)
    proof = relying_party.proof("POST", relying_party.metadata["token_endpoint"])
    answer = await relying_party.token(relying_party.callback(callback), headers={"DPoP": proof})
    outcome.checks.equal("proof with the code: status", answer.status_code, 200)
    await relying_party.believe(answer)


async def own_pages(inspector: Inspector, outcome: Outcome) -> None:
    """From the demo RP's start page to its page of results."""
    person = inspector.person()
    entity = inspector.demo.directory.usable(person)[0]
    outcome.person, outcome.entity = person.user_name, entity
    async with inspector.browser(inspector.demo.relying_party_url) as browser:
        await browser.open(inspector.demo.link, site="none")
        outcome.checks.that("start page: Sign in", bool(browser.page.forms), "has no form")
        form = browser.page.forms[-1]
        if form.choices("response_mode"):
            form.fill("response_mode", inspector.interface.response_modes[-1])
        await browser.submit(form)
        while browser.url.startswith(inspector.demo.issuer):
            await people.answer_page(browser, person, entity)
        outcome.checks.equal("result page: status", browser.response and browser.response.status_code, 200)
        outcome.checks.equal("result page: heading", browser.page.heading, "You are signed in")


def scenarios(interface: Interface) -> dict[str, Scenario]:
    """The scenarios of a generation, by name."""
    further = interface.response_modes[1:]
    return {
        "the discovery document": published,
        "one entity, every claim": one_entity,
        "one of several entities": several_entities,
        "third party": third_party,
        **{f"response mode {mode}": partial(in_mode, response_mode=mode) for mode in further},
        **({} if interface.bound else {"a proof with a code": proof_with_a_code}),
        "cancel": cancelled,
        **{f"cancel, response mode {mode}": partial(cancelled, response_mode=mode) for mode in further},
        "the demo RP's own pages": own_pages,
    }


async def run(demo: Demo) -> list[Outcome]:
    """Run every scenario against a running demo.

    It waits until each person's app shows an unused code. Source: D45
    """
    latest = max((person.used_step for person in demo.registration.persons), default=0)
    await asyncio.sleep(max(0, latest * STEP_SECONDS - time.time()))
    async with demo.hosting.http(TIMEOUT_SECONDS) as http:
        inspector = Inspector(demo, http)
        return [await _outcome(inspector, *named) for named in scenarios(inspector.interface).items()]


def report(demo: Demo, outcomes: list[Outcome]) -> dict[str, Any]:
    """The outcomes for machines."""
    return {
        "ok": bool(outcomes) and not any(outcome.problem for outcome in outcomes),
        "issuer": demo.issuer,
        "issuer_id": demo.issuer_id,
        "generation": demo.registration.interface.name,
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


async def _outcome(inspector: Inspector, name: str, scenario: Scenario) -> Outcome:
    outcome = Outcome(name)
    try:
        await scenario(inspector, outcome)
    except FAILURES as failure:
        outcome.problem = str(failure) or type(failure).__name__
    return outcome


async def _another_scheme(relying_party: RelyingParty) -> None:
    """The token under another scheme: a challenge without error details.

    The scheme is that of other generations.
    """
    checks, scheme = relying_party.checks, relying_party.interface.scheme
    tokens = relying_party.sign_in.tokens
    other = "Bearer" if relying_party.interface.bound else "DPoP"
    answer = await relying_party.resource(headers={"Authorization": f"{other} {tokens.access_token if tokens else ''}"})
    checks.equal(f"scheme {other}: status", answer.status_code, 401)
    checks.equal(f"scheme {other}: no body", answer.text, "")
    challenge = answer.headers.get("www-authenticate", "")
    bare = challenge.startswith(f"{scheme} ") and "error" not in challenge
    checks.that(f"scheme {other}: bare challenge", bare, f"got {challenge!r}", challenge)


def _unordered(value: object) -> object:
    return sorted(value) if isinstance(value, list | tuple) else value
