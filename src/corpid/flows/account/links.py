"""Links for setting factors, by purpose, each with its steps.

The code of a link is in the fragment of its address, which no request contains, and is stored as its hash. Looking at
a link spends nothing, since mail programs look too; it is spent when what it leads to is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal

from corpid.flows import notifications
from corpid.jose.encoding import base64url, tuple_bytes
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.authentication import records
from corpid.rules.authentication.records import Credentials, EmailChange, FactorLink, LinkPurpose, NewLink
from corpid.rules.authentication.sign_in import fingerprint
from corpid.rules.directory.access import Actor, EntityAdministrator, Forbidden, Object, ObjectKind, authorise
from corpid.rules.directory.names import fold_ascii
from corpid.rules.directory.records import Administrator, Membership, Operator, User
from corpid.rules.limits import (
    DAY,
    EMAIL_UNDO_SECONDS,
    HOUR,
    MEMBERSHIP_LINK_SECONDS,
    MINUTE,
    PASSWORD_LINK_SECONDS,
    SECOND_FACTOR_LINK_SECONDS,
    SET_UP_LINK_SECONDS,
)
from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

    from corpid.flows.notifications import Notice
    from corpid.rules.directory.memberships import OpenInvitation
    from corpid.stores.sql.registry import Registry


class EnrolmentStep(Enum):
    PROFILE = "profile"
    """choose a user name, and say one's name"""
    PROVE_SECOND_FACTOR = "prove_second_factor"
    """show the second factor that one has: an app's code, a recovery code, or a passkey"""
    PROVE_PASSWORD = "prove_password"
    FIRST = "first"
    """choose a password, or make a passkey, which counts as both factors"""
    PASSWORD = "password"
    SECOND_FACTOR = "second_factor"
    """set up an app, make a passkey, or have codes sent by e-mail"""
    MAILED_CODE = "mailed_code"
    """type a code that was sent by e-mail, for people who chose these in place of an app"""
    RECOVERY_CODES = "recovery_codes"
    """keep ten codes"""


_BESIDE_A_PASSWORD: Final = frozenset({EnrolmentStep.SECOND_FACTOR, EnrolmentStep.RECOVERY_CODES})
_BY_EMAIL: Final[Mapping[EnrolmentStep, EnrolmentStep]] = {EnrolmentStep.SECOND_FACTOR: EnrolmentStep.MAILED_CODE}
"""what takes the place of which step"""


def chosen_steps(
    steps: tuple[EnrolmentStep, ...], *, passkey_first: bool = False, by_email: bool = False
) -> tuple[EnrolmentStep, ...]:
    """The remaining steps of a link, with the person's choice applied.

    A passkey chosen first needs nothing else: a recovery code only goes with a password. `by_email`: codes by e-mail as
    the second factor. Source: D45, D46
    """
    if passkey_first:
        return tuple(step for step in steps if step not in _BESIDE_A_PASSWORD)
    return tuple(_BY_EMAIL.get(step, step) for step in steps) if by_email else steps


def next_step(steps: tuple[EnrolmentStep, ...], done: AbstractSet[EnrolmentStep]) -> EnrolmentStep | None:
    """The first step that is not done.

    None at the end.
    """
    return next((step for step in steps if step not in done), None)


PATH: Final = "/enrol"
"""under base_url, the same of every link"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """A link's purpose: lifetime in seconds, steps, and texts for people."""

    seconds: int
    object_kind: ObjectKind
    """as what making one is authorised"""
    steps: tuple[EnrolmentStep, ...]
    asks_for: Literal["", "password", "second factor"]
    """what has to be shown first"""
    begins: bool = False
    """whether the person has nothing to sign in with before"""
    joins: bool = False
    """whether it answers an entity's invitation; its owner is a placeholder until then"""
    drops_app: bool = False
    """whether an earlier app ends, since the lost phone has it"""
    heading: Phrase
    """of the page that it opens, and the subject of its e-mail"""
    lead: Phrase
    """comes before the button in its e-mail"""
    introduction: Callable[[str, str], Phrase]
    """on the page that it opens, by the names of the person and of the provider"""
    done: Phrase
    """the heading at the end"""
    notice: Notice | None
    """the e-mail to the person afterwards; None: it depends on what was set up"""
    made: AuditAction
    """the audit's action of making one"""
    used: AuditAction
    """the audit's action of the factors that were set by one"""


