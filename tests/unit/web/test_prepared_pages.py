"""Pages that are rendered once and filled for each request are the pages that they would be (docs/accessibility.md, docs/costs.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from corpid.texts import phrase
from corpid.web.pages.compiled_pages import separate_slots
from corpid.web.pages.components import ButtonForm, Frame, TimeLimit, View
from corpid.web.pages.rendering import Renderer
from corpid.web.pages.translations import LANGUAGES, Language
from corpid.web.pages.views import (
    AskPasskey,
    Choice,
    ChooseEntity,
    Consent,
    Leave,
    OfferPasskey,
    SecondFactor,
    SecondFactorForm,
    SignIn,
)

HOSTILE = """<b>"' & {{ 7*7 }}."""


def views(sign_in: str, user_name: str, seconds: int) -> dict[str, View]:
    """The pages of a sign-in."""
    here = f"/id/sign-in/{sign_in}"
    limit = TimeLimit(
        at=datetime.fromtimestamp(1_800_000_000 + seconds, UTC),
        seconds=seconds,
        extend=ButtonForm(action=f"{here}/extend"),
    )
    frame = Frame(
        client_name="Acme Pte. Ltd.",
        message=f"Message to {user_name}",
        user_name=user_name or None,
        entity=f"Entity of {user_name}",
        step=(2, 3),
        step_name="1",
        form_token=f"token-of-{sign_in}.mac",
        cancel=ButtonForm(action=f"{here}/cancel"),
        limit=limit,
        under_way=True,
        ui_locales=("ms",),
        account_language="ms",
        sign_in=sign_in,
        here=here,
    )
    passkey = AskPasskey(action=f"{here}/passkey", options=f'{{"challenge": "{sign_in}"}}')
    choice = Choice(id="A1", name=f"Entity of {user_name}", number="1", number_name=phrase("UEN"), preselected=True)
    off = structs.replace(
        choice, id=user_name, number=user_name, usable=False, reason=phrase("Not here."), preselected=False
    )
    several = (choice, off, structs.replace(off, id="C3", usable=True, status=phrase("Registered")))
    app = SecondFactorForm(
        hint=phrase("Open it."), ways_action=f"{here}/way", ways=(("recovery", phrase("Recovery code")),)
    )
    code = SecondFactor(
        frame=frame, action=f"{here}/code", heading=phrase("Enter the code"), asked=app, sends_mail=True
    )
    choose = ChooseEntity(frame=frame, action=f"{here}/entity", search_action=here, choices=(choice,), total=1)
    return {
        "sign in": SignIn(frame=frame, action=f"{here}/password", recover=f"/recover?sign_in={sign_in}"),
        "sign in, passkey": SignIn(frame=frame, action=f"{here}/password", recover="/recover", passkey=passkey),
        "refused": SignIn(
            frame=frame, action=here, recover="", user_name=user_name, errors=(("password", phrase("Wrong.")),)
        ),
        "no more time": replace(
            code, frame=structs.replace(frame, limit=structs.replace(limit, extend=None, last_time=phrase("No more.")))
        ),
        "code": code,
        "code, by e-mail": replace(
            code, asked=structs.replace(app, hint=phrase("We sent it to {address}.", address=user_name))
        ),
        "second factor, passkey": replace(code, asked=structs.replace(app, label=None, passkey=passkey)),
        "entity": choose,
        "entities": replace(choose, choices=several, total=len(several), other_account=True),
        "entities, many": replace(choose, choices=several, total=40),
        "entities, none": replace(choose, choices=(), total=0),
        "entity, searched": replace(choose, query=user_name, frame=structs.replace(frame, here=f"{here}?query=x")),
        "consent": Consent(frame=frame, action=here, summary=(), items=(phrase(user_name or "nothing"),), until=None),
        "offer": OfferPasskey(frame=frame, action=f"{here}/offer", passkey=passkey),
        "leave": Leave(
            frame=structs.replace(frame, limit=None, cancel=None), url=f"{here}/leave", client_name="Acme Pte. Ltd."
        ),
    }


NAMES = list(views("a", "b", 1))


def framed(view: View, **members: Any) -> View:
    """The view with other members of its frame."""
    anything: Any = view
    changed: View = replace(anything, frame=structs.replace(view.frame, **members))
    return changed


def whole(renderer: Renderer, view: View, language: Language, offered: Language | None) -> bytes:
    """The page, rendered by itself: of a view that does not say to which sign-in it belongs."""
    return renderer.render(framed(view, sign_in=""), language, offered=offered)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_that_is_filled_is_the_page_rendered_whole(name: str) -> None:
    """Whoever comes first, in every language, with time and in the last minutes."""
    renderer = Renderer(base_path="/id")
    for language in LANGUAGES:
        for offered in (None, LANGUAGES[2]):
            for told in (
                ("Rk3-_x", "alice", 600), ("zz9", HOSTILE, 599), ("e", "", 600), ("Rk3-_x", "bob.", 180), ("a", "c", 1),
            ):  # fmt: skip
                view = views(*told)[name]
                assert renderer.render(view, language, offered=offered) == whole(renderer, view, language, offered)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_nothing_of_another_persons_sign_in(name: str) -> None:
    """Each is filled with what its own view holds."""
    renderer = Renderer()
    theirs, own = views("theirsignin", "their-name", 600)[name], views("ownsignin", "own-name", 600)[name]
    renderer.render(theirs)
    page = renderer.render(own)
    assert b"ownsignin" in page
    assert b"their" not in page


@pytest.mark.parametrize("name", NAMES)
def test_a_page_that_is_kept_serves_everybody(name: str) -> None:
    """What is kept holds nothing of a person: it is the same for the next one."""
    theirs, own = (separate_slots(views(who, who, 600)[name], str) for who in ("theirs", "own"))
    assert (theirs is None) == (own is None)
    if theirs is not None and own is not None:
        assert theirs[0] == own[0]
        assert "theirs" not in repr(theirs[0])


@pytest.mark.parametrize("member", ["client_name", "step", "reason", "step_name", "up"])
def test_what_is_not_filled_makes_another_page(member: str) -> None:
    """The frame's other members are shown as they are, whatever was shown before."""
    renderer = Renderer()
    view = views("a1", "alice", 600)["code"]
    renderer.render(view)
    other: dict[str, Any] = {
        "client_name": "Other",
        "step": (1, None),
        "reason": phrase("Why"),
        "step_name": "2",
        "up": None,
    }
    changed = framed(view, **{member: other[member]})
    assert renderer.render(changed) == whole(renderer, changed, LANGUAGES[0], None)
