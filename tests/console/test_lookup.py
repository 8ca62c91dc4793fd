"""Look-up by reference and search: what is found, and by whom (D53, D82)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.flows.directory.actors import load_operator
from corpid.flows.operations import lookup
from corpid.rules.audit import AuditEvent, AuditQuery
from corpid.rules.directory.access import OBJECT_KINDS, DeploymentOperator
from corpid.rules.directory.records import Operator, OperatorLevel, User
from corpid.rules.oauth.errors import reason_of
from corpid.rules.references import find_reference, make_reference
from corpid.web.operations import levels
from tests.console.scene import ACME, WITHOUT_PASSKEY, console, go, in_console
from tests.sign_in.world import World, new_world

if TYPE_CHECKING:
    from corpid.flows.operations.lookup import ReferenceRecords, SearchResult

LEVELS: tuple[OperatorLevel, ...] = ("operator", "support", "auditor")


async def actor(made: World, level: OperatorLevel) -> DeploymentOperator:
    """Somebody of this level, who has just signed in."""
    user_id = f"id-of-{level}"
    await made.write(
        User(user_id=user_id, user_name=f"of-{level}", name="Opal"), Operator(user_id=user_id, level=level)
    )
    now = made.clock()
    return await load_operator(made.provider.registry, user_id, auth_time=now, now=now)


async def refused(made: World, client_id: str = "rp1") -> str:
    """The reference in the description of a client's refused request."""
    http = await made.http()
    answer = await http.post("/request", data={"client_id": client_id})
    await made.provider.refusals.flush(made.provider.registry)
    await made.provider.counters.flush(made.provider.registry)
    return find_reference(answer.json()["error_description"])


async def looked_up(made: World, reference: str, level: OperatorLevel) -> ReferenceRecords:
    who = await actor(made, level)
    return await lookup.look_up(made.provider.registry, reference, actor=who, now=made.clock())


async def searched(made: World, text: str, level: OperatorLevel = "operator") -> SearchResult:
    return await lookup.search(made.provider.registry, text, actor=await actor(made, level), limit=3)


def names(found: SearchResult) -> list[Any]:
    return [getattr(each, "user_name", None) or each.name for group in found.groups for each in group.found]


@pytest.mark.parametrize("level", LEVELS)
async def test_the_reference_in_a_description_finds_the_refusal_with_its_reason(level: OperatorLevel) -> None:
    """D28, D82."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        reference = await refused(made)
        made.clock.pass_(86_400)
        found = await looked_up(made, reference, level)
        ((reason, client),) = [(each.reason, each.client_id) for each in found.refusals]
        assert (reason, client) == ("assertion_type", "rp1")
        assert found.at == made.clock() - 86_400
        assert not found.counts


async def test_a_refusal_whose_reference_names_no_time_is_found_as_well() -> None:
    """D82: references of earlier versions were random."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        reference = await refused(made)
        registry = made.provider.registry
        (kept,) = await registry.client_refusals.list_for_client("rp1")
        await registry.client_refusals.add([replace(kept, request_id="0" * 16)], kept=20)
        found = await looked_up(made, "0" * 16, "operator")
        assert (found.at, [each.client_id for each in found.refusals]) == (0, ["rp1"])
        assert reference != "0" * 16


async def test_a_request_of_nobody_is_known_by_its_time_and_the_refusals_of_its_hour() -> None:
    """D82: nothing is written for it."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        reference = await refused(made, "stranger")
        found = await looked_up(made, reference, "support")
        assert (found.at, found.refusals, found.entries) == (int(made.clock()), (), ())
        assert [(each.reason, each.count) for each in found.counts] == [("assertion_type", 1)]


async def test_the_ending_of_a_sign_in_and_what_it_wrote_are_found_by_its_reference() -> None:
    """D57, D82."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        for _ in range(3):
            await in_console(made, "auditor")
            made.clock.pass_(400)
        entries = await made.audit("sign_in.complete")
        for each in entries:
            found = await looked_up(made, each.request_id, "operator")
            assert each.number in [one.number for one in found.entries]
            assert {one.request_id for one in found.entries} == {each.request_id}
        assert len({each.request_id for each in entries}) == 3


async def test_support_finds_nothing_about_operators_by_a_reference() -> None:
    """D53, D82."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await in_console(made, "auditor")
        (ending,) = await made.audit("sign_in.complete")
        assert not (await looked_up(made, ending.request_id, "support")).entries
        assert (await looked_up(made, ending.request_id, "auditor")).entries


async def test_a_reference_that_nobody_made_finds_nothing_and_nothing_is_written() -> None:
    """D82."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        who, registry = await actor(made, "operator"), made.provider.registry
        before = len(await registry.audit.latest(AuditQuery(), limit=100))
        for reference in (make_reference(made.clock(), 7), make_reference(made.clock() + 3000, 7), "f" * 16):
            found = await lookup.look_up(registry, reference, actor=who, now=made.clock())
            assert not (found.refusals or found.entries)
        assert len(await registry.audit.latest(AuditQuery(), limit=100)) == before


