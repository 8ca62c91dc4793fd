"""Ending a single session of a person in the console (D30, D53)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from corpid.flows.directory import person_records as flow
from corpid.flows.operations.console import RIGHTS
from corpid.rules.directory.access import Forbidden
from corpid.texts import phrase
from corpid.web.operations.confirm import question
from corpid.web.operations.page_context import ConsoleContext, ConsolePage
from corpid.web.operations.people import PERSON, PURPOSES, person_path, this_person
from corpid.web.operations.reasons import REASON, acting
from corpid.web.pages.layout import Link
from corpid.web.sites import FormResult, NotFound, Section

if TYPE_CHECKING:
    from corpid.rules.authentication.records import Session
    from corpid.rules.directory.records import User
    from corpid.web.pages.views import View

_SESSION: Final = re.compile(rf"{PERSON}/session/[0-9a-f]{{32}}")
_ENDED: Final = "session-end"


async def _session(at: ConsoleContext) -> tuple[User, Session | None]:
    """The person, and the session if it lives."""
    found = await this_person(at)
    if "end_sessions" not in found.actions:
        raise Forbidden(at.actor, "delete", "session")
    registry, name = at.context.provider.registry, at.page.split("/")[3]
    live = await flow.find_session(registry, found.user.user_id, name, actor=at.actor, now=at.context.now)
    return found.user, None if live is None else live[1]


async def ask(at: ConsoleContext) -> View:
    """The confirmation, with its reason."""
    user, session = await _session(at)
    if session is None:
        raise NotFound
    back = person_path(at.web, user.user_id)
    browser = session.device or phrase("Another browser")
    return question(
        at,
        "people",
        Link(url=back, text=phrase("Back")),
        phrase("End this session of {name}?", name=user.name),
        (
            phrase(
                "{browser}, used for: {purpose}. Signed in on {moment}.",
                browser=browser,
                purpose=PURPOSES[session.purpose],
                moment=at.moment(session.auth_time),
            ),
            phrase("The person has to sign in again there. Other sessions go on."),
            phrase("Services that are already open may keep them signed in for a while."),
        ),
        phrase("End the session"),
        destroys=True,
    )


async def end(at: ConsoleContext) -> FormResult:
    """End the session, unless it has ended. Raises InvalidInput, NotFound, Forbidden."""
    user, session = await _session(at)
    actor = acting(at)
    if session is not None:
        await flow.end_session(at.context.provider.registry, session, actor=actor)
    return FormResult(_ENDED, f"people/{user.user_id}")


SECTION: Final = Section[ConsoleContext](
    named_pages={_SESSION: ConsolePage(view=ask, submit=end, fresh=True, needs=RIGHTS["end_sessions"])},
    fields=frozenset({REASON, "decision"}),
    changes={_ENDED: phrase("The session has ended.")},
)
