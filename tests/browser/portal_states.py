"""The portal's pages, in the states that look different (D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.rules.directory.entity_choice import NUMBERS
from corpid.texts import phrase
from corpid.web.directory.page_context import SECTIONS
from corpid.web.pages.components import Frame, Link, Navigation, NavigationLink, View
from corpid.web.pages.views import Choice, ChooseEntity, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping


def framed(section: str = "", *, up: Link | None = None, title: str = "Harbour Logistics Pte. Ltd.") -> Frame:
    """The frame of a portal page, as an owner sees it."""
    return Frame(
        form_token="t0ken",
        up=up,
        here="/manage",
        navigation=Navigation(
            label=phrase("Administration"),
            title=title,
            person="Tan Wei Ling",
            switch=Link(url="/manage/organisation", text=phrase("Change organisation")),
            links=tuple(
                NavigationLink(
                    url=f"/manage/{path}".removesuffix("/"),
                    text=name,
                    current=path == section,
                    count=3 if path == "requests" else 0,
                )
                for path, (name, _) in SECTIONS.items()
            ),
        ),
    )


_UP: Final = Link(url="/manage/administrators", text=phrase("Administrators"))

STATES: Final[Mapping[str, View]] = {
    "portal-organisation": ChooseEntity(
        frame=framed("organisation"),
        action="/manage/organisation",
        search_action="/manage/organisation",
        choices=(
            Choice(
                id="H",
                name="Harbour Logistics Pte. Ltd.",
                number="200012345A",
                number_name=NUMBERS["UEN"],
                preselected=True,
            ),
            Choice(id="S", name="Saltwater Foods Pte. Ltd.", number="200012346B", number_name=NUMBERS["UEN"]),
        ),
        total=2,
    ),
    "portal-nothing-administered": Problem(
        frame=Frame(form_token="t0ken", here="/manage/organisation"),
        heading=phrase("You do not administer an organisation"),
        paragraphs=(
            phrase("You are signed in as {name}.", name="Tan Wei Ling"),
            phrase("These pages are for people who decide who may act for their organisation."),
            phrase("If you should have this access, ask an owner of your organisation."),
        ),
        back=Link(url="/account", text=phrase("Your account")),
        others=(
            Link(url="/manage?other-account", text=phrase("Use another account")),
            Link(url="/sign-out", text=phrase("Sign out")),
        ),
    ),
}
