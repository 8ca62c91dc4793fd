"""People in the console: search, one person, sessions, help with sign-in (D30, D53)."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from corpid.flows.authentication.throttle import LINK_GUESSES, UNKNOWN_BROWSERS
from corpid.flows.directory import people
from corpid.flows.directory.lists import Belonging, list_records
from corpid.flows.directory.people import LinkDependencies
from corpid.flows.directory.single_records import set_enabled
from corpid.flows.directory.write import Refused
from corpid.flows.operations import console as flow
from corpid.rules.audit import AuditQuery
from corpid.rules.directory.access import DeploymentOperator, Forbidden
from corpid.rules.directory.lists import USERS
from corpid.rules.directory.memberships import Member, shown_account
from corpid.rules.directory.names import canonical
from corpid.rules.directory.records import ADMINISTRATOR_LEVELS, LastOwnerRemoved, Operator, User
from corpid.rules.fields import fields_of
from corpid.rules.limits import HOUR, MINUTE, PASSWORD_LINK_SECONDS, SECOND_FACTOR_LINK_SECONDS, SET_UP_LINK_SECONDS
from corpid.rules.oauth import acr
from corpid.texts import InvalidInput, Phrase, counted, phrase
from corpid.web.operations.audit import recent_entries
from corpid.web.operations.levels import LEVELS
from corpid.web.operations.page_context import (
    AT_ONCE,
    LIST_FILTERS,
    REASON,
    ConsoleContext,
    ConsolePage,
    record_page,
    show_list,
)
from corpid.web.pages.components import (
    INVITED,
    Actions,
    Cell,
    Facts,
    Heading,
    Label,
    Link,
    Radios,
    Value,
    View,
    enabled_label,
    last_day,
    state_label,
    table,
)
from corpid.web.pages.errors import reason_of
from corpid.web.sites import Check, FormResult, NotFound, Section, check_page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

    from corpid.flows.operations.console import PersonAction, PersonDetails
    from corpid.rules.authentication.records import LinkPurpose, Session, SessionPurpose
    from corpid.rules.directory.roles import RoleRecords

PERSON: Final = r"people/[^/]+"

PURPOSES: Final[Mapping[SessionPurpose, Phrase]] = {
    "sign_in": phrase("Services"),
    "account": phrase("Account"),
    "manage": phrase("Administration of an organisation"),
    "console": phrase("Console"),
}
_SIGNED_IN_BY: Final[Mapping[tuple[str, ...], Phrase]] = {
    acr.PASSKEY: phrase("Passkey"),
    acr.PASSWORD_AND_PASSKEY: phrase("Password and passkey"),
    acr.PASSWORD_AND_CODE: phrase("Password and code"),
}
_SET: Final = phrase("Set")
_NONE: Final = phrase("None")


def person_path(at: ConsoleContext, user_id: str, action: str = "") -> str:
    """The address path of a person's page."""
    return at.path(record_page("people", user_id, action))


def state_of(user: User) -> Label:
    """A person's state in a word."""
    return INVITED if user.placeholder else enabled_label(user.enabled)


async def show_people(at: ConsoleContext) -> View | Response:
    """A page of people, narrowed by what is searched (D51)."""

    def row(user: User) -> tuple[Value, ...]:
        link = at.record_link("people", user.user_id, canonical(user.user_name))
        return link, user.name, user.email, state_of(user)

    return await show_list(
        at, "people", USERS, partial(list_records, at.registry, at.actor, USERS, {"placeholder": False}), row,
        heading=phrase("People"),
        columns=(
            (phrase("User name"), "user_name"), (phrase("Name"), "name"), (phrase("E-mail address"), "email"),
            (phrase("State"), ""),
        ),
        label=phrase("Name, user name or e-mail address"), none=phrase("There are no people yet."),
        not_found=phrase("Nobody found. Check the spelling."),
    )  # fmt: skip


async def this_person(at: ConsoleContext) -> PersonDetails:
    """The person of the page. Raises NotFound, access.Forbidden."""
    user_id = at.page.split("/")[1]
    try:
        user = await flow.find_user(at.registry, user_id, actor=at.actor)
    except Forbidden:
        raise NotFound from None  # support sees nothing of operators, nor that there is one
    if user is None or user.placeholder:
        raise NotFound
    return await flow.load_person(at.registry, user, actor=at.actor, limit=AT_ONCE, now=at.context.now)


