"""Enrolments and password recoveries in progress (D34).

Each is bound to one browser and one link.

Opening a link with its code binds it to no browser, since programs that check e-mail may run a page's script, too:
only the button of the page that follows begins an enrolment. What names an opened link in an address works in its
browser alone.

What an enrolment is about to write is kept in it, and written at once after the last step; until then nothing of the
person has changed. The secrets that a page shows (an app's key, recovery codes) are derived, and stored by nobody
before they are confirmed (D45).

Every request for a new password gets the same answer, and work that depends on the account is done after it.
Source: D44, D45, D47
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import encrypted_values, namespaces, notifications
from corpid.flows.account import links
from corpid.flows.account.links import EnrolmentStep, chosen_steps, next_step
from corpid.flows.authentication import factors, throttle
from corpid.flows.authentication.interactions import claim_step_of
from corpid.flows.authentication.throttle import SentForm, Throttled
from corpid.rules.audit import AuditEvent
from corpid.rules.authentication import records, totp
from corpid.rules.authentication.records import EmailChange, FactorLink, LinkPurpose, Passkey
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory import names
from corpid.rules.directory.access import ANONYMOUS, SYSTEM
from corpid.rules.directory.records import Entity, User
from corpid.rules.failures import StoreUnavailable
from corpid.rules.limits import (
    ENROLMENT_EXTENSIONS,
    ENROLMENT_SECONDS,
    RECOVERIES_PER_ACCOUNT,
    RECOVERIES_PER_ADDRESS,
    SHOWN_ONCE_SECONDS,
)
from corpid.rules.networks import site
from corpid.texts import InvalidInput, phrase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.memberships import OpenInvitation
    from corpid.stores.transient import TransientBatch

_PURPOSE: Final = "enrolment"


class NotHere(Exception):
    """No such link or enrolment: spent, expired, or void.

    It is void once the factors were changed.
    """


class InvitationExpired(NotHere):
    """The link of a standing invitation, sent too long ago."""

    def __init__(self, entity: Entity) -> None:
        super().__init__(entity.entity_id)
        self.entity = entity


class HelpLapsed(NotHere):
    """A link of an administrator who could not ask for it now (D69)."""


class NotOpened(Exception):
    """This browser has not opened such a link, or too long ago."""


class OpenElsewhere(Exception):
    """Another browser has begun with this link, or cookies are refused."""


class EnrolmentStopped(Exception):
    """Too many wrong codes ended this enrolment (D45)."""


class Enrolment(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """An enrolment's progress in one browser; moments in epoch seconds."""

    enrolment_id: str
    browser_id: str
    link_hash: str
    purpose: LinkPurpose
    user_id: str
    expires_at: float
    serial: int = 0
    done: tuple[EnrolmentStep, ...] = ()
    password_hash: str = ""
    """that of the new password"""
    app_step: int = 0
    """the step whose code an app has shown for the new secret (D45); 0: no app was set up"""
    passkey: Passkey | None = None
    """the new one"""
    passkey_first: bool = False
    """whether it replaces both factors"""
    stopped: bool = False
    finished: bool = False
    extensions: int = 0
    by_email: bool = False
    """whether codes by e-mail were chosen as the second factor"""
    mails: int = 0
    """codes sent by e-mail: their number is part of each"""
    mailed_at: int = 0
    """when the last of them was sent"""
    browser_key: str = ""
    """the browser key of its browser (D47)"""
    user_name: str = ""
    """the chosen user name of a new person, with their name and the address that the link proves"""
    name: str = ""
    email: str = ""
    name_taken: bool = False
    """whether another person took the user name before this was written"""
    codes_at: float = 0
    """when its recovery codes were first shown"""
    other_codes: int = 0
    """how often it has offered others"""

    @property
    def new_person(self) -> User:
        """The person who answers an invitation, as they will be."""
        return User(user_id=self.user_id, user_name=self.user_name, name=self.name, email=self.email)

    @property
    def steps(self) -> tuple[EnrolmentStep, ...]:
        """The steps of its whole path."""
        return chosen_steps(
            links.PURPOSES[self.purpose].steps, passkey_first=self.passkey_first, by_email=self.by_email
        )

    @property
    def step(self) -> EnrolmentStep | None:
        """The current step; None when all are done."""
        return next_step(self.steps, set(self.done))


