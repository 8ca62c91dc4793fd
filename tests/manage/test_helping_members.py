"""An administrator helps members to sign in: links to their own address, and unlocking (D69)."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec.structs import replace

from corpid.flows import namespaces
from corpid.flows.account.links import find_lapse
from corpid.flows.directory import member_help
from corpid.flows.directory.actors import load_administrator
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.records import (
    Administrator,
    AdministratorLevel,
    Change,
    ChangedMeanwhile,
    Membership,
    Operator,
)
from corpid.rules.limits import (
    DAY,
    HELP_LINKS_PER_MEMBER,
    HELP_LINKS_PER_PERSON,
    HELP_PER_ENTITY,
    UNLOCK_AGAIN_SECONDS,
)
from tests.account.scene import at_account
from tests.account.test_own_data import copy
from tests.contexts import context
from tests.enrolment import newcomer
from tests.manage.access_scene import employed, staffed
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal, send
from tests.manage.test_people import invited
from tests.postbox import Postbox
from tests.sign_in.world import PASSWORD, SECRET, World, form_of, new_world

if TYPE_CHECKING:
    from corpid.flows.directory.member_help import Help
    from corpid_dev.relying_party.browser import Browser

MARCUS: Final = "person/m-marcus"
PAGES: Final[dict[Help, str]] = {"password": "new-password", "second_factor": "new-second-step", "unlock": "unlock"}
DONE: Final = {
    "password": "link.password", "second_factor": "link.second_factor", "unlock": "user.unlock",
}  # fmt: skip
ADDRESS: Final = "marcus@acme.example"
AN_EMAIL: Final = "If the account can be helped this way, an e-mail is on its way to its own address."
REFERRED: Final = "We cannot help with your account in this way: ask the operator of CorpID."
UNLOCKED: Final = "If the account can be helped this way, it is unlocked in a moment, and an e-mail says so."


async def able(made: World, user_name: str = "marcus") -> None:
    """Give a person of Acme a password and an app."""
    user_id, password_hash = f"id-{user_name}", await made.passwords.hash(PASSWORD)
    await made.write(Credentials(user_id=user_id, password_hash=password_hash, totp_secret=SECRET))


async def asked(made: World, browser: Browser, help_: Help, member: str = MARCUS) -> str:
    """Help a member, and wait for what follows the answer; the text of the page that is shown then."""
    await go(made, browser, f"{member}/{PAGES[help_]}")
    await browser.fill_and_submit("form_token")
    text = browser.page.text
    await made.provider.background_tasks.settle()
    return text


async def outcome(made: World, help_: Help) -> list[tuple[str, str, str]]:
    """What came of each help, as operators read it: outcome, actor, reason."""
    return [
        (each.outcome, each.actor, each.detail.get("reason", ""))
        for each in await made.audit(DONE[help_])
        if each.detail.get("requested_by") == "user:id-alice"
    ]


async def helping(made: World, entity_id: str = ACME) -> Any:
    """Alice as an administrator who has just signed in."""
    now = made.clock()
    return await load_administrator(made.provider.registry, "id-alice", entity_id, auth_time=now, now=now)


async def at_entity(made: World, entity_id: str) -> Browser:
    """Alice in the portal of one of her organisations."""
    browser = await in_portal(made)
    await browser.fill_and_submit("form_token", entity=entity_id)
    return browser


async def member(made: World, user_name: str = "marcus", entity_id: str = ACME) -> Membership:
    key = (f"id-{user_name}", entity_id)
    found: Membership = (await made.provider.registry.directory.read(Membership, [key]))[key]
    return found


@pytest.mark.parametrize(
    ("help_", "first"), [("password", "Confirm it is you"), ("second_factor", "Enter your password")]
)
async def test_a_link_goes_to_the_accounts_own_address_says_who_asked_and_asks_for_the_other_factor(
    help_: Help, first: str
) -> None:
    """D69: whatever address the organisation wrote; the link is on no page."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        await made.write(replace(await member(made), email="boss@evil.example", name="The Boss"))
        browser = await in_portal(made, MARCUS)
        await go(made, browser, f"{MARCUS}/{PAGES[help_]}")
        assert "the account marcus" in browser.page.text
        text = await asked(made, browser, help_)
        assert AN_EMAIL in text
        [email] = postbox.emails
        assert (email.to, await outcome(made, help_)) == (ADDRESS, [("ok", "system", "")])
        assert "alice, who administers Acme Pte. Ltd., asked us to help you sign in." in email.text
        assert "Alice Tan" not in email.text  # she chose that name herself
        assert "If you did not expect this, do not use the link, and tell the operator of CorpID." in email.text
        assert "your organisation's CorpID administrator" not in email.text  # perhaps she sent it
        for page in (MARCUS, f"{MARCUS}/{PAGES[help_]}", "history"):
            await go(made, browser, page)
            assert browser.response is not None
            assert not re.search(r"enrol|[0-9A-Z]{4}(-[0-9A-Z]{4}){4}", browser.response.text)
        opened = await newcomer.opened(made, newcomer.link_in(postbox))
        assert opened.page.heading == first


