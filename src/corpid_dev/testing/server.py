"""The process of a provider for tests.

It reads commands from standard input and ends with it. A line in is a command and its arguments as JSON, a line out its
result or its problem. The first command is `start`.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import tempfile
import time
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TextIO

import httpx
import yaml
from argon2.profiles import CHEAPEST

from corpid import app
from corpid import settings as settings_
from corpid.engines import StartError
from corpid.flows.directory.write import Refused
from corpid.outbound.passwords import Argon2Passwords
from corpid.rules.authentication.totp import STEP_SECONDS
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.records import Conflict, LastOwnerRemoved, ListedTestPerson
from corpid.rules.failures import StoreUnavailable
from corpid.rules.networks import is_loopback
from corpid.settings import SettingsError
from corpid.settings.issuers import client_rules
from corpid.web.http.server import CertificateUnusable, ListenError, bind
from corpid.web.telemetry import access_log
from corpid_dev.demo import example_directory
from corpid_dev.demo.demo import DemoError, NetworkSettings, apply_file, client_members, next_free, served
from corpid_dev.demo.example_directory import ExampleDirectory, own_secrets
from corpid_dev.flows.people import Developer
from corpid_dev.hosting import PROVIDER_HOST, Hosting
from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import Browser, DeadEndError
from corpid_dev.relying_party.interfaces import INTERFACES
from corpid_dev.relying_party.jwt import RelyingPartyKeys
from corpid_dev.web.demo_extension import DemoExtension

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from corpid.flows.request_context import Provider
    from corpid.own_certificates import OwnCertificate
    from corpid.rules.oauth.client_registration import RegistrationRules
    from corpid_dev.relying_party.people import Person
    from corpid_dev.relying_party.verification import Callback

TIMEOUT_SECONDS: Final = 30.0
DRAIN_SECONDS: Final = 0.2
PROBLEMS: Final = (
    SettingsError, StartError, DemoError, DirectoryError, Refused, Forbidden, Conflict, LastOwnerRemoved, StoreUnavailable,
    DeadEndError, ListenError, CertificateUnusable, LookupError, ValueError, RuntimeError, TypeError, yaml.YAMLError, httpx.HTTPError,
)  # fmt: skip
"""exceptions that are answers to a command"""


class Refusal(ValueError):
    """A command that makes no sense; the message says what would."""


@dataclass(kw_only=True)
class Sandbox:
    """A running provider, its people and the commands that it obeys."""

    provider: Provider
    rules: RegistrationRules
    generations: tuple[str, ...]
    log: Path
    ahead: list[float]
    """how far the provider's clock is moved forward, summed up by `clock`"""
    known: dict[str, Person] = field(default_factory=dict)
    services: list[str] = field(default_factory=list)
    certificate: OwnCertificate | None = None
    """None: plain HTTP"""
    developer: Developer | None = None
    """makes everybody of the directory a test person (D66)"""

    async def people(self) -> list[dict[str, Any]]:
        """Everybody who can sign in."""
        return [
            {"user_name": each.user_name, "name": each.name, "password": each.password, "entities": each.entities}
            for each in self.known.values()
        ]

    async def apply(self, name: str, content: str) -> None:
        """Apply a directory file; people without factors get them.

        Raises DirectoryError.
        """
        text = content.encode()
        await apply_file(self.provider, self.rules, name, text)
        sections = ExampleDirectory.read(text).sections or {}
        users, factors = sections.get("users") or {}, {}
        for user_name, given in users.items():
            before = self.known.get(user_name)
            known = {"password": before.password, "totp_secret": before.totp_secret} if before else {}
            own = own_secrets({**known, **given})
            users[user_name] = {**given, **own}
            if not own.items() <= given.items():
                factors[user_name] = own
        if factors:
            await apply_file(self.provider, self.rules, "factors", json.dumps({"users": factors}).encode())
        for person in ExampleDirectory({**sections, "users": users, "third_party": {}}).persons():
            before = self.known.get(person.user_name)
            if before is not None:
                person.name = person.name or before.name
                person.entities = tuple(dict.fromkeys((*before.entities, *person.entities)))
                person.used_step = before.used_step if before.totp_secret == person.totp_secret else 0
            self.known[person.user_name] = person
            if self.developer is not None:
                self.developer.add(
                    [ListedTestPerson(user_name=person.user_name, name=person.name, entities=person.entities)]
                )
        self.services = list(dict.fromkeys((*self.services, *(sections.get("services") or {}))))

    async def add_client(self, client_id: str, members: dict[str, Any]) -> dict[str, Any]:
        """Register a client; its private keys, if made here.

        Raises DirectoryError.
        """
        made = None if members.keys() & {"jwks", "jwks_uri"} else RelyingPartyKeys.generate()
        client = {
            "name": client_id,
            **client_members(self.provider, [INTERFACES[name] for name in self.generations], self.services),
            **({"jwks": made.public()} if made else {}),
            **members,
        }
        content = json.dumps({"clients": {client_id: client}}).encode()
        await apply_file(self.provider, self.rules, f"client {client_id}", content)
        return {
            "signing_key": made.signing.as_dict(private=True) if made else None,
            "encryption_key": made.encryption.as_dict(private=True) if made else None,
        }

    async def sign_in(self, url: str, user: str, entity: str | None, *, agree: bool) -> dict[str, Any]:
        """Walk through the pages to the callback. Raises DeadEndError."""
        person = self._person(user)
        if entity is not None and entity not in person.entities:
            raise Refusal(f"{user} does not act for {entity}, only for {', '.join(person.entities) or 'nobody'}")
        await self._until_fresh_code(person)
        async with self._browser(url) as browser:
            clock = self.provider.clock
            return _answer(await people.sign_in(browser, url, person, entity, agree=agree, now=clock))

    async def cancel(self, url: str) -> dict[str, Any]:
        """Press Cancel on the first page. Raises DeadEndError."""
        async with self._browser(url) as browser:
            await browser.open(url)
            return _answer(await people.cancel(browser))

    async def code(self, user: str) -> str:
        """An unused code of a person's authenticator."""
        person = self._person(user)
        await self._until_fresh_code(person)
        return person.fresh_code(self.provider.clock())

    async def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        if seconds < 0:
            raise Refusal("the clock goes forward only")
        self.ahead.append(seconds)

    async def read_log(self) -> list[str]:
        """The lines of the log."""
        return self.log.read_text(encoding="utf-8").splitlines()

    def _person(self, user: str) -> Person:
        if user not in self.known:
            raise Refusal(f"the directory has no {user!r} who can sign in, only {', '.join(self.known) or 'nobody'}")
        return self.known[user]

    @asynccontextmanager
    async def _browser(self, url: str) -> AsyncIterator[Browser]:
        issuer = self.provider.policy.base_url
        if not url.startswith(f"{issuer}/"):
            raise Refusal(f"{url[:200]} is no page of this provider, which is {issuer}: pass the URL to authorize at")
        async with Hosting(certificate=self.certificate).http(TIMEOUT_SECONDS) as http:
            yield Browser(http)

    async def _until_fresh_code(self, person: Person) -> None:
        """Wait if the person has used the codes of now.

        A code works once, so a person signs in twice in 30 seconds at most.
        """
        await asyncio.sleep(max(0.0, person.used_step * STEP_SECONDS - self.provider.clock()))


