"""The portal's home page, administrators, tokens and history, in the states that look different (D53)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.rules.directory.records import ADMINISTRATOR_LEVELS
from corpid.texts import phrase
from corpid.web.directory import administrators, endpoints, history, provisioning_tokens
from corpid.web.directory.change_sentences import KINDS
from corpid.web.directory.page_context import NO_REASON
from corpid.web.directory.people import ChoosePerson, PersonChoice
from corpid.web.pages.layout import Link, Pager

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.layout import Frame
    from corpid.web.pages.views import View

AT: Final = datetime(2026, 11, 23, 9, 30, tzinfo=UTC)
LONG: Final = "Wolfeschlegelsteinhausenbergerdorff Subramaniam Venkataraghavan-Balasubramanian"
LEVELS: Final = tuple((each, ADMINISTRATOR_LEVELS[each], administrators.MAY[each]) for each in ADMINISTRATOR_LEVELS)
SERVICES: Final = (
    ("service-HARBOUR-PERMIT", "Harbour permits", "Permits for vessels to berth, load and leave.", True),
    ("service-TAX-FILING", "Company tax filing", "", False),
)
UNTICKED: Final = tuple((*each[:-1], False) for each in SERVICES)


def states(frame: Frame, below: Frame) -> Mapping[str, View]:
    """The states, in a frame of the site; `below` has a link to the page above."""
    rows = (
        administrators.AdministratorRow(
            name="Tan Wei Ling", user_name="wei.ling", level=ADMINISTRATOR_LEVELS["owner"],
            sentence=administrators.MAY["owner"], tags=(phrase("You"),), change="",
            reason=phrase("You cannot change your own level: ask another owner or administrator."),
        ),
        administrators.AdministratorRow(
            name=LONG, user_name="wolfe", level=ADMINISTRATOR_LEVELS["sub_administrator"],
            sentence=phrase("Gives and takes away access at {services}.", services=("Harbour permits", "Tax filing")),
            tags=(phrase("Invited"),), change="/manage/administrators/x", reason=None,
        ),
    )  # fmt: skip
    listed = administrators.Administrators(
        frame=frame,
        rows=rows,
        main_action=Link(url="/manage/administrators/appoint", text=phrase("Appoint somebody")),
    )
    people = (
        PersonChoice(name="Marcus Lim Sample", user_name="marcus", url="/x"),
        PersonChoice(name=LONG, user_name="wolfe", tags=(phrase("Suspended"), ADMINISTRATOR_LEVELS["owner"]), url="/x"),
    )
    choice = ChoosePerson(
        frame=below,
        heading=phrase("Choose a person"),
        asked=phrase("Whom do you want to appoint?"),
        action="/x",
        find="m",
        found=people,
        links=(Link(url="/x", text=phrase("Invite people")),),
        pager=Pager(next="/x?after=y"),
    )
    form = administrators.ChooseLevel(
        frame=below, action="/x", heading=phrase("Change the level of {name}", name="Marcus Lim Sample"),
        name="Marcus Lim Sample", user_name="marcus", now=administrators.MAY["administrator"], levels=LEVELS,
        level="administrator", services=(), all_services=False, held="none",
        why_not=None, remove="/x/remove", keeps=None, back="/x",
    )  # fmt: skip
    scope = replace(
        form, level="sub_administrator", chosen=administrators.MAY["sub_administrator"], another="/x", services=SERVICES
    )
    confirmed = administrators.ConfirmLevel(
        frame=below, action="/x", fields=(("level", "administrator"),), button=phrase("Confirm"), back="/x",
        summary=phrase("{name} becomes an owner of {entity}.", name=LONG, entity="Harbour Logistics Pte. Ltd."),
        consequences=(administrators.MAY["owner"], administrators.EVERYWHERE), explains=False, reason="",
    )  # fmt: skip
    token = provisioning_tokens.TokenRow(
        name="Staff directory", made_by="Tan Wei Ling", created=AT, used=AT, until=AT, ended=False, revoke="/x"
    )
    changes = (
        history.HistoryRow(
            at=AT, who="Tan Wei Ling", url="/x",
            what=phrase("{name} got access as {role} at {service}", name=LONG, role="Approver", service="Harbour permits"),
        ),
        history.HistoryRow(at=AT, who=phrase("The operator"), what=phrase("The organisation's settings were changed"), url="/x"),
    )  # fmt: skip
    told = history.History(
        frame=frame, action="/x", person="", services=(("", phrase("Every service")), ("T", "Company tax filing")),
        service="", kinds=(("", phrase("Every change")), *KINDS.items()), kind="", since="", until="", narrowed=False,
        rows=changes, export="/x", pager=Pager(next="/x"),
    )  # fmt: skip
    lines = tuple(
        Link(url="/x", text=text)
        for text in (
            phrase("Nobody's access ends within 30 days."),
            phrase("No request waits for you."),
            phrase("No offer to act for another organisation waits for you."),
        )
    )
    at_home = endpoints.Home(frame=frame, give="/x", invite="/x", lines=lines, changes=changes, history="/x")
    ends = endpoints.EndingRow(name=LONG, url="/x", role="Approver", service="Harbour permits", until=date(2026, 12, 1))
    return {
        "portal-home": at_home,
        "portal-home-empty": replace(
            at_home,
            warning=phrase("The register says that this organisation is deregistered. Services may no longer accept it."),
            first_steps=(
                Link(url="/x", text=phrase("Invite the people who should act for your organisation.")),
                Link(url="/x", text=phrase("Give each of them access to the services they need.")),
            ),
            changes=(),
        ),
        "portal-ending": endpoints.EndingList(frame=below, rows=(ends,), pager=Pager(next="/x")),
        "portal-ending-none": endpoints.EndingList(frame=below, rows=(), pager=Pager()),
        "portal-administrators": listed,
        "portal-administrators-sub": replace(listed, main_action=None),
        "portal-appoint": choice,
        "portal-appoint-none": replace(choice, found=(), pager=Pager()),
        "portal-level": form,
        "portal-level-wrong": replace(form, errors=(("level", administrators.EVERY_SERVICE),)),
        "portal-level-services": scope,
        "portal-level-services-wrong": replace(
            scope, services=UNTICKED, errors=(("all_services", phrase("Choose at least one service.")),)
        ),
        "portal-level-not": replace(form, why_not=phrase("Only an owner can change this person's level."), remove=""),
        "portal-level-confirm": confirmed,
        "portal-level-confirm-approval": replace(
            confirmed, explains=True, button=phrase("Send for approval"), errors=(("reason", NO_REASON),)
        ),
        "portal-level-remove": administrators.RemoveLevel(
            frame=below, action="/x", heading=phrase("Take the level away from {name}?", name="Marcus Lim Sample"),
            consequences=(phrase("{name} still belongs to {entity} and keeps their access.", name="Marcus", entity="Acme"),),
            held="none", explains=False, reason="", allowed=True, back="/x",
        ),
        "portal-tokens": provisioning_tokens.Tokens(
            frame=below, rows=(token, replace(token, name="Old", used=None, ended=True)), new="/x"
        ),
        "portal-tokens-none": provisioning_tokens.Tokens(frame=below, rows=(), new="/x"),
        "portal-token-new": provisioning_tokens.NewToken(
            frame=below, action="/x", name="", lifetimes=(("365", phrase("{count} days", count=365)),), days="365",
            token_id="x", back="/x",
        ),
        "portal-token-created": provisioning_tokens.TokenCreated(
            frame=frame, name="Staff directory", token="q5Yx1m0s8yWc6T2nB4vK7pR9dF3hJ5lZ0aXeCuGiQoE", until=AT,
            action="/x", url="https://id.example/scim/v2",
        ),
        "portal-token-hidden": provisioning_tokens.TokenHidden(
            frame=below, name="Staff directory", revoke="/x", new="/x", back="/x"
        ),
        "portal-token-revoke": provisioning_tokens.RevokeToken(
            frame=below, action="/x", heading=phrase("Revoke the token “{name}”?", name="Staff directory"), used=None,
            back="/x",
        ),
        "portal-history": told,
        "portal-history-none": replace(told, rows=(), narrowed=True, pager=Pager()),
        "portal-change": history.ChangePage(
            frame=below, what=changes[0].what, who="Tan Wei Ling", at=AT, erased=False, reference="0123456789abcdef",
            notes=(phrase("Approved by {name}.", name="Marcus Lim Sample"),),
            differences=(
                (phrase("Role"), (), ("Approver",)),
                (phrase("Until"), (phrase("No end"),), ("31 Dec 2027",)),
                (phrase("Details"), ("Permit Year = 2026",), ("Permit Year = 2026", "Permit Year = 2027")),
            ),
        ),
    }  # fmt: skip
