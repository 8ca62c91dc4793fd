"""The first sign-in of all brings no e-mail of a new device; a later one does, whatever the audit has forgotten (D47)."""

from __future__ import annotations

from corpid import settings
from corpid.engines import open_registry
from corpid.rules.audit import AuditEvent
from corpid.stores.sql.audit_retention import RetentionPeriods
from corpid_dev.relying_party.people import Person
from tests.enrolment import newcomer
from tests.enrolment.newcomer import NEW
from tests.postbox import Postbox
from tests.sign_in import factors
from tests.sign_in.world import BASE, World, new_world

NEW_DEVICE = "Your account was used on a new device"
DORMANT_DAYS = 400


async def enrolled(made: World) -> Person:
    """Nina has set up a password and an app by an invitation."""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    await newcomer.password(browser)
    key = await newcomer.app(made, browser)
    assert await newcomer.kept(browser) == newcomer.SET_UP
    return Person(user_name="nina", password=NEW, totp_secret=key)


async def signs_in(made: World, person: Person) -> None:
    """In a new browser."""
    made.clock.pass_(60)
    browser = await factors.at_sign_in(made)
    await made.factors(browser, person)


async def pruned(made: World) -> None:
    """A long time after, the audit holds nothing of before."""
    made.clock.pass_(DORMANT_DAYS * 86400)
    async with open_registry(settings.load(base_url=BASE, data_dir=made.directory, developer_mode=True)) as stores:
        event = AuditEvent(actor="operator", action="audit.prune")
        kept = RetentionPeriods(audit_days=1, sign_in_days=1)
        assert (await stores.registry.retention.prune(event, now=made.clock(), kept=kept)).removed
    assert not await made.audit("sign_in.complete")


async def test_the_first_sign_in_after_an_invitation_brings_no_email_and_the_next_new_browser_does() -> None:
    """D47: whatever the audit has forgotten by then."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        person = await enrolled(made)
        postbox.emails.clear()
        await signs_in(made, person)
        assert [str(email.subject) for email in postbox.emails] == []
        await pruned(made)
        await signs_in(made, person)
        assert [str(email.subject) for email in postbox.emails] == [NEW_DEVICE]
