"""Parts of the scenarios of `corpid demo --check`: people, browsers, comparisons.

Nothing the provider says is believed: tokens and resources are verified by the relying party in code, and
compared with the directory file that was applied and with what the generation promises.
"""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx

from corpid.sandbox import claim_checks, people
from corpid.sandbox.browser import Browser
from corpid.sandbox.demo_rp import CLIENT_ID
from corpid.sandbox.example_directory import told
from corpid.sandbox.relying_party import RelyingParty
from corpid.sandbox.verification import Checklist

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import date

    from corpid.sandbox.demo import Demo
    from corpid.sandbox.interfaces import Interface
    from corpid.sandbox.people import Person

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
            checks=outcome.checks,
        )

    @asynccontextmanager
    async def browser(self, *further_origins: str) -> AsyncIterator[Browser]:
        """A new browser for the pages of the provider and others."""
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False) as http:
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
            told_of_entity = (await relying_party.entity_info())["entity_info"]
            outcome.checks.equal("directory: the entity's attributes in entity-info", told_of_entity, expected)
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
        outcome.checks.equal("directory: acts for the chosen entity", claims["entity"]["sub"], entity)
        outcome.checks.equal("directory: the person's attributes", claims.get("sub_attributes"), expected["user"])
        told_of_entity = claims["entity"].get("sub_attributes")
        outcome.checks.equal("directory: the entity's attributes", told_of_entity, expected["entity"])

    def _compare_packed(self, outcome: Outcome, claims: dict[str, Any], person: Person, entity: str) -> None:
        expected = self.demo.directory.packed_parties(person, entity)
        outcome.checks.equal("directory: acts for the chosen entity", claims["entityInfo"]["CPEntID"], entity)
        outcome.checks.equal("directory: the person in sub", claim_checks.members(claims["sub"]), expected["sub"])
        outcome.checks.equal("directory: the person's attributes", claims["userInfo"], expected["userInfo"])
        outcome.checks.equal("directory: the entity's attributes", claims["entityInfo"], expected["entityInfo"])

    def _compare_roles(self, outcome: Outcome, claims: dict[str, Any], person: Person, entity: str) -> None:
        blocks, directory, today = self.interface.userinfo.blocks, self.demo.directory, self.today()
        own_block, others_block = blocks["authinfo"], blocks["tpauthinfo"]
        own, others = told(claims, own_block=own_block, others_block=others_block)
        outcome.checks.equal(f"directory: roles in {own_block}", own, directory.roles(person, entity, today))
        expected = directory.third_party_roles(person, entity, today)
        outcome.checks.equal(f"directory: roles in {others_block}", others, expected)
        outcome.checks.equal(f"directory: {others_block} only with rows", others_block in claims, bool(expected))
