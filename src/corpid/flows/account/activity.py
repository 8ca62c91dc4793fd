"""Where a person is signed in, where they were, and in which language they are written to."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from corpid.directory.access import Object, Person, authorise
from corpid.flows.account.seats import event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.account.seats import Seat
    from corpid.flows.caller import Caller
    from corpid.flows.provider import Provider
    from corpid.ports import AuditEntry, Session

_SIGN_INS: Final = 20
_NAME_CHARACTERS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedInBrowser:
    """A browser in which a person is signed in; moments in epoch seconds."""

    name: str
    """stands for it in an address and in a form; nothing can be done with it elsewhere"""
    device: str
    since: int
    seen_at: int
    this: bool
    """whether the person sits at it now"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSignIn:
    """A sign-in that was completed; the names are as they are now, empty where they are gone."""

    at: int
    client_name: str
    entity_name: str
    amr: tuple[str, ...]
    device: str


async def signed_in(provider: Provider, caller: Caller, sitting: Seat) -> list[SignedInBrowser]:
    """The browsers in which this person is signed in: this one, then the one that was used last (D30)."""
    grouped: dict[str, list[Session]] = {}
    for session in await _sessions(provider, caller, sitting):
        grouped.setdefault(session.browser_id, []).append(session)
    found = [_browser(held, here=sitting.browser.browser_id) for held in grouped.values()]
    return sorted(found, key=lambda each: (not each.this, -each.seen_at, each.name))


def _browser(held: Sequence[Session], *, here: str) -> SignedInBrowser:
    browser_id = held[0].browser_id
    return SignedInBrowser(
        name=_name(browser_id),
        device=next((each.device for each in held if each.device), ""),
        since=min(each.auth_time for each in held),
        seen_at=max(max(each.seen_at, each.auth_time) for each in held),
        this=browser_id == here,
    )


def _name(browser_id: str) -> str:
    return sha256(browser_id.encode()).hexdigest()[:_NAME_CHARACTERS]


async def _sessions(provider: Provider, caller: Caller, sitting: Seat) -> list[Session]:
    user_id = sitting.user.user_id
    authorise(Person(user_id=user_id), "read", Object(kind="session", user_id=user_id))
    return await provider.registry.sessions.of(user_id, now=caller.now)


async def end(provider: Provider, caller: Caller, sitting: Seat, *, name: str) -> None:
    """Sign out of one other browser; one of nobody's, or of another person's, is passed over (D30)."""
    for session in await _sessions(provider, caller, sitting):
        if _name(session.browser_id) == name and session.browser_id != sitting.browser.browser_id:
            authorise(Person(user_id=sitting.user.user_id), "delete", Object(kind="session", user_id=session.user_id))
            await provider.registry.sessions.end(session.session_id, event(caller, sitting, "session.end"))


async def end_others(provider: Provider, caller: Caller, sitting: Seat) -> None:
    """Sign out of every browser but this one (D30)."""
    user_id, here = sitting.user.user_id, sitting.browser.browser_id
    authorise(Person(user_id=user_id), "delete", Object(kind="session", user_id=user_id))
    entry = event(caller, sitting, "session.end_all")
    await provider.registry.sessions.end_all(user_id, entry, but_browser=here)


async def past(provider: Provider, caller: Caller, sitting: Seat) -> list[PastSignIn]:
    """The last sign-ins of this person, the latest first (DESIGN, Security)."""
    user_id = sitting.user.user_id
    authorise(Person(user_id=user_id), "read", Object(kind="session", user_id=user_id))
    entries = await provider.registry.audit.sign_ins_of(user_id, limit=_SIGN_INS)
    return [await _past(provider, caller, user_id, entry) for entry in entries]


async def _past(provider: Provider, caller: Caller, user_id: str, entry: AuditEntry) -> PastSignIn:
    client = await provider.live.client(entry.client_id, caller.now) if entry.client_id else None
    acting = await provider.live.membership(user_id, entry.entity_id, caller.now) if entry.entity_id else None
    return PastSignIn(
        at=entry.at,
        client_name=client.name if client is not None else entry.client_id,
        entity_name=acting.entity.name if acting is not None else entry.entity_id,
        amr=tuple(entry.detail.get("amr", "").split()),
        device=entry.detail.get("device", ""),
    )


async def choose_language(provider: Provider, caller: Caller, sitting: Seat, *, language: str) -> None:
    """Keep the language, a tag, in which letters to this person are written (DESIGN, Pages)."""
    user_id = sitting.user.user_id
    authorise(Person(user_id=user_id), "write", Object(kind="user", user_id=user_id))
    await provider.registry.directory.set_language(user_id, language, event(caller, sitting, "user.language"))
