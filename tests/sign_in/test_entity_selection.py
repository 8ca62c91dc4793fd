"""Very many entities, and names that want to be markup (Spec 3, D51)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec
import pytest

from corpid.rules.directory.records import Membership
from corpid_dev.relying_party.people import sign_in
from tests.sign_in.world import EVERY_SCOPE, World, entity, new_world, rejected, walk_to

if TYPE_CHECKING:
    from collections.abc import Iterator


MANY = 5000
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</bdi></strong><h1>Sign in here</h1>",
    "{{ 7 * 7 }}",
    "\u202eevil\u202c",
    "&lt;b&gt;",
)


async def with_many(made: World) -> None:
    """Alice acts for five thousand more."""
    names = ("Harbour", "Garden", "Mountain", "River", "Valley")
    many = [entity(f"T{n:05}K", f"{names[n % 5]} Holdings {n:04}") for n in range(MANY)]
    await made.write(*many, *(Membership(user_id="id-alice", entity_id=one.entity_id) for one in many))


@contextmanager
def statements(made: World) -> Iterator[list[str]]:
    """What is said to the database meanwhile."""
    heard: list[str] = []
    connection = made.provider.registry.directory._database._connection
    connection.set_trace_callback(heard.append)
    try:
        yield heard
    finally:
        connection.set_trace_callback(None)


@pytest.mark.full
async def test_five_thousand_entities_make_a_small_page_with_few_statements(made: World) -> None:
    """Spec 3: quick with 5,000. At most 200 KB, and not one statement for each entity."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party(), ("password", "code"))
    await with_many(made)
    await browser.reload()
    with statements(made) as heard:
        await browser.reload()
    assert browser.response is not None
    assert len(browser.response.content) <= 200_000
    assert "Showing 50 of 5,002" in browser.page.text
    assert 0 < len(heard) <= 10


ONE: Final = ("harbour holdings 4990", "HARBOUR 4990", "4990 harbour", "T04990K", "  t04990k  ")


@pytest.mark.full
async def test_one_of_very_many_is_found_by_name_or_number() -> None:
    """Spec 3: words in any order and case; and what was found can be chosen."""
    expected = "T04990K"

    async with new_world() as made:
        await with_many(made)
        browser, rp = await made.browser(), await made.relying_party()
        await walk_to(made, browser, rp, ("password", "code"))
        for query in ONE:
            await browser.reload()
            await browser.fill_and_submit(query=query)
            form = browser.page.form_with("entity")
            assert form is not None
            assert [choice.value for choice in form.choices("entity")] == [expected], query
        await browser.fill_and_submit(entity=expected)
        assert (await rp.redeem(browser.left or "")).id_token["entity"]["sub"] == expected


@pytest.mark.full
async def test_a_person_reaches_an_entity_far_down_the_list_without_javascript(made: World) -> None:
    """Spec 3: the scripted person searches, as people do."""
    await with_many(made)
    browser, rp = await made.browser(), await made.relying_party()
    callback = await sign_in(browser, await rp.begin(), made.people["alice"], "T04321K", now=made.clock)
    assert (await rp.redeem(callback)).id_token["entity"]["sub"] == "T04321K"


NOTHING: Final = ("no such name", "<b>bold</b>", "x" * 20_000, "%", "_", "'", "\\", "\x00", "\ud7ff")


@pytest.mark.full
async def test_a_search_that_finds_nothing_says_so_and_leads_back_to_all(made: World) -> None:
    """Spec 3: whatever was typed."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party(prompt="select_account"), ("password", "code"))
    await with_many(made)
    for query in NOTHING:
        await browser.reload()
        await browser.fill_and_submit(query=query)
        assert browser.response is not None
        assert browser.response.status_code == 200, query[:20]
        assert "No results for" in browser.page.text, query[:20]
        assert "<b>bold" not in browser.response.text
        assert "Show all" in [text for _, text in browser.page.links], query[:20]


@pytest.mark.full
async def test_a_choice_that_was_missed_leaves_what_was_searched_for(made: World) -> None:
    """docs/accessibility.md: what was typed is kept beside an error."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party(), ("password", "code"))
    await with_many(made)
    await browser.reload()
    await browser.fill_and_submit(query="garden holdings")
    form = browser.page.form_with("entity")
    assert form is not None
    fields = {control.name: control.value for control in form.controls if not control.choice}
    assert fields["query"] == "garden holdings"
    sent = await browser.http.post(form.action, data=fields, headers={"Sec-Fetch-Site": "same-origin"})
    answer = await rejected(browser, sent)
    assert "Showing 50 of 1,000" in answer.text
    assert 'value="garden holdings"' in answer.text


