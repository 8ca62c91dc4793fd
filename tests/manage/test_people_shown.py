"""Who was shown is who gets it: a form that was made for other names changes nothing (D68)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec.structs import replace

from corpid.flows.directory import approvals, imports
from corpid.flows.directory.appointments import load_member_level as held_by
from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.rules.directory.memberships import placeholder
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    ChangedMeanwhile,
    Membership,
    Precondition,
    User,
)
from tests.contexts import context
from tests.manage.access_scene import checker, employed, identifier, roles, staffed
from tests.manage.scene import ACME, BANYAN, go, in_portal, send
from tests.manage.test_helping_members import able
from tests.manage.test_people import invited
from tests.manage.test_requests import ROLE, acme, requested
from tests.manage.test_third_parties import GRANT, ROW, page, row, three
from tests.manage.test_third_parties import membership as membership_of
from tests.manage.test_who_is_meant import INVITED, limit, member, owner, provisioned, rename
from tests.postbox import Postbox
from tests.sign_in.world import World, entity, form_of, new_world, shown_again

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.browser import Browser

OTHER: Final = "mallory@elsewhere.example"
LOOK_AGAIN: Final = "Names have changed since you looked. Check who is meant, and decide again."
GINA: Final = "00000000-0000-4000-8000-000000000077"
KIM: Final = "00000000-0000-4000-8000-000000000078"


async def with_gina(made: World, **more: str) -> None:
    """Acme without approvals: Alice and Bob own it, Cora belongs, Gina is invited."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd."), placeholder(INVITED), replace(INVITED, **more))


async def held(made: World, user_id: str) -> list[str]:
    where = {"user_id": user_id, "entity_id": ACME}
    found = await made.provider.registry.directory.page(Assignment, where, after=("",) * 6, limit=9)
    return [each.role for each in found]


async def sent(made: World, browser: Browser, path: str, /, **typed: str) -> httpx.Response:
    """Send the form of a page as it was shown."""
    return await send(made, browser, path, **{**form_of(browser, "form_token"), **typed})


# --- the invitation that goes to another address


async def test_a_role_confirmed_for_one_address_is_not_given_to_another(made: World) -> None:
    """D68: the page says who, and a colleague redirects the invitation before it is confirmed."""
    await with_gina(made)
    browser = await in_portal(made, "access/new?person=m-gina")
    await browser.fill_and_submit(access="PERMITS/Maker", end="year-end")
    assert "gina@acme.example (Gina Teo) may act as Maker" in browser.page.text
    await rename(made, await member(made, "f1e2"), "Gina Teo", email=OTHER)
    await browser.fill_and_submit("form_token")
    assert await held(made, "f1e2") == []
    assert LOOK_AGAIN in browser.page.text
    assert f"{OTHER} (Gina Teo) may act as Maker" in browser.page.text
    await browser.fill_and_submit("form_token")  # who has looked again may
    assert await held(made, "f1e2") == ["Maker"]


async def test_copied_roles_go_to_the_address_that_the_page_showed(made: World) -> None:
    """D68."""
    await with_gina(made)
    await made.write(ROLE)
    cora = (await member(made, "id-cora")).membership_id
    browser = await in_portal(made, f"access/copy?person=m-gina&from={cora}")
    assert "gina@acme.example (Gina Teo) may act as Maker" in browser.page.text
    form = browser.page.form_with("from")
    assert form is not None
    [box] = [name for name in form.names() if name.startswith("copy-")]
    await rename(made, await member(made, "f1e2"), "Gina Teo", email=OTHER)
    await browser.fill_and_submit("from", **{box: "yes"})
    assert await held(made, "f1e2") == []
    assert LOOK_AGAIN in browser.page.text