PURPOSES: Final[Mapping[LinkPurpose, Purpose]] = {
    "invitation": Purpose(
        seconds=SET_UP_LINK_SECONDS,
        object_kind="link",
        steps=(EnrolmentStep.FIRST, EnrolmentStep.SECOND_FACTOR, EnrolmentStep.RECOVERY_CODES),
        asks_for="",
        begins=True,
        heading=phrase("Set up your sign-in"),
        lead=phrase(
            "Set up your sign-in with this link. It works once, within {hours} hours.",
            hours=SET_UP_LINK_SECONDS // HOUR,
        ),
        introduction=lambda user, name: phrase("{user}, set up how you sign in with {name}.", user=user, name=name),
        done=phrase("Your sign-in is set up"),
        notice=notifications.SET_UP,
        made=AuditAction.LINK_INVITATION,
        used=AuditAction.FACTORS_INVITATION,
    ),
    "membership": Purpose(
        seconds=MEMBERSHIP_LINK_SECONDS,
        object_kind="link",
        steps=(EnrolmentStep.PROFILE, EnrolmentStep.FIRST, EnrolmentStep.SECOND_FACTOR, EnrolmentStep.RECOVERY_CODES),
        asks_for="",
        begins=True,
        joins=True,
        heading=phrase("Set up your sign-in"),
        lead=phrase(
            "Use this link within {days} days to accept or decline. It works once.",
            days=MEMBERSHIP_LINK_SECONDS // DAY,
        ),
        introduction=lambda _user, _name: phrase("You can accept or decline."),
        done=phrase("Your sign-in is set up"),
        notice=notifications.SET_UP,
        made=AuditAction.LINK_MEMBERSHIP,
        used=AuditAction.FACTORS_MEMBERSHIP,
    ),
    "password": Purpose(
        seconds=PASSWORD_LINK_SECONDS,
        object_kind="password link",
        steps=(EnrolmentStep.PROVE_SECOND_FACTOR, EnrolmentStep.PASSWORD),
        asks_for="second factor",
        heading=phrase("Choose a new password"),
        lead=phrase(
            "Choose a new password with this link. It works once, within {minutes} minutes, and asks for a code or "
            "your passkey first.",
            minutes=PASSWORD_LINK_SECONDS // MINUTE,
        ),
        introduction=lambda user, name: phrase("{user}, choose a new password for {name}.", user=user, name=name),
        done=phrase("Your password has been changed"),
        notice=notifications.PASSWORD_CHANGED,
        made=AuditAction.LINK_PASSWORD,
        used=AuditAction.FACTORS_PASSWORD,
    ),
    "second_factor": Purpose(
        seconds=SECOND_FACTOR_LINK_SECONDS,
        object_kind="second factor link",
        steps=(EnrolmentStep.PROVE_PASSWORD, EnrolmentStep.SECOND_FACTOR, EnrolmentStep.RECOVERY_CODES),
        asks_for="password",
        drops_app=True,
        heading=phrase("Set up a new second step"),
        lead=phrase(
            "Set up a new second step with this link, such as an authenticator app. It works once, within {hours} "
            "hours, and asks for your password first.",
            hours=SECOND_FACTOR_LINK_SECONDS // HOUR,
        ),
        introduction=lambda user, name: phrase("{user}, set up a new second step for {name}.", user=user, name=name),
        done=phrase("Your second step has been changed"),
        notice=None,
        made=AuditAction.LINK_SECOND_FACTOR,
        used=AuditAction.FACTORS_SECOND_FACTOR,
    ),
    "email": Purpose(
        seconds=EMAIL_UNDO_SECONDS,
        object_kind="user",
        steps=(),
        asks_for="",
        heading=phrase("Stop the change of your e-mail address?"),
        lead=phrase(
            "If this was not you, stop the change with this link. It works once, within {hours} hours.",
            hours=EMAIL_UNDO_SECONDS // HOUR,
        ),
        introduction=lambda user, name: phrase(
            "{user}, the e-mail address of your {name} account is about to change.", user=user, name=name
        ),
        done=phrase("Your e-mail address stays the same"),
        notice=notifications.EMAIL_STAYS,
        made=AuditAction.USER_PROVE_EMAIL,
        used=AuditAction.USER_UNDO_EMAIL,
    ),
}


