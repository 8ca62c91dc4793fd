"""Administrators in the portal: shown, appointed, changed and dismissed (D53, D54)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from corpid.flows.directory import appointments
from corpid.flows.directory.lists import list_records
from corpid.rules.directory import access as conditions
from corpid.rules.directory.approvals import kind_needs_approval
from corpid.rules.directory.lists import SERVICES
from corpid.rules.directory.records import (
    ADMINISTRATOR_LEVELS,
    Administrator,
    AdministratorLevel,
    AdministratorServices,
    Change,
    Service,
)
from corpid.texts import InvalidInput, Phrase, phrase
from corpid.web.directory.page_context import SETTINGS, PortalContext, PortalPage, names_shown
from corpid.web.directory.people import choose_person
from corpid.web.pages.components import (
    DISABLED,
    INVITED,
    Actions,
    Cell,
    Checkboxes,
    FieldError,
    Form,
    Label,
    Link,
    Page,
    Paragraph,
    Part,
    Radios,
    Value,
    View,
    table,
)
from corpid.web.sites import Check, FormResult, InvalidForm, NotFound, Section, SeeOther, check_page, version_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.directory.appointments import MemberLevel
    from corpid.rules.directory.access import Condition, Level

ADMINISTRATORS: Final = "administrators"
_APPOINT: Final = f"{ADMINISTRATORS}/appoint"
_PERSON: Final = re.compile(rf"{ADMINISTRATORS}/[0-9a-f-]{{36}}")
_REMOVE: Final = re.compile(rf"{ADMINISTRATORS}/[0-9a-f-]{{36}}/remove")
_SERVICE: Final = "service-"
"""before a service's identifier in the name of its checkbox"""
_MOST_SERVICES: Final = 200
"""that are shown as checkboxes"""

MAY: Final[Mapping[AdministratorLevel, Phrase]] = {
    "owner": phrase(
        "May do everything here: also appoint owners and administrators, change settings, and create provisioning tokens."
    ),
    "administrator": phrase(
        "Invites people, gives and removes access, works with third parties, and appoints sub-administrators."
    ),
    "sub_administrator": phrase(
        "Gives and removes access at some services, for people who already belong to the organisation."
    ),
}
EVERYWHERE: Final = phrase("This applies to every service, including future ones.")
EVERY_SERVICE: Final = phrase(
    "Owners and administrators administer every service. For some services only, choose sub-administrator."
)
_WHY_NOT: Final[Mapping[Condition, Phrase]] = {
    conditions.SOMEBODY_ELSE: phrase("You cannot change your own level: ask another owner or administrator."),
    conditions.WITHIN_REACH: phrase("Only an owner can change this person's level."),
    conditions.APPOINTS: phrase("Only owners and administrators can appoint people."),
    conditions.OWNER_STAYS: phrase("This is the last owner, who must stay: appoint another owner first."),
}
_HEADING: Final = phrase("Administrators")
_CANCEL: Final = phrase("Cancel")
_OUTDATED: Final = phrase("This person's level has changed in the meantime. Check it again, then decide.")
_NOT_ALLOWED: Final = phrase("You do not have permission. Ask an owner.")
_ALL: Final = "all"
_SUB: Final = "sub_administrator"
_SCOPE: Final = "scope"
"""the field that says that services were asked"""


# --- the list


async def show_administrators(at: PortalContext) -> View:
    """The administrators of the entity that they act for."""
    found = await appointments.list_administrators(at.registry, at.actor)
    services = await _service_names(at, {each for one in found for each in _listed(one)})
    own = at.actor.level != "sub_administrator"
    appoint = at.link(_APPOINT, phrase("Appoint somebody"))
    asks = phrase("Owners and administrators appoint people. If somebody's level should change, ask one of them.")
    columns = (phrase("Name"), phrase("Level"), phrase("What they may do"), phrase("Actions"))
    return at.build_page(
        _HEADING,
        None if own else asks,
        table(phrase("People who administer your organisation"), columns, (_row(at, each, services) for each in found)),
        main_action=appoint if own else None,
    )


def _to_list(at: PortalContext) -> Link:
    return at.link(ADMINISTRATORS, _HEADING)