async def show_person(at: ConsoleContext) -> View:
    """One person: sign-in, organisations, access and sessions."""
    found = await this_person(at)
    user = found.user
    ends_sessions = "end_sessions" in found.actions
    actions = [
        Link(url=person_path(at, user.user_id, action), text=text)
        for action, text in _ACTION_TEXTS.items()
        if _offered(found, action)
    ]
    return at.build_page(
        phrase("Person: {name}", name=shown_account(user)),
        state_of(user),
        Facts(tuple(_list_facts(at, found))),
        Actions(tuple(actions)),
        Heading(phrase("Sign-in")),
        Facts(tuple(_list_factors(at, found))),
        Heading(phrase("Organisations")),
        table(
            phrase("The person may act for these."),
            (phrase("Organisation"), phrase("Administers as"), phrase("State")),
            (_membership(at, user, each) for each in found.memberships.found),
            empty=phrase("The person belongs to no organisation."),
        ),
        Heading(phrase("Roles")),
        table(
            phrase("What the person may do."),
            (phrase("Service"), phrase("Role"), phrase("Organisation"), phrase("Until")),
            (_role(at, each) for each in found.roles.found),
            empty=phrase("The person has no role."),
            more=phrase("Each table shows the first {count}.", count=AT_ONCE)
            if found.memberships.after or found.roles.after
            else None,
        ),
        Heading(phrase("Signed in")),
        table(
            phrase("Browsers in which the person is signed in."),
            (
                phrase("Browser"), phrase("Used for"), phrase("Signed in with"), phrase("Since"),
                phrase("Last used"), *([phrase("Actions")] if ends_sessions else []),
            ),
            (_session(at, each, ends=ends_sessions) for each in found.sessions),
            empty=phrase("The person is not signed in anywhere."),
        ),
        Heading(phrase("History")),
        *await recent_entries(at, AuditQuery(user_id=user.user_id), {"user": user.user_id}),
        name=shown_account(user),
    )  # fmt: skip


def _membership(at: ConsoleContext, user: User, each: Belonging) -> tuple[Value, ...]:
    return (
        at.record_link("entities", each.entity.entity_id, each.entity.name),
        ADMINISTRATOR_LEVELS[each.level] if each.level else None,  # type: ignore[index]
        Cell(
            values=(state_label(Member(user=user, membership=each.membership).state),),
            notes=() if each.entity.enabled else (phrase("This organisation is disabled."),),
        ),
    )


def _role(at: ConsoleContext, each: RoleRecords) -> tuple[Value, ...]:
    service = each.service
    return (
        at.record_link("services", service.service_id, service.name),
        each.row.role,
        Cell(
            values=(at.record_link("entities", each.entity.entity_id, each.entity.name),),
            notes=(each.row.sub_entity,) if each.row.sub_entity else (),
        ),
        last_day(each.row.end_date),
    )


def _session(at: ConsoleContext, each: Session, *, ends: bool) -> tuple[Value, ...]:
    device = each.device or phrase("Another browser")
    end = person_path(at, each.user_id, f"session/{people.derive_session_name(each)}")
    return (
        device,
        PURPOSES[each.purpose],
        _SIGNED_IN_BY.get(each.amr),
        at.moment(each.auth_time),
        at.moment(each.seen_at or each.auth_time),
        *([Link(url=end, text=phrase("End"), about=each.device)] if ends else []),
    )


def _list_facts(at: ConsoleContext, found: PersonDetails) -> list[tuple[Phrase, Value]]:
    user = found.user
    facts: list[tuple[Phrase, Value]] = [
        (phrase("User name"), canonical(user.user_name)),
        (phrase("E-mail address"), user.email or _NONE),
        (phrase("Account"), fields_of(User)["account_type"].choices[user.account_type]),
    ]
    if found.operator:
        level = fields_of(Operator)["level"].choices[found.operator]
        rights = at.link(LEVELS, phrase("What each level may do"))
        facts.append((phrase("Operates this deployment as"), Cell(values=(level,), notes=(rights,))))
    return facts


def _list_factors(at: ConsoleContext, found: PersonDetails) -> list[tuple[Phrase, Value]]:
    held = found.factors
    facts: list[tuple[Phrase, Value]] = [
        (phrase("Password"), _SET if held.password else _NONE),
        (phrase("Authenticator app"), _SET if held.app else _NONE),
        (phrase("Passkeys"), counted(len(held.passkeys), "{count} passkey", "{count} passkeys")),
        (phrase("Recovery codes"), counted(held.codes, "{count} left", "{count} left")),
        *(
            (
                _describe_browser(each.browser),
                phrase("Paused after wrong codes until {moment}", moment=at.moment(each.paused_until)),
            )
            for each in found.locks
        ),
    ]
    if found.invited_until:
        facts.append((phrase("Link to set up sign-in works until"), at.moment(found.invited_until)))
    return facts


def _describe_browser(browser: str) -> Phrase:
    if browser == LINK_GUESSES:
        return phrase("With a link to set up or renew sign-in")
    return (
        phrase("In new browsers") if browser == UNKNOWN_BROWSERS else phrase("In a browser that the person used before")
    )


