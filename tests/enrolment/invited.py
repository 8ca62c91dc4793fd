"""An entity that has invited somebody, the e-mail, and what the invited person does with it (D60)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from corpid.flows.directory.queued_emails import InvitationEmails
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.directory.records import Change, Membership, Precondition
from tests.enrolment import newcomer
from tests.postbox import Postbox
from tests.sign_in.world import World, entity

if TYPE_CHECKING:
    from corpid.rules.directory.memberships import OpenInvitation
    from corpid_dev.relying_party.browser import Browser

HARBOUR: Final = "200000077H"
NAME: Final = "Harbour Logistics"
WAITING: Final = "00000000-0000-4000-8000-000000000001"
MAILBOX: Final = "wei.ling@harbour.example"
INVITES: Final = f"{NAME} invites you"
PROFILE: Final = "Your name and user name"
FIRST: Final = "Choose how you sign in"
ACCEPTED: Final = f"You can now act for {NAME}"
DECLINED: Final = "You have declined"
SIGN_IN: Final = "Sign in"
ASKS: Final = f"Act for {NAME}?"


async def invite(made: World, waiting: str = WAITING, **members: Any) -> Membership:
    """An invitation of Harbour Logistics, as it is stored; its e-mail is due."""
    given = {"email": MAILBOX, "name": "Tan Wei Ling", "user_name": "wei.ling", **members}
    invited = Membership(user_id=waiting, entity_id=HARBOUR, invited=True, created_at=int(made.clock()), **given)
    await made.write(entity(HARBOUR, NAME))
    event = AuditEvent(actor="token:t1", action=AuditAction.MEMBERSHIP_ADD, entity_id=HARBOUR)
    guard = Precondition(Membership, invited.key, None)
    await made.provider.registry.directory.write([guard, Change(None, invited, event)])
    return (await of(made, waiting)).membership


async def of(made: World, waiting: str = WAITING) -> OpenInvitation:
    """The invitation as it stands."""
    found: OpenInvitation | None = await made.provider.registry.invitations.find(waiting)
    assert found is not None
    return found


@dataclass(kw_only=True)
class Sender:
    """A process that sends e-mails, and what it tells."""

    made: World
    postbox: Postbox = field(default_factory=Postbox)
    told: list[tuple[str, str]] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # The world has no mail: nothing else sends what is due.
        provider = replace(self.made.provider, mail=self.postbox)
        self.emails = InvitationEmails(provider, self._tell, self.counted.append)
        self.round = self.emails.round

    def _tell(self, event: str, detail: str) -> None:
        self.told.append((event, detail))


async def link(made: World) -> str:
    """The link of an invitation, from its e-mail."""
    sender = Sender(made=made)
    assert await sender.round() == 1
    return newcomer.link_in(sender.postbox)


async def opened(made: World, url: str = "", browser: Browser | None = None) -> Browser:
    """A browser that has opened the link of an invitation, and pressed nothing."""
    browser = browser or await made.browser()
    await newcomer.followed(browser, url or await link(made))
    return browser


async def decide(browser: Browser, decision: str) -> str:
    """Press a button; the heading that is shown then."""
    await browser.fill_and_submit("decision", button=decision)
    return browser.page.heading


async def membership(made: World, user_id: str = "id-alice") -> Membership | None:
    key = (user_id, HARBOUR)
    found: Membership | None = (await made.provider.registry.directory.read(Membership, [key])).get(key)
    return found


async def newcomers_id(made: World, user_name: str = "wei.ling") -> str:
    """The identifier of somebody who has just become a person; it is no placeholder's."""
    found = await made.provider.registry.directory.user_by_name(user_name)
    assert found is not None
    assert found.user_id != WAITING
    assert await made.provider.registry.directory.user(WAITING) is None
    return str(found.user_id)


async def stands(made: World) -> bool:
    """Whether the invitation is as if nobody had answered."""
    return await made.provider.registry.invitations.find(WAITING) is not None and await membership(made) is None


async def revoke(made: World) -> None:
    event = AuditEvent(actor="token:t1", action=AuditAction.MEMBERSHIP_REMOVE, entity_id=HARBOUR)
    await made.provider.registry.directory.write([Change((await of(made)).membership, None, event)])


async def asked(made: World, url: str = "", *, who: str = "alice") -> Browser:
    """A person who has opened the link, signed in, and is asked."""
    browser = await opened(made, url)
    made.clock.pass_(60)
    assert await decide(browser, "sign_in") == SIGN_IN
    await made.factors(browser, made.people[who])
    assert browser.page.heading == ASKS
    return browser


async def at_profile(made: World, url: str = "") -> Browser:
    browser = await opened(made, url)
    assert await decide(browser, "new") == PROFILE
    return browser


async def named(browser: Browser, user_name: str = "wei.ling", name: str = "Wei Ling Tan") -> str:
    await browser.fill_and_submit(name=name, user_name=user_name)
    return browser.page.heading


async def chosen(made: World, user_name: str, *, email: str, name: str = "Mallory") -> str:
    """The page that somebody invited at an address gets, who chooses a user name."""
    await invite(made, email=email, name=name)
    return await named(await at_profile(made), user_name=user_name, name=name)


async def enrolled(made: World, browser: Browser, **names: str) -> str:
    """Go through every step of a new person; the heading at the end."""
    assert await named(browser, **names) == FIRST
    await newcomer.password(browser)
    await newcomer.app(made, browser)
    return await newcomer.kept(browser)