_ENROLMENT: Final = namespaces.ENROLMENT.with_record(Enrolment)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolmentContext:
    """A person at their enrolment, in the browser that began it."""

    enrolment: Enrolment
    user: User
    """a new one as they will be once this is written"""
    link_ends_at: float
    """in epoch seconds"""
    invited: OpenInvitation | None = None
    """the invitation that it answers, if its link is an entity's"""
    typed: Mapping[str, str] = field(default_factory=dict)
    """what a page shows again after an error"""
    sent: SentForm | None = None
    """the form that is being used"""

    @property
    def extendable(self) -> bool:
        """True if the time can be extended.

        A few times, and never past the end of the link.
        """
        return self.enrolment.extensions < ENROLMENT_EXTENSIONS and self.enrolment.expires_at < self.link_ends_at


def step_name(enrolment: Enrolment) -> str:
    """The step that a form names.

    More time does not change it (D15, WCAG 2.2.1).
    """
    return str(enrolment.serial - enrolment.extensions)


def form_place(enrolment: Enrolment) -> tuple[str, ...]:
    """The place of the current step's form, if it is not accepted.

    `encrypted_values` keeps it there. A step that has moved on has another place. Source: D73
    """
    return ("enrolment", enrolment.enrolment_id, step_name(enrolment))


def derived_app_secret(context: RequestContext, purpose: str, subject: str) -> str:
    """The secret (base32) for an authenticator app.

    `purpose` and `subject` say for what and for whom; the same ones give the same offer. Without the server secret
    nobody can compute it. Source: D45
    """
    return totp.secret_from(_bytes(context.keys.mac(f"{purpose}-app", subject))[: totp.SECRET_BYTES])


def derived_codes(context: RequestContext, purpose: str, subject: str) -> tuple[str, ...]:
    """Ten recovery codes, derived as `derived_app_secret` (D45)."""
    return tuple(
        records.recovery_code(
            _bytes(context.keys.mac(f"{purpose}-code", subject, str(number)))[: records.RECOVERY_CODE_BYTES]
        )
        for number in range(records.RECOVERY_CODES)
    )


def match_new_app(context: RequestContext, secret: str, code: str) -> int:
    """The step of a new app's first code. Raises InvalidInput. Source: D45"""
    try:
        return totp.matching_step(secret, code, context.now)
    except totp.WrongCode:
        raise InvalidInput(
            phrase("This code is not right. Check that the app shows this account, then enter its latest code.")
        ) from None


def _bytes(mac: str) -> bytes:
    return urlsafe_b64decode(mac + "=")


def app_secret(context: RequestContext, enrolment: Enrolment) -> str:
    """The secret (base32) that this enrolment offers to an app (D45)."""
    return derived_app_secret(context, _PURPOSE, enrolment.enrolment_id)


def codes(context: RequestContext, enrolment: Enrolment) -> tuple[str, ...]:
    """The recovery codes that this enrolment offers (D45)."""
    subject = f"{enrolment.enrolment_id} {enrolment.other_codes}" if enrolment.other_codes else enrolment.enrolment_id
    return derived_codes(context, _PURPOSE, subject)


def codes_are_readable(context: RequestContext, enrolment: Enrolment) -> bool:
    """Return whether the page may show the codes: for a minute. Source: D73"""
    return context.now < enrolment.codes_at + SHOWN_ONCE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedLink:
    """A valid link and its owner."""

    link: FactorLink
    user: User
    invited: OpenInvitation | None = None
    """the invitation that it answers, if it is an entity's"""
    email_change: EmailChange | None = None
    """the change that it undoes, if it is of that purpose"""


async def find_valid_link(context: RequestContext, link_hash: str) -> links.ValidLink | None:
    """The valid link with this hash; None if there is none.

    One that an administrator asked for is removed if they could not ask for it now. Raises HelpLapsed,
    StoreUnavailable. Source: D69
    """
    registry = context.provider.registry
    found = await links.find_valid_link(registry, link_hash, now=context.now)
    if found is not None and (reason := await links.find_lapse(registry, found.link, now=context.now)):
        made, detail = links.PURPOSES[found.link.purpose].made, {"requested_by": f"user:{found.link.asked_by}"}
        event = AuditEvent(
            actor=SYSTEM, action=made, object=found.link.user_id, outcome="refused", detail=detail | {"reason": reason}
        )
        await registry.factors.drop_link(found.link, event)
        raise HelpLapsed
    return found


