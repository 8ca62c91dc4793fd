"""The access review, in the states that look different (D54, D57)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.rules.directory.access_review import AccessReview
from corpid.rules.directory.records import Administrator
from tests.browser.seeded import Recorder, Visit
from tests.manage.access_scene import checker, employed, staffed
from tests.manage.scene import ACME, in_portal, portal
from tests.sign_in.world import world

if TYPE_CHECKING:
    from collections.abc import Mapping


_LONG: Final = "Wolfeschlegelsteinhausenbergerdorff Subramaniam Venkataraghavan-Balasubramanian"
_REVIEW: Final = "access-review"
VISITS: Final[Mapping[str, Visit]] = {
    "portal-review-later": Visit(_REVIEW),
    "portal-review": Visit(f"{_REVIEW}?begin=yes"),
    "portal-review-due": Visit(_REVIEW),
    "portal-review-own": Visit(_REVIEW, {"all": "yes"}),
    "portal-review-end": Visit(f"{_REVIEW}/m-marcus/end"),
    "portal-review-sign-off": Visit(f"{_REVIEW}/sign-off"),
}
"""from before it is due to the sign-off, which waits for somebody else to look at the reader's own access"""


async def walk(visits: Mapping[str, Visit], recorder: Recorder) -> None:
    """Open each page as an owner."""
    async with world() as made:
        await staffed(made)
        await employed(made, "wolfe", _LONG, enabled=False)
        await employed(made, "karim", "Abdul Karim bin Abdullah")
        now = int(made.clock())
        review = AccessReview(entity_id=ACME, due_at=now + 30 * 86_400, remind_at=now + 30 * 86_400)
        await made.provider.registry.access_reviews.add([review])
        await made.write(
            checker(sub_entity="Jurong", end_date="2027-12-31"),
            checker(role="Approver"),
            checker("wolfe"),
            Administrator(user_id="id-karim", entity_id=ACME, level="owner"),
        )
        browser = await in_portal(made)
        for name, visit in visits.items():
            made.clock.pass_(1)
            if name == "portal-review-due":
                made.clock.pass_(31 * 86_400)
                browser = await in_portal(made)
            await recorder.visit(name, visit, browser, portal(made, visit.page))
