"""Authorisations of third parties: list, one, answers and end (D56, D61)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import urlencode

import msgspec

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import grants
from corpid.rules.directory.access_texts import duration
from corpid.rules.directory.approvals import MOST_REASON_CHARACTERS, kind_needs_approval
from corpid.rules.directory.change_texts import describe_authorisation
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.objects import key_of, object_id
from corpid.rules.directory.records import Change
from corpid.rules.directory.values import NO_BEGINNING, NO_END
from corpid.texts import Phrase, counted, phrase
from corpid.web.directory.change_sentences import list_parameters
from corpid.web.directory.page_context import (
    PortalContext,
    PortalPage,
    frame,
    portal_path,
    section_link,
    submit_changes,
)
from corpid.web.pages.layout import FormView, Link, Pager, PageView, ViewPart, pager_of
from corpid.web.sites import CHANGED_MEANWHILE, FormResult, NotFound, Section, await_found

if TYPE_CHECKING:
    from datetime import datetime

    from corpid.flows.directory.grants import Authorisation, RoleOfGrant, ThirdPartyRole
    from corpid.rules.directory.records import ThirdPartyAssignment, ThirdPartyGrant
    from corpid.web.pages.layout import Frame
    from corpid.web.pages.views import View

THIRD_PARTIES: Final = "third-parties"
OFFER: Final = "third-parties/offer"
PER_PAGE: Final = 50
_PEOPLE_PER_PAGE: Final = 25
_MOST_COUNTED: Final = 1000


class AuthorisationLine(ViewPart, frozen=True, kw_only=True):
    """An authorisation in a list; the organisation is the other side."""

    url: str
    name: str
    number: str
    number_name: Phrase
    service: str
    role: str
    """empty for any"""
    has_roles: bool
    dates: Phrase
    state: Phrase
    warns: bool


class Lines(ViewPart, frozen=True, kw_only=True):
    """A part of the list of authorisations."""

    title: Phrase
    caption: Phrase
    organisation: Phrase
    """the heading of the column of organisations"""
    empty: Phrase | None
    """None: the part is not shown if it has no lines"""
    lines: tuple[AuthorisationLine, ...]
    pager: Pager


class ThirdParties(PageView, frozen=True, kw_only=True):
    """Authorisations that the entity has given and received. Error id: organisation."""

    template: ClassVar[str] = "manage/third_parties.html"
    heading: ClassVar[Phrase] = phrase("Third parties")

    action: str
    offer: str
    organisation: str
    """what was searched for"""
    parts: tuple[Lines, ...]


class PersonLine(ViewPart, frozen=True, kw_only=True):
    """A third party's person, as either side may see them (D61)."""

    name: str | Phrase
    role: str
    dates: Phrase
    signed_in: datetime | None
    change: str = ""
    take_away: str = ""


class OneAuthorisation(PageView, frozen=True, kw_only=True):
    """An authorisation, and the people who act under it."""

    template: ClassVar[str] = "manage/third_party.html"

    heading: Phrase
    sentence: Phrase
    state: Phrase
    warns: bool
    note: Phrase | None
    facts: tuple[tuple[Phrase, str], ...]
    number: str
    number_name: Phrase
    client: bool
    """whether it is seen by the organisation that gave it"""
    accept: str
    decline: str
    change: str
    end: str
    withdraw: str
    assign: str
    people_title: Phrase
    empty: Phrase
    people: tuple[PersonLine, ...]
    pager: Pager