async def read_link(context: RequestContext, link_hash: str) -> OpenedLink:
    """A link and its owner.

    Spends nothing. Raises NotHere, InvitationExpired, HelpLapsed. Source: D50, SECURITY.md
    """
    registry = context.provider.registry
    found = await find_valid_link(context, link_hash)
    if found is None:
        # The entity of an expired invitation can send it again.
        link = await registry.factors.link(link_hash)
        if link is not None and links.PURPOSES[link.purpose].joins and context.now >= link.expires_at:
            invited = await registry.invitations.find(link.user_id)
            if invited is not None:
                raise InvitationExpired(invited.entity)
        raise NotHere
    if found.invited is not None:
        return OpenedLink(link=found.link, user=found.invited.user, invited=found.invited)
    user = await registry.directory.user(found.link.user_id)
    if user is None or not user.enabled or not links.is_sent_to(found.link, user):
        raise NotHere
    return OpenedLink(link=found.link, user=user, email_change=found.email_change)


async def open_link(context: RequestContext, browser: Browser, code: str, *, digest: bytes) -> str:
    """Open a link in a browser.

    The id by which this browser sees it, the same each time. `digest` is the SHA-256 of the form: a wrong code in the
    same bytes is counted once.

    Raises ValueError for what cannot be a code, Throttled, NotHere and
    StoreUnavailable. Source: D34, D47, D73
    """
    link_hash = records.hash_code(code)
    attempt = await throttle.attempt_link_code(context)
    try:
        await read_link(context, link_hash)
    except NotHere:
        if digest:
            place = ("link code", browser.browser_id)
            await throttle.rejection_counts(context, SentForm(place=place, digest=digest, attempt=attempt))
        raise
    opened_id = derive_opened_id(context, browser.browser_id, link_hash)
    async with context.provider.transient.batch(context.now) as batch:
        await throttle.link_code_accepted(context, batch, attempt)
        await _opened_entry(context, opened_id).put(batch, f"{browser.browser_id} {link_hash}")
    return opened_id


async def find_opened_link(context: RequestContext, browser: Browser | None, opened_id: str) -> OpenedLink:
    """The opened link with this identifier, and its owner.

    Spends nothing. Raises NotOpened, NotHere. Source: D34, D50
    """
    found = await _opened_entry(context, opened_id).read(context.provider.transient, now=context.now)
    browser_id, _, link_hash = (found or "").partition(" ")
    if browser is None or browser.browser_id != browser_id:
        raise NotOpened
    return await read_link(context, link_hash)


def derive_opened_id(context: RequestContext, browser_id: str, link_hash: str) -> str:
    """The identifier by which a browser sees a link. Source: D34"""
    return context.keys.mac("opened-link", browser_id, link_hash)


def _opened_entry(context: RequestContext, opened_id: str) -> Entry[str]:
    return namespaces.OPENED_LINK.entry(context.provider.policy.base_url, opened_id)


async def begin(context: RequestContext, link: FactorLink, browser: Browser, *, user_id: str = "") -> Enrolment:
    """Begin an enrolment with a link, in the first browser.

    In that browser a second time continues it. `user_id` is that of a new person, if the link's owner is a placeholder.
    Raises OpenElsewhere, NotHere. Source: D34
    """
    enrolment = Enrolment(
        enrolment_id=context.provider.new_id(),
        browser_id=browser.browser_id,
        browser_key=browser.browser_key,
        link_hash=link.link_hash,
        purpose=link.purpose,
        user_id=user_id or link.user_id,
        expires_at=min(context.now + ENROLMENT_SECONDS, float(link.expires_at)),
    )
    claim, mine = _claim(context, enrolment)
    async with context.provider.transient.batch(context.now) as batch:
        if await claim.add(batch, mine):
            await _open(context, batch, enrolment)
            return enrolment
        whose, _, enrolment_id = (await claim.get(batch) or "").partition(" ")
        if whose != browser.browser_id:
            raise OpenElsewhere
        # Whatever process claimed it may have ended before it wrote more: on Valkey, one verb may be written without
        # the next.
        await _open(context, batch, msgspec.structs.replace(enrolment, enrolment_id=enrolment_id))
    return (await load_own_enrolment(context, enrolment_id, browser.browser_id)).enrolment