async def test_a_level_confirmed_for_one_address_is_not_given_to_another(made: World) -> None:
    """D68: owner of the organisation."""
    await with_gina(made, membership_id=GINA)
    browser = await in_portal(made, f"administrators/{GINA}")
    await browser.fill_and_submit("level", level="owner")
    assert "gina@acme.example (Gina Teo) becomes an owner of Acme Pte. Ltd." in browser.page.text
    await rename(made, await member(made, "f1e2"), "Gina Teo", email=OTHER)
    await browser.fill_and_submit("confirmed")
    assert await made.provider.registry.directory.read(Administrator, [("f1e2", ACME)]) == {}
    assert LOOK_AGAIN in browser.page.text
    assert OTHER in browser.page.text


@pytest.mark.parametrize("door", ["role", "level", "no level"])
async def test_an_invitation_that_is_redirected_at_the_moment_of_writing_gives_nothing(made: World, door: str) -> None:
    """D68: between the comparison and the write."""
    await with_gina(made)
    level = Administrator(user_id="f1e2", entity_id=ACME, level="administrator", services=())
    if door == "no level":
        await made.write(level)
    registry, now, alice = made.provider.registry, made.clock(), owner(made, "alice")
    seen = await held_by(registry, alice, "m-gina")
    assert seen is not None
    await made.write(replace(seen.membership, email=OTHER))
    asking, of = RequestDetails("r", now, "u"), Precondition(Membership, seen.membership.key, seen.membership)
    role = replace(ROLE, user_id="f1e2")
    writing = {
        "role": write_changes(registry, alice, [Change(None, role)], asking=asking, seen=[of]),
        "level": write_changes(registry, alice, [Change(seen.administrator, level)], asking=asking, seen=[of]),
        "no level": write_changes(registry, alice, [Change(seen.administrator, None)], asking=asking, seen=[of]),
    }
    with pytest.raises(ChangedMeanwhile):
        await writing.pop(door)
    for each in writing.values():
        each.close()
    assert await held(made, "f1e2") == []


# --- every form about one person


CHANGE: Final = f"access/change/{identifier(checker())}"
FORMS: Final[dict[str, dict[str, str]]] = {
    f"access/remove/{identifier(checker())}": {},
    CHANGE: {},
    f"administrators/{KIM}/remove": {},
    "person/m-marcus/details": {"name": "Marcus B. Lee"},
    "person/m-marcus/suspend": {},
    "person/m-marcus/end": {},
    "person/m-lena/restore": {},
    "person/m-priya/revoke": {},
    "person/m-priya/send-again": {},
    "person/m-marcus/new-password": {},
    "person/m-marcus/new-second-step": {},
    "person/m-marcus/unlock": {},
    "access-review/m-marcus/end": {},
}


