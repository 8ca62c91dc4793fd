"""What one person may cost the others while they change their own factors (D47)."""

from __future__ import annotations

import asyncio
import re
from collections import Counter

from msgspec.structs import replace

from corpid.rules.limits import FACTOR_CHANGES
from tests.account.scene import at_account, go, hidden, send
from tests.enrolment import newcomer
from tests.postbox import Postbox
from tests.sign_in.factors import ALICE
from tests.sign_in.world import PASSWORD, World, form_of, new_world, post, walk_to

WAIT = r"Too many attempts\. Wait (\d+) (second|minute)s?, then try again\."


async def test_many_changes_of_one_person_keep_nobody_else_from_signing_in(made: World) -> None:
    """D44, D47: what is too much is refused before anything is hashed for it."""
    await made.person("bob")
    browser, other = await at_account(made, "password"), await made.browser("203.0.113.77")
    await walk_to(made, other, await made.relying_party())
    form, sent = hidden(browser), {**form_of(other, "password"), "user_name": "bob", "password": PASSWORD}
    changes = [
        asyncio.create_task(send(made, browser, "password", **form, password=f"six green bicycles {number}"))
        for number in range(4 * FACTOR_CHANGES)
    ]
    await asyncio.sleep(0)
    assert (await post(other, "password", sent)).status_code == 303
    answers = await asyncio.gather(*changes)
    counted = Counter(answer.status_code for answer in answers)
    assert set(counted) == {303, 429}
    assert counted[429] >= 3 * FACTOR_CHANGES - 1
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert re.search(WAIT, refused.text)
    assert int(refused.headers["retry-after"]) > 0


async def test_a_link_is_counted_by_itself(made: World) -> None:
    """D44, D47: many passwords sent to one enrolment are too many, whatever is done in the account meanwhile."""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    statuses = []
    for _ in range(FACTOR_CHANGES + 2):
        await newcomer.password(browser, "short")
        statuses.append(browser.response.status_code if browser.response else 0)
    assert statuses == [*[200] * (FACTOR_CHANGES + 1), 429]
    assert re.search(WAIT, browser.page.text)
    made.clock.pass_(60)
    assert await newcomer.password(browser) != "Choose a password"


async def test_a_person_is_sent_few_emails_at_a_time_and_may_go_on_after_the_wait() -> None:
    """D45, D47: the mail queue is there for everybody."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        user = await made.provider.registry.directory.user(ALICE)
        await made.write(replace(user, email="alice@example.com"))
        browser = await at_account(made)
        before = len(postbox.emails)
        for _ in range(FACTOR_CHANGES + 1):
            await go(made, browser, "codes")
            assert (await send(made, browser, "codes", **hidden(browser), kept="yes")).status_code == 303
        await go(made, browser, "codes")
        slowed = await send(made, browser, "codes", **hidden(browser), kept="yes")
        assert slowed.status_code == 429
        assert len(postbox.emails) - before == FACTOR_CHANGES + 1
        made.clock.pass_(int(slowed.headers["retry-after"]))
        assert (await send(made, browser, "codes", **hidden(browser), kept="yes")).status_code == 303