async def test_the_only_match_that_can_be_used_is_preselected() -> None:
    """docs/accessibility.md: a search for one leads on with one press."""
    async with new_world(entities=3) as made:
        await made.write(*(entity(f"T{n:05}K", f"Closed Works {n}", status="Deregistered") for n in range(9)))
        await made.write(*(Membership(user_id="id-alice", entity_id=f"T{n:05}K") for n in range(9)))
        browser, rp = await made.browser(), await made.relying_party()
        await walk_to(made, browser, rp, ("password", "code"))
        await browser.fill_and_submit(query="works")
        form = browser.page.form_with("entity")
        assert form is not None
        assert [(choice.value, choice.chosen) for choice in form.choices("entity")] == [("200000003A", True)]
        await browser.submit(form)
        assert (await rp.redeem(browser.left or "")).id_token["entity"]["sub"] == "200000003A"


async def test_usable_entities_stand_first_and_the_others_say_why_not(made: World) -> None:
    """Spec 3, R-19: the others are shown, but cannot be pressed."""
    await made.person("alice", entity("A0000000A", "Aardvark", status="Deregistered"))
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party(), ("password", "code"))
    form = browser.page.form_with("entity")
    assert form is not None
    assert [choice.value for choice in form.choices("entity")] == ["200000001A", "200000002A"]
    text = browser.page.text
    assert text.index("Acme Pte. Ltd.") < text.index("Banyan Trading") < text.index("Aardvark")
    assert "with the status Deregistered" in text


@pytest.mark.parametrize("hostile", HOSTILE)
async def test_a_name_is_text_whatever_it_holds(hostile: str) -> None:
    """D51: of a client, an entity, a person, and what was typed; each stands in its own <bdi>."""
    async with new_world(session_seconds=3600) as made:
        await made.client(sector="private", name=hostile)
        await made.person("alice", entity("200000001A", hostile), entity("200000002A", hostile), name=hostile)
        browser, rp = await made.browser(), await made.relying_party(scope=EVERY_SCOPE)
        await walk_to(made, browser, rp)
        shown = [browser.response]
        await browser.fill_and_submit(user_name=hostile, password=hostile)
        shown.append(browser.response)
        await made.factors(browser, made.people["alice"])
        shown.append(browser.response)
        await browser.fill_and_submit(entity="200000001A")
        shown.append(browser.response)
        await browser.fill_and_submit("decision", button="agree")
        made.clock.pass_(60)
        await walk_to(made, browser, await made.relying_party())
        shown.append(browser.response)
        for page in shown:
            assert page is not None
            for needle in ("<script>alert", "<img src=x", "' onmouseover", "<h1>Sign in here", ">49<", "<b>"):
                assert needle not in page.text
            assert page.text.count("<h1>") == 1
            assert f"<bdi>{escaped(hostile)}</bdi>" in page.text


def escaped(text: str) -> str:
    for plain, code in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&#34;"), ("'", "&#39;")):
        text = text.replace(plain, code)
    return text


async def test_the_message_of_a_client_is_kept_with_the_event(made: World) -> None:
    """D12: what the person was shown can be proven later."""
    browser, rp = await made.browser(), await made.relying_party()
    await walk_to(made, browser, rp, ("password", "code", "entity"))
    (event,) = await made.audit("sign_in.complete")
    assert event.detail["context_message"] == rp.parameters["authentication_context_message"]
    assert msgspec.json.encode(event).count(b"code") == 0