async def test_unlocking_ends_pauses_and_the_person_is_told_by_whom() -> None:
    """D45, D69."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        entry = namespaces.ATTEMPT_BUCKET.entry(made.provider.policy.deployment_url, "codes", "marcus")
        async with made.provider.transient.batch(made.clock()) as batch:
            await entry.count(batch, 9)
        browser = await in_portal(made)
        assert UNLOCKED in await asked(made, browser, "unlock")
        assert await entry.read(made.provider.transient, now=made.clock()) is None
        [email] = postbox.emails
        assert (email.to, email.subject) == (ADDRESS, "Your account was unlocked")
        for part in ("alice, who administers Acme Pte. Ltd., asked us", "change your password", "User name: marcus"):
            assert part in email.text
        assert "Device" not in email.text
        assert await outcome(made, "unlock") == [("ok", "system", "")]


async def _operator(made: World) -> None:
    await made.write(Operator(user_id="id-marcus", level="support"))


async def _disabled(made: World) -> None:
    await made.disable("marcus")


async def _bare(made: World) -> None:
    await made.write(Credentials(user_id="id-marcus"))


async def _unreachable(made: World) -> None:
    user = await made.provider.registry.directory.user("id-marcus")
    await made.write(replace(user, email=""))


async def _elsewhere(made: World) -> None:
    await made.write(
        Membership(user_id="id-marcus", entity_id=BANYAN, membership_id="m-other"),
        Administrator(user_id="id-marcus", entity_id=BANYAN, level="owner"),
    )


_WHO: Final = {
    "operator": (_operator, "operators cannot be changed here", 0),
    "no factors": (_bare, "the account has no {factor}", 1),
    "no address": (_unreachable, "the account has no e-mail address", 0),
    "elsewhere": (_elsewhere, "", 1),
}


@pytest.mark.parametrize("help_", ["password", "second_factor"])
@pytest.mark.parametrize("who", sorted(_WHO))
async def test_every_member_has_the_same_button_the_same_answer_and_the_same_history(who: str, help_: Help) -> None:
    """D69: whatever else they belong to and whatever they hold; nothing is sent to an operator of the deployment."""
    postbox = Postbox()
    furnish, reason, emails = _WHO[who]

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        await able(made, "nadia")
        await furnish(made)
        browser = await in_portal(made)
        shown = []
        for name, full in (("nadia", "Nadia Rahman"), ("marcus", "Marcus Lee")):
            page = f"person/m-{name}"
            await go(made, browser, page)
            pages = [browser.page.text]
            await go(made, browser, f"{page}/{PAGES[help_]}")
            pages.append(browser.page.text)
            pages.append((await asked(made, browser, help_, page)).partition("User name")[0])
            await go(made, browser, page)
            pages.append(browser.page.text.partition("Last changes")[2])
            shown.append([re.sub(full, "NAME", each).replace(name, "user").replace("Not given", "") for each in pages])
        nadias, marcuss = ([each.replace("user@acme.example", "") for each in pages] for pages in shown)
        assert nadias == marcuss
        assert [each.to for each in postbox.emails].count(ADDRESS) == emails
        factor = {"password": "second factor", "second_factor": "password"}[help_]
        expected = ("refused", "system", reason.format(factor=factor)) if reason else ("ok", "system", "")
        assert (await outcome(made, help_))[1] == expected


@pytest.mark.parametrize(
    ("who", "why", "emails"),
    [
        (_operator, "operators cannot be changed here", 0),
        (_disabled, "the account is disabled", 1),
        (_unreachable, "the account has no e-mail address", 0),
    ],
)
async def test_no_operator_and_nobody_who_is_disabled_or_cannot_be_told_is_unlocked(
    who: Any, why: str, emails: int
) -> None:
    """D69: the answer is the same, operators read why nothing happened, and the person is referred to them."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        await who(made)
        entry = namespaces.ATTEMPT_BUCKET.entry(made.provider.policy.deployment_url, "codes", "marcus")
        async with made.provider.transient.batch(made.clock()) as batch:
            await entry.count(batch, 9)
        browser = await in_portal(made)
        assert UNLOCKED in await asked(made, browser, "unlock")
        assert await entry.read(made.provider.transient, now=made.clock()) == 9
        assert [each.to for each in postbox.emails] == [ADDRESS] * emails
        assert all(REFERRED in each.text and "alice, who administers" in each.text for each in postbox.emails)
        assert await outcome(made, "unlock") == [("refused", "system", why)]


