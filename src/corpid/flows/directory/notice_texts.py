"""The e-mails of notices about the administration of entities.

None has a link that does anything: the button leads to a page to look at.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec

from corpid.flows.authentication.own_pages import PATHS
from corpid.rules.directory.approvals import LIFETIME_SECONDS, decision_reason
from corpid.rules.directory.records import ChangeRequest, Entity, User
from corpid.rules.directory.values import NO_END
from corpid.rules.emails import Action, Email, Facts, to_email_time
from corpid.texts import counted, phrase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from corpid.rules.emails import EmailPart
    from corpid.texts import Phrase

MANAGE_PATH: Final = PATHS["manage"]
"""the pages of an entity's administrators"""
REVIEW_PAGE: Final = "access-review"
REVIEW_OF: Final = "of"
"""the parameter of a link to the review: it chooses no entity, and another entity's review is not shown at it"""
MOST_LISTED: Final = 10
"""occasions that an e-mail names; of the others it tells the number"""

_WHEN: Final = phrase("When")
_LEVELS: Final = {
    "owner": phrase("owner"),
    "administrator": phrase("administrator"),
    "sub_administrator": phrase("sub-administrator"),
}
_CHANGES: Final = {
    "given": phrase("Given"),
    "changed": phrase("Changed"),
    "ended": phrase("Ended"),
    "suspended": phrase("Suspended"),
    "restored": phrase("Restored"),
}
_OUTCOMES: Final = {
    "approved": phrase("Approved"),
    "declined": phrase("Declined"),
    "expired": phrase("Expired: nobody decided within 14 days"),
    "withdrawn": phrase("Withdrawn"),
}


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """The person an e-mail goes to, and the entity it is about."""

    user: User
    entity: Entity
    deployment_url: str


class RoleNames(msgspec.Struct, frozen=True, kw_only=True):
    """A role by the names that people know."""

    service: str
    role: str = ""
    sub_entity: str = ""
    client: str = ""
    """the client entity, of a third party's person"""
    end_date: str = ""


class AccessChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of what a person may do."""

    change: str
    """given, changed, ended, suspended or restored"""
    level: str = ""
    role: RoleNames | None = None
    """neither: the membership"""


def build_access_email(reader: Reader, changes: Sequence[AccessChange], *, at: int) -> Email:
    """Somebody else changed what a person may do.

    Source: docs/decisions/0022
    """
    entity = reader.entity.name
    rows = [(_CHANGES[each.change], _describe_change(each, entity)) for each in changes[:MOST_LISTED]]
    parts: tuple[EmailPart, ...] = (
        phrase("What you may do for {entity} was changed by somebody else.", entity=entity),
        Facts(((_WHEN, to_email_time(at)), *rows)),
        *_count_further(len(changes)),
        phrase("If you did not expect this, ask an administrator of {entity}.", entity=entity),
        _link_account(reader),
    )
    subject = phrase("What you may do for {entity} has changed", entity=entity)
    return _build_email(reader, subject, phrase("{name}: {value}", name=rows[0][0], value=rows[0][1]), parts)


def build_ending_email(reader: Reader, roles: Sequence[RoleNames]) -> Email:
    """Roles of a person end soon.

    Source: docs/decisions/0022
    """
    entity = reader.entity.name
    rows = [(_describe_last_day(each.end_date), _describe_role(_drop_end(each))) for each in roles[:MOST_LISTED]]
    parts: tuple[EmailPart, ...] = (
        phrase("You can act for {entity} like this until the end of these days:", entity=entity),
        Facts(tuple(rows)),
        *_count_further(len(roles)),
        phrase("If you still need it afterwards, ask an administrator of {entity}.", entity=entity),
        _link_account(reader),
    )
    subject = phrase("Your access for {entity} ends soon", entity=entity)
    return _build_email(reader, subject, phrase("{name}: {value}", name=rows[0][0], value=rows[0][1]), parts)


def build_others_ending_email(reader: Reader, roles: Sequence[tuple[str, RoleNames]], count: int) -> Email:
    """Roles of an entity's people end soon; `count` says how many.

    `roles` are those that are named, each with the name of its person. Source: docs/decisions/0022
    """
    entity = reader.entity.name
    rows = tuple(
        (
            phrase("{name}", name=person),
            phrase("{what}, until {day}", what=_describe_role(_drop_end(role)), day=_read_day(role.end_date)),
        )
        for person, role in roles[:MOST_LISTED]
    )
    parts: tuple[EmailPart, ...] = (
        counted(
            count,
            "{count} role of a person at {entity} ends within 30 days.",
            "{count} roles of people at {entity} end within 30 days.",
            entity=entity,
        ),
        Facts(rows),
        *_count_further(count),
        phrase("Extend what is still needed. The people concerned have been told."),
        _link_portal(reader, phrase("Look at your people")),
    )
    subject = phrase("Access of people at {entity} ends soon", entity=entity)
    return _build_email(reader, subject, phrase("Extend what is still needed."), parts)


def build_owner_email(reader: Reader, changes: Sequence[tuple[str, str]], *, at: int) -> Email:
    """Owners of an entity were appointed or are none any more.

    `changes` are appointed or ended, and the person's name. Source: docs/decisions/0022
    """
    entity = reader.entity.name
    words = {"appointed": phrase("New owner"), "ended": phrase("No longer an owner")}
    rows = [(words[change], name) for change, name in changes[:MOST_LISTED]]
    parts: tuple[EmailPart, ...] = (
        phrase("The owners of {entity} have changed. Owners can do everything for it.", entity=entity),
        Facts(((_WHEN, to_email_time(at)), *rows)),
        *_count_further(len(changes)),
        phrase("If you did not expect this, ask another administrator of {entity} now.", entity=entity),
        _link_portal(reader, phrase("Look at the administrators")),
    )
    subject = phrase("The owners of {entity} have changed", entity=entity)
    return _build_email(reader, subject, phrase("{name}: {value}", name=rows[0][0], value=rows[0][1]), parts)


def build_token_email(reader: Reader, tokens: Sequence[tuple[str, int]]) -> Email:
    """Provisioning tokens end soon; each with its name and end.

    Source: docs/decisions/0022
    """
    entity = reader.entity.name
    rows = tuple((phrase("{name}", name=name), to_email_time(ends)) for name, ends in tokens[:MOST_LISTED])
    parts: tuple[EmailPart, ...] = (
        phrase("A provisioning token of {entity} works until:", entity=entity),
        Facts(rows),
        phrase(
            "Create another token before then. Otherwise {entity}'s own directory stops updating people here.",
            entity=entity,
        ),
        _link_portal(reader, phrase("Look at the tokens")),
    )
    subject = phrase("A provisioning token of {entity} ends soon", entity=entity)
    return _build_email(reader, subject, phrase("Create another one before then."), parts)


def build_waiting_email(reader: Reader, requests: Sequence[ChangeRequest], people: Mapping[str, str]) -> Email:
    """Requests wait for the decision of a person.

    `people` are the names of those who ask, by identifier. Source: docs/decisions/0022
    """
    entity = reader.entity.name
    count = len(requests)
    facts = [
        Facts(
            (
                (phrase("Requested by"), people.get(each.requester.partition(":")[2], each.requester)),
                (phrase("Reason"), each.reason),
                (phrase("Waits until"), to_email_time(each.created_at + LIFETIME_SECONDS)),
            )
        )
        for each in requests[:MOST_LISTED]
    ]
    parts: tuple[EmailPart, ...] = (
        counted(
            count,
            "Somebody at {entity} asks for a change that you can approve or decline:",
            "People at {entity} ask for {count} changes that you can approve or decline:",
            entity=entity,
        ),
        *facts,
        *_count_further(count),
        _link_portal(reader, phrase("Look at the requests")),
    )
    subject = counted(
        count, "A request at {entity} waits for you", "{count} requests at {entity} wait for you", entity=entity
    )
    return _build_email(reader, subject, phrase("Approve or decline it within 14 days."), parts)


def build_decided_email(reader: Reader, requests: Sequence[ChangeRequest]) -> Email:
    """Requests of a person were decided.

    Source: docs/decisions/0022
    """
    entity = reader.entity.name
    facts = [
        Facts(
            (
                (phrase("Requested"), to_email_time(each.created_at)),
                (phrase("Outcome"), _OUTCOMES[each.state]),
                *([(phrase("Reason"), decision_reason(each))] if each.decided_reason else []),
            )
        )
        for each in requests[:MOST_LISTED]
    ]
    count = len(requests)
    parts: tuple[EmailPart, ...] = (
        counted(
            count,
            "This is the decision about your request at {entity}:",
            "These are the decisions about {count} requests of yours at {entity}:",
            entity=entity,
        ),
        *facts,
        *_count_further(count),
        _link_portal(reader, phrase("Look at your requests")),
    )
    subject = counted(
        count,
        "Your request at {entity} was decided",
        "{count} of your requests at {entity} were decided",
        entity=entity,
    )
    return _build_email(reader, subject, _OUTCOMES[requests[0].state], parts)


def build_review_email(reader: Reader, *, due: date, again: bool) -> Email:
    """The yearly access review of an entity is due.

    Its link is to the review of this entity, and chooses none. Source: D54, docs/decisions/0022
    """
    entity, entity_id = reader.entity.name, quote(reader.entity.entity_id, safe="")
    lead = (
        phrase("The yearly access review of {entity} has been due since {day}.", entity=entity, day=due)
        if again
        else phrase("The yearly access review of {entity} is due.", entity=entity)
    )
    parts: tuple[EmailPart, ...] = (
        lead,
        phrase(
            "Look at what each person may do, keep it or end it, and sign the review off. An administrator can help."
        ),
        _link_portal(reader, phrase("Look at the access review"), f"/{REVIEW_PAGE}?{REVIEW_OF}={entity_id}"),
    )
    subject = (
        phrase("The access review of {entity} is overdue", entity=entity)
        if again
        else phrase("The access review of {entity} is due", entity=entity)
    )
    return _build_email(reader, subject, phrase("Look at what each person may do, keep it or end it."), parts)


def _build_email(reader: Reader, subject: Phrase, preview: Phrase, parts: tuple[EmailPart, ...]) -> Email:
    user = reader.user
    return Email(to=user.email, subject=subject, preview=preview, name=user.name, parts=parts, language=user.language)


def _link_account(reader: Reader) -> Action:
    return Action(text=phrase("Check your account"), url=reader.deployment_url + PATHS["account"])


def _link_portal(reader: Reader, text: Phrase, page: str = "") -> Action:
    return Action(text=text, url=reader.deployment_url + MANAGE_PATH + page)


def _count_further(count: int) -> Iterable[Phrase]:
    left = count - MOST_LISTED
    if left > 0:
        yield counted(left, "There is {count} more.", "There are {count} more.")


def _describe_change(change: AccessChange, entity: str) -> Phrase:
    if change.role is not None:
        return _describe_role(change.role if change.change in {"given", "changed"} else _drop_end(change.role))
    if change.level:
        return phrase("administration of {entity}, as {level}", entity=entity, level=_LEVELS[change.level])
    return phrase("acting for {entity}", entity=entity)


def _drop_end(role: RoleNames) -> RoleNames:
    return msgspec.structs.replace(role, end_date="")


def _describe_role(role: RoleNames) -> Phrase:
    said = (
        phrase("{role} at {service}", role=role.role, service=role.service)
        if role.role
        else phrase("access to {service}", service=role.service)
    )
    if role.sub_entity:
        said = phrase("{what}, {sub_entity}", what=said, sub_entity=role.sub_entity)
    if role.client:
        said = phrase("{what}, for {client}", what=said, client=role.client)
    if role.end_date and role.end_date != NO_END:
        said = phrase("{what}, until {day}", what=said, day=_read_day(role.end_date))
    return said


def _describe_last_day(day: str) -> Phrase:
    return phrase("Until {day}", day=_read_day(day))


def _read_day(day: str) -> date | str:
    try:
        return date.fromisoformat(day)
    except ValueError:
        return day