async def _open(context: RequestContext, batch: TransientBatch, enrolment: Enrolment) -> None:
    """Write a new enrolment, unless it exists."""
    if await _entry(context, enrolment.enrolment_id).add(batch, enrolment):
        await _note(context, batch, enrolment)


def _claim(context: RequestContext, enrolment: Enrolment) -> tuple[Entry[str], str]:
    """The entry and value of a browser's claim of a link."""
    claim = namespaces.LINK_CLAIM.entry(context.provider.policy.base_url, enrolment.link_hash)
    return claim, f"{enrolment.browser_id} {enrolment.enrolment_id}"


def _under_way(context: RequestContext, user_id: str, purpose: LinkPurpose) -> Entry[str]:
    return namespaces.UNDER_WAY.entry(context.provider.policy.base_url, user_id, purpose)


async def _note(context: RequestContext, batch: TransientBatch, enrolment: Enrolment) -> None:
    await _under_way(context, enrolment.user_id, enrolment.purpose).put(batch, enrolment.enrolment_id)


async def under_way(context: RequestContext, user: User, purpose: LinkPurpose) -> str:
    """The link hash of this person's current enrolment.

    Empty for none. Source: D34
    """
    enrolment_id = await _under_way(context, user.user_id, purpose).read(context.provider.transient, now=context.now)
    enrolment = await _stored(context, enrolment_id or "")
    if enrolment is None or enrolment.stopped or enrolment.finished or context.now >= enrolment.expires_at:
        return ""
    return enrolment.link_hash


async def _stored(context: RequestContext, enrolment_id: str) -> Enrolment | None:
    return await _entry(context, enrolment_id).read(context.provider.transient, now=context.now)


async def load_own_enrolment(context: RequestContext, enrolment_id: str, browser_id: str) -> EnrolmentContext:
    """This browser's own enrolment, also after its end.

    Raises OpenElsewhere, EnrolmentStopped, and NotHere, also if its link was spent or is void. Source: D34, D50
    """
    enrolment = await _stored(context, enrolment_id)
    if enrolment is None or context.now >= enrolment.expires_at:
        raise NotHere
    if enrolment.browser_id != browser_id:
        raise OpenElsewhere
    if enrolment.stopped:
        raise EnrolmentStopped
    registry, joins = context.provider.registry, links.PURPOSES[enrolment.purpose].joins and not enrolment.finished
    user = None if joins else await registry.directory.user(enrolment.user_id)
    if not joins and (user is None or not user.enabled):
        raise NotHere
    found = await find_valid_link(context, enrolment.link_hash)
    if not enrolment.finished and found is None:
        raise NotHere
    if found is not None and found.invited is not None:
        user = enrolment.new_person
    elif found is not None and user is not None and not links.is_sent_to(found.link, user):
        raise NotHere
    if user is None:
        raise NotHere
    return EnrolmentContext(
        enrolment=enrolment,
        user=user,
        link_ends_at=found.link.expires_at if found else enrolment.expires_at,
        invited=found.invited if found else None,
    )


async def save(context: RequestContext, batch: TransientBatch, enrolment: Enrolment) -> None:
    """Write an enrolment (D34)."""
    await _entry(context, enrolment.enrolment_id).put(batch, enrolment)


async def stop(context: RequestContext, batch: TransientBatch, enrolment: Enrolment) -> None:
    """End an enrolment before its time.

    Its link stays claimed by it (D45).
    """
    await save(context, batch, msgspec.structs.replace(enrolment, serial=enrolment.serial + 1, stopped=True))


async def move(context: RequestContext, enrolment: Enrolment, step: EnrolmentStep, **changes: object) -> Enrolment:
    """Claim a step, do it, and store its result.

    Raises StaleStep, also for a step that is not current. Source: D15
    """
    return await claim_step(context, enrolment, step, done=(*enrolment.done, step), **changes)