async def test_who_lacks_the_other_factor_is_referred_to_the_operator() -> None:
    """D69: never a link that sets everything up anew."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await _bare(made)
        await asked(made, await in_portal(made), "password")
        [email] = postbox.emails
        assert REFERRED in email.text
        assert "alice, who administers Acme Pte. Ltd.," in email.text
        assert "/enrol" not in email.text
        assert not await made.provider.registry.factors.links_of("id-marcus")


async def test_the_history_names_who_helped_whom_and_neither_file_says_what_came_of_it() -> None:
    """D57, D61, D69: of an operator of the deployment the administrator reads the same as of anybody else."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        for name in ("marcus", "nadia"):
            await able(made, name)
        await _operator(made)
        browser = await in_portal(made)
        for name in ("marcus", "nadia"):
            await asked(made, browser, "password", f"person/m-{name}")
        await go(made, browser, "history")
        for name in ("marcus (Marcus Lee)", "nadia (Nadia Rahman)"):
            assert f"Help for {name} with signing in: a link for a new password" in browser.page.text
        [first, second] = await made.audit("membership.send_password_link")
        assert (first.object, first.actor, first.entity_id) == (f"id-marcus/{ACME}", "user:id-alice", ACME)
        assert second.object == f"id-nadia/{ACME}"
        own = (await copy(made, await at_account(made))).json()["events"]
        told = [each for each in own if "link" in each["action"]]
        assert [(each["action"], each["outcome"], each["entity"]) for each in told] == [
            ("membership.send_password_link", "ok", ACME)
        ] * 2
        assert all(each["details"].keys() <= {"address"} for each in told)


async def test_the_person_reads_it_in_their_own_copy_too() -> None:
    """D57, D61, D69."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await made.person("nina", name="Nina Novak", email="nina@acme.example")
        await made.write(Membership(user_id="id-nina", entity_id=ACME, membership_id="m-nina"))
        await asked(made, await in_portal(made), "unlock", "person/m-nina")
        events = (await copy(made, await at_account(made, who="nina"))).json()["events"]
        found = {each["action"]: each for each in events}
        assert (found["membership.unlock"]["by"], found["membership.unlock"]["entity"]) == ("person", ACME)
        assert found["user.unlock"]["by"] == "system"


LEVELS: Final = ("", "sub_administrator", "administrator", "owner")


@pytest.mark.parametrize(
    ("own", "helped"), [("owner", LEVELS[:3]), ("administrator", LEVELS[:2]), ("sub_administrator", ())]
)
async def test_only_members_below_ones_own_level_are_helped(own: AdministratorLevel, helped: tuple[str, ...]) -> None:
    """D53, D69: the others have no button, and a forged form finds nothing."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made, level=own, services=("HARBOUR",) if own == "sub_administrator" else ())
        await able(made)
        browser = await in_portal(made)
        for level in LEVELS:
            if level:
                await appoint(made, who="marcus", level=level, services=())  # type: ignore[arg-type]
            await go(made, browser, MARCUS)
            links = [target for target, _ in browser.page.links if target.endswith(tuple(PAGES.values()))]
            assert (len(links) == 3) == (level in helped), level
            token = form_of(browser, "form_token") if browser.page.form_with("form_token") else {}
            if level not in helped:
                for page in PAGES.values():
                    assert (await send(made, browser, f"{MARCUS}/{page}", **token)).status_code in {303, 404}
        await made.provider.background_tasks.settle()
        assert not postbox.emails
        actor = await helping(made)
        with pytest.raises(Forbidden):  # by now Marcus is an owner
            await member_help.request_help(await context(made.provider), await member(made), "password", actor=actor)
        assert not await made.audit("membership.send_password_link")


