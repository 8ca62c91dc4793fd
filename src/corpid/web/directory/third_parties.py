"""Authorisations of third parties: list, one, answers and end (D56, D61)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.directory import grants
from corpid.flows.operations.history import HistoryFilter, noun
from corpid.rules.directory.access_texts import describe_authorisation, details, duration, name_role, role_end_sentence
from corpid.rules.directory.approvals import kind_needs_approval
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.objects import key_of, object_id
from corpid.rules.directory.records import Change, Entity, Service, ThirdPartyAssignment, ThirdPartyGrant
from corpid.rules.directory.values import NO_BEGINNING, NO_END
from corpid.texts import Phrase, counted, phrase
from corpid.web.directory.history import HISTORY, show_last_changes
from corpid.web.directory.page_context import PortalContext, PortalPage
from corpid.web.pages.change_sentences import list_parameters
from corpid.web.pages.components import (
    Actions,
    Cell,
    Column,
    Facts,
    Field,
    Filters,
    Label,
    Link,
    Paragraph,
    Part,
    Table,
    Value,
    View,
    pager_of,
)
from corpid.web.sites import Check, FormResult, NotFound, Section, await_found, check_page, version_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.flows.directory.grants import Authorisation, RoleOfGrant, ThirdPartyRole
    from corpid.rules.audit import AuditEntry

THIRD_PARTIES: Final = "third-parties"
OFFER: Final = "third-parties/offer"
EDIT: Final = "edit"
"""the `decision` that shows a form again"""
PER_PAGE: Final = 50
_PEOPLE_PER_PAGE: Final = 25
_MOST_COUNTED: Final = 1000


def named(verb: str) -> re.Pattern[str]:
    """The paths of a page about one authorisation or role."""
    return re.compile(rf"third-parties/{verb}/([A-Za-z0-9_-]{{1,1000}})")


def page_of(verb: str, record: ThirdPartyGrant | ThirdPartyAssignment) -> str:
    """The path of such a page in the portal."""
    return f"third-parties/{verb}/{object_id(record.key)}"


def url(at: PortalContext, verb: str, record: ThirdPartyGrant | ThirdPartyAssignment) -> str:
    """The address path of such a page."""
    return at.path(page_of(verb, record))


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


def is_client(at: PortalContext, found: Authorisation) -> bool:
    """Return whether the entity is the one that granted it."""
    return found.grant.client_entity_id == at.entity.entity_id


def sentence(at: PortalContext, found: Authorisation, grant: ThirdPartyGrant | None = None) -> Phrase:
    """An authorisation in a sentence, with the terms of `grant` if given."""
    return describe_authorisation(
        grant or found.grant,
        client=at.name_of(found.client_entity),
        third_party=at.name_of(found.third_party),
        service=found.service.name,
        has_roles=bool(found.service.roles),
    )


def facts(grant: ThirdPartyGrant | ThirdPartyAssignment) -> tuple[tuple[Phrase, Value], ...]:
    """The terms that no sentence names."""
    pairs = (
        (phrase("Part of the organisation"), grant.sub_entity),
        (phrase("Reference"), grant.ref),
        (phrase("Only with"), list_parameters(grant.parameters)),
    )
    return tuple((name, text) for name, text in pairs if text)


def up(at: PortalContext, found: Authorisation) -> Link:
    """A link to the page of an authorisation."""
    return Link(url=url(at, "grant", found.grant), text=phrase("The authorisation"))


def _state(at: PortalContext, grant: ThirdPartyGrant, *, client: bool) -> tuple[Phrase, bool]:
    """The state of an authorisation today, and whether it asks for attention."""
    if grant.state == "offered":
        return (phrase("Offered"), False) if client else (phrase("Needs your answer"), True)
    if grant.end_date < at.context.today:
        return phrase("Ended"), False
    return (phrase("Not started yet") if grant.start_date > at.context.today else phrase("Active"), False)


COLUMNS: Final = phrase("Organisation"), phrase("Service"), phrase("Role"), phrase("Valid"), phrase("State")


def row(at: PortalContext, found: Authorisation) -> tuple[Value, ...]:
    """An authorisation, by COLUMNS."""
    grant, client = found.grant, is_client(at, found)
    other = found.third_party if client else found.client_entity
    state, warns = _state(at, grant, client=client)
    return (
        Cell(values=(Link(url=url(at, "grant", grant), text=other.name),), notes=(registration(other),)),
        found.service.name,
        grant.role or (phrase("Any role") if found.service.roles else None),
        duration(grant.start_date, grant.end_date),
        Label(state, "warning" if warns else ""),
    )


def registration(entity: Entity) -> Phrase:
    """The registration number of an organisation, with its name."""
    return phrase("{name} {number}", name=NUMBERS[entity.type], number=entity.registration_number)


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

    here = at.path(THIRD_PARTIES)

    async def listed(
        name: str, caption: Phrase, organisation: Phrase, empty: Phrase | None, *, given: bool, state: str | None
    ) -> Table | None:
        page = await await_found(
            grants.list_authorisations(
                at.registry, at.actor, given=given, other=other, state=state,  # type: ignore[arg-type]
                after=at.query.get(name, ""), limit=PER_PAGE,
            ),
        )  # fmt: skip
        shown = Table(
            caption=caption,
            heading=True,
            columns=tuple(map(Column, (organisation, *COLUMNS[1:]))),
            rows=tuple(row(at, each) for each in page.found),
            empty=empty,
            pager=pager_of(here, kept, came=name in at.query, after=page.after, name=name),
        )
        return shown if page.found or empty else None

    tables: tuple[Table | None, ...] = ()
    if not errors:
        waiting, any_other = phrase("Offers that need your answer"), phrase("Organisation")
        given, received = phrase("Who may act for your organisation"), phrase("Who your organisation acts for")
        nobody = phrase("No other organisation may act for yours.")
        nothing = phrase("Your organisation acts for no other. When one makes you an offer, it appears here.")
        tables = (
            await listed("offers", waiting, any_other, None, given=False, state="offered"),
            await listed("given", given, phrase("Third party"), nobody, given=True, state=None),
            await listed("received", received, any_other, nothing, given=False, state="accepted"),
        )
    return at.build_page(
        phrase("Third parties"),
        organisation_search(here, typed, phrase("Its registration number, or its whole name")),
        Link(url=here, text=phrase("Show all again")) if typed else None,
        *tables,
        main_action=at.link(OFFER, phrase("Authorise a third party")),
        errors=errors,
    )


def organisation_search(action: str, typed: str, hint: Phrase) -> Filters:
    """The field that finds an organisation. Its error id: organisation."""
    field = Field(name="organisation", label=phrase("Organisation"), kind="search", hint=hint, value=typed, most=200)
    return Filters(action=action, fields=(field,))


async def show_authorisation(at: PortalContext) -> View:
    """One authorisation, and the people who act under it (D56, D61)."""
    found = await authorisation(at)
    grant, client = found.grant, is_client(at, found)
    other = found.third_party if client else found.client_entity
    state, warns = _state(at, grant, client=client)
    after = at.query.get("after", "")
    page = await await_found(grants.list_roles(at.registry, at.actor, grant, after=after, limit=_PEOPLE_PER_PAGE))
    here, accepted = url(at, "grant", grant), grant.state == "accepted"
    may_assign = accepted and not client and grant.end_date >= at.context.today
    actions = (
        ("accept", phrase("Accept"), not client and not accepted),
        ("decline", phrase("Decline"), not client and not accepted),
        ("assign", phrase("Give a person access"), may_assign),
        ("change", phrase("Limit or change it"), client),
        ("end", phrase("End it"), accepted),
        ("end", phrase("Withdraw"), client and not accepted),
    )
    if accepted:
        note = None
    elif client:
        note = phrase("It has no effect until {name} accepts it.", name=at.name_of(other))
    else:
        note = phrase(
            "{name} made this offer. If you accept it, you can give your people access.", name=at.name_of(other)
        )
    columns = (phrase("Person"), phrase("Role"), phrase("Valid"), phrase("Last sign-in there"))
    nobody = phrase("{name} has not given any of its people access yet.", name=at.name_of(other))
    return at.build_page(
        phrase("{name}: {service}", name=at.name_of(other), service=found.service.name),
        Paragraph(sentence(at, found), look="summary"),
        Facts(
            (
                (phrase("State"), Label(state, "warning" if warns else "")),
                (NUMBERS[other.type], other.registration_number),
                *facts(grant),
            )
        ),
        note or None,
        Actions(
            tuple(Link(url=url(at, verb, grant), text=text) for verb, text, possible in actions if possible),
            main=not client and (may_assign or not accepted),
        ),
        Table(
            caption=phrase("Who may act for your organisation") if client else phrase("Your people who act here"),
            heading=True,
            columns=tuple(map(Column, columns if client else (*columns, phrase("Actions")))),
            rows=tuple(_person(at, found, each, client=client) for each in page.found),
            empty=nobody if client else phrase("None of your people may act here yet."),
            pager=pager_of(
                here, {}, came=bool(after), after=page.after, searched_on=len(page.found) < _PEOPLE_PER_PAGE
            ),
        ),
        await show_last_changes(
            at,
            HistoryFilter(kind="third-parties", service=grant.service_id),
            lambda entry: entry.object == "/".join(grant.key) or _is_under(grant, entry),
            at.link(HISTORY, phrase("All changes"), kind="third-parties", service=grant.service_id),
        ),
    )


def _is_under(grant: ThirdPartyGrant, entry: AuditEntry) -> bool:
    """Return whether an entry is about a role under an authorisation."""
    parties = (entry.entity_id, entry.other_entity_id) == (grant.entity_id, grant.client_entity_id)
    return parties and noun(entry) == "third_party_assignment" and grant.role in {"", *entry.object.split("/")[4:]}


def _person(at: PortalContext, found: Authorisation, given: ThirdPartyRole, *, client: bool) -> tuple[Value, ...]:
    row, grant = given.row, found.grant
    name = given.name or phrase("Somebody of {entity}", entity=at.name_of(found.third_party))
    about = phrase("{names}", names=(given.name, name_role(row)))
    change = Link(url=url(at, "change-role", row), text=phrase("Change"), about=about)
    take_away = Link(url=url(at, "take-away", row), text=phrase("Remove"), about=about)
    links = Cell(values=(change, take_away) if grant.state == "accepted" else (take_away,))
    return (
        name,
        Cell(values=(row.role,), notes=details(row)),
        duration(max(row.start_date, grant.start_date, NO_BEGINNING), min(row.end_date, grant.end_date, NO_END)),
        at.moment(given.signed_in_at).date() if given.signed_in_at else phrase("none on record"),
        *(() if client else (links,)),
    )


# --- answers, and the end


def ask_change(
    at: PortalContext, record: ThirdPartyGrant | ThirdPartyAssignment, service: Service, heading: Phrase,
    sentence: Phrase, button: Phrase, *, consequences: tuple[Phrase, ...], up: Link, done: FormResult,
    becomes: ThirdPartyGrant | None = None, further: Callable[[], Awaitable[tuple[Part, ...]]] | None = None,
    names: str = "", asks_reason: bool = False,
) -> Check:  # fmt: skip
    """The check before a grant or role becomes another one, or ends."""
    return Check(
        heading=heading,
        parts=(
            Paragraph(sentence, look="summary"),
            Facts(facts(record)) if facts(record) else None,
            *consequences,
        ),
        further=further,
        button=button,
        danger=becomes is None,
        needs_approval=asks_reason and kind_needs_approval("grant", at.entity, service),
        names=names,
        step_name=version_of(record),
        up=up,
        change=lambda: at.submit_changes([Change(record, becomes)], done),
    )


async def ask_acceptance(at: PortalContext) -> Check:
    """The check before an offer is accepted (D56)."""
    found = await _load_offer(at)
    return ask_change(
        at,
        found.grant,
        found.service,
        phrase("Accept this offer?"),
        sentence(at, found),
        phrase("Accept"),
        consequences=(
            phrase("You can then give your people access within it. Either organisation can end it at any time."),
            phrase(
                "{name} sees which of your people act for it, with their user names.",
                name=at.name_of(found.client_entity),
            ),
        ),
        becomes=msgspec.structs.replace(found.grant, state="accepted"),
        asks_reason=True,
        up=up(at, found),
        done=FormResult("grant-accepted", page_of("grant", found.grant)),
    )


async def _load_offer(at: PortalContext) -> Authorisation:
    """The page's offer to the entity. Raises NotFound."""
    found = await authorisation(at)
    if is_client(at, found) or found.grant.state != "offered":
        raise NotFound
    return found


