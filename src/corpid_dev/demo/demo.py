"""The demo: provider, relying parties and example directory in one process."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import socket
import time
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlencode

from corpid import app, settings
from corpid.engines import at_command_line, email_renderer, new_user_id
from corpid.flows.account import links
from corpid.flows.authentication.own_pages import PATHS
from corpid.flows.directory.apply import apply_document
from corpid.flows.directory.lists import find_user
from corpid.rules.authentication.passkeys import passkeys_work_at
from corpid.rules.directory.access import DirectoryFile
from corpid.rules.directory.records import ListedTestPerson
from corpid.rules.oauth.records import FIRST_ISSUER
from corpid.settings import Settings
from corpid.settings.fields import PRESETS, Preset
from corpid.settings.issuers import client_rules
from corpid.web.http.server import ListenError, Server, bind
from corpid.web.telemetry import access_log
from corpid_dev.demo import demo_administration, example_directory
from corpid_dev.demo.demo_rp import CLIENT_ID, CaughtMail, DemoRP, ProviderAccess, Registration
from corpid_dev.demo.example_directory import ExampleDirectory, with_own_secrets
from corpid_dev.developer_api import trusting
from corpid_dev.flows.people import Developer
from corpid_dev.flows.readiness_runs import Runs
from corpid_dev.hosting import FIRST_PORT, PROVIDER_HOST, RELYING_PARTY_HOST, TLS, Hosting, NetworkHost
from corpid_dev.readiness.background import check_as_asked
from corpid_dev.relying_party.interfaces import CURRENT, Interface
from corpid_dev.relying_party.jwt import RelyingPartyKeys
from corpid_dev.web.clients import LEGACY_DAYS
from corpid_dev.web.demo_extension import DemoExtension
from corpid_dev.web.mode import KEY, Mode
from corpid_dev.web.paths import DEVELOPER_PATH

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from zoneinfo import ZoneInfo

    from starlette.types import ASGIApp

    from corpid.flows.request_context import Provider
    from corpid.rules.oauth.client_registration import RegistrationRules

TRIED: Final = 100
"""ports, before it gives up"""
MARK: Final = "demo.lock"
"""a directory that holds this file is a demo's own, and may be emptied"""
LOG: Final = "demo.log"
"""in the data directory: a line for each request of this run (D48)"""
DRAIN_SECONDS: Final = 1.0
BACK_CHANNEL_SECONDS: Final = 10.0
SECRETS: Final = "demo-people.json"
"""in the data directory: the people's secrets, if other machines reach the demo"""
WITHOUT_PRESET: Final[Mapping[str, object]] = MappingProxyType(
    {
        "return_iss": None,
        "dpop_mismatch_error": "invalid_grant",
        "context_message_punctuation": True,
        "jwe_header_claims": False,
    }
)


class DemoError(Exception):
    """The demo cannot run; the message gives the remedy."""


class NetworkSettings(Settings):
    """The settings of a demo that other machines reach (D66)."""

    demo_on_network: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """A running demo. `directory` is the file that was applied."""

    registration: Registration
    hosting: Hosting
    key: str
    """which other machines must show; the link has it"""
    issuer_id: str
    directory: ExampleDirectory
    timezone: ZoneInfo
    data_directory: Path

    @property
    def issuer(self) -> str:
        """The provider's base URL."""
        return self.registration.issuer

    @property
    def portal_url(self) -> str:
        """The URL of the portal, of the first issuer."""
        return self.issuer + PATHS["manage"]

    @property
    def console_url(self) -> str:
        """The URL of the console, of the first issuer."""
        return self.issuer + PATHS["console"]

    @property
    def developer_url(self) -> str:
        """The URL of the pages of developer mode, on this machine."""
        return self.issuer + DEVELOPER_PATH

    @property
    def developer_link(self) -> str:
        """The URL of developer mode, on the network with the key."""
        return self._with_key(self.developer_url)

    @property
    def relying_party_url(self) -> str:
        """The URL of the demo RP."""
        return self.registration.url

    @property
    def link(self) -> str:
        """The URL to start at, on the network with the key."""
        return self._with_key(f"{self.relying_party_url}/") if self.hosting.network else self.relying_party_url

    def _with_key(self, url: str) -> str:
        return f"{url}?{urlencode({KEY: self.key})}" if self.hosting.network else url