async def test_nobody_helps_themselves_somebody_of_another_organisation_or_who_has_not_accepted() -> None:
    """D54, D60, D69: the organisation is part of the key."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await employed(made, "zoe", "Zoe Banyan", BANYAN)
        await invited(made)
        await made.write(replace(await member(made, "alice"), membership_id="m-alice"))
        browser = await in_portal(made, f"{MARCUS}/unlock")
        token = form_of(browser, "form_token")
        for who in ("m-alice", "m-zoe", "m-priya", "id-marcus", "m-nobody"):
            for page in PAGES.values():
                assert (await send(made, browser, f"person/{who}/{page}", **token)).status_code == 404
        actor = await helping(made)
        for forged in (replace(await member(made), entity_id=BANYAN), await member(made, "zoe", BANYAN)):
            with pytest.raises(Forbidden):
                await member_help.request_help(await context(made.provider), forged, "unlock", actor=actor)
        await made.provider.background_tasks.settle()
        assert not postbox.emails
        assert not await made.audit("membership.unlock")


async def test_help_needs_a_recent_sign_in() -> None:
    """D54."""
    async with new_world(postbox=Postbox()) as made:
        await staffed(made)
        browser = await in_portal(made, f"{MARCUS}/unlock")
        token = form_of(browser, "form_token")
        made.clock.pass_(901)
        answer = await send(made, browser, f"{MARCUS}/unlock", **token)
        assert answer.status_code == 303
        assert "/manage/" not in answer.headers["Location"]
        await made.provider.background_tasks.settle()
        assert not await made.audit("membership.unlock")
        actor = replace(await helping(made), auth_time=made.clock() - 901)
        with pytest.raises(Forbidden, match="sign-in within the last 15 minutes"):
            await member_help.request_help(await context(made.provider), await member(made), "unlock", actor=actor)


async def test_a_level_that_ended_or_rose_meanwhile_gives_nothing() -> None:
    """D53, D69: looked at again in the transaction, and before anything is sent."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        await appoint(made, who="nadia", level="sub_administrator")
        actor, of, at = await helping(made), await member(made), await context(made.provider)
        await member_help.request_help(at, of, "password", actor=actor)
        await appoint(made, who="marcus", level="owner")
        await member_help.carry_out_help(at, of, "password", actor=actor)
        assert not postbox.emails
        assert [each[0] for each in await outcome(made, "password")] == ["refused"]
        await made.write(replace(of, name="Another"))
        await appoint(made, who="marcus", level="administrator")
        with pytest.raises(ChangedMeanwhile):
            await member_help.request_help(at, of, "password", actor=actor)
        await appoint(made, level="administrator")
        with pytest.raises(Forbidden, match="no longer administer"):
            await member_help.request_help(at, await member(made, "nadia"), "password", actor=actor)


async def test_a_link_ends_with_the_membership_for_which_it_was_asked() -> None:
    """D69: also if the person is back at once, by a command or an earlier invitation, which know no moment of joining."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        await asked(made, await in_portal(made), "password")
        registry, of = made.provider.registry, await member(made)
        [link] = await registry.factors.links_of("id-marcus")
        assert not await find_lapse(registry, link, now=made.clock())
        await registry.directory.write([Change(of, None)])
        assert "no longer belongs" in await find_lapse(registry, link, now=made.clock())
        await made.write(replace(of, membership_id="again", created_at=0))
        [link] = await registry.factors.links_of("id-marcus")
        assert "joined it again" in await find_lapse(registry, link, now=made.clock())


async def test_an_unlocking_once_an_hour_whichever_organisation_asks() -> None:
    """D69: two organisations of one person are not told of each other."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        await appoint(made, BANYAN)
        await made.write(Membership(user_id="id-marcus", entity_id=BANYAN, membership_id="m-other"))
        browser = await at_entity(made, ACME)
        assert UNLOCKED in await asked(made, browser, "unlock")
        made.clock.pass_(120)
        assert "at most once an hour: wait" in await asked(made, browser, "unlock")
        other = await at_entity(made, BANYAN)
        assert UNLOCKED in await asked(made, other, "unlock", "person/m-other")
        assert [each[0] for each in await outcome(made, "unlock")] == ["ok", "refused"]
        assert len(postbox.emails) == 1
        made.clock.pass_(UNLOCK_AGAIN_SECONDS)
        assert UNLOCKED in await asked(made, await at_entity(made, ACME), "unlock")
        assert len(postbox.emails) == 2


