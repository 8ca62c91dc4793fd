"""Lists of the console: heads that sort, and the whole as CSV (D59, D83)."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.directory.objects import RESOURCES
from corpid.rules.directory.records import Membership, Operator, OperatorLevel, Service, User
from corpid.web import lists
from tests.console.scene import ACME, WITHOUT_PASSKEY, console, go, in_console, status
from tests.sign_in.world import World, entity, new_world

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

MEMBERS = f"entities/{ACME}/people"
LISTS = {
    "people": (
        "users",
        {
            "user_name": ("User name", "id-alice id-the-auditor id-zed"),
            "name": ("Name", "id-zed id-alice id-the-auditor"),
            "email": ("E-mail address", "id-alice id-the-auditor id-zed"),
        },
    ),
    "entities": (
        "entities",
        {
            "name": ("Name", "200000001A 200000002A ZOO"),
            "number": ("Registration number", "ZOO 200000001A 200000002A"),
        },
    ),
    "services": ("services", {"id": ("Identifier", "PERMITS ZOO")}),
    "clients": ("clients", {"id": ("Identifier", "rp1 rp2")}),
    MEMBERS: ("memberships", {"user_name": ("User name", "id-alice id-zed")}),
}
"""page → resource of the admin API; order → the head of its column, and the records of `several` in that order"""


async def several(made: World) -> None:
    """Write a second of each kind, which comes first by some orders and last by others."""
    await made.client("rp2")
    await made.write(
        User(user_id="id-zed", user_name="zed", name="=Aaron Lim", email="mail@zed.example"),
        User(user_id="id-invited", user_name="id-invited", name="", placeholder=True),
        Membership(user_id="id-zed", entity_id=ACME, membership_id="m-zed"),
        replace(entity("ZOO", "Zoo Trading"), type="NON-UEN", registration_number="1"),
        Service(service_id="ZOO", name="Animals"),
    )  # fmt: skip


async def follow(made: World, browser: Browser, text: str) -> None:
    target = next(url for url, name in browser.page.links if name == text)
    await browser.open(f"{made.base}{target}", site="same-origin")


def first_cells(browser: Browser, page: str) -> list[str]:
    """The addresses of the records of a list, in its order."""
    start = f"/console/{'people' if page == MEMBERS else 'client' if page == 'clients' else page}/"
    section = browser.page.links
    return [url for url, _ in section if url.startswith(start) and "?" not in url]


async def rows(made: World, browser: Browser, page: str) -> list[dict[str, str]]:
    """The rows of the file to which a list leads."""
    await go(made, browser, page)
    await follow(made, browser, "Download as CSV")
    assert browser.response is not None
    return list(csv.DictReader(browser.response.text.removeprefix("\ufeff").splitlines()))


@pytest.mark.parametrize(("page", "order"), [(page, order) for page, (_, orders) in LISTS.items() for order in orders])
async def test_a_head_sorts_its_list_and_the_same_again_reverses_it(page: str, order: str) -> None:
    """D83: by each order that has a column."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await several(made)
        browser = await in_console(made, "auditor")
        await go(made, browser, page)
        head, expected = LISTS[page][1][order]
        if order != next(iter(LISTS[page][1])):
            await follow(made, browser, head)
        assert browser.response is not None
        assert f'aria-sort="ascending"><a href="/console/{page}?sort=-{order}">{head}' in browser.response.text
        ascending = first_cells(browser, page)
        assert [url.rpartition("/")[2] for url in ascending] == expected.split()
        await follow(made, browser, head)
        assert 'aria-sort="descending"' in browser.response.text
        assert first_cells(browser, page) == ascending[::-1]


async def test_an_unknown_order_is_that_of_the_first_head() -> None:
    """D83: a text in an address is no error."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "auditor")
        await go(made, browser, "people?sort=password&search=alice")
        assert status(browser) == 200
        assert browser.response is not None
        assert (
            'aria-sort="ascending"><a href="/console/people?search=alice&amp;sort=-user_name">' in browser.response.text
        )


@pytest.mark.parametrize("page", LISTS)
async def test_a_list_is_downloaded_with_the_columns_of_the_admin_api(page: str) -> None:
    """D59, D83: as a download that nobody stores, with every record of the list."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await several(made)
        browser = await in_console(made, "operator")
        await go(made, browser, page)
        listed = len(first_cells(browser, page))
        found = await rows(made, browser, page)
        name = LISTS[page][0]
        assert browser.response is not None
        assert browser.response.headers["content-disposition"] == f'attachment; filename="{name}.csv"'
        assert browser.response.headers["cache-control"] == "no-store"
        assert tuple(found[0]) == next(each.columns for each in RESOURCES if each.path == name)
        assert len(found) == listed > 1


async def test_a_file_is_narrowed_and_sorted_as_the_list_is_and_has_no_formula() -> None:
    """D83: who was only invited is nobody yet."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await several(made)
        browser = await in_console(made, "operator")
        found = await rows(made, browser, "people?sort=-user_name")
        names = [each["user_name"] for each in found]
        assert names == sorted(names, reverse=True)
        assert "id-invited" not in names
        assert found[0]["name"] == "'=Aaron Lim"
        assert [each["id"] for each in await rows(made, browser, "people?search=aaron")] == ["id-zed"]
        await go(made, browser, "people?search=nobody")
        assert "Download as CSV" not in browser.page.text


async def test_a_file_of_people_has_no_secret_and_no_whole_identity_number() -> None:
    """D53, D59: the console shows no identity number, also to those who may read it."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        alice = await made.provider.registry.directory.user("id-alice")
        assert alice is not None
        await made.write(replace(alice, identity_number="S1234567D", identity_country="SG"))
        browser = await in_console(made, "operator")
        await rows(made, browser, "people")
        assert browser.response is not None
        assert "id-alice" in browser.response.text
        for secret in ("S1234567D", made.people["alice"].totp_secret, "$argon2"):
            assert secret not in browser.response.text


async def test_a_file_has_what_the_list_has_for_each_level_and_nothing_for_strangers() -> None:
    """D53: support sees nothing of operators; who is none gets no file."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(Operator(user_id="id-alice", level="auditor"))
        await made.person("zed", name="Zed Lim")
        levels: dict[OperatorLevel, bool] = {"support": False, "auditor": True, "operator": True}
        for level, shown in levels.items():
            browser = await in_console(made, level)
            found = {each["id"] for each in await rows(made, browser, "people")}
            assert "id-zed" in found
            assert ("id-alice" in found) is shown
        stranger = await made.browser()
        answer = await stranger.http.get(console(made, "people?format=csv"))
        assert answer.status_code == 303
        await stranger.open(console(made, "people?format=csv"), site="none")
        await made.factors(stranger, made.people["zed"])
        assert status(stranger) == 403
        assert "id-alice" not in stranger.page.text


async def test_a_long_file_is_bounded_and_its_last_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """D83: as in the portal."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await made.write(*(User(user_id=f"id-{n}", user_name=f"p{n}", name=f"P {n}") for n in range(7)))
        monkeypatch.setattr(lists, "MOST_DOWNLOADED", 5)
        browser = await in_console(made, "auditor")
        found = await rows(made, browser, "people?search=p")
        assert len(found) == 6
        assert found[-1]["id"] == "This file is not complete. Narrow the list, and download again."