def _row(at: PortalContext, held: MemberLevel, services: Mapping[str, str]) -> tuple[Value, ...]:
    level = held.administrator.level if held.administrator else "sub_administrator"
    name, identity = held.name_alone, held.identity
    states = []
    if held.user.user_id == at.actor.user_id:
        states.append(Label(phrase("You")))
    if held.membership.invited:
        states.append(INVITED)
    elif not held.membership.enabled or not held.user.enabled:
        states.append(DISABLED)
    change = Link(url=_path(at, held), text=phrase("Change"), about=held.name)
    return (
        Cell(values=(name, *states), notes=(identity,) if identity != name else ()),
        Label(ADMINISTRATOR_LEVELS[level]),
        _what(held, services),
        _why_not_at_all(at, held) or change,
    )


def _listed(held: MemberLevel) -> tuple[str, ...]:
    given = held.administrator.services if held.administrator else ()
    return given if isinstance(given, tuple) else ()


def _what(held: MemberLevel, names: Mapping[str, str]) -> Phrase:
    """The sentence on what a level lets a person do."""
    given = held.administrator
    level = given.level if given else "sub_administrator"
    if given is None or level != "sub_administrator":
        return MAY[level]
    return _at_services(given.services, names)


def _at_services(given: AdministratorServices, names: Mapping[str, str]) -> Phrase:
    if given == _ALL:
        return phrase("Gives and removes access at every service.")
    if not given:
        return phrase("Has no service, so cannot give access.")
    return phrase("Gives and removes access at {services}.", services=tuple(names.get(each, each) for each in given))


def _path(at: PortalContext, held: MemberLevel, more: str = "") -> str:
    return at.path(f"{ADMINISTRATORS}/{held.membership.membership_id}{more}")


def _possible(at: PortalContext, held: MemberLevel) -> tuple[AdministratorLevel, ...]:
    """The levels that they may give this person."""
    return tuple(level for level in ADMINISTRATOR_LEVELS if appointments.find_refusal(at.actor, held, level) is None)


def _why_not_at_all(at: PortalContext, held: MemberLevel) -> Phrase | None:
    """The reason if no change of this level is possible."""
    if _possible(at, held) or appointments.find_refusal(at.actor, held, "") is None:
        return None
    return _why_not(at, held, held.level or "sub_administrator")


def _why_not(at: PortalContext, held: MemberLevel, becomes: Level) -> Phrase | None:
    refusal = appointments.find_refusal(at.actor, held, becomes)
    return None if refusal is None else _WHY_NOT.get(refusal, _NOT_ALLOWED)


async def _service_names(at: PortalContext, service_ids: set[str]) -> dict[str, str]:
    services, _ = await _services(at, held=tuple(service_ids))
    return {each.service_id: each.name for each in services if each.service_id in service_ids}


async def _services(at: PortalContext, *, held: AdministratorServices = ()) -> tuple[tuple[Service, ...], bool]:
    """The services to choose from, also those held; and whether more exist."""
    page = await list_records(at.registry, at.actor, SERVICES, limit=_MOST_SERVICES)
    found = {each.service_id: each for each in page.found}
    further = {(each,) for each in held if each not in found} if isinstance(held, tuple) else set()
    found |= {each.service_id: each for each in (await at.registry.directory.read(Service, further)).values()}
    enabled = (each for each in found.values() if each.enabled)
    return tuple(sorted(enabled, key=lambda each: each.name.casefold())), bool(page.after)


# --- the choice of a person


async def show_choice(at: PortalContext) -> View:
    """The people of the entity, to appoint one."""
    return await choose_person(
        at,
        _APPOINT,
        lambda found: at.path(f"{ADMINISTRATORS}/{found.membership.membership_id}"),
        up=_to_list(at),
        heading=phrase("Choose a person"),
        asked=phrase("Who do you want to appoint?"),
        links=(at.link("invite", phrase("Invite a person")),),
    )


# --- one person's level


async def show_level(at: PortalContext) -> View:
    """The form of one person's level."""
    return await _form(at, await _load_held(at))


async def _load_held(at: PortalContext) -> MemberLevel:
    membership_id = at.page.removeprefix(f"{ADMINISTRATORS}/").partition("/")[0]
    held = await appointments.load_member_level(at.registry, at.actor, membership_id)
    if held is None:
        raise NotFound
    return held