async def claim_step(
    context: RequestContext, enrolment: Enrolment, step: EnrolmentStep, **changes: object
) -> Enrolment:
    """Claim a step and store the changes made at it.

    The step itself is still to be done. Raises StaleStep as `move` (D15).
    """
    if enrolment.step is not step:
        raise StaleStep
    moved = msgspec.structs.replace(enrolment, serial=enrolment.serial + 1, **changes)
    if moved.step is EnrolmentStep.RECOVERY_CODES:
        moved = msgspec.structs.replace(moved, codes_at=context.now)
    async with context.provider.transient.batch(context.now) as batch:
        await claim_step_of(context, batch, _ENROLMENT, enrolment.enrolment_id, enrolment)
        await save(context, batch, moved)
    return moved


async def extend(context: RequestContext, loaded: EnrolmentContext) -> Enrolment:
    """Extend the enrolment by an hour.

    As often as `rules.limits` allows, and not past the end of the link. Raises InvalidInput and StaleStep. Source: D15,
    WCAG 2.2.1
    """
    enrolment = loaded.enrolment
    if not loaded.extendable:
        raise InvalidInput(phrase("You cannot get more time on this page."))
    extended = msgspec.structs.replace(
        enrolment,
        serial=enrolment.serial + 1,
        extensions=enrolment.extensions + 1,
        expires_at=min(context.now + ENROLMENT_SECONDS, loaded.link_ends_at),
    )
    claim, mine = _claim(context, enrolment)
    async with context.provider.transient.batch(context.now) as batch:
        await claim_step_of(context, batch, _ENROLMENT, enrolment.enrolment_id, enrolment)
        await save(context, batch, extended)
        await claim.put(batch, mine)
        await _note(context, batch, extended)
    return extended


def _entry(context: RequestContext, enrolment_id: str) -> Entry[Enrolment]:
    return _ENROLMENT.entry(context.provider.policy.base_url, enrolment_id)


async def ask(context: RequestContext) -> None:
    """Count a request of this address. Raises Throttled (D47)."""
    kind = namespaces.RECOVERIES
    window = str(int(context.now // kind.seconds))
    requests = kind.entry(context.provider.policy.base_url, site(context.address), window)
    if await context.count(requests) > RECOVERIES_PER_ADDRESS:
        raise Throttled(ceil(kind.seconds - context.now % kind.seconds))


async def answer(context: RequestContext, user_name: str, *, browser_key: str, digest: bytes = b"") -> None:
    """Send the recovery e-mail, after the request was answered.

    Nothing is sent without an account and an address. An account gets a few while a link works; more are dropped. A
    browser known for the account has a share of its own, so that strangers cannot lock its owner out. An enrolment
    begun with an earlier link continues, since somebody else may have asked. `digest` is the SHA-256 of the form: for
    the same bytes one e-mail is sent. If a store is away, nothing is sent, and nothing stays counted. Source: D44, D45,
    D47, D73
    """
    try:
        user = await _named(context, user_name)
        if user is None or not user.email or not await _admitted(context, user, browser_key, digest):
            return
        if not user.enabled or not (await factors.held_factors(context.provider.registry, user.user_id)).second_factor:
            notifications.no_link(context, user)
            return
        link = await links.make_link(
            context.provider.registry,
            user,
            "password",
            actor=ANONYMOUS,
            base_url=context.provider.policy.base_url,
            now=context.now,
            new_id=context.provider.new_id,
            request_id=context.request_id,
            address=context.address,
            spared=await under_way(context, user, "password"),
        )
        purpose = links.PURPOSES["password"]
        notifications.link(
            context.provider.mail,
            user,
            link,
            heading=purpose.heading,
            lead=purpose.lead,
            provider_name=context.provider.policy.name,
        )
    except StoreUnavailable:
        await context.counts.take_back(context.provider.transient, now=context.now)


async def _named(context: RequestContext, user_name: str) -> User | None:
    try:
        name = names.user_name(user_name)
    except ValueError:
        return None
    return await context.provider.registry.directory.user_by_name(name)


async def _admitted(context: RequestContext, user: User, browser_key: str, digest: bytes) -> bool:
    if digest and not await encrypted_values.is_first_rejection(context, ("forgotten password", user.user_id), digest):
        return False
    known = await throttle.is_known(context, names.user_name(user.user_name), browser_key, user_id=user.user_id)
    emails = namespaces.RECOVERY_EMAILS.entry(
        context.provider.policy.base_url, user.user_id, browser_key if known else ""
    )
    return await context.count(emails) <= RECOVERIES_PER_ACCOUNT