@pytest.mark.parametrize("path", FORMS, ids=[path.replace("/", "-")[:24] for path in FORMS])
async def test_a_form_that_was_shown_for_other_names_changes_nothing(path: str) -> None:
    """D68: it is shown again, with the names of now; then it is good."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await staffed(made)
        await able(made)
        await invited(made)
        await employed(made, "lena", "Lena Koh", enabled=False)
        level = Administrator(user_id="id-kim", entity_id=ACME, level="administrator", services=())
        await made.write(
            User(user_id="id-kim", user_name="kim", name="Kim Ho"),
            Membership(user_id="id-kim", entity_id=ACME, membership_id=KIM),
            level,
            checker(),
        )
        browser = await in_portal(made, path)
        await summary(browser, path)
        people = ("id-marcus", "id-kim", "id-lena", "p-priya")
        for each in people:
            await made.write(replace(await member(made, each), name="Alice Tan"))
        before = await everything(made, people)
        answer = await sent(made, browser, path, **FORMS[path])
        await made.provider.background_tasks.settle()
        answer = await shown_again(browser, answer)
        assert LOOK_AGAIN in answer.text
        assert await everything(made, people) == before
        assert postbox.emails == []
        await go(made, browser, path)
        await summary(browser, path)
        assert (await sent(made, browser, path, **FORMS[path])).status_code == 303
        await made.provider.background_tasks.settle()
        assert await everything(made, people) != before


async def summary(browser: Browser, path: str) -> None:
    """Come to the page that asks for the confirmation."""
    if path == CHANGE:
        await browser.fill_and_submit(role="Approver")


async def everything(made: World, people: tuple[str, ...]) -> list[Any]:
    """What is stored about people of Acme, and what was recorded."""
    directory, keys = made.provider.registry.directory, [(each, ACME) for each in people]
    stored: list[Any] = [await directory.read(Membership, keys), await directory.read(Administrator, keys)]
    return [*stored, await roles(made), len(await made.provider.registry.audit.entries(limit=1000))]


@pytest.mark.parametrize("everybody", [True, False], ids=["everybody", "selected"])
async def test_whoever_is_kept_in_a_review_is_whom_the_list_showed(made: World, everybody: bool) -> None:
    """D68: names do not reopen a review, yet nobody is kept unseen."""
    await with_gina(made)
    browser = await in_portal(made, "access-review?begin=yes&access=none")
    form = browser.page.form_with("decision")
    assert form is not None
    [name] = [each.name for each in form.controls if each.name.startswith("select-m-gina.")]
    fields = {"all": "yes"} if everybody else {name: "yes"}
    await rename(made, await member(made, "f1e2"), "Gina Teo", email=OTHER)
    token = form_of(browser, "form_token")
    answer = await send(made, browser, "access-review?begin=yes&access=none", **token, **fields, decision="keep")
    answer = await shown_again(browser, answer)
    assert LOOK_AGAIN in answer.text
    assert OTHER in answer.text
    assert await access_review_decisions(made) == {}


async def access_review_decisions(made: World) -> dict[str, Any]:
    found: dict[str, Any] = await made.provider.registry.access_reviews.all_decisions(ACME)
    return found


@pytest.mark.parametrize("form", ["give", "confirm", "change", "take-away"])
async def test_a_third_partys_form_that_was_shown_for_other_names_changes_nothing(made: World, form: str) -> None:
    """D56, D68."""
    await three(made)
    before = None if form in {"give", "confirm"} else ROW
    await made.write(GRANT, *([before] if before else []))
    finn = await membership_of(made, "finn", BANYAN)
    path = f"{page('assign')}?person={finn}" if before is None else page(PAGES[form], ROW)
    browser = await in_portal(made, path, who="dora")
    if form == "confirm":
        await browser.fill_and_submit("start", "end")
    elif form == "change":
        await browser.fill_and_submit("end", end="2027-12-31")
    key = ("id-finn", BANYAN)
    found = (await made.provider.registry.directory.read(Membership, [key]))[key]
    await made.write(replace(found, name="Dora Ong"))
    await browser.fill_and_submit("form_token")
    assert LOOK_AGAIN in browser.page.text
    assert "finn (Dora Ong)" in browser.page.text
    assert await row(made) == before


PAGES: Final = {"change": "change-role", "take-away": "take-away"}


# --- a table


async def swapped(made: World) -> Browser:
    """Alice looks at what a table does for c.chan; a token then calls Mallory so."""
    await with_gina(made)
    await made.person("mallory", entity(ACME, "Acme Pte. Ltd."), name="Mallory")
    await provisioned(made, await member(made, "id-cora"), user_name="c.chan")
    browser = await in_portal(made, "access/import")
    await browser.fill_and_submit("table", table="user_name,service,role\nc.chan,PERMITS,Maker")
    assert "cora (Cora Chan) may act as Maker" in browser.page.text
    await provisioned(made, await member(made, "id-cora"), user_name="cora")
    await provisioned(made, await member(made, "id-mallory"), user_name="c.chan")
    return browser


async def test_a_table_is_carried_out_for_the_people_whom_its_preview_showed(made: World) -> None:
    """D68: a token swaps the user names between preview and confirmation."""
    browser = await swapped(made)
    await browser.fill_and_submit("table", button="confirm")
    assert await held(made, "id-mallory") == []
    assert LOOK_AGAIN in browser.page.text
    assert "mallory may act as Maker" in browser.page.text


async def test_a_line_that_invited_somebody_new_is_not_carried_out_for_a_member(made: World) -> None:
    """D68: two lines change places, with the same people."""
    await with_gina(made)
    await provisioned(made, await member(made, "id-cora"), user_name="c.chan")
    browser = await in_portal(made, "access/import")
    lines = ("x.new,Xin New,xin@acme.example,PERMITS,Maker", "c.chan,Cora Chan,cora@acme.example,,")
    await browser.fill_and_submit("table", table="\n".join(("user_name,name,email,service,role", *lines)))
    assert "xin@acme.example (Xin New) may act as Maker" in browser.page.text
    await provisioned(made, await member(made, "id-cora"), user_name="x.new")
    await browser.fill_and_submit("table", button="confirm")
    assert await held(made, "id-cora") == []
    assert LOOK_AGAIN in browser.page.text


async def test_a_table_that_invites_is_confirmed_as_it_was_shown(made: World) -> None:
    """D68: what is made anew for each look is nobody's name."""
    await with_gina(made)
    browser = await in_portal(made, "access/import")
    lines = "user_name,name,email,service,role\nx.new,Xin New,,PERMITS,Maker\ncora,,,PERMITS,Maker"
    await browser.fill_and_submit("table", table=lines)
    await browser.fill_and_submit("table", button="confirm")
    assert "The table has been applied." in browser.page.text
    assert await held(made, "id-cora") == ["Maker"]


