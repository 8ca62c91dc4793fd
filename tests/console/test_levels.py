"""Every page of the console and each level: what a level may not change it neither opens nor is led to (D53)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, get_args
from urllib.parse import urlencode

import pytest

from corpid.rules.directory.access import DeploymentOperator, Forbidden, Object, authorise
from corpid.rules.directory.records import OperatorLevel
from corpid.web.operations import endpoints
from corpid.web.operations.page_context import SEARCH, ConsolePage
from tests.console.scene import ACME, WITHOUT_PASSKEY, console, demoted, go, in_console
from tests.links import all_followed
from tests.manage.walking import token
from tests.sign_in.world import FORM, new_world
from tests.tiers import first_or_full

if TYPE_CHECKING:
    from collections.abc import Iterator


SITE: Final = endpoints._SITE
LEVELS: Final = get_args(OperatorLevel)
SENT: Final = {"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"}
OBJECTS: Final = {
    "people": "id-bob", "entities": ACME, "services": "CPPTS", "revoke-key": "kid", "reference": "0123456789abcdef", "audit": "1",
}  # fmt: skip
"""by the first part of a page's path; elsewhere a client"""


def paths(pattern: str) -> Iterator[str]:
    """A path for each alternative of a page's pattern, of something that is there if its kind is known."""
    written = re.sub(r"\[\^?[^\]]*\](\+|\{[0-9,]*\})", "{}", pattern)
    groups = re.findall(r"\(([^)]*)\)", written)
    for choice in groups[0].split("|") if groups else [""]:
        path = re.sub(r"\([^)]*\)", choice, written)
        yield path.replace("{}", OBJECTS.get(path.partition("/")[0], "rp1"), 1).replace("{}", "0" * 32)


def pages() -> Iterator[tuple[str, ConsolePage]]:
    """Every page of the console with a path."""
    for section in SITE.sections:
        yield from section.pages.items()
        for pattern, page in section.named_pages.items():
            for path in paths(pattern.pattern):
                assert pattern.fullmatch(path), f"give an example of {pattern.pattern}"
                yield path, page


def allowed(level: OperatorLevel, page: ConsolePage) -> bool:
    if page.needs is None:
        return True
    action, kind = page.needs
    actor = DeploymentOperator(user_id="o", level=level, auth_time=1.0, now=1.0)
    try:
        authorise(actor, action, Object(kind=kind, user_id="somebody", operates=False))
    except Forbidden:
        return False
    return True


def test_a_page_with_a_form_declares_the_right_that_its_change_needs() -> None:
    """D53: without it a level could open a question whose answer is then refused."""
    changing = [(path, page) for path, page in pages() if page.submit is not None and path != SEARCH]
    assert [path for path, page in changing if page.needs is None] == []
    assert [path for path, page in changing if not page.fresh] == []


@pytest.mark.parametrize("level", first_or_full(LEVELS, first="support"))
async def test_a_level_opens_and_sends_exactly_the_pages_that_it_has_the_right_to(level: OperatorLevel) -> None:
    """D53."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await demoted(made, level, "new-client")
        await made.person("bob", name="Bob Lee")
        form = token(browser)
        for path, page in pages():
            status = await go(made, browser, path)
            assert (status == 403) == (not allowed(level, page)), path
            if status == 403:
                assert browser.page.heading == "You cannot open this page"
                assert "You do not have permission." in browser.page.text
            if page.submit is not None:
                answer = await browser.http.post(console(made, path), content=urlencode(form), headers=SENT)
                assert (answer.status_code == 403) == (not allowed(level, page)), path


@pytest.mark.parametrize("level", first_or_full(LEVELS, first="support"))
async def test_every_link_of_a_page_can_be_followed_by_the_level_that_sees_it(level: OperatorLevel) -> None:
    """D53: nobody is led to a page that is then refused."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, level)
        await made.person("bob", name="Bob Lee")
        assert len(await all_followed(browser, console(made))) > 8