@asynccontextmanager
async def running(
    data_directory: Path,
    *,
    first_port: int = FIRST_PORT,
    interface: Interface = CURRENT,
    theme: Path | None = None,
    preset: str = "",
    network: NetworkHost | None = None,
    tls: bool = False,
) -> AsyncIterator[Demo]:
    """Run a provider and a demo RP of one generation.

    It does the same as `running_issuers`, for one issuer.
    """
    async with running_issuers(
        data_directory, (interface,), first_port=first_port, theme=theme, preset=preset, network=network, tls=tls
    ) as [demo]:
        yield demo


@asynccontextmanager
async def running_issuers(
    data_directory: Path,
    interfaces: Sequence[Interface],
    *,
    first_port: int = FIRST_PORT,
    theme: Path | None = None,
    preset: str = "",
    network: NetworkHost | None = None,
    tls: bool = False,
) -> AsyncIterator[tuple[Demo, ...]]:
    """Run a provider with an issuer per generation, and demo RPs.

    Each issuer has a demo RP. All answer on entry and stop when the context is left. The demo RPs are one client.
    `first_port` is the first port that is tried, 0 means any free one; `theme` is a directory; `preset` names a group
    of settings; `network` is the host by which other machines reach it, which implies `tls`. Raises DemoError,
    CertificateUnusable, and the provider's errors if it cannot start. Source: D62, D66
    """
    hosting = Hosting.prepare(network, data_directory, tls=tls, now=datetime.fromtimestamp(time.time(), UTC))
    port, provider_sockets = next_free(PROVIDER_HOST, first_port, addresses=hosting.addresses)
    content = example_directory.content()
    directory = ExampleDirectory.read(content)
    if network is not None:
        directory = with_own_secrets(directory, data_directory / SECRETS)
        content = json.dumps(directory.sections).encode()
    directory = demo_administration.administered(directory)
    keys, persons = RelyingPartyKeys.kept_in(data_directory / "demo-rp-keys.json"), directory.persons()
    own_port = port
    websites: list[tuple[Registration, list[socket.socket]]] = []
    for interface in interfaces:
        next_port = first_port and own_port + 1
        own_port, own_sockets = next_free(RELYING_PARTY_HOST, next_port, addresses=hosting.addresses)
        registration = Registration(
            issuer=f"{hosting.url(PROVIDER_HOST, port)}{f'/{interface.name}' if websites else ''}",
            url=hosting.url(RELYING_PARTY_HOST, own_port),
            keys=keys,
            persons=persons,
            interface=interface,
        )
        if preset:
            registration = as_preset(registration, PRESETS[preset])
        websites.append((registration, own_sockets))
    registrations = [registration for registration, _ in websites]
    ids = (FIRST_ISSUER, *(interface.name for interface in interfaces[1:]))
    async with AsyncExitStack() as stack:
        log = stack.enter_context((data_directory / LOG).open("wb", buffering=0))
        access_log.configure(clock=time.time, stream=log)
        chosen = _settings(registrations, hosting, port, data_directory, theme, preset)
        mail = CaughtMail(email_renderer(chosen).render)
        authority = hosting.certificate.authority if hosting.certificate else None
        developer = _developer(directory, authority)
        composed = await stack.enter_async_context(app.create(chosen, mail=mail, extension=DemoExtension(developer)))
        await _apply(composed.provider, client_rules(chosen), registrations, directory, content)
        secured = hosting.server_context()
        await stack.enter_async_context(
            served(
                composed.asgi,
                provider_sockets,
                bodiless=composed.bodiless,
                streamed=composed.streamed,
                tls=secured,
                on_draining=developer.exchanges.close,
            )
        )
        http = await stack.enter_async_context(hosting.http(BACK_CHANNEL_SECONDS))
        beside = ProviderAccess(
            mail=mail,
            invite=partial(_invite, composed.provider) if passkeys_work_at(chosen.base_url) else None,
            authority=authority.read_bytes() if authority else None,
        )
        for registration, own_sockets in websites:
            mode = Mode(developer, base_url=registration.url)
            website = DemoRP(registration, http, time.time, beside, mode)
            await stack.enter_async_context(served(website.app, own_sockets, tls=secured))
        if hosting.network is None:
            developer.readiness = Runs(partial(check_as_asked, tls=trusting(authority)))
            stack.push_async_callback(developer.readiness.close)  # before the servers, at which it withdraws its orders
        timezone = composed.provider.policy.timezone
        yield tuple(
            Demo(
                registration=each,
                hosting=hosting,
                key=developer.key,
                issuer_id=issuer_id,
                directory=directory,
                timezone=timezone,
                data_directory=data_directory,
            )
            for each, issuer_id in zip(registrations, ids, strict=True)
        )