async def _form(at: PortalContext, held: MemberLevel) -> Page:
    """The level, and then the services of a sub-administrator."""
    given = held.administrator.services if held.administrator else ()
    services, more_services = await _services(at, held=given)
    possible, current = _possible(at, held), held.level
    names = {each.service_id: each.name for each in services}
    only = possible[0] if len(possible) == 1 else ""
    level = at.form.get("level", current if current in possible else only)
    asks_services = _SUB in possible and _SUB in (only, at.form.get("level"), at.query.get("level"))
    keeps = _why_not(at, held, "") if current else None
    if asks_services:
        ticked = _ticked(at.form) if _SCOPE in at.form else given
        chosen = phrase("{level}: {what}", level=ADMINISTRATOR_LEVELS[_SUB], what=MAY[_SUB])
        another = () if only else (Link(url=_path(at, held), text=phrase("Choose another level")),)
        hidden: tuple[tuple[str, str], ...] = (("level", _SUB), (_SCOPE, "asked"))
        single = (
            (
                f"{_SERVICE}{each.service_id}", each.name, isinstance(ticked, tuple) and each.service_id in ticked,
                each.description,
            )
            for each in services
        )  # fmt: skip
        parts: tuple[Part, ...] = (
            Cell(values=(chosen, *another)),
            Checkboxes(
                legend=phrase("At which services?"),
                options=(
                    ("all_services", phrase("Every service, including future ones"), ticked == _ALL, None),
                    *single,
                ),
                hint=phrase("Not all services are listed here.") if more_services else None,
            ),
        )
    else:
        hidden = ()
        options = tuple((each, ADMINISTRATOR_LEVELS[each], MAY[each]) for each in possible)
        parts = (Radios(name="level", legend=phrase("Level"), options=options, value=level),)
    remove: Value = keeps
    if current and keeps is None:
        remove = Link(url=_path(at, held, "/remove"), text=phrase("Remove the level"))
    why_not = None if possible else _why_not(at, held, current or _SUB)
    name = held.name
    return at.build_page(
        phrase("Change the level of {name}", name=name) if current else phrase("Appoint {name}", name=name),
        phrase("Today: {level}", level=_what(held, names)) if current else None,
        *(
            (why_not, Actions((_to_list(at),)))
            if why_not
            else (Form(parts=parts, hidden=hidden, button=phrase("Continue")),)
        ),
        Paragraph(remove, look="hint") if remove and not (why_not and keeps) else None,
        up=_to_list(at),
        names=names_shown(held),
        step_name=version_of(held.administrator),
    )


def _ticked(form: Mapping[str, str]) -> AdministratorServices:
    return "all" if form.get("all_services") else _single(form)


