"""Test people, and their way through the sign-in pages."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from corpid.rules.authentication.totp import STEP_SECONDS, code_at

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid_dev.relying_party.browser import Browser
    from corpid_dev.relying_party.verification import Callback


@dataclass(slots=True, kw_only=True)
class Person:
    """A person who can sign in, with their secrets.

    User name, password and the secret of their authenticator app (base32).
    """

    user_name: str
    password: str
    totp_secret: str
    name: str = ""
    entities: tuple[str, ...] = ()
    """identifiers of the entities they act for"""
    about: str = ""
    used_step: int = field(default=0, init=False, compare=False)
    """what their app has shown last; a copy (`dataclasses.replace`) has used none"""

    def code(self, now: float) -> str:
        """The present code of their app (`now` in epoch seconds)."""
        return code_at(self.totp_secret, now)

    def fresh_code(self, now: float) -> str:
        """An unused code, of this step or the next.

        The provider accepts the next one as well. Raises RuntimeError if both were used: the person has to wait, as in
        life. Source: D45
        """
        step = max(int(now) // STEP_SECONDS, self.used_step + 1)
        if step > int(now) // STEP_SECONDS + 1:
            raise RuntimeError(f"{self.user_name} used this code and the next; wait {STEP_SECONDS} seconds")
        self.used_step = step
        return code_at(self.totp_secret, step * STEP_SECONDS)


PAGES: Final = 12


async def sign_in(
    browser: Browser,
    authorization_url: str,
    person: Person,
    entity: str | None = None,
    *,
    agree: bool = True,
    now: Callable[[], float] = time.time,
) -> Callback:
    """Sign this person in and choose an entity (None: the first usable).

    The callback, as URL or posted form.

    Without `agree` the person cancels if consent is asked. Raises DeadEndError if the pages lead nowhere.
    """
    await browser.open(authorization_url)
    return await finish(browser, person, entity, agree=agree, now=now)


async def finish(
    browser: Browser,
    person: Person,
    entity: str | None = None,
    *,
    agree: bool = True,
    now: Callable[[], float] = time.time,
) -> Callback:
    """Continue from the current page to the callback. Raises DeadEndError."""
    answered: str | None = None
    for _ in range(PAGES):
        if browser.left is not None:
            return browser.left
        page = step_of(browser)
        if page == answered:
            raise browser.dead_end(f"the page {page} was shown again")
        answered = page
        await answer_page(browser, person, entity, agree=agree, now=now)
    raise browser.dead_end(f"no end after {PAGES} pages")


async def answer_page(
    browser: Browser,
    person: Person,
    entity: str | None = None,
    *,
    agree: bool = True,
    now: Callable[[], float] = time.time,
) -> None:
    """Complete one page of the browser. Raises DeadEndError."""
    await _answers(browser, person, entity, agree=agree, now=now)[step_of(browser)]()


async def cancel(browser: Browser) -> Callback:
    """Press Cancel; the callback. Raises DeadEndError."""
    form = next((form for form in browser.page.forms if any(b.label == "Cancel" for b in form.buttons)), None)
    if form is None:
        raise browser.dead_end("there is no Cancel")
    await browser.submit(form, "Cancel")
    if browser.left is None and (posting := browser.form_for_another_site()) is not None:
        await browser.submit(posting)
    if browser.left is None:
        raise browser.dead_end("Cancel did not lead back")
    return browser.left


def step_of(browser: Browser) -> str:
    """The browser's current page: sign_in, code, entity, decision, return or post.

    Raises DeadEndError.
    """
    page = browser.page
    if browser.form_for_another_site() is not None:
        return "post"
    known = {"sign_in": ("user_name", "password"), "code": ("code",), "decision": ("decision",), "entity": ("entity",)}
    if page.form_with("entity"):
        return "entity"
    if any(button.label.startswith("Return to") for form in page.forms for button in form.buttons):
        return "return"
    found = [name for name, fields in known.items() if page.form_with(*fields)]
    if found:
        return found[0]
    raise browser.dead_end("this is no page of the sign-in")


def _answers(
    browser: Browser, person: Person, entity: str | None, *, agree: bool, now: Callable[[], float]
) -> dict[str, Callable[[], Awaitable[object]]]:
    async def password() -> object:
        return await browser.fill_and_submit(user_name=person.user_name, password=person.password)

    async def code() -> object:
        return await browser.fill_and_submit(code=person.fresh_code(now()))

    async def choice() -> object:
        return await _choose(browser, entity)

    async def decision() -> object:
        if not agree:
            return await cancel(browser)
        values = {button.value for form in browser.page.forms for button in form.buttons if button.name == "decision"}
        return await browser.fill_and_submit("decision", button="agree" if "agree" in values else "continue")

    async def back() -> object:
        form = next(form for form in browser.page.forms if any(b.label.startswith("Return to") for b in form.buttons))
        return await browser.submit(form)

    async def post() -> object:
        form = browser.form_for_another_site()
        return await browser.submit(form) if form is not None else None

    steps = {"sign_in": password, "code": code, "entity": choice, "decision": decision, "return": back}
    return {**steps, "post": post}


async def _choose(browser: Browser, entity: str | None) -> object:
    offered = [control.value for form in browser.page.forms for control in form.choices("entity")]
    wanted = entity or next(iter(offered), "")
    if wanted not in offered and browser.page.form_with("query"):
        await browser.fill_and_submit(query=wanted)
    return await browser.fill_and_submit(entity=wanted)
