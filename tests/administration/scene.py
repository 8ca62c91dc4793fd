"""An entity with an owner, an administrator and a member, and a process that makes and sends notices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from corpid.flows.directory.actors import load_administrator
from corpid.flows.directory.notices import NoticeMaker
from corpid.flows.directory.queued_emails import NoticeEmails
from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.rules.directory.notices import COLLECTED_SECONDS
from corpid.rules.directory.records import Administrator, AdministratorLevel, Assignment, Change, ChangeRequest
from tests.postbox import Postbox, Sent
from tests.sign_in.world import World, entity

if TYPE_CHECKING:
    from corpid.rules.directory.access import Actor, EntityAdministrator

HARBOUR: Final = "200000077H"
NAME: Final = "Harbour Logistics"
LEVELS: Final[dict[str, AdministratorLevel]] = {"olivia": "owner", "adam": "administrator"}


def role(who: str, name: str = "Maker", **members: Any) -> Assignment:
    return Assignment(user_id=f"id-{who}", entity_id=HARBOUR, service_id="PERMITS", role=name, **members)


def given(record: Assignment | Administrator) -> Change:
    return Change(None, record)


def taken(record: Assignment | Administrator) -> Change:
    return Change(record, None)


async def peopled(made: World, **entity_members: Any) -> None:
    """Harbour Logistics with Olivia (owner), Adam (administrator) and Mira."""
    harbour = entity(HARBOUR, NAME, **entity_members)
    for who in ("olivia", "adam", "mira"):
        await made.person(who, harbour, name=who.capitalize(), email=f"{who}@harbour.example")
    await made.write(
        *(Administrator(user_id=f"id-{who}", entity_id=HARBOUR, level=level) for who, level in LEVELS.items())
    )


async def acting(made: World, who: str = "olivia") -> EntityAdministrator:
    """A person who administers Harbour Logistics, signed in just now."""
    now = made.clock()
    return await load_administrator(made.provider.registry, f"id-{who}", HARBOUR, auth_time=now, now=now)


async def change(made: World, *changes: Change, actor: Actor | None = None) -> None:
    await write_changes(made.provider.registry, actor or await acting(made), changes, planned=True)


async def ask(made: World, *changes: Change, by: str = "olivia", unique: str = "1") -> ChangeRequest:
    """A change request of somebody."""
    found = await write_changes(
        made.provider.registry,
        await acting(made, by),
        changes,
        planned=True,
        asking=RequestDetails("New colleague", made.clock(), unique),
    )
    assert found is not None
    return found


@dataclass(kw_only=True)
class Process:
    """A process that makes and sends notices."""

    made: World
    postbox: Postbox = field(default_factory=Postbox)
    logged: list[tuple[str, str]] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # The world has no mail: nothing else sends what is due.
        provider = replace(self.made.provider, mail=self.postbox)
        self.notices = NoticeMaker(provider)
        self.emails = NoticeEmails(
            provider, lambda event, detail: self.logged.append((event, detail)), self.counted.append
        )

    async def sent(self, *, later: float = COLLECTED_SECONDS) -> list[Sent]:
        """What it makes of everything until now, and sends when it has collected."""
        await self.notices.round()
        self.made.clock.pass_(later)
        self.postbox.emails.clear()
        await self.emails.round()
        return sorted(self.postbox.emails, key=lambda each: (each.to, str(each.subject)))


async def begun(made: World, **entity_members: Any) -> Process:
    """A process that has seen everything until now."""
    await peopled(made, **entity_members)
    process = Process(made=made)
    await process.notices.round()
    return process