def _answer(callback: Callback) -> dict[str, Any]:
    return {"url": str(callback), "form": callback.form}


def is_own_machine(address: str) -> bool:
    """Return whether nobody else can connect to this address."""
    return address == PROVIDER_HOST or is_loopback(address)


@asynccontextmanager
async def started(
    folder: Path,
    *,
    name: str | None,
    content: str | None,
    generations: list[str],
    preset: str,
    settings: dict[str, Any],
    listen: str = PROVIDER_HOST,
    port: int = 0,
    log: BinaryIO | None = None,
    developer: Developer | None = None,
    tls: bool = False,
) -> AsyncIterator[Sandbox]:
    """A provider that answers until the context ends.

    It listens at `listen` (beyond this machine the rules for key-set URLs hold, D66), on any free port if `port` is 0,
    and is localhost to everybody. Its log goes to a file in `folder` if not to `log`. With `tls` it has a certificate
    of its own. With `developer` everybody of the directory can sign in at once. Raises what PROBLEMS names.
    """
    unknown = [each for each in generations if each not in INTERFACES]
    if unknown or not generations:
        raise Refusal(f"no generation {', '.join(unknown)}: choose from {', '.join(INTERFACES)}")
    ahead: list[float] = []

    def clock() -> float:
        return time.time() + sum(ahead)

    sockets = bind(listen, port) if port else []
    if not port:
        port, sockets = next_free(listen, 0)
    hosting = Hosting.prepare(None, folder, tls=tls, now=datetime.now(UTC))
    files = hosting.certificate
    chosen = settings_.load(
        settings_.Settings if is_own_machine(listen) else NetworkSettings,
        **{
            "preset": preset,
            "generations": tuple(generations),
            "developer_mode": True,
            **settings,
            "base_url": hosting.url(PROVIDER_HOST, port),
            **({"tls_certificate": files.chain, "tls_key": files.key} if files else {}),
            "host": listen,
            "port": port,
            "data_dir": folder / "provider",
        },
    )
    if developer is not None and files is not None:
        developer.authority = files.authority
    file = folder / "provider.log"
    with file.open("wb", buffering=0) if log is None else nullcontext(log) as stream:
        access_log.configure(clock=clock, stream=stream)
        passwords = Argon2Passwords(threads=2, profile=CHEAPEST)
        extension = None if developer is None else DemoExtension(developer)
        async with app.create(chosen, clock=clock, passwords=passwords, extension=extension) as composed:
            sandbox = Sandbox(
                provider=composed.provider,
                rules=client_rules(chosen),
                generations=tuple(generations),
                log=file,
                ahead=ahead,
                certificate=files,
                developer=developer,
            )
            if content is None:
                name, content = example_directory.NAME, example_directory.content().decode()
            await sandbox.apply(name or example_directory.NAME, content)
            async with served(
                composed.asgi,
                sockets,
                bodiless=composed.bodiless,
                streamed=composed.streamed,
                tls=hosting.server_context(),
                drain_seconds=DRAIN_SECONDS,
            ):
                yield sandbox


