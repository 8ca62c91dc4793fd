"""Authorisations of third parties: list, one, answers and end (D56, D61)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import grants
from corpid.rules.directory.access_texts import duration
from corpid.rules.directory.approvals import kind_needs_approval
from corpid.rules.directory.change_texts import describe_authorisation
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.objects import key_of, object_id
from corpid.rules.directory.records import Change
from corpid.rules.directory.values import NO_BEGINNING, NO_END
from corpid.texts import Phrase, counted, phrase
from corpid.web.directory.page_context import (
    PortalContext,
    PortalPage,
    frame,
    portal_path,
    section_link,
    submit_changes,
)
from corpid.web.pages.change_sentences import list_parameters
from corpid.web.pages.components import (
    Actions,
    Cell,
    Column,
    Facts,
    Filters,
    Form,
    Label,
    Page,
    Paragraph,
    Table,
    Value,
)
from corpid.web.pages.layout import Field, Link, pager_of
from corpid.web.sites import CHANGED_MEANWHILE, FormResult, NotFound, Section, await_found

if TYPE_CHECKING:
    from corpid.flows.directory.grants import Authorisation, RoleOfGrant, ThirdPartyRole
    from corpid.rules.directory.records import Entity, ThirdPartyAssignment, ThirdPartyGrant
    from corpid.web.pages.layout import Frame
    from corpid.web.pages.views import View

THIRD_PARTIES: Final = "third-parties"
OFFER: Final = "third-parties/offer"
EDIT: Final = "edit"
"""the `decision` that shows a form again"""
PER_PAGE: Final = 50
_PEOPLE_PER_PAGE: Final = 25
_MOST_COUNTED: Final = 1000


def confirm(
    frame: Frame, heading: Phrase, sentence: Phrase, button: Phrase, *, facts: tuple[tuple[Phrase, Value], ...],
    consequences: tuple[Phrase, ...], hidden: tuple[tuple[str, str], ...], back: str | None = None,
    danger: bool = False, asks_reason: bool = False,
) -> Page:  # fmt: skip
    """The page that asks before a change of an authorisation.

    Without `back`, an address, a second button shows the form again that `hidden` repeats.
    """
    needs_approval = asks_reason or any(name == "reason" for name, _ in hidden)
    return Page(
        frame=frame,
        heading=heading,
        back=back,
        parts=(
            Paragraph(text=sentence, look="summary"),
            Facts(facts=facts) if facts else None,
            *(Paragraph(text=each) for each in consequences),
            Form(
                hidden=hidden if back else (*hidden, ("confirmed", "yes")),
                button=phrase("Send for approval") if needs_approval else button,
                danger=danger,
                needs_approval=asks_reason,
                other=None if back else (EDIT, phrase("Go back")),
            ),
        ),
    )


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


def facts(grant: ThirdPartyGrant | ThirdPartyAssignment) -> tuple[tuple[Phrase, Value], ...]:
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


def _row(at: PortalContext, found: Authorisation) -> tuple[Value, ...]:
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

    here = portal_path(at.web, THIRD_PARTIES)

    async def listed(
        name: str, caption: Phrase, organisation: Phrase, empty: Phrase | None, *, given: bool, state: str | None
    ) -> Table | None:
        page = await await_found(
            grants.list_authorisations(
                at.registry, at.actor, given=given, other=other, state=state,  # type: ignore[arg-type]
                after=at.query.get(name, ""), limit=PER_PAGE,
            ),
        )  # fmt: skip
        columns = (organisation, phrase("Service"), phrase("Role"), phrase("Valid"), phrase("State"))
        shown = Table(
            caption=caption,
            heading=True,
            columns=tuple(map(Column, columns)),
            rows=tuple(_row(at, each) for each in page.found),
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
    return Page(
        frame=frame(at, section=THIRD_PARTIES),
        heading=phrase("Third parties"),
        main_action=Link(url=portal_path(at.web, OFFER), text=phrase("Authorise a third party")),
        errors=errors,
        parts=(
            organisation_search(here, typed, phrase("Its registration number, or its whole name")),
            Paragraph(text=Link(url=here, text=phrase("Show all again"))) if typed else None,
            *tables,
        ),
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
        note = phrase("It has no effect until {name} accepts it.", name=other.name)
    else:
        note = phrase("{name} made this offer. If you accept it, you can give your people access.", name=other.name)
    columns = (phrase("Person"), phrase("Role"), phrase("Valid"), phrase("Last sign-in there"))
    nobody = phrase("{name} has not given any of its people access yet.", name=other.name)
    return Page(
        frame=up(at),
        heading=phrase("{name}: {service}", name=other.name, service=found.service.name),
        parts=(
            Paragraph(text=sentence(found), look="summary"),
            Facts(
                facts=(
                    (phrase("State"), Label(state, "warning" if warns else "")),
                    (NUMBERS[other.type], other.registration_number),
                    *facts(grant),
                )
            ),
            Paragraph(text=note) if note else None,
            Actions(
                links=tuple(Link(url=url(at, verb, grant), text=text) for verb, text, possible in actions if possible),
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
        ),
    )


def _person(at: PortalContext, found: Authorisation, given: ThirdPartyRole, *, client: bool) -> tuple[Value, ...]:
    row, grant = given.row, found.grant
    name = given.name or phrase("Somebody of {entity}", entity=found.third_party.name)
    change = Link(url=url(at, "change-role", row), text=phrase("Change"), about=given.name)
    take_away = Link(url=url(at, "take-away", row), text=phrase("Remove"), about=given.name)
    links = Cell(values=(change, take_away) if grant.state == "accepted" else (take_away,))
    return (
        name,
        row.role,
        duration(max(row.start_date, grant.start_date, NO_BEGINNING), min(row.end_date, grant.end_date, NO_END)),
        at.moment(given.signed_in_at).date() if given.signed_in_at else phrase("none on record"),
        *(() if client else (links,)),
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


def _confirm(
    at: PortalContext, found: Authorisation, heading: Phrase, sentence: Phrase, button: Phrase,
    consequences: tuple[Phrase, ...], *, danger: bool = False, asks_reason: bool = False,
) -> Page:  # fmt: skip
    return confirm(
        up(at, found), heading, sentence, button, facts=facts(found.grant), consequences=consequences,
        hidden=(("version", version(at, found.grant)),), back=url(at, "grant", found.grant), danger=danger,
        asks_reason=asks_reason,
    )  # fmt: skip


async def show_acceptance(at: PortalContext) -> View:
    """The confirmation of accepting an offer (D56)."""
    found = await _require_authorisation(at, client=False, offered=True)
    return _confirm(
        at,
        found,
        phrase("Accept this offer?"),
        sentence(found),
        phrase("Accept"),
        (
            phrase("You can then give your people access within it. Either organisation can end it at any time."),
            phrase("{name} sees which of your people act for it.", name=found.client_entity.name),
        ),
        asks_reason=kind_needs_approval("grant", at.entity, found.service),
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
    gone = phrase("The offer ends. {name} can make another one.", name=found.client_entity.name)
    return _confirm(
        at, found, phrase("Decline this offer?"), sentence(found), phrase("Decline"),
        (gone, *await _roles_lost(at, found)), danger=True,
    )  # fmt: skip


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
    again = () if offered else (phrase("To allow it again, you have to make a new offer, and it has to be accepted."),)
    return _confirm(
        at,
        found,
        phrase("Withdraw this offer?") if offered else phrase("End this authorisation?"),
        ends,
        phrase("Withdraw") if offered else phrase("End it now"),
        (*await _roles_lost(at, found), *again),
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
