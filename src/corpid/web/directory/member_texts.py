"""Words for members: their state of sign-in, their level, help, refusals (D53, D61, D69)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from corpid.flows.directory.invitations import TooManyInvitations
from corpid.flows.directory.members import LastOwner
from corpid.flows.directory.write import IdentifierConflict, NoReason, Refused
from corpid.rules.directory.access import (
    BELONGS_OR_INVITED,
    BELOW,
    OWNER_STAYS,
    SOMEBODY_ELSE,
    WITHIN_REACH,
    Condition,
    Forbidden,
)
from corpid.rules.directory.records import Administrator, Conflict, Entity
from corpid.rules.limits import (
    DAY,
    HOUR,
    INVITATIONS_PER_ADDRESS,
    INVITATIONS_PER_DAY,
    MEMBERSHIP_LINK_SECONDS,
    MINUTE,
    PASSWORD_LINK_SECONDS,
    SECOND_FACTOR_LINK_SECONDS,
)
from corpid.texts import InvalidInput, Phrase, phrase
from corpid.web.directory.page_context import NO_REASON
from corpid.web.pages.errors import refusal_of
from corpid.web.sites import CHANGED_MEANWHILE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.flows.directory.member_help import Help
    from corpid.rules.directory.memberships import MemberState

EACH_GETS: Final = phrase(
    "An invitation is an e-mail with a link that works for {days} days. You can send it again.",
    days=MEMBERSHIP_LINK_SECONDS // DAY,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpPage:
    """A page that asks before an administrator helps with signing in."""

    asked: Help
    link: Phrase
    """to it"""
    heading: Callable[[str], Phrase]
    """by the name of the member"""
    what: Phrase
    button: Phrase
    done: str

    @property
    def is_link(self) -> bool:
        """True for a link by e-mail."""
        return self.asked != "unlock"


HELP_PAGES: Final[Mapping[str, HelpPage]] = {
    "new-password": HelpPage(
        asked="password",
        link=phrase("Send a link for a new password"),
        heading=lambda name: phrase("Send {name} a link for a new password?", name=name),
        what=phrase(
            "The link works for {minutes} minutes, and asks first for a passkey, a code from an authenticator app, or a "
            "recovery code. Earlier links for a new password stop working.",
            minutes=PASSWORD_LINK_SECONDS // MINUTE,
        ),
        button=phrase("Send the link"),
        done="person-help-link",
    ),
    "new-second-step": HelpPage(
        asked="second_factor",
        link=phrase("Send a link for a new second step"),
        heading=lambda name: phrase("Send {name} a link for a new second step?", name=name),
        what=phrase(
            "The link works for {hours} hours, and asks for the password first. Earlier links for a new second step stop "
            "working.",
            hours=SECOND_FACTOR_LINK_SECONDS // HOUR,
        ),
        button=phrase("Send the link"),
        done="person-help-link",
    ),
    "unlock": HelpPage(
        asked="unlock",
        link=phrase("Unlock the account"),
        heading=lambda name: phrase("Unlock the account of {name}?", name=name),
        what=phrase(
            "The person no longer has to wait after wrong passwords and codes. You can do this once an hour. "
            "Password and second step stay as they are."
        ),
        button=phrase("Unlock the account"),
        done="person-help-unlock",
    ),
}
"""by the last parts of their addresses (D69)"""
WHY_NO_HELP: Final[Mapping[Condition, Phrase]] = {
    BELOW: phrase("Only an owner can help administrators to sign in, and only the operator can help owners."),
}


def state_sentence(state: MemberState, entity: Entity) -> Phrase:
    if state == "invited":
        return phrase("Invited, but has not accepted yet. Until then, access has no effect.")
    if state == "suspended":
        return phrase("Cannot act for {entity}. Level and access are kept, without effect.", entity=entity.name)
    if state == "locked":
        return phrase("Cannot sign in, because the account is disabled. Ask the operator why.")
    return phrase("Can sign in and act for {entity}.", entity=entity.name)


def level_sentence(name: str, held: Administrator, entity: Entity, services: tuple[str, ...]) -> Phrase:
    """A level in a sentence.

    `services` are the names of a sub-administrator's.
    """
    if held.level == "owner":
        return phrase("{name} is an owner of {entity} and administers everything.", name=name, entity=entity.name)
    if held.level == "administrator":
        return phrase(
            "{name} is an administrator of {entity}: people, access and third parties.", name=name, entity=entity.name
        )
    if held.services == "all":
        return phrase("{name} is a sub-administrator of {entity} for every service.", name=name, entity=entity.name)
    if not services:
        return phrase(
            "{name} is a sub-administrator of {entity}, at present for no service.", name=name, entity=entity.name
        )
    return phrase(
        "{name} is a sub-administrator of {entity} for: {services}.", name=name, entity=entity.name, services=services
    )


def refusal_sentence(reason: str, name: str, entity: Entity) -> Phrase:
    """Why a membership cannot be changed, from the reason of a condition."""
    if reason == SOMEBODY_ELSE.reason:
        return phrase("This is you. Another administrator of {entity} can change your membership.", entity=entity.name)
    if reason == WITHIN_REACH.reason:
        return phrase("{name} administers {entity}. Only an owner can change this membership.", name=name, entity=entity.name)  # fmt: skip
    if reason == OWNER_STAYS.reason:
        return phrase("{name} is the last owner of {entity}. Appoint another owner first.", name=name, entity=entity.name)  # fmt: skip
    if reason == BELONGS_OR_INVITED.reason:
        return phrase("People become members by accepting an invitation.")
    return phrase("You cannot do this: {reason}.", reason=reason)


def own_access(entity: Entity) -> Phrase:
    """The refusal of a change to the reader's own access. Source: D54"""
    return phrase("You cannot change your own access. Another administrator of {entity} can do it.", entity=entity.name)