def _developer(directory: ExampleDirectory, authority: Path | None) -> Developer:
    """Developer mode with the test people of the directory (D66)."""
    developer = Developer(key=secrets.token_urlsafe(32), authority=authority, own_clients=frozenset({CLIENT_ID}))
    developer.add(
        ListedTestPerson(user_name=each.user_name, name=each.name, entities=each.entities)
        for each in directory.test_people()
    )
    return developer


def as_preset(registration: Registration, preset: Preset) -> Registration:
    """A registration with the values that a preset gives new clients."""
    published = {"authorization_response_iss_parameter_supported": preset.settings["return_iss"]}
    interface = registration.interface
    return replace(
        registration,
        interface=replace(interface, alone={**interface.alone, **published}),
        id_token_enc=interface.id_token_enc or "A256CBC-HS512",
        # LEGACY nests only for the algorithms of its own list, which the preset does not name
        userinfo_enc=str(preset.new_client["userinfo_encryption_enc"]) if interface.pushed else None,
        stringified_blocks=bool(preset.new_client["stringified_blocks"]),
        subject=str(preset.new_client["subject"]),
    )


def _settings(
    registrations: Sequence[Registration],
    hosting: Hosting,
    port: int,
    data_directory: Path,
    theme: Path | None,
    preset: str,
) -> Settings:
    """The settings of the demo, independent of environment and files.

    For these members, the operator's own settings do not reach the demo.
    """
    first, *further = registrations
    chosen = PRESETS[preset].settings if preset else WITHOUT_PRESET
    files = hosting.certificate
    return settings.load(
        NetworkSettings if hosting.network else Settings,
        **{name: value for name, value in chosen.items() if name != "generations"},
        base_url=first.issuer,
        host=hosting.network.addresses[0] if hosting.network else PROVIDER_HOST,
        port=port,
        data_dir=data_directory / "provider",
        database_url="",
        preset=preset,
        generations=(first.interface.name,),
        issuers=tuple(
            {
                "id": each.interface.name,
                "base_url": each.issuer,
                "generations": (each.interface.name,),
                "preset": preset,
            }
            for each in further
        ),
        passkey_rp_id="",
        dpop_nonces=False,
        trusted_proxies=(),
        allowed_hosts=(),
        tls_certificate=files and files.chain,
        tls_key=files and files.key,
        key_encryption_key=None,
        key_encryption_key_file=None,
        mail_url="",
        mail_from="",
        developer_mode=True,
        password_hash="owasp",  # people of examples need no more, and the start hashes all of them
        theme=theme,
        manage_enabled=True,
        console_enabled=True,
        console_networks=(),
        operators_need_passkey=False,  # nobody has one here
    )


async def _apply(
    provider: Provider,
    rules: RegistrationRules,
    registrations: Sequence[Registration],
    directory: ExampleDirectory,
    content: bytes,
) -> None:
    client = {
        "name": "Demo RP",
        "redirect_uris": [registration.redirect_uri for registration in registrations],
        "jwks": registrations[0].keys.public(),
        "issuers": [FIRST_ISSUER, *(registration.interface.name for registration in registrations[1:])],
        "enabled": "true",
        **client_members(provider, [each.interface for each in registrations], directory.services()),
    }
    files = {
        example_directory.NAME: content,
        demo_administration.FILE: demo_administration.content(directory),
        "the demo's own client": json.dumps({"clients": {CLIENT_ID: client}}).encode(),
    }
    for name, text in files.items():
        await apply_file(provider, rules, name, text)
    await demo_administration.request_once(provider, directory)