async def test_of_two_unlockings_at_the_same_moment_one_is_carried_out() -> None:
    """D69, docs/architecture.md, "One-time use"."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        actor, of, at = await helping(made), await member(made), await context(made.provider)
        await asyncio.gather(*(member_help.carry_out_help(at, of, "unlock", actor=actor) for _ in range(4)))
        assert sorted(each[0] for each in await outcome(made, "unlock")) == ["ok", "refused", "refused", "refused"]
        assert len(postbox.emails) == 1


async def test_a_person_gets_a_few_links_a_day_from_one_organisation_and_from_all_together() -> None:
    """D47, D69: a hostile administrator fills no mailbox."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        browser = await in_portal(made)
        for _ in range(HELP_LINKS_PER_MEMBER):
            made.clock.pass_(61)
            assert AN_EMAIL in await asked(made, browser, "password")
        made.clock.pass_(61)
        assert "one person gets at most 5 links a day" in await asked(made, browser, "second_factor")
        assert len(postbox.emails) == HELP_LINKS_PER_MEMBER
        actor, of, at = await helping(made), await member(made), await context(made.provider)
        for _ in range(HELP_LINKS_PER_PERSON):
            await member_help.carry_out_help(at, of, "second_factor", actor=actor)
        assert len(postbox.emails) == HELP_LINKS_PER_PERSON
        made.clock.pass_(DAY)
        assert AN_EMAIL in await asked(made, await in_portal(made), "password")


async def test_an_organisation_helps_so_often_a_day() -> None:
    """D47, D69."""
    async with new_world(postbox=Postbox()) as made:
        await staffed(made)
        url = made.provider.policy.deployment_url
        async with made.provider.transient.batch(made.clock()) as batch:
            await namespaces.HELP_BY_ENTITY.entry(url, ACME).count(batch, HELP_PER_ENTITY)
        browser = await in_portal(made)
        assert "at most 1,000 times a day" in await asked(made, browser, "unlock")
        assert not await made.audit("membership.unlock")


async def test_a_new_link_spares_the_enrolment_that_its_person_has_begun() -> None:
    """D34, D69: nobody is thrown out of choosing a password by an administrator."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        browser = await in_portal(made)
        await asked(made, browser, "second_factor")
        marcus = await newcomer.opened(made, newcomer.link_in(postbox))
        made.clock.pass_(61)
        await asked(made, browser, "second_factor")
        assert await newcomer.password(marcus, PASSWORD) == "Set up your second step"


async def test_the_email_is_in_the_language_of_the_person() -> None:
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        await made.write(replace(await made.provider.registry.directory.user("id-marcus"), language="ms"))
        browser = await in_portal(made)
        await asked(made, browser, "password")
        await asked(made, browser, "unlock")
        assert [each.language for each in postbox.emails] == ["ms", "ms"]
        for email in postbox.emails:
            assert "alice, yang mentadbir Acme Pte. Ltd." in email.text_in("ms")


async def test_without_mail_nobody_is_helped_and_each_page_says_who_can(made: World) -> None:
    """D69: the person is notified, also of an unlocking, and a link is never shown instead."""
    await staffed(made)
    await able(made)
    browser = await in_portal(made, f"{MARCUS}/suspend")
    token = form_of(browser, "form_token")
    for page in PAGES.values():
        await go(made, browser, f"{MARCUS}/{page}")
        assert "This system sends no e-mails at present, so only the operator can help." in browser.page.text
        assert "gets an e-mail" not in browser.page.text
        assert (await send(made, browser, f"{MARCUS}/{page}", **token)).status_code == 404
    await made.provider.background_tasks.settle()
    assert not await made.audit("membership.unlock")
    assert not await made.audit("user.unlock")


@pytest.mark.parametrize("own", ["owner", "administrator"])
async def test_a_page_says_who_helps_those_of_ones_own_level_and_nothing_of_the_invited(
    own: AdministratorLevel,
) -> None:
    """D60, D69: an invited owner has no account yet, with which the operator could help."""
    who_helps = "Only an owner can help administrators to sign in, and only the operator can help owners."

    async with new_world() as made:
        await staffed(made, level=own)
        await invited(made)
        browser = await in_portal(made)
        await go(made, browser, MARCUS)
        assert who_helps not in browser.page.text
        for user_id in ("id-marcus", "p-priya"):
            await made.write(Administrator(user_id=user_id, entity_id=ACME, level="owner"))
        await go(made, browser, MARCUS)
        assert who_helps in browser.page.text
        await go(made, browser, "person/m-priya")
        assert "has not accepted yet" in browser.page.text
        assert "Help with signing in" not in browser.page.text