async def make_link(
    registry: Registry,
    user: User,
    purpose: LinkPurpose,
    *,
    actor: Actor,
    base_url: str,
    now: float,
    new_id: Callable[[], str],
    request_id: str = "",
    address: str = "",
    spared: str = "",
) -> NewLink:
    """A new link for a person, as an actor may make it.

    `spared` as in `write_link`. Raises access.Forbidden and StoreUnavailable.
    """
    authorise(actor, "write", Object(kind=PURPOSES[purpose].object_kind, user_id=user.user_id))
    event = AuditEvent(
        actor=actor.name,
        action=PURPOSES[purpose].made,
        object=user.user_id,
        request_id=request_id or actor.request_id,
        detail=actor.detail | ({"address": address} if address else {}),
    )
    return await write_link(
        registry, user, purpose, event=event, base_url=base_url, now=now, new_id=new_id, spared=spared
    )


async def write_link(
    registry: Registry,
    user: User,
    purpose: LinkPurpose,
    *,
    event: AuditEvent,
    base_url: str,
    now: float,
    new_id: Callable[[], str],
    spared: str = "",
    helper: EntityAdministrator | None = None,
) -> NewLink:
    """A new link for a person, which the caller has authorised.

    It ends those of its purpose, except `spared` (a hash). `helper` is the administrator who asks for it. Raises
    StoreUnavailable.
    """
    code = records.code_from(new_id())
    link = FactorLink(
        link_hash=records.hash_code(code),
        purpose=purpose,
        user_id=user.user_id,
        created_at=int(now),
        expires_at=int(now) + PURPOSES[purpose].seconds,
        factors=_fingerprint(await registry.factors.credentials(user.user_id)),
        entity_id=helper.entity_id if helper else "",
        asked_by=helper.user_id if helper else "",
        sent_to=_address_fingerprint(user.email) if user.email else "",
    )
    await registry.factors.keep_link(link, event, spared=spared)
    return NewLink(page=base_url + PATH, code=code, expires_at=link.expires_at)