@pytest.mark.parametrize("level", LEVELS)
async def test_every_kind_of_record_is_found_and_counted(level: OperatorLevel) -> None:
    """D82, D83."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        assert names(await searched(made, "ali", level)) == ["alice"]
        assert names(await searched(made, "alice t", level)) == ["alice"]
        assert "Acme Pte. Ltd." in names(await searched(made, "acme", level))
        assert names(await searched(made, "PERM", level)) == ["Permits"]
        assert names(await searched(made, "rp", level)) == ["Relying Party 1"]
        await made.write(*(User(user_id=f"id-{n}", user_name=f"many{n}", name="M") for n in range(5)))
        (people,) = (await searched(made, "many", level)).groups
        assert (len(people.found), people.total.count, people.total.exact) == (3, 5, True)


async def test_support_neither_finds_nor_counts_operators() -> None:
    """D53, D82."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(Operator(user_id="id-alice", level="auditor"))
        assert names(await searched(made, "alice", "auditor")) == ["alice"]
        assert not (await searched(made, "alice", "support")).groups


async def test_a_key_is_found_by_its_identifier_at_the_server_and_at_clients() -> None:
    """D42, D82: the identifier as a whole, and no pattern of the database."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        (own, *_) = [each.kid for each in await made.provider.registry.keys.list_all() if each.use == "sig"]
        assert [each.kid for each in (await searched(made, own)).keys] == [own]
        client = await made.provider.registry.clients.get("rp1")
        theirs = [key["kid"] for key in json.loads(client.jwks)["keys"]]
        for kid in theirs:
            assert [each.client_id for each in (await searched(made, kid)).key_clients] == ["rp1"]
            assert not (await searched(made, kid[:-1])).key_clients
        for pattern in ("%%%%", "____", "!!!!", "keys", '"kid"'):
            assert not (await searched(made, pattern)).key_clients


@pytest.mark.parametrize(
    "text", ["", "\0", "\ud800", "%", "' OR 1=1 --", "<script>", "a" * 100, "٣٤", "\N{ZERO WIDTH JOINER}"]
)
async def test_a_hostile_text_finds_nothing(text: str) -> None:
    """D82."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        found = await searched(made, text)
        assert not (found.groups or found.keys or found.key_clients)


async def test_a_reference_leads_from_the_field_to_the_reason_and_its_fix_in_one_search() -> None:
    """D82: as it stands in an answer, on a page or in the log."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        reference = await refused(made)
        browser = await in_console(made, "support")
        for typed in (
            reference,
            f"the assertion is missing (reference {reference})",
            f'{{"request_id":"{reference}"}}',
        ):
            await browser.fill_and_submit(search=typed)
            assert browser.url == console(made, f"reference/{reference}")
            assert "assertion_type" in browser.page.text
            assert browser.page.text.count("client_assertion_type must be") == 1
            assert reason_of("assertion_type").value.cause not in browser.page.text
            assert reason_of("assertion_type").value.remedy in browser.page.text
            assert "without proving that it is the client's" in browser.page.text


async def test_a_reference_of_which_nothing_is_kept_says_when_and_where_to_look() -> None:
    """D82."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        reference = await refused(made, "stranger")
        browser = await in_console(made, "auditor", f"reference/{reference}")
        assert f"request_id={reference}" in browser.page.text
        assert "15 Jan 2027, 08:00 UTC" in browser.page.text
        assert "assertion_type" in browser.page.text
        await go(made, browser, "reference/0123456789abcdef")
        assert "an earlier version made this reference" in browser.page.text


async def test_what_is_searched_is_in_no_address() -> None:
    """D82: it may be an identity number."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator")
        await browser.fill_and_submit(search="S1234567A")
        assert "Nothing found" in browser.page.text
        assert "S1234567A" in browser.page.heading
        assert "S1234567A" not in browser.url
        assert not [url for url, _ in browser.page.links if "S1234567A" in url]
        other = await in_console(made, "auditor")
        await other.open(browser.url, site="none")
        assert other.page.heading == "Search"
        for query in ("q=", "q=AAAA", "q=%00", f"q={'A' * 5000}"):
            assert await go(made, browser, f"search?{query}") in {200, 400, 414, 431}


async def test_everything_that_is_found_is_one_click_away() -> None:
    """D82."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.client("acme", name="Acme portal")
        await made.person("acme", name="Acme Lim")
        browser = await in_console(made, "operator")
        await browser.fill_and_submit(search="acme")
        links = {text: url for url, text in browser.page.links}
        assert links["Acme Pte. Ltd."] == f"/console/entities/{ACME}"
        assert (links["Acme Lim"], links["acme"]) == ("/console/people/id-acme", "/console/client/acme")