_ACTION_TEXTS: Final[Mapping[str, Phrase]] = {
    "unlock": phrase("Unlock"),
    "link": phrase("Send a link"),
    "renew": phrase("Reset sign-in"),
    "sign-out": phrase("Sign out everywhere"),
    "disable": phrase("Disable"),
    "enable": phrase("Enable"),
}
_NEEDED: Final[Mapping[str, PersonAction]] = {
    "unlock": "unlock", "link": "send_link", "renew": "renew", "sign-out": "end_sessions",
    "disable": "switch", "enable": "switch",
}  # fmt: skip


def _offered(found: PersonDetails, action: str) -> bool:
    if _NEEDED[action] not in found.actions:
        return False
    switches = {"disable": found.user.enabled, "enable": not found.user.enabled}
    return switches.get(action, True) and (action != "renew" or found.factors.any)


async def ask_action(at: ConsoleContext) -> Check:
    """The check before an action on a person. Raises NotFound, access.Forbidden."""
    found, action = await this_person(at), at.page.split("/")[2]
    if _NEEDED[action] not in found.actions:
        raise Forbidden(at.actor, *flow.RIGHTS[_NEEDED[action]])
    name = shown_account(found.user)
    texts: Mapping[str, tuple[Phrase, tuple[Phrase, ...], Phrase]] = {
        "unlock": (
            phrase("Unlock {name}?", name=name),
            (phrase("The person no longer has to wait after wrong passwords and codes, and can try again at once."),),
            phrase("Unlock"),
        ),
        "link": (
            phrase("Send {name} a link", name=name),
            (
                phrase("It goes to {email}, and only to this address.", email=found.user.email),
                phrase("Earlier links for the same purpose stop working."),
            ),
            phrase("Send the link"),
        ),
        "renew": (
            phrase("Reset sign-in for {name}?", name=name),
            (
                phrase("Password, authenticator app, passkeys and recovery codes are removed, and all sessions end."),
                phrase(
                    "The person is invited by e-mail to {email} to set up everything again.", email=found.user.email
                ),
                phrase("Do this only if you are sure that this address is still the person's own."),
            ),
            phrase("Remove everything and invite"),
        ),
        "sign-out": (
            phrase("Sign {name} out everywhere?", name=name),
            (
                phrase("Every session of the person ends, in all browsers."),
                phrase("Services that are already open may keep them signed in for a while."),
            ),
            phrase("Sign out everywhere"),
        ),
        "disable": (
            phrase("Disable {name}?", name=name),
            (
                phrase("The person cannot sign in any more, and all sessions end. Access and roles stay recorded."),
                phrase("You can enable the person again."),
            ),
            phrase("Disable"),
        ),
        "enable": (
            phrase("Enable {name}?", name=name),
            (phrase("The person can sign in again, with the same factors and the same access."),),
            phrase("Enable"),
        ),
    }
    heading, paragraphs, button = texts[action]
    choices = Radios(
        name="choice",
        legend=phrase("What is the link for?"),
        options=tuple(_list_links(found)),
        value=at.form.get("choice", ""),
    )
    return Check(
        heading=heading,
        parts=paragraphs,
        fields=(choices,) if action == "link" else (),
        button=button,
        danger=action in {"renew", "disable", "sign-out"},
        names=None,
        up=_back(at, found.user),
        errors=_unsendable(at, found, action),
        change=lambda: _carry_out(at, found, action),
        done=FormResult(f"person-{action}", record_page("people", found.user.user_id)),
    )


def _back(at: ConsoleContext, user: User) -> Link:
    return Link(url=person_path(at, user.user_id), text=phrase("Back"))


def _unsendable(at: ConsoleContext, found: PersonDetails, action: str) -> tuple[tuple[str, Phrase], ...]:
    """Why no e-mail can reach the person, if the action sends one."""
    if action not in {"link", "renew"} or at.errors:
        return ()
    if not at.provider.mail.works:
        return (("", phrase("This deployment sends no e-mails. Use the command line, which shows the link.")),)
    return () if found.user.email else (("", phrase("The person has no e-mail address to send anything to.")),)