def _single(form: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(
        sorted(name.removeprefix(_SERVICE) for name, value in form.items() if name.startswith(_SERVICE) and value)
    )


def _explains(at: PortalContext) -> bool:
    """Return whether the entity wants levels approved (D55)."""
    return kind_needs_approval("administrator", at.entity)


async def _read_wanted(at: PortalContext) -> tuple[MemberLevel, AdministratorLevel]:
    """The person, and the level that the form gives."""
    held = await _load_held(at)
    at.check_names(names_shown(held))
    at.check_step(version_of(held.administrator), _OUTDATED)
    wanted = next((each for each in ADMINISTRATOR_LEVELS if each == at.form.get("level")), None)
    if wanted is None:
        raise InvalidInput(phrase("Choose a level."), field="level")
    if (why := _why_not(at, held, wanted)) is not None:
        raise InvalidInput(why, field="level")
    return held, wanted


def _scope_errors(at: PortalContext, wanted: AdministratorLevel, services: Mapping[str, str]) -> list[FieldError]:
    """The contradictions between level and services."""
    ticked, single = _ticked(at.form), _single(at.form)
    if wanted != _SUB:
        return [("level", EVERY_SERVICE)] if ticked else []
    if ticked == _ALL and single:
        return [("all_services", phrase("Choose either every service or some services, not both."))]
    if not ticked or not set(single) <= services.keys():
        return [("all_services", phrase("Choose at least one service."))]
    return []


async def ask_level(at: PortalContext) -> Check:
    """The check before a level is given. Raises InvalidInput, InvalidForm, NotFound.

    Raises SeeOther for a sub-administrator, whose services are chosen on the page whose address has the level (D73).
    """
    held, wanted = await _read_wanted(at)
    ticked = _ticked(at.form)
    if wanted == _SUB and not ticked and _SCOPE not in at.form:
        raise SeeOther(f"{at.page}?level={_SUB}")
    given = held.administrator.services if held.administrator else ()
    services = {each.service_id: each.name for each in (await _services(at, held=given))[0]}
    if errors := _scope_errors(at, wanted, services):
        raise InvalidForm(*errors)
    entity, name = at.entity.name, held.name
    if wanted == "owner":
        summary = phrase("{name} becomes an owner of {entity}.", name=name, entity=entity)
    elif wanted == "administrator":
        summary = phrase("{name} becomes an administrator of {entity}.", name=name, entity=entity)
    elif ticked == _ALL:
        summary = phrase("{name} becomes a sub-administrator of {entity} for every service.", name=name, entity=entity)
    else:
        chosen = tuple(services[each] for each in ticked)
        summary = phrase(
            "{name} becomes a sub-administrator of {entity} for {services}.", name=name, entity=entity, services=chosen
        )
    consequences = [_at_services(ticked, services)] if wanted == _SUB else [MAY[wanted], EVERYWHERE]
    if held.administrator:
        consequences.append(phrase("Current level: {level}.", level=ADMINISTRATOR_LEVELS[held.administrator.level]))
    passed_on = {"level", "all_services", _SCOPE}
    kept = [(name, value) for name, value in at.form.items() if name in passed_on or name.startswith(_SERVICE)]
    user_id, entity_id = held.membership.key
    becomes = Administrator(user_id=user_id, entity_id=entity_id, level=wanted, services=ticked)

    async def change() -> FormResult:
        at.reason(needed=_explains(at))
        changes = [Change(held.administrator, becomes)] if becomes != held.administrator else []
        return await at.submit_changes(changes, FormResult("level-changed", ADMINISTRATORS), of=held.membership)

    return Check(
        heading=phrase("Check and confirm"),
        parts=(summary, *consequences),
        hidden=tuple(kept),
        button=phrase("Confirm"),
        needs_approval=_explains(at),
        names=names_shown(held),
        step_name=version_of(held.administrator),
        outdated=_OUTDATED,
        up=_to_list(at),
        back=Link(url=_path(at, held), text=_CANCEL),
        change=change,
    )


async def ask_removal(at: PortalContext) -> Check:
    """The check before somebody's level is taken away. Raises NotFound."""
    held = await _load_held(at)
    if held.administrator is None:
        raise NotFound
    why, name, entity = _why_not(at, held, ""), held.name, at.entity.name
    change = Change(held.administrator, None)

    async def remove() -> FormResult:
        if why is not None:
            raise InvalidInput(why)
        at.reason(needed=_explains(at))
        return await at.submit_changes([change], FormResult("level-removed", ADMINISTRATORS), of=held.membership)

    return Check(
        heading=phrase("Remove the level of {name}?", name=name),
        parts=()
        if why
        else (
            phrase("{name} will no longer be able to administer {entity}.", name=name, entity=entity),
            phrase("{name} still belongs to {entity} and keeps their access.", name=name, entity=entity),
        ),
        button=phrase("Remove the level"),
        danger=True,
        needs_approval=_explains(at),
        refused=why,
        names=names_shown(held),
        step_name=version_of(held.administrator),
        outdated=_OUTDATED,
        up=_to_list(at),
        change=remove,
    )


SECTION: Final = Section[PortalContext](
    name=SETTINGS,
    pages={
        ADMINISTRATORS: PortalPage(view=show_administrators),
        _APPOINT: PortalPage(view=show_choice, needs=("write", "administrator")),
    },
    named_pages={
        _PERSON: check_page(ask_level, form=show_level, needs=("write", "administrator")),
        _REMOVE: check_page(ask_removal, needs=("delete", "administrator")),
    },
    fields=frozenset({"level", "all_services", _SCOPE, "reason"}),
    filters=frozenset({"query", "after", "level"}),
    prefixes=(_SERVICE,),
    changes={
        "level-changed": phrase("The level has been changed."),
        "level-removed": phrase("The level has been removed."),
    },
)