async def test_a_search_can_be_corrected_and_a_hit_says_why_it_is_there() -> None:
    """D82, D83: what was typed stays in the field; the word that the name lacks stands below it."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.person("bob", name="Bob Lim", email="pelican@harbour.example")
        browser = await in_console(made, "operator")
        await browser.fill_and_submit(search="pelican")
        assert "People: 1" in browser.page.text
        assert "Bob Lim pelican@harbour.example bob" in browser.page.text
        form = browser.page.form_with("search")
        assert form is not None
        assert [each.value for each in form.controls if each.name == "search"] == ["pelican"]
        assert "pelican" not in browser.url
        await browser.fill_and_submit(search="bob")
        assert "pelican" not in browser.page.text


HOSTILE = '"><script>alert(1)</script>'


async def test_names_in_sentences_are_links_and_hostile_ones_stay_text() -> None:
    """D57, D82: nothing of a name becomes markup or another address."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.person("mallory", name="M")
        browser = await in_console(made, "operator")
        event = AuditEvent(
            actor=f"user:{HOSTILE}", action="client.update", object=HOSTILE, client_id=HOSTILE, entity_id=HOSTILE,
            request_id=f"{HOSTILE}0123456789abcdef", detail={HOSTILE: HOSTILE}, outcome="refused",
        )  # fmt: skip
        write = made.provider.registry.audit.write
        await write(event, now=made.clock())
        await write(AuditEvent(actor="system", action="user.disable", object="id-alice"), now=made.clock())
        await write(AuditEvent(actor="x", action="of.tomorrow", object="javascript:alert(1)"), now=made.clock())
        await go(made, browser, "audit")
        assert browser.response is not None
        assert "<script>alert" not in browser.response.text
        assert "javascript:" not in [url[:11] for url, _ in browser.page.links]
        assert ("/console/people/id-alice", "alice") in browser.page.links
        assert all(url.startswith(("/", "?", "#", "http")) or not url for url, _ in browser.page.links)


async def test_the_record_as_it_is_kept_is_one_click_away_for_those_who_may_read_it() -> None:
    """D53, D57."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "audit")
        (ending, *_) = await made.audit("sign_in.complete")
        assert any(url == f"/console/audit/{ending.number}" for url, _ in browser.page.links)
        raw = await browser.http.get(console(made, f"audit/{ending.number}"))
        assert raw.headers["content-type"] == "application/json"
        assert raw.json()["action"] == "sign_in.complete"
        support = await in_console(made, "support")
        assert await go(made, support, f"audit/{ending.number}") == 404
        assert await go(made, support, "audit/999999") == 404
        await go(made, support, "audit")
        assert "the-operator" not in support.page.text


async def test_days_narrow_the_audit() -> None:
    """D57: the day of `until` is included."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator")
        await made.provider.registry.audit.write(
            AuditEvent(actor="system", action="client.add", object="rp-of-friday"), now=made.clock()
        )
        made.clock.pass_(3 * 86_400)
        await made.provider.registry.audit.write(
            AuditEvent(actor="system", action="client.add", object="rp-of-monday"), now=made.clock()
        )
        browser = await in_console(made, "operator")
        await go(made, browser, "audit?action=client.add&until=2027-01-15")
        assert ("rp-of-friday" in browser.page.text, "rp-of-monday" in browser.page.text) == (True, False)
        await go(made, browser, "audit?action=client.add&since=2027-01-16")
        assert ("rp-of-friday" in browser.page.text, "rp-of-monday" in browser.page.text) == (False, True)


async def test_a_person_has_the_history_of_their_records() -> None:
    """D57."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.provider.registry.audit.write(
            AuditEvent(actor="command:ops", action="user.enable", object="id-alice"), now=made.clock()
        )
        browser = await in_console(made, "support", "people/id-alice")
        assert "A person was enabled: alice" in browser.page.text
        assert ("/console/audit?user=id-alice", "Show all in the audit") in browser.page.links


def test_the_table_of_levels_has_every_kind_of_record_that_an_operator_reads() -> None:
    """D53."""
    assert set(levels.KINDS) == set(OBJECT_KINDS)


async def test_what_each_level_may_do_follows_from_the_table_of_access() -> None:
    """D53."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "auditor", "levels")
        for shown in ("Signing keys", "read, change, remove", "not of operators", "Exports of the audit"):
            assert shown in browser.page.text