def _list_links(found: PersonDetails) -> list[tuple[str, Phrase, Phrase]]:
    """The links that the person can use, by what they have left."""
    held = found.factors
    if not held.any:
        hint = phrase("The invitation. The link works for {hours} hours.", hours=SET_UP_LINK_SECONDS // HOUR)
        return [("invitation", phrase("Set up sign-in"), hint)]
    found_links = []
    if held.second_factor:
        hint = phrase(
            "The person does the second step first. The link works for {minutes} minutes.",
            minutes=PASSWORD_LINK_SECONDS // MINUTE,
        )
        found_links.append(("password", phrase("Choose a new password"), hint))
    if held.password:
        hint = phrase(
            "The person enters the password first. The link works for {hours} hours.",
            hours=SECOND_FACTOR_LINK_SECONDS // HOUR,
        )
        found_links.append(("second_factor", phrase("Set up a new second step"), hint))
    return found_links


async def _carry_out(at: ConsoleContext, found: PersonDetails, action: str) -> None:
    actor, user, registry = at.actor_with_reason(), found.user, at.registry
    try:
        match action:
            case "unlock":
                await people.end_locks(
                    registry, at.provider.transient, at.provider.policy.deployment_url, user.user_name,
                    actor=actor, now=at.context.now,
                )  # fmt: skip
            case "sign-out":
                await people.end_sessions(registry, user.user_name, actor=actor)
            case "disable" | "enable":
                names = {"user_name": user.user_name}
                await set_enabled(registry, "user", names, enabled=action == "enable", actor=actor)
                at.provider.registry_cache.drop()
            case _:
                await _send_link(at, found, action, actor)
    except Refused as refused:
        raise InvalidInput(phrase("It was not done: {reason}.", reason=reason_of(refused))) from None
    except LastOwnerRemoved:
        raise InvalidInput(phrase("This is the last operator, who cannot be disabled.")) from None


async def _send_link(at: ConsoleContext, found: PersonDetails, action: str, actor: DeploymentOperator) -> None:
    if unsendable := _unsendable(at, found, action):
        raise InvalidInput(unsendable[0][1])
    choice = at.form.get("choice", "")
    if action == "link" and choice not in {value for value, _, _ in _list_links(found)}:
        raise InvalidInput(phrase("Choose what the link is for."), field="choice")
    dependencies = LinkDependencies(
        registry=at.registry,
        base_url=at.provider.policy.deployment_url,
        new_id=at.provider.new_id,
        now=at.context.now,
        actor=actor,
    )
    name = found.user.user_name
    if action == "renew" or choice == "invitation":
        given = await people.invite_user(dependencies, name, anew=action == "renew")
    else:
        purpose: LinkPurpose = "password" if choice == "password" else "second_factor"
        given = await people.give_link(dependencies, name, purpose)
    people.send_link(at.provider.mail, given, provider_name=at.provider.policy.name)


# --- one session


async def ask_session(at: ConsoleContext) -> Check:
    """The check before a session is ended, unless it has ended.

    Raises NotFound, access.Forbidden.
    """
    found = await this_person(at)
    user = found.user
    if "end_sessions" not in found.actions:
        raise Forbidden(at.actor, "delete", "session")
    name = at.page.split("/")[3]
    live = await people.find_session(at.registry, user.user_id, name, actor=at.actor, now=at.context.now)
    if live is None and not at.form:
        raise NotFound
    session = None if live is None else live[1]

    async def end() -> None:
        actor = at.actor_with_reason()
        if session is not None:
            await people.end_session(at.registry, session, actor=actor)

    return Check(
        heading=phrase("End this session of {name}?", name=shown_account(user)),
        parts=(
            phrase(
                "{browser}, used for: {purpose}. Signed in on {moment}.",
                browser=session.device or phrase("Another browser"),
                purpose=PURPOSES[session.purpose],
                moment=at.moment(session.auth_time),
            )
            if session
            else None,
            phrase("The person has to sign in again there. Other sessions continue."),
            phrase("Services that are already open may keep them signed in for a while."),
        ),
        button=phrase("End the session"),
        danger=True,
        names=None if session else "",
        up=_back(at, user),
        change=end,
        done=FormResult("session-end", f"people/{user.user_id}"),
    )


SECTION: Final = Section[ConsoleContext](
    name="people",
    pages={"people": ConsolePage(view=show_people)},
    named_pages={
        re.compile(PERSON): ConsolePage(view=show_person),
        **{
            re.compile(rf"{PERSON}/{action}"): check_page(ask_action, needs=flow.RIGHTS[needed])
            for action, needed in _NEEDED.items()
        },
        re.compile(rf"{PERSON}/session/[0-9a-f]{{32}}"): check_page(ask_session, needs=flow.RIGHTS["end_sessions"]),
    },
    fields=frozenset({REASON, "choice", "decision"}),
    filters=LIST_FILTERS,
    changes={
        "person-unlock": phrase("The account has been unlocked."),
        "person-link": phrase("The link is on its way."),
        "person-renew": phrase("Sign-in has been reset. The invitation is on its way."),
        "person-sign-out": phrase("The person has been signed out everywhere."),
        "person-disable": phrase("The person has been disabled."),
        "person-enable": phrase("The person has been enabled."),
        "session-end": phrase("The session has ended."),
    },
)