class AuthorisationConfirmation(FormView, frozen=True, kw_only=True):
    """A confirmation, in sentences.

    The button sends confirmed=yes, the way back confirmed=no.
    """

    template: ClassVar[str] = "manage/third_party_confirm.html"

    heading: Phrase
    sentence: Phrase
    facts: tuple[tuple[Phrase, str], ...] = ()
    consequences: tuple[Phrase, ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()
    reason: str | None = None
    """as typed; None: it is not asked for here"""
    button: Phrase
    danger: bool = False
    back: str | None = None
    """an address; None: the form is shown again"""
    most: int = MOST_REASON_CHARACTERS

    @property
    def needs_approval(self) -> bool:
        """True if a reason goes with it, typed here or before."""
        return self.reason is not None or any(name == "reason" for name, _ in self.hidden)


def named(verb: str) -> re.Pattern[str]:
    """The paths of a page about one authorisation or role."""
    return re.compile(rf"third-parties/{verb}/([A-Za-z0-9_-]{{1,1000}})")


def page_of(verb: str, record: ThirdPartyGrant | ThirdPartyAssignment) -> str:
    """The path of such a page in the portal."""
    return f"third-parties/{verb}/{object_id(record.key)}"


def url(at: PortalContext, verb: str, record: ThirdPartyGrant | ThirdPartyAssignment) -> str:
    """The address path of such a page."""
    return portal_path(at.web, page_of(verb, record))


async def authorisation(at: PortalContext) -> Authorisation:
    """The page's authorisation. Raises NotFound for one of others."""
    key = key_of(at.page.rpartition("/")[2], 6)
    if key is None:
        raise NotFound
    try:
        return await grants.find_authorisation(at.registry, at.actor, key)
    except grants.NoGrant:
        raise NotFound from None


async def role(at: PortalContext) -> RoleOfGrant:
    """The page's role. Raises NotFound for one of others' people."""
    key = key_of(at.page.rpartition("/")[2], 7)
    if key is None or key[1] != at.entity.entity_id:
        raise NotFound
    try:
        return await grants.find_role(at.registry, at.actor, key)
    except grants.NoGrant:
        raise NotFound from None


def version(at: PortalContext, record: msgspec.Struct) -> str:
    """A mark of a record as it is.

    A form carries that of the record which its page has shown.
    """
    return at.context.keys.mac("portal version", type(record).__name__, msgspec.json.encode(record).decode())[:27]


def check_version(at: PortalContext, record: msgspec.Struct) -> None:
    """Raise InvalidInput if the record has changed since it was shown."""
    if at.form.get("version", "") != version(at, record):
        raise InvalidInput(CHANGED_MEANWHILE)


def is_client(at: PortalContext, found: Authorisation) -> bool:
    """Return whether the entity is the one that granted it."""
    return found.grant.client_entity_id == at.entity.entity_id


def sentence(found: Authorisation, grant: ThirdPartyGrant | None = None) -> Phrase:
    """An authorisation in a sentence, with the terms of `grant` if given."""
    return describe_authorisation(
        grant or found.grant,
        client=found.client_entity.name,
        third_party=found.third_party.name,
        service=found.service.name,
        has_roles=bool(found.service.roles),
    )


def facts(grant: ThirdPartyGrant | ThirdPartyAssignment) -> tuple[tuple[Phrase, str], ...]:
    """The terms that no sentence names."""
    pairs = (
        (phrase("Part of the organisation"), grant.sub_entity),
        (phrase("Reference"), grant.ref),
        (phrase("Only with"), list_parameters(grant.parameters)),
    )
    return tuple((name, text) for name, text in pairs if text)


def up(at: PortalContext, found: Authorisation | None = None, *, names: str = "") -> Frame:
    """The frame, with a link to the authorisation or the list.

    `names` as in `frame`.
    """
    to_list = section_link(at, THIRD_PARTIES)
    if found is None:
        return frame(at, section=THIRD_PARTIES, up=to_list, names=names)
    link = Link(url=url(at, "grant", found.grant), text=phrase("The authorisation"))
    return frame(at, section=THIRD_PARTIES, up=link, names=names)


def _state(at: PortalContext, grant: ThirdPartyGrant, *, client: bool) -> tuple[Phrase, bool]:
    """The state of an authorisation today, and whether it asks for attention."""
    if grant.state == "offered":
        return (phrase("Offered"), False) if client else (phrase("Needs your answer"), True)
    if grant.end_date < at.context.today:
        return phrase("Ended"), False
    return (phrase("Not started yet") if grant.start_date > at.context.today else phrase("Active"), False)


def _line(at: PortalContext, found: Authorisation) -> AuthorisationLine:
    client = is_client(at, found)
    other = found.third_party if client else found.client_entity
    state, warns = _state(at, found.grant, client=client)
    return AuthorisationLine(
        url=url(at, "grant", found.grant),
        name=other.name,
        number=other.registration_number,
        number_name=NUMBERS[other.type],
        service=found.service.name,
        role=found.grant.role,
        has_roles=bool(found.service.roles),
        dates=duration(found.grant.start_date, found.grant.end_date),
        state=state,
        warns=warns,
    )


async def show_third_parties(at: PortalContext) -> View:
    """Authorisations given and received, and offers that wait (D56)."""
    typed = at.query.get("organisation", "").strip()
    errors, other = at.errors, ""
    if typed:
        found = await grants.find_organisations(at.registry, at.actor, typed)
        other = found[0].entity_id if len(found) == 1 else ""
        if len(found) > 1:
            errors = (("organisation", phrase("Several organisations have this name: enter the registration number.")),)
        elif not found:
            errors = (("organisation", phrase("No organisation has exactly this number or name.")),)
    kept = {"organisation": typed} if typed else {}

    async def part(name: str, *, given: bool, state: str, **texts: Phrase | None) -> Lines:
        page = await await_found(
            grants.list_authorisations(
                at.registry, at.actor, given=given, other=other, state=state or None,  # type: ignore[arg-type]
                after=at.query.get(name, ""), limit=PER_PAGE,
            ),
        )  # fmt: skip
        here = portal_path(at.web, THIRD_PARTIES)
        following = f"{here}?{urlencode({**kept, name: page.after})}" if page.after else ""
        first = f"{here}?{urlencode(kept)}" if kept else here
        return Lines(
            lines=tuple(_line(at, each) for each in page.found),
            pager=Pager(first=first if name in at.query else "", next=following),
            **texts,  # type: ignore[arg-type]
        )

    parts = (
        await part(
            "offers", given=False, state="offered",
            title=phrase("Offers that need your answer"),
            caption=phrase("Organisations that ask yours to act for them"),
            organisation=phrase("Organisation"), empty=None,
        ),
        await part(
            "given", given=True, state="",
            title=phrase("Who may act for your organisation"),
            caption=phrase("Other organisations that you have authorised, or made an offer to"),
            organisation=phrase("Third party"),
            empty=phrase("No other organisation may act for yours."),
        ),
        await part(
            "received", given=False, state="accepted",
            title=phrase("Who your organisation acts for"),
            caption=phrase("Organisations whose offer you have accepted"),
            organisation=phrase("Organisation"),
            empty=phrase("Your organisation acts for no other. When one makes you an offer, it appears here."),
        ),
    )  # fmt: skip
    return ThirdParties(
        frame=frame(at, section=THIRD_PARTIES),
        errors=errors,
        action=portal_path(at.web, THIRD_PARTIES),
        offer=portal_path(at.web, OFFER),
        organisation=typed,
        parts=() if errors else parts,
    )


async def show_authorisation(at: PortalContext) -> View:
    """One authorisation, and the people who act under it (D56, D61)."""
    found = await authorisation(at)
    grant, client = found.grant, is_client(at, found)
    other = found.third_party if client else found.client_entity
    state, warns = _state(at, grant, client=client)
    after = at.query.get("after", "")
    page = await await_found(grants.list_roles(at.registry, at.actor, grant, after=after, limit=_PEOPLE_PER_PAGE))
    here = url(at, "grant", grant)
    accepted = grant.state == "accepted"
    return OneAuthorisation(
        frame=up(at),
        heading=phrase("{name}: {service}", name=other.name, service=found.service.name),
        sentence=sentence(found),
        state=state,
        warns=warns,
        note=None
        if accepted
        else phrase("It has no effect until {name} accepts it.", name=other.name)
        if client
        else phrase("{name} made this offer. If you accept it, you can give your people access.", name=other.name),
        facts=facts(grant),
        number=other.registration_number,
        number_name=NUMBERS[other.type],
        client=client,
        accept="" if client or accepted else url(at, "accept", grant),
        decline="" if client or accepted else url(at, "decline", grant),
        change=url(at, "change", grant) if client else "",
        end=url(at, "end", grant) if accepted else "",
        withdraw=url(at, "end", grant) if client and not accepted else "",
        assign=url(at, "assign", grant) if accepted and not client and grant.end_date >= at.context.today else "",
        people_title=phrase("Who may act for your organisation") if client else phrase("Your people who act here"),
        empty=phrase("{name} has not given any of its people access yet.", name=other.name)
        if client
        else phrase("None of your people may act here yet."),
        people=tuple(_person(at, found, each, client=client) for each in page.found),
        pager=pager_of(here, {}, came=bool(after), after=page.after, searched_on=len(page.found) < _PEOPLE_PER_PAGE),
    )


def _person(at: PortalContext, found: Authorisation, given: ThirdPartyRole, *, client: bool) -> PersonLine:
    row = given.row
    signed_in = given.signed_in_at
    return PersonLine(
        name=given.name or phrase("Somebody of {entity}", entity=found.third_party.name),
        role=row.role,
        dates=duration(
            max(row.start_date, found.grant.start_date, NO_BEGINNING), min(row.end_date, found.grant.end_date, NO_END)
        ),
        signed_in=at.moment(signed_in) if signed_in else None,
        change="" if client or found.grant.state != "accepted" else url(at, "change-role", row),
        take_away="" if client else url(at, "take-away", row),
    )


# --- answers, and the end


async def _require_authorisation(at: PortalContext, *, client: bool | None, offered: bool | None) -> Authorisation:
    """The authorisation, for the page's side and state."""
    found = await authorisation(at)
    if client is not None and is_client(at, found) is not client:
        raise NotFound
    if offered is not None and (found.grant.state == "offered") is not offered:
        raise NotFound
    return found


def _confirmation(at: PortalContext, found: Authorisation, **said: object) -> AuthorisationConfirmation:
    return AuthorisationConfirmation(
        frame=up(at, found),
        hidden=(("version", version(at, found.grant)),),
        back=url(at, "grant", found.grant),
        **said,  # type: ignore[arg-type]
    )


async def show_acceptance(at: PortalContext) -> View:
    """The confirmation of accepting an offer (D56)."""
    found = await _require_authorisation(at, client=False, offered=True)
    return _confirmation(
        at,
        found,
        heading=phrase("Accept this offer?"),
        sentence=sentence(found),
        facts=facts(found.grant),
        consequences=(
            phrase("You can then give your people access within it. Either organisation can end it at any time."),
            phrase("{name} sees which of your people act for it.", name=found.client_entity.name),
        ),
        reason=at.form.get("reason", "") if kind_needs_approval("grant", at.entity, found.service) else None,
        button=phrase("Accept"),
    )


async def save_acceptance(at: PortalContext) -> FormResult:
    """Accept an offer. Raises InvalidInput."""
    found = await _require_authorisation(at, client=False, offered=True)
    check_version(at, found.grant)
    return await submit_changes(
        at,
        [Change(found.grant, msgspec.structs.replace(found.grant, state="accepted"))],
        FormResult("grant-accepted", page_of("grant", found.grant)),
    )


async def show_refusal(at: PortalContext) -> View:
    """The confirmation of declining an offer (D56)."""
    found = await _require_authorisation(at, client=False, offered=True)
    return _confirmation(
        at,
        found,
        heading=phrase("Decline this offer?"),
        sentence=sentence(found),
        facts=facts(found.grant),
        consequences=(
            phrase("The offer ends. {name} can make another one.", name=found.client_entity.name),
            *await _roles_lost(at, found),
        ),
        button=phrase("Decline"),
        danger=True,
    )


async def save_refusal(at: PortalContext) -> FormResult:
    """Decline an offer. Raises InvalidInput."""
    found = await _require_authorisation(at, client=False, offered=True)
    return await _removed(at, found, "grant-declined")


async def show_end(at: PortalContext) -> View:
    """The confirmation of an end or a withdrawal (D56)."""
    found = await _require_authorisation(at, client=None, offered=None)
    client, offered = is_client(at, found), found.grant.state == "offered"
    if offered and not client:
        raise NotFound
    if offered:
        ends = phrase(
            "The offer to {third_party} is withdrawn: {third_party} can no longer accept it.",
            third_party=found.third_party.name,
        )
    else:
        ends = phrase(
            "{third_party} may no longer act for {client} at {service}, from now on.",
            third_party=found.third_party.name, client=found.client_entity.name, service=found.service.name,
        )  # fmt: skip
    return _confirmation(
        at,
        found,
        heading=phrase("Withdraw this offer?") if offered else phrase("End this authorisation?"),
        sentence=ends,
        facts=facts(found.grant),
        consequences=(
            *await _roles_lost(at, found),
            *(
                ()
                if offered
                else (phrase("To allow it again, you have to make a new offer, and it has to be accepted."),)
            ),
        ),
        button=phrase("Withdraw") if offered else phrase("End it now"),
        danger=True,
    )


async def _roles_lost(at: PortalContext, found: Authorisation) -> tuple[Phrase, ...]:
    number = await grants.count_roles_ending(at.registry, at.actor, found.grant)
    name = found.third_party.name
    if number >= _MOST_COUNTED:
        return (phrase("More than {count} roles of people of {name} end with it.", count=number, name=name),)
    if not number:
        return ()
    return (
        counted(
            number,
            "{count} role of a person of {name} ends with it.",
            "{count} roles of people of {name} end with it.",
            name=name,
        ),
    )


async def save_end(at: PortalContext) -> FormResult:
    """End an authorisation, or withdraw an offer. Raises InvalidInput."""
    found = await _require_authorisation(at, client=None, offered=None)
    offered = found.grant.state == "offered"
    if offered and not is_client(at, found):
        raise NotFound
    return await _removed(at, found, "grant-withdrawn" if offered else "grant-ended")


async def _removed(at: PortalContext, found: Authorisation, change: str) -> FormResult:
    check_version(at, found.grant)
    return await submit_changes(at, [Change(found.grant, None)], FormResult(change, THIRD_PARTIES))


SECTION: Final = Section[PortalContext](
    pages={THIRD_PARTIES: PortalPage(view=show_third_parties)},
    named_pages={
        named("grant"): PortalPage(view=show_authorisation),
        named("accept"): PortalPage(view=show_acceptance, submit=save_acceptance, fresh=True, needs=("write", "grant")),
        named("decline"): PortalPage(view=show_refusal, submit=save_refusal, fresh=True, needs=("delete", "grant")),
        named("end"): PortalPage(view=show_end, submit=save_end, fresh=True, needs=("delete", "grant")),
    },
    fields=frozenset({"reason", "version"}),
    filters=frozenset({"organisation", "after", "offers", "given", "received"}),
    changes={
        "grant-accepted": phrase("You have accepted the offer. You can give your people access now."),
        "grant-declined": phrase("You have declined the offer."),
        "grant-ended": phrase("The authorisation has ended."),
        "grant-withdrawn": phrase("The offer has been withdrawn."),
    },
)
