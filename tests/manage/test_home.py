"""The portal's home page, and access that ends soon (D53)."""

from __future__ import annotations

from datetime import date, timedelta

from msgspec.structs import replace

from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.rules.directory.records import Assignment, Change, ChangeRequest, ThirdPartyGrant
from tests.manage.scene import ACME, BANYAN, appoint, follow, go, in_portal
from tests.manage.test_who_is_meant import owner
from tests.sign_in.world import World, entity


def in_days(made: World, days: int) -> str:
    return (date.fromtimestamp(made.clock()) + timedelta(days=days)).isoformat()  # noqa: DTZ012 - days apart from its edges


async def scene(made: World) -> None:
    """Bob's access ends soon, Carol's later; an offer and a request wait."""
    for who, name in (("bob", "Bob Lim"), ("carol", "Carol Ng")):
        await made.person(who, entity(ACME, "Acme Pte. Ltd."), name=name)
    await appoint(made, level="administrator", who="bob")
    for who, days in (("bob", 10), ("carol", 200)):
        await made.write(
            Assignment(
                user_id=f"id-{who}", entity_id=ACME, service_id="PERMITS", role="Maker", end_date=in_days(made, days)
            )
        )
    await made.write(ThirdPartyGrant(client_entity_id=BANYAN, entity_id=ACME, service_id="PERMITS", state="offered"))
    for requester in ("bob", "alice"):
        await made.write(
            ChangeRequest(
                request_id=f"00000001-{requester}", entity_id=ACME, requester=f"user:id-{requester}", changes=(),
                reason="please", created_at=int(made.clock()),
            )
        )  # fmt: skip


async def test_the_home_page_says_in_sentences_what_there_is_each_a_link(made: World) -> None:
    """D53, D55: of the requests those that the reader can decide on."""
    await appoint(made)
    await scene(made)
    browser = await in_portal(made)
    links = {text: target for target, text in browser.page.links}
    assert links["3 people belong to your organisation."].endswith("/manage/people")
    assert links["1 role ends within 30 days."].endswith("/manage/access?ends=30")
    assert links["1 request needs your decision."].endswith("/manage/requests")
    assert links["1 request of yours needs another administrator."].endswith("/manage/requests")
    assert links["1 offer to act for another organisation needs your answer."].endswith("/manage/third-parties")
    assert links["Give access"].endswith("/manage/access/new")
    assert links["Invite a person"].endswith("/manage/invite")
    assert "What to do first" not in browser.page.text


async def test_changes_of_one_batch_are_one_line_among_the_last_changes(made: World) -> None:
    """D57: a file of a thousand people does not hide what came before."""
    await appoint(made)
    await scene(made)
    registry, actor = made.provider.registry, owner(made, "alice")
    role = Assignment(user_id="id-carol", entity_id=ACME, service_id="PERMITS", role="Maker")
    before = [Change(None, replace(role, user_id="id-bob", ref="1"))]
    loaded = [Change(None, replace(role, ref=str(each))) for each in range(8)]
    for changes in (before, loaded):
        asking = RequestDetails("", made.clock(), "r")
        await write_changes(registry, actor, changes, asking=asking, batch="b")
    browser = await in_portal(made)
    assert (
        browser.page.text.count("carol (Carol Ng) got access as Maker at Permits (Reference: 0), and 7 more changes")
        == 1
    )
    assert "bob (Bob Lim) got access as Maker at Permits" in browser.page.text


async def test_access_that_ends_soon_is_listed_and_nothing_else(made: World) -> None:
    await appoint(made)
    await scene(made)
    browser = await in_portal(made, "access?ends=30")
    assert "Bob Lim" in browser.page.text
    assert "Carol Ng" not in browser.page.text


async def test_access_that_ends_soon_is_paged_without_loss_or_repetition(made: World) -> None:
    await appoint(made)
    last = in_days(made, 3)
    roles = [
        Assignment(
            user_id="id-alice", entity_id=ACME, service_id="PERMITS", role="Maker", ref=f"{each:02}", end_date=last
        )
        for each in range(60)
    ]
    await made.write(*roles)
    browser = await in_portal(made, "access?ends=30")
    assert "Next page" in browser.page.text
    await follow(made, browser, "Next page")
    assert browser.response is not None
    assert browser.response.text.count('data-label="Service"') == 10
    await browser.open(f"{made.base}/manage/access?ends=30&after=x", site="none")
    assert browser.response is not None
    assert browser.response.status_code == 404


async def test_an_empty_organisation_is_told_what_to_do_first(made: World) -> None:
    await appoint(made)
    browser = await in_portal(made)
    assert "What to do first" in browser.page.text
    assert "Appoint a second owner" in browser.page.text


async def test_a_sub_administrator_sees_what_their_services_allow(made: World) -> None:
    """D53: neither history nor third parties; of what ends, that at their services."""
    await appoint(made)
    await scene(made)
    await appoint(made, level="sub_administrator", who="carol", services=("TAX",))
    browser = await in_portal(made, who="carol")
    assert "Last changes" not in browser.page.text
    assert "Invite a person" not in browser.page.text
    await go(made, browser, "access?ends=30")
    assert "Bob Lim" not in browser.page.text


async def test_the_sections_say_how_many_requests_the_reader_can_decide_on(made: World) -> None:
    """D55: on every page."""
    await appoint(made)
    await scene(made)
    browser = await in_portal(made, "people")
    assert ("/manage/requests", "Requests 1") in browser.page.links
    await made.person("cora", entity(ACME, "Acme Pte. Ltd."), name="Cora Chan")
    await appoint(made, level="administrator", who="cora")
    other = await in_portal(made, "people", who="cora")
    assert ("/manage/requests", "Requests 2") in other.page.links


async def test_the_settings_lead_to_what_the_level_may_set_and_say_how_it_stands(made: World) -> None:
    """D53, D55, D57."""
    await appoint(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="roles", status="Registered"))
    browser = await in_portal(made, "settings")
    pages = ("administrators", "approvals-setting", "access-review", "tokens")
    reached = {target.rpartition("/")[2] for target, _ in browser.page.links}
    assert reached >= set(pages)
    for said in ("Acme Pte. Ltd.", "Registered", "There has been no review yet."):
        assert said in browser.page.text
    for page in pages:
        await go(made, browser, page)
        assert browser.page.links.count(("/manage/settings", "Settings")) == 2
    await made.person("bob", entity(ACME, "Acme Pte. Ltd.", approvals="roles"), name="Bob Lim")
    await appoint(made, level="sub_administrator", who="bob", services=("PERMITS",))
    other = await in_portal(made, "settings", who="bob")
    assert {target.rpartition("/")[2] for target, _ in other.page.links} & set(pages) == {"administrators"}


async def test_an_organisation_that_the_register_no_longer_lists_is_told_so(made: World) -> None:
    """R-20."""
    await appoint(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", status="Deregistered"))
    browser = await in_portal(made)
    assert "The register says that this organisation is deregistered." in browser.page.text