def client_members(provider: Provider, interfaces: Sequence[Interface], services: Sequence[str]) -> dict[str, Any]:
    """The members of a client that uses all scopes of these generations."""
    today = datetime.fromtimestamp(provider.clock(), provider.policy.timezone).date()
    last_day = (today + timedelta(days=LEGACY_DAYS)).isoformat()
    return {
        "scopes": ["openid", *dict.fromkeys(scope for interface in interfaces for scope in interface.scopes)],
        "services": services,
        "generations": [interface.name for interface in interfaces],
        "legacy_until": last_day if any(interface.ends for interface in interfaces) else "none",
    }


async def apply_file(provider: Provider, rules: RegistrationRules, name: str, content: bytes) -> None:
    """Apply a directory file, which the next request sees.

    Raises the errors of `apply_document`.
    """
    await apply_document(
        provider.registry,
        provider.passwords,
        content,
        file=name,
        actor=DirectoryFile.from_content(name, content, by=at_command_line()),
        new_user_id=new_user_id,
        rules=rules,
        plain_passwords=True,
    )
    provider.registry_cache.drop()


async def _invite(provider: Provider, user_name: str) -> str:
    actor = at_command_line()
    user = await find_user(provider.registry, user_name, actor=actor)
    link = await links.make_link(
        provider.registry,
        user,
        "invitation",
        actor=actor,
        base_url=provider.policy.base_url,
        now=provider.clock(),
        new_id=provider.new_id,
    )
    return link.url


@asynccontextmanager
async def served(
    application: ASGIApp,
    sockets: list[socket.socket],
    *,
    bodiless: frozenset[str] = frozenset(),
    streamed: frozenset[str] = frozenset(),
    tls: ssl.SSLContext | None,
    drain_seconds: float = DRAIN_SECONDS,
    on_draining: Callable[[], None] = lambda: None,
) -> AsyncIterator[None]:
    """A server that answers until the context ends."""
    server = Server(
        application,
        bodiless=bodiless,
        streamed=streamed,
        tls=tls,
        drain_seconds=drain_seconds,
        on_draining=on_draining,
    )
    await server.start(sockets)
    try:
        yield
    finally:
        await server.stop()


def next_free(host: str, first: int = FIRST_PORT, *, addresses: Sequence[str] = ()) -> tuple[int, list[socket.socket]]:
    """The first free port, and the sockets that listen on it.

    From `first` on. With 0 any free port. `addresses` are listened on instead of the host.

    Raises DemoError if a hundred in a row are taken.
    """
    hosts = addresses or (host,)
    for port in range(first, first + TRIED) if first else (_any_free() for _ in range(TRIED)):
        try:
            return port, _listening(hosts, port)
        except (ListenError, OSError):
            continue
    raise DemoError(f"no free port on {' and '.join(hosts)} among {TRIED} from {first}; stop what uses them")


def _listening(hosts: Sequence[str], port: int) -> list[socket.socket]:
    """Listening sockets for a port.

    Two demos that start at once may both be bound to it. Only one gets to listen.
    """
    sockets: list[socket.socket] = []
    try:
        for host in hosts:
            sockets += bind(host, port)
        for one in sockets:
            one.listen()
    except (ListenError, OSError):
        for one in sockets:
            one.close()
        raise
    return sockets


def _any_free() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def default_directory() -> Path:
    """`corpid/demo` in the user's data directory (XDG Base Directory: XDG_DATA_HOME, else ~/.local/share)."""
    home = os.environ.get("XDG_DATA_HOME", "")
    root = Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "share"
    return root / "corpid" / "demo"


@contextmanager
def locked(path: Path, *, fresh: bool) -> Iterator[Path]:
    """The locked directory, made if missing and emptied if `fresh`.

    Raises DemoError if another demo runs in it, or if it holds something that is not a demo's.
    """
    if path.exists() and not (path / MARK).exists() and (not path.is_dir() or any(path.iterdir())):
        raise DemoError(f"{path} is not a demo's data directory: choose an empty one with --data-dir")
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark = (path / MARK).open("a")
    except OSError as error:
        raise DemoError(f"{path} cannot be written: {error.strerror}; choose another --data-dir") from None
    with mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError(f"a demo is running in {path}: stop it, or choose another --data-dir") from None
        if fresh:
            _empty(path)
        yield path


def _empty(path: Path) -> None:
    for entry in path.iterdir():
        if entry.name in {MARK, TLS}:  # an authority that browsers and trust stores hold goes on
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