async def _command() -> tuple[str, dict[str, Any]] | None:
    line = await asyncio.to_thread(sys.stdin.readline)
    if not line:
        return None
    command, arguments = json.loads(line)
    return command, arguments


async def _obey(folder: Path, answers: TextIO) -> None:
    def tell(**answer: object) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    first = await _command()
    if first is None:
        return
    try:
        options = first[1]
        in_developer_mode = options["settings"].get("developer_mode", True)
        developer = Developer(key=secrets.token_urlsafe(32)) if in_developer_mode else None
        async with started(folder, developer=developer, **options) as sandbox:
            ca_file = str(sandbox.certificate.authority) if sandbox.certificate else None
            tell(result={"issuer": sandbox.provider.policy.base_url, "ca_file": ca_file})
            commands: dict[str, Callable[..., Awaitable[object]]] = {
                "people": sandbox.people, "apply": sandbox.apply, "add_client": sandbox.add_client,
                "sign_in": sandbox.sign_in, "cancel": sandbox.cancel, "code": sandbox.code,
                "advance": sandbox.advance, "log": sandbox.read_log,
            }  # fmt: skip
            while (asked := await _command()) is not None:
                command, arguments = asked
                try:
                    tell(result=await commands[command](**arguments))
                except PROBLEMS as problem:
                    tell(problem=sentence(problem))
    except PROBLEMS as problem:
        tell(problem=sentence(problem))


def sentence(problem: Exception) -> str:
    return " ".join(map(str, problem.args)) if isinstance(problem, Refused | LookupError) else str(problem)


def main() -> None:
    """Obey standard input, with answers alone at standard output."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        with tempfile.TemporaryDirectory(prefix="corpid-testing-") as folder:
            asyncio.run(_obey(Path(folder), answers))


if __name__ == "__main__":
    main()