async def test_a_member_who_changes_at_the_moment_of_writing_gets_nothing_from_a_table(made: World) -> None:
    """D68: between the comparison and the write."""
    await with_gina(made)
    registry, now, alice = made.provider.registry, made.clock(), owner(made, "alice")
    table = "user_name,service,role\ngina@acme.example,PERMITS,Maker"
    acme_now = entity(ACME, "Acme Pte. Ltd.")
    today = (await context(made.provider)).day
    plan = await imports.plan_import(
        registry, alice, acme_now, table, now=now, today=today, new_id=made.provider.new_id
    )
    await made.write(replace(await member(made, "f1e2"), email=OTHER))
    with pytest.raises(ChangedMeanwhile):
        await imports.submit_import(registry, limit(made), alice, plan, RequestDetails("r", now, "u"))
    assert await held(made, "f1e2") == []


# --- a request


class Renaming:
    """A directory in which somebody is renamed just before a read."""

    def __init__(self, made: World, before: int) -> None:
        self._made, self._directory, self.left = made, made.provider.registry.directory, before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._directory, name)

    async def read(self, *wanted: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            await self._made.write(replace(await member(self._made, "id-cora"), name="Alice Tan"))
        return await self._directory.read(*wanted)


async def test_what_an_approver_is_shown_is_what_they_sign(made: World) -> None:
    """D68: at whichever read of the page somebody is renamed."""
    await acme(made)
    found = await requested(made)
    alice, cora = owner(made, "alice"), await member(made, "id-cora")
    left = 0
    for before in range(1, 30):
        await made.write(cora)
        directory = Renaming(made, before)
        registry: Any = With(made.provider.registry, directory)
        shown = await approvals.load_request(registry, alice, found.request_id, now=made.clock())
        assert shown.name_changes is not None
        assert shown.names.people["id-cora"] == shown.name_changes.people["id-cora"], before
        left = directory.left
    assert left > 0  # every read was tried


class With:
    """A registry with another directory."""

    def __init__(self, registry: Any, directory: Any) -> None:
        self._registry, self.directory = registry, directory

    def __getattr__(self, name: str) -> Any:
        return getattr(self._registry, name)