async def ask_refusal(at: PortalContext) -> Check:
    """The check before an offer is declined (D56)."""
    found = await _load_offer(at)
    return ask_change(
        at,
        found.grant,
        found.service,
        phrase("Decline this offer?"),
        sentence(at, found),
        phrase("Decline"),
        consequences=(phrase("The offer ends. {name} can make another one.", name=at.name_of(found.client_entity)),),
        further=lambda: _roles_lost(at, found),
        up=up(at, found),
        done=FormResult("grant-declined", THIRD_PARTIES),
    )


async def ask_end(at: PortalContext) -> Check:
    """The check before an end or a withdrawal (D56)."""
    found = await authorisation(at)
    offered, third_party = found.grant.state == "offered", at.name_of(found.third_party)
    if offered and not is_client(at, found):
        raise NotFound
    if offered:
        heading, button = phrase("Withdraw this offer?"), phrase("Withdraw")
        ends = phrase(
            "The offer to {third_party} is withdrawn: {third_party} can no longer accept it.", third_party=third_party
        )
    else:
        heading, button = phrase("End this authorisation?"), phrase("End it now")
        ends = role_end_sentence(
            third_party, found.grant, service=found.service.name, entity=at.name_of(found.client_entity)
        )

    async def list_lost() -> tuple[Part, ...]:
        again = phrase("To allow it again, you have to make a new offer, and it has to be accepted.")
        return (*await _roles_lost(at, found), None if offered else again)

    return ask_change(
        at,
        found.grant,
        found.service,
        heading,
        ends,
        button,
        consequences=(phrase("Offer: {sentence}", sentence=sentence(at, found)),) if offered else (),
        further=list_lost,
        up=up(at, found),
        done=FormResult("grant-withdrawn" if offered else "grant-ended", THIRD_PARTIES),
    )


async def _roles_lost(at: PortalContext, found: Authorisation) -> tuple[Phrase, ...]:
    number = await grants.count_roles_ending(at.registry, at.actor, found.grant)
    name = at.name_of(found.third_party)
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


SECTION: Final = Section[PortalContext](
    name=THIRD_PARTIES,
    pages={THIRD_PARTIES: PortalPage(view=show_third_parties)},
    named_pages={
        named("grant"): PortalPage(view=show_authorisation),
        named("accept"): check_page(ask_acceptance, needs=("write", "grant")),
        named("decline"): check_page(ask_refusal, needs=("delete", "grant")),
        named("end"): check_page(ask_end, needs=("delete", "grant")),
    },
    fields=frozenset({"reason"}),
    filters=frozenset({"organisation", "after", "offers", "given", "received"}),
    changes={
        "grant-accepted": phrase("You have accepted the offer. You can give your people access now."),
        "grant-declined": phrase("You have declined the offer."),
        "grant-ended": phrase("The authorisation has ended."),
        "grant-withdrawn": phrase("The offer has been withdrawn."),
    },
)
