"""The access review, in the states that look different (D54, D57)."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.texts import counted, phrase
from corpid.web.directory.access_review import AccessReview, ReviewedPerson
from corpid.web.directory.member_texts import STATES
from corpid.web.directory.people_views import ConfirmAction, RoleSentence
from corpid.web.pages.layout import Link, Pager

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.layout import Frame
    from corpid.web.pages.views import View

LONG: Final = "Wolfeschlegelsteinhausenbergerdorff Subramaniam Venkataraghavan-Balasubramanian"
ENTITY: Final = "Harbour Logistics Pte. Ltd."


def person(name: str, user_name: str, *roles: str) -> ReviewedPerson:
    return ReviewedPerson(
        url="/x",
        name=f"{user_name} ({name})",
        tags=(),
        level=None,
        roles=tuple(
            RoleSentence(
                sentence=phrase(
                    "{name} may act as {role} at {service} for {entity} {when}.",
                    name=name, role=role, service="Harbour permits", entity=ENTITY,
                    when=phrase("until {until}", until=date(2027, 12, 31)),
                ),
                details=(phrase("{name}: {value}", name="Permit Year", value="2026"),),
            )
            for role in roles
        ),
        field=f"keep-{user_name}",
        seen="x",
        button=f"{user_name} x",
        ticked=False,
        changed=False,
        why_not=None,
        end="/x",
    )  # fmt: skip


def states(below: Frame) -> Mapping[str, View]:
    """The states, in a frame with a link to the page above."""
    own = replace(
        person("Tan Wei Ling", "wei.ling"),
        level=phrase("{name} is an owner of {entity} and administers everything.", name="Tan Wei Ling", entity=ENTITY),
        why_not=phrase("This is you. Another owner or administrator has to review your access."),
        end="",
    )
    changed = replace(person("Marcus Lim Sample", "marcus", "Approver", "Checker"), changed=True)
    under_way = AccessReview(
        frame=below,
        action="/x",
        state=phrase("{name} began this review on {day}.", name="Tan Wei Ling", day=date(2026, 11, 23)),
        last=None,
        progress=phrase("{kept} of {count} people reviewed", kept=120, count=340),
        kept=120,
        count=340,
        begin="",
        people=(
            own,
            person("Marcus Lim Sample", "marcus", "Approver", "Checker"),
            replace(person(LONG, "wolfe"), tags=(STATES["suspended"],), ticked=True),
        ),
        sign_off="",
        pager=Pager(next="/x"),
    )
    sign_off = ConfirmAction(
        frame=below,
        heading=phrase("Sign off the review?"),
        action="/x",
        sentences=(
            counted(
                340,
                "The access of {count} person stays as you and other administrators saw it.",
                "The access of {count} people stays as you and other administrators saw it.",
            ),
            phrase("The history shows your name and the day. The next review is due in a year."),
        ),
        button=phrase("Sign off"),
        back=Link(url="/x", text=phrase("Go back")),
        needs_approval=False,
        reason="",
    )
    return {
        "portal-review": under_way,
        "portal-review-changed": replace(
            under_way,
            people=(changed,),
            errors=(
                ("", phrase("Somebody's access has changed since you looked. Check it again, then keep it.")),
            ),
        ),
        "portal-review-done": replace(under_way, people=(), sign_off="/x", pager=Pager()),
        "portal-review-later": replace(
            under_way,
            state=phrase("The next review is due on {day}.", day=date(2027, 11, 23)),
            last=phrase(
                "{name} signed off the last review on {day}. People kept: {kept}. Memberships ended: {ended}.",
                name="Tan Wei Ling", day=date(2026, 11, 23), kept=338, ended=2,
            ),
            progress=None,
            begin="/x",
            people=(),
            pager=Pager(),
        ),
        "portal-review-sign-off": sign_off,
    }  # fmt: skip
