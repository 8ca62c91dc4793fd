"""Signing keys in the console: their calendar, rotation and revocation (D42)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

from corpid.flows.operations import signing_keys as flow
from corpid.flows.operations.signing_keys import RotationRefused
from corpid.rules import signing_keys as rules
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.limits import HOUR, KEY_PUBLISHED_BEFORE_USE_SECONDS
from corpid.texts import Phrase, phrase
from corpid.web.operations.page_context import (
    REASON,
    ConsoleContext,
    ConsolePage,
    actor_with_reason,
    frame,
    path_if_allowed,
    question,
    section_link,
)
from corpid.web.pages.layout import PageView, ViewPart
from corpid.web.sites import FormResult, InvalidForm, NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from corpid.rules.signing_keys import ProviderKey
    from corpid.web.pages.views import View

KEYS: Final = "keys"
_HOURS: Final = KEY_PUBLISHED_BEFORE_USE_SECONDS // HOUR
STATES: Final[Mapping[str, Phrase]] = {
    "revoked": phrase("Revoked"),
    "standby": phrase("Published, signs when it is needed"),
    "published, not yet in use": phrase("Published, does not sign yet"),
    "retired, still verifies": phrase("Retired, its tokens are still valid"),
    "retired": phrase("Retired"),
    "in use": phrase("Signs now"),
}
"""by `rules.signing_keys.state`"""


class KeyLine(ViewPart, frozen=True, kw_only=True):
    """A signing key and its dates."""

    kid: str
    state: Phrase
    signs_from: datetime | None
    """nothing for a standby key, and for one that ended before its date"""
    retired: datetime | None
    gone: datetime | None
    """when it is published no longer"""
    revoke: str
    """the page that revokes it; empty if there is nothing to revoke, or for who may not"""


class Keys(PageView, frozen=True, kw_only=True):
    """The calendar of signing keys."""

    template: ClassVar[str] = "console/keys.html"
    heading: ClassVar[Phrase] = phrase("Signing keys")

    keys: tuple[KeyLine, ...]
    rotate: str = ""
    rotate_now: str = ""


async def show_keys(at: ConsoleContext) -> View:
    """Every signing key, the newest first. Raises access.Forbidden."""
    found = await flow.list_keys(at.registry, at.actor)
    return Keys(
        frame=frame(at, section=KEYS),
        keys=tuple(_line(at, each) for each in reversed(found)),
        rotate=path_if_allowed(at, "rotate-key"),
        rotate_now=path_if_allowed(at, "rotate-key-now"),
    )


def _line(at: ConsoleContext, key: ProviderKey) -> KeyLine:
    state = rules.state(key, at.context.now)
    ended = key.revoked_at is not None or state == "retired"
    return KeyLine(
        kid=key.kid,
        state=STATES[state],
        signs_from=_moment(at, rules.signs_from(key)),
        retired=_moment(at, rules.retires_at(key)),
        gone=_moment(at, rules.published_until(key)),
        revoke="" if ended else path_if_allowed(at, f"revoke-key/{key.kid}"),
    )


def _moment(at: ConsoleContext, seconds: int | None) -> datetime | None:
    return None if seconds is None else at.moment(seconds)


async def show_rotation(at: ConsoleContext) -> View:
    """The question before the next key is made. Raises access.Forbidden."""
    return question(
        at,
        KEYS,
        section_link(at, KEYS),
        phrase("Let the next signing key sign?"),
        (
            phrase("The key that waits signs in {hours} hours. Another one is published now.", hours=_HOURS),
            phrase("The present key retires at that moment. Its tokens stay valid until they expire."),
        ),
        phrase("Let it sign"),
        decision=await _seen(at),
    )


async def show_rotation_now(at: ConsoleContext) -> View:
    """The question before a key signs at once. Raises access.Forbidden."""
    return question(
        at,
        KEYS,
        section_link(at, KEYS),
        phrase("Let the next signing key sign at once?"),
        (
            phrase("Only after a compromise, or before going live."),
            phrase(
                "If it was published less than an hour ago, clients that do not fetch the key set again when they meet an "
                "unknown key refuse tokens for up to an hour."
            ),
        ),
        phrase("Let it sign now"),
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
        "key-made": phrase("The next key will sign."),
        "key-used": phrase("The next key signs now, or within five seconds."),
        "key-revoked": phrase("The key has been revoked."),
    },
)