def administers(name: str, entity: Entity) -> Phrase:
    """The refusal of a change to an administrator's access. Source: D54"""
    return phrase("{name} administers {entity}. Only an owner can change this access.", name=name, entity=entity.name)


def access_refusal(reason: str, name: str, entity: Entity) -> Phrase:
    """The refusal of a change of access, from a condition's reason."""
    if reason == SOMEBODY_ELSE.reason:
        return own_access(entity)
    if reason == WITHIN_REACH.reason:
        return administers(name, entity)
    return phrase("You cannot do this: {reason}.", reason=reason)


def belongs(entity: Entity) -> Phrase:
    """The refusal of a second invitation to an address."""
    return phrase("Somebody with this address already belongs to {entity} or has been invited.", entity=entity.name)


def rejected(error: Exception, *, entity: Entity, name: str = "") -> InvalidInput:
    """A flow's refusal in the words of the page.

    `name` is that of the member, if there is one.
    """
    match error:
        case NoReason():
            return InvalidInput(NO_REASON, field="reason")
        case IdentifierConflict():
            return InvalidInput(belongs(entity), field="email")
        case LastOwner():
            return InvalidInput(refusal_sentence(OWNER_STAYS.reason, name, entity))
        case Forbidden():
            return InvalidInput(refusal_sentence(error.reason, name, entity))
        case Conflict():
            return InvalidInput(CHANGED_MEANWHILE)
        case TooManyInvitations():
            return InvalidInput(_TOO_MANY_TO_ADDRESS if error.to_address else _TOO_MANY)
    return InvalidInput(refusal_of(error))


REFUSALS: Final = (Refused, IdentifierConflict, LastOwner, Forbidden, Conflict, TooManyInvitations)
"""of changes of members, which `rejected` words"""
_TOO_MANY: Final = phrase(
    "An organisation can invite at most {count} people a day. Continue tomorrow, or ask the operator.",
    count=INVITATIONS_PER_DAY,
)
_TOO_MANY_TO_ADDRESS: Final = phrase(
    "One address can get at most {count} invitations a day. Try again tomorrow.", count=INVITATIONS_PER_ADDRESS
)
