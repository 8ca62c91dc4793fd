"""Codes and passwords as people type them: the same at every door that asks for one (D45, D75)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import pytest
from argon2 import PasswordHasher

from corpid.rules.authentication.records import Credentials
from corpid.rules.authentication.totp import code_at
from tests.enrolment import newcomer
from tests.postbox import Postbox
from tests.sign_in.factors import ALICE, CODES, at_sign_in, choose, recovery, type_code
from tests.sign_in.test_second_factor_methods import past_password, reach
from tests.sign_in.world import PASSWORD, SECRET, World, new_world

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


FULL_WIDTH: Final = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)})
ARABIC: Final = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
PERSIAN: Final = str.maketrans("0123456789", "۰۱۲۳۴۵۶۷۸۹")
TYPED: Final[dict[str, Callable[[str], str]]] = {
    "as it is": str,
    "full-width": lambda code: code.translate(FULL_WIDTH),
    "Arabic-Indic digits": lambda code: code.translate(ARABIC),
    "Persian digits": lambda code: code.translate(PERSIAN),
    "a hyphen": lambda code: f"{code[:3]}-{code[3:]}",
    "another hyphen": lambda code: f"{code[:3]}\u2011{code[3:]}",
    "spaces": lambda code: f" {code[:3]}\u00a0{code[3:]} ",
    "invisible": lambda code: f"\u200e{code[:3]}\u200b{code[3:]}\ufeff",
}
CHOICE: Final = "Choose who you act for"


async def app(made: World, _: Postbox, typed: Callable[[str], str]) -> bool:
    """The code of the app, at the sign-in."""
    browser = await past_password(made)
    return await type_code(browser, typed(code_at(SECRET, made.clock()))) == CHOICE


async def email(made: World, postbox: Postbox, typed: Callable[[str], str]) -> bool:
    """The code of an e-mail, at the sign-in."""
    await reach(made)
    browser = await past_password(made)
    await choose(browser, "email")
    return await type_code(browser, typed(postbox.code())) == CHOICE


async def recovery_code(made: World, _: Postbox, typed: Callable[[str], str]) -> bool:
    """A recovery code, at the sign-in."""
    await recovery(made)
    browser = await past_password(made)
    await choose(browser, "recovery")
    return await type_code(browser, typed(CODES[0])) == CHOICE


async def link_code(made: World, _: Postbox, typed: Callable[[str], str]) -> bool:
    """The code of a link, on the page that takes codes."""
    await newcomer.nina(made)
    code = urlsplit(await newcomer.link(made)).fragment
    browser = await made.browser()
    await browser.open(f"{made.base}/enrol")
    await browser.fill_and_submit(code=typed(code))
    return browser.page.heading != "Enter your code"


@pytest.mark.parametrize("form", TYPED)
@pytest.mark.parametrize("door", [app, email, recovery_code, link_code])
async def test_a_code_is_accepted_however_it_is_typed(
    door: Callable[[World, Postbox, Callable[[str], str]], Awaitable[bool]], form: str
) -> None:
    """D75: digits of any script; spaces, hyphens and invisible characters are dropped before comparing."""
    postbox = Postbox()
    async with new_world(postbox=postbox) as made:
        assert await door(made, postbox, TYPED[form])


SPACED: Final = "six green bicycles in a row"


@pytest.mark.parametrize("space", [" ", "\u00a0", "\u3000", "\u2009"], ids=["space", "no-break", "ideographic", "thin"])
@pytest.mark.parametrize("stored", [" ", "\u00a0"], ids=["kept mapped", "kept before it was mapped"])
async def test_a_password_is_the_same_with_any_space(made: World, stored: str, space: str) -> None:
    """RFC 8265 §4.2.2, D75: what was typed and what it is mapped to are both tried."""
    kept = SPACED.replace(" ", stored)
    digest = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(kept)  # as another program keeps it
    await made.write(Credentials(user_id=ALICE, password_hash=digest, totp_secret=SECRET))
    browser = await at_sign_in(made)
    await browser.fill_and_submit(user_name="alice", password=SPACED.replace(" ", space))
    assert (browser.page.heading != "Sign in") == (stored in {" ", space})


@pytest.mark.parametrize("other", ["\u200b", "\u200e", "-"])
async def test_a_password_is_not_read_as_a_code(made: World, other: str) -> None:
    """D75: nothing but spaces is mapped."""
    browser = await at_sign_in(made)
    await browser.fill_and_submit(user_name="alice", password=f"{PASSWORD[:3]}{other}{PASSWORD[3:]}")
    assert browser.page.heading == "Sign in"
