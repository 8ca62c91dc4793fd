"""States of pages as a provider shows them, from records that are written first."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import msgspec

from corpid.web.pages.components import Page, View
from corpid.web.pages.rendering import Renderer

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

    Walk = Callable[[Mapping[str, "Visit"], "Recorder"], AsyncIterator[None]]


class Visit(msgspec.Struct, frozen=True):
    """A page that somebody opens, and the form that they send there."""

    page: str
    form: Mapping[str, str] | None = None
    """what is typed into it; the key "" names the button; None: nothing is sent"""
    of: str = "form_token"
    """a field of the form that is sent"""
    then: tuple[Mapping[str, str], ...] = ()
    """what is typed into the form with `form_token` of each page that follows"""


async def send(browser: Browser, visit: Visit) -> None:
    """Send the forms of a visit, if it has some, on the page that is shown."""
    forms = [] if visit.form is None else [(visit.of, visit.form), *(("form_token", each) for each in visit.then)]
    for of, form in forms:
        fields = {field: value for field, value in form.items() if field}
        await browser.fill_and_submit(of, button=form.get(""), **fields)


class Recorder:
    """The views that the provider of this process renders."""

    def __init__(self) -> None:
        self.views: dict[str, View] = {}
        self._last: View | None = None

    def __enter__(self) -> Self:
        render = self._render = Renderer.render

        def recording(renderer: Renderer, view: View, *given: Any, **named: Any) -> bytes:
            self._last = view
            return render(renderer, view, *given, **named)

        Renderer.render = recording  # type: ignore[assignment, method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        Renderer.render = self._render  # type: ignore[method-assign]

    async def visit(self, name: str, visit: Visit, browser: Browser, address: str) -> None:
        """Open the page, send its form, and keep the view that is shown then."""
        self._last = None
        await browser.open(address, site="same-origin")
        await send(browser, visit)
        assert self._last is not None, f"{name}: {browser.response}"
        self.keep(name)

    def keep(self, name: str) -> None:
        """Keep the view that was rendered last."""
        assert self._last is not None, name
        self.views[name] = self._last


class Seeded(Mapping[str, "View"]):
    """States by name: views, and visits, which a walk makes when one is first looked at."""

    def __init__(self, views: dict[str, View], *walks: tuple[Mapping[str, Visit], Callable[..., Any]]) -> None:
        self.views = views
        self._walks = walks
        self._walk_of = {name: number for number, (visits, _) in enumerate(walks) for name in visits}
        self._recorded = cache(self._record)

    def __getitem__(self, name: str) -> View:
        if name in self._walk_of:
            return self._recorded(self._walk_of[name])[name]
        return self.views[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.views
        yield from self._walk_of

    def __len__(self) -> int:
        return len(self.views) + len(self._walk_of)

    def walk(self, name: str) -> object:
        """The walk that a state is met on, and whether a form is sent there; without one the view's class, or the page."""
        if name in self._walk_of:
            return self._walk_of[name], self._walks[self._walk_of[name]][0][name].form is not None
        view = self.views[name]
        return name if isinstance(view, Page) else type(view)

    def sort(self, name: str) -> object:
        """The page, or where it shows an error the pages that belong with it: the same for states that look alike."""
        if name in self._walk_of:
            visit = self._walks[self._walk_of[name]][0][name]
            return (self._walk_of[name], True) if visit.form is not None else visit.page.partition("?")[0]
        view = self.views[name]
        return (type(view).__module__, True) if getattr(view, "errors", ()) else type(view)

    def _record(self, number: int) -> dict[str, View]:
        visits, walk = self._walks[number]
        recorder = Recorder()
        failed: list[BaseException] = []

        def run() -> None:
            try:
                asyncio.run(walk(visits, recorder))
            except BaseException as error:  # noqa: BLE001 - raised below
                failed.append(error)

        # The caller may run in a loop of its own.
        thread = threading.Thread(target=run)
        with recorder:
            thread.start()
            thread.join()
        if failed:
            raise failed[0]
        return recorder.views
