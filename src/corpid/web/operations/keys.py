"""Signing keys in the console: their calendar, rotation and revocation (D42)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from corpid.flows.operations import signing_keys as flow
from corpid.flows.operations.signing_keys import RotationRefused
from corpid.rules import signing_keys as rules
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.limits import HOUR, KEY_PUBLISHED_BEFORE_USE_SECONDS
from corpid.texts import phrase
from corpid.web.operations.page_context import (
    REASON,
    SECTIONS,
    ConsoleContext,
    ConsolePage,
    actor_with_reason,
    frame,
    path_if_allowed,
    question,
    section_link,
)
from corpid.web.pages.components import Actions, Cell, Code, Label, Page, Paragraph, Value, table
from corpid.web.pages.layout import Link
from corpid.web.sites import FormResult, InvalidForm, NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.signing_keys import ProviderKey
    from corpid.web.pages.views import View

KEYS: Final = "keys"
_HOURS: Final = KEY_PUBLISHED_BEFORE_USE_SECONDS // HOUR
_STATES: Final[Mapping[str, Label]] = {
    "revoked": Label(phrase("Revoked"), "error"),
    "standby": Label(phrase("Published, signs when it is needed")),
    "published, not yet in use": Label(phrase("Published, does not sign yet")),
    "retired, still verifies": Label(phrase("Retired, its tokens are still valid")),
    "retired": Label(phrase("Retired")),
    "in use": Label(phrase("Signs now"), "good"),
}
"""by `rules.signing_keys.state`"""
_ROTATE: Final = phrase("Rotate key")


async def show_keys(at: ConsoleContext) -> View:
    """Every signing key, the newest first. Raises access.Forbidden."""
    found = await flow.list_keys(at.registry, at.actor)
    rotate, rotate_now = path_if_allowed(at, "rotate-key"), path_if_allowed(at, "rotate-key-now")
    return Page(
        frame=frame(at, section=KEYS),
        heading=SECTIONS[KEYS],
        main_action=Link(url=rotate, text=_ROTATE) if rotate else None,
        parts=(
            Paragraph(
                text=phrase(
                    "The next key is always published, so that every client knows it before it signs. A retired key stays "
                    "published until the last of its tokens has expired."
                )
            ),
            table(
                phrase("Keys that sign tokens, the newest first"),
                (
                    phrase("Key"), phrase("Signs from"), phrase("Retires"), phrase("Published until"),
                    phrase("Action"),
                ),
                [_row(at, each) for each in reversed(found)],
            ),
            Actions(links=(Link(url=rotate_now, text=phrase("Rotate now (emergency)")),)) if rotate_now else None,
        ),
    )  # fmt: skip


def _row(at: ConsoleContext, key: ProviderKey) -> tuple[Value, ...]:
    state = rules.state(key, at.context.now)
    ended = key.revoked_at is not None or state == "retired"
    revoke = "" if ended else path_if_allowed(at, f"revoke-key/{key.kid}")
    dates = (rules.signs_from(key), rules.retires_at(key), rules.published_until(key))
    return (
        Cell(values=(Code(key.kid), _STATES[state])),
        *(phrase("not planned") if each is None else at.moment(each) for each in dates),
        Link(url=revoke, text=phrase("Revoke"), about=key.kid) if revoke else None,
    )


async def show_rotation(at: ConsoleContext) -> View:
    """The question before the next key is made. Raises access.Forbidden."""
    return question(
        at,
        KEYS,
        section_link(at, KEYS),
        phrase("Rotate the signing key?"),
        (
            phrase("The key that waits signs in {hours} hours. Another one is published now.", hours=_HOURS),
            phrase("The present key retires at that moment. Its tokens stay valid until they expire."),
        ),
        _ROTATE,
        decision=await _seen(at),
    )


async def show_rotation_now(at: ConsoleContext) -> View:
    """The question before a key signs at once. Raises access.Forbidden."""
    return question(
        at,
        KEYS,
        section_link(at, KEYS),
        phrase("Rotate the signing key now?"),
        (
            phrase("Only after a compromise, or before going live."),
            phrase(
                "If it was published less than an hour ago, clients that do not fetch the key set again when they meet an "
                "unknown key refuse tokens for up to an hour."
            ),
        ),
        phrase("Rotate now"),
        decision=await _seen(at),
        destroys=True,
    )


async def _seen(at: ConsoleContext) -> str:
    """The tag of the calendar, by which a repeated form is known."""
    return rules.calendar_tag(await flow.list_keys(at.registry, at.actor))


async def make_key(at: ConsoleContext) -> FormResult:
    """Make the next signing key. Raises InvalidInput, StaleStep, access.Forbidden."""
    await _make_key(at, at_once=False)
    return FormResult("key-made", KEYS)


async def make_key_now(at: ConsoleContext) -> FormResult:
    """Make a signing key that is used at once.

    Raises InvalidInput, StaleStep, access.Forbidden.
    """
    await _make_key(at, at_once=True)
    return FormResult("key-used", KEYS)


async def _make_key(at: ConsoleContext, *, at_once: bool) -> None:
    seen, actor = at.form.get("decision", ""), actor_with_reason(at)
    try:
        await flow.rotate(at.registry, actor, now=at.context.now, at_once=at_once, seen=seen)
    except RotationRefused:
        # The form was sent before, or somebody else has made a key meanwhile: the list shows it.
        raise StaleStep from None


async def show_revocation(at: ConsoleContext) -> View:
    """The question before a key is revoked. Raises NotFound, access.Forbidden."""
    key = await _this_key(at)
    return question(
        at,
        KEYS,
        section_link(at, KEYS),
        phrase("Revoke this signing key?"),
        (
            phrase("Within ten seconds, tokens that it signed are refused, and people have to sign in again."),
            phrase("If it signs now, the next key signs in its place. This cannot be undone."),
        ),
        phrase("Revoke the key"),
        destroys=True,
        to_type=key.kid,
    )


async def revoke_key(at: ConsoleContext) -> FormResult:
    """Revoke a key whose identifier was typed. Raises InvalidForm, InvalidInput, StaleStep, access.Forbidden."""
    key = await _this_key(at)
    if at.form.get("typed", "").strip() != key.kid:
        raise InvalidForm(("typed", phrase("This is not the identifier of the key. Copy it from above.")))
    actor = actor_with_reason(at)
    try:
        await flow.revoke(at.registry, actor, key.kid, now=at.context.now)
    except RotationRefused:
        # Somebody else has revoked it meanwhile: the list says so.
        raise StaleStep from None
    return FormResult("key-revoked", KEYS)


async def _this_key(at: ConsoleContext) -> ProviderKey:
    kid = at.page.partition("/")[2]
    for key in await flow.list_keys(at.registry, at.actor):
        if key.kid == kid:
            return key
    raise NotFound


SECTION: Final = Section[ConsoleContext](
    pages={
        KEYS: ConsolePage(view=show_keys),
        "rotate-key": ConsolePage(
            view=show_rotation, submit=make_key, leads_to=KEYS, fresh=True, needs=("write", "key")
        ),
        "rotate-key-now": ConsolePage(
            view=show_rotation_now, submit=make_key_now, leads_to=KEYS, fresh=True, needs=("write", "key")
        ),
    },
    named_pages={
        re.compile(r"revoke-key/[A-Za-z0-9_-]{1,128}"): ConsolePage(
            view=show_revocation, submit=revoke_key, leads_to=KEYS, field="typed", fresh=True, needs=("delete", "key")
        )
    },
    fields=frozenset({"decision", "typed", REASON}),
    changes={
        "key-made": phrase("The key has been rotated. The next one signs in {hours} hours.", hours=_HOURS),
        "key-used": phrase("The next key signs now, or within five seconds."),
        "key-revoked": phrase("The key has been revoked."),
    },
)
