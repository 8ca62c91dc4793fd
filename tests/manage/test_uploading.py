"""A table from a file, in place of one that is pasted (D81)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.rules.directory.tables import MOST_TYPED
from corpid.rules.limits import BODY_BYTES, UPLOAD_BYTES
from tests.manage.access_scene import confirm, roles, staffed
from tests.manage.scene import in_portal, portal
from tests.manage.test_inviting import invited
from tests.sign_in.world import World, form_of, shown_again

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

    from corpid_dev.relying_party.browser import Browser

IMPORT, SEVERAL = "access/import", "invite/several"
ROLES = "user_name{0}service{0}role\r\nmarcus{0}NOTICES{0}\r\n"


async def upload(
    made: World, browser: Browser, page: str, file: bytes, *, site: str = "same-origin", **fields: str
) -> httpx.Response:
    """Send the form of the page with a file, as a browser does."""
    parts: dict[str, tuple[str | None, bytes]] = {
        name: (None, value.encode()) for name, value in (form_of(browser, "form_token") | fields).items()
    }
    return await browser.http.post(
        portal(made, page), files=parts | {"file": ('access "1".csv', file)}, headers={"Sec-Fetch-Site": site}
    )


async def uploaded(made: World, browser: Browser, page: str, file: bytes, **fields: str) -> None:
    """Send it, and open the page that shows it again."""
    answer = await upload(made, browser, page, file, **fields)
    await browser.open(str((await shown_again(browser, answer)).url), site="same-origin")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
async def test_a_table_from_a_file_shows_the_check_page_of_a_pasted_one(
    made: World, encoding: str, separator: str
) -> None:
    """D81: as spreadsheets save it."""
    await staffed(made)
    browser = await in_portal(made, IMPORT)
    file = ROLES.format(separator).encode(encoding)
    await uploaded(made, browser, IMPORT, file, decision="check")
    assert "This makes 1 change." in browser.page.text
    assert await roles(made) == []
    await browser.fill_and_submit("decision", button="confirm")
    assert len(await roles(made)) == 1


async def test_people_from_a_file_are_shown_before_anything_is_sent(made: World) -> None:
    """D60, D81: a line with the names of the columns is no person; the file replaces what was typed."""
    await staffed(made)
    browser = await in_portal(made, SEVERAL)
    file = "Name;Email\r\nZoë Tan;zoe@example.org\r\n".encode("utf-16")
    await uploaded(made, browser, SEVERAL, file, people="tom@example.org")
    assert browser.page.heading == "Invite 1 person?"
    await browser.fill_and_submit("form_token", "people")
    assert await invited(made) == {"zoe@example.org": "Zoë Tan"}


async def test_a_form_without_a_chosen_file_is_what_was_typed(made: World) -> None:
    """A browser sends an empty part for it."""
    await staffed(made)
    browser = await in_portal(made, SEVERAL)
    await uploaded(made, browser, SEVERAL, b"", people="tom@example.org")
    assert browser.page.heading == "Invite 1 person?"


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        pytest.param(b"PK\x03\x04\x14\x00\xff\xfe", "This file cannot be read.", id="workbook"),
        pytest.param("Zoë;zoe@example.org".encode("latin-1"), "This file cannot be read.", id="latin-1"),
        pytest.param("tom@example.org".encode("utf-16-le"), "This file cannot be read.", id="utf-16 without its mark"),
        pytest.param("tom@example.org".encode("utf-16")[:-1], "This file cannot be read.", id="cut"),
        pytest.param(b" \r\n", "This file cannot be read.", id="empty"),
        pytest.param(b"a" * (MOST_TYPED + 1), "This file is too long.", id="long"),
        pytest.param(b"\xff" * (3 * UPLOAD_BYTES), "This file is too long.", id="very long"),
        pytest.param(b"nobody\r\n", "Line 1: there is no e-mail address: nobody", id="no address"),
    ],
)
async def test_a_file_that_is_no_table_is_refused_and_nothing_typed_is_lost(
    made: World, file: bytes, problem: str
) -> None:
    """D73, D81."""
    await staffed(made)
    browser = await in_portal(made, SEVERAL)
    await uploaded(made, browser, SEVERAL, file, people="tom@example.org")
    assert problem in browser.page.text
    kept = form_of(browser, "people")
    assert kept["people"].strip() == ("nobody" if b"nobody" in file else "tom@example.org")
    assert await invited(made) == {}


async def test_a_file_is_not_read_without_the_token_of_its_page(made: World) -> None:
    """D35, D81: neither of another site's form nor of one without a session's token."""
    await staffed(made)
    browser = await in_portal(made, SEVERAL)
    forged = await upload(made, browser, SEVERAL, b"tom@example.org", site="cross-site")
    assert forged.status_code == 400
    read = False

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal read
        yield b'--b\r\nContent-Disposition: form-data; name="people"\r\n\r\n' + b"a" * 5000
        read = True
        yield b"\r\n--b--\r\n"

    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": "multipart/form-data; boundary=b"}
    answer = await browser.http.post(portal(made, SEVERAL), content=pieces(), headers=headers)
    assert answer.headers["location"].endswith(SEVERAL)
    assert not read
    assert await invited(made) == {}


async def test_the_fields_beside_a_file_are_bounded_as_those_of_every_form(made: World) -> None:
    """D47, RFC 9110 §15.5.14: the status is that of the server, which counts the bytes of other forms."""
    await staffed(made)
    browser = await in_portal(made, SEVERAL)
    answer = await upload(made, browser, SEVERAL, b"", people="a" * (BODY_BYTES + 1))
    assert answer.status_code == 413
    assert "This form is too long" in answer.text
    await confirm(browser, people="tom@example.org")
    assert browser.page.heading == "Invite 1 person?"


async def test_other_pages_take_no_file(made: World) -> None:
    """D14, D81."""
    await staffed(made)
    browser = await in_portal(made, "invite")
    answer = await upload(made, browser, "invite", b"", name="Tom", email="tom@example.org")
    assert answer.status_code == 400
    assert await invited(made) == {}