def make_invitation_link(invited: OpenInvitation, code: str, *, now: float) -> FactorLink:
    """The new link of an entity's invitation.

    `code` as `link_codes.code_from` makes it. A change of the address makes the link void. Source: D60
    """
    return FactorLink(
        link_hash=records.hash_code(code),
        purpose="membership",
        user_id=invited.user.user_id,
        created_at=int(now),
        expires_at=int(now) + MEMBERSHIP_LINK_SECONDS,
        factors=_address_fingerprint(fold_ascii(invited.membership.email)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidLink:
    """A link that works, and what it was compared with."""

    link: FactorLink
    credentials: Credentials
    """its owner's; a placeholder has none"""
    invited: OpenInvitation | None = None
    """the invitation that it answers, if it is an entity's"""
    email_change: EmailChange | None = None
    """the change that it undoes, if it is of that purpose"""


async def find_valid_link(registry: Registry, link_hash: str, *, now: float) -> ValidLink | None:
    """The valid link with this hash; None if there is none."""
    link = await registry.factors.link(link_hash)
    if link is None:
        return await _undoing(registry, link_hash, now=now)
    if PURPOSES[link.purpose].joins:
        invited, nothing = await registry.invitations.find(link.user_id), Credentials(user_id=link.user_id)
        works = invited is not None and is_usable_invitation(link, invited, now=now)
        return ValidLink(link=link, credentials=nothing, invited=invited) if works else None
    credentials = await registry.factors.credentials(link.user_id)
    return ValidLink(link=link, credentials=credentials) if is_usable(link, credentials, now=now) else None


async def _undoing(registry: Registry, link_hash: str, *, now: float) -> ValidLink | None:
    change = await registry.email_changes.by_link(link_hash)
    if change is None or now >= change.effective_at:
        return None
    link = FactorLink(
        link_hash=link_hash,
        purpose="email",
        user_id=change.user_id,
        created_at=change.proved_at,
        expires_at=change.effective_at,
        factors="",
    )
    return ValidLink(link=link, credentials=Credentials(user_id=link.user_id), email_change=change)


def help_object(kind: ObjectKind, of: Membership, held: Administrator | None, *, operates: bool = False) -> Object:
    """The object of an administrator's help for a member.

    `held` is the member's level, `operates` whether they are an operator of the deployment. Source: D69
    """
    return Object(
        kind=kind,
        entity_id=of.entity_id,
        user_id=of.user_id,
        level=held.level if held is not None else "",
        belongs=not of.invited,
        operates=operates,
    )


async def find_lapse(registry: Registry, link: FactorLink, *, now: float) -> str:
    """Return why the help of a link would be refused now.

    Empty if it would not, and for links that no administrator asked for. Raises StoreUnavailable. Source: D69
    """
    if not link.entity_id:
        return ""
    user_id, directory = link.user_id, registry.directory
    user, of = await directory.user(user_id), await directory.find(Membership, user_id, link.entity_id)
    if user is None or of is None:
        return "the person no longer belongs to the entity"
    if of.created_at > link.created_at:
        return "the person left the entity, and joined it again"
    if not is_sent_to(link, user):
        return "the account has another e-mail address"
    held, operates = await directory.find(Administrator, *of.key), await directory.find(Operator, user_id)
    thing = help_object(PURPOSES[link.purpose].object_kind, of, held, operates=operates is not None)
    acting = await directory.acting(link.asked_by, link.entity_id)
    if acting is None or acting.administrator is None or not acting.allowed:
        return "the administrator who asked for it no longer administers the entity"
    level, services = acting.administrator.level, acting.administrator.services
    helper = EntityAdministrator(
        user_id=link.asked_by, entity_id=link.entity_id, level=level, services=services, alone=False,
        auth_time=now, now=now,
    )  # fmt: skip
    try:
        authorise(helper, "write", thing)
    except Forbidden as refused:
        return str(refused.reason)
    return ""


def is_usable(link: FactorLink, credentials: Credentials, *, now: float) -> bool:
    """Return whether an unspent link is still valid.

    It is until it expires or its owner's factors change.
    """
    return now < link.expires_at and _fingerprint(credentials) == link.factors


def is_sent_to(link: FactorLink, user: User) -> bool:
    """Return whether a person has the address of their link.

    True if it went to none. Source: D50, D69
    """
    return not link.sent_to or link.sent_to == _address_fingerprint(user.email)


def is_usable_invitation(link: FactorLink, invited: OpenInvitation, *, now: float) -> bool:
    """Return whether an unspent link of an invitation is still valid.

    It is until it expires, the address changes, or the membership or its entity is disabled. Source: D60
    """
    enabled = invited.membership.enabled and invited.entity.enabled
    return (
        now < link.expires_at and enabled and _address_fingerprint(fold_ascii(invited.membership.email)) == link.factors
    )


def _fingerprint(credentials: Credentials) -> str:
    return base64url(fingerprint(credentials))


def _address_fingerprint(address: str) -> str:
    return base64url(sha256(tuple_bytes("invited address", address)).digest())
