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
from corpid.web.operations.page_context import REASON, SECTIONS, ConsoleContext, ConsolePage
from corpid.web.pages.components import Actions, Cell, Code, Field, Label, Value, View, table
from corpid.web.sites import Check, FormResult, InvalidForm, NotFound, Section, check_page

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from corpid.rules.signing_keys import ProviderKey

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
    rotate_now = at.allowed_link("rotate-key-now", phrase("Rotate now (emergency)"))
    return at.build_page(
        SECTIONS[KEYS],
        phrase(
            "The next key is always published, so that every client knows it before it signs. A retired key stays "
            "published until the last of its tokens has expired."
        ),
        table(
            phrase("Keys that sign tokens, the newest first"),
            (
                phrase("Key"), phrase("Signs from"), phrase("Retires"), phrase("Published until"),
                phrase("Action"),
            ),
            [_row(at, each) for each in reversed(found)],
        ),
        Actions((rotate_now,)) if rotate_now else None,
        main_action=at.allowed_link("rotate-key", _ROTATE),
    )  # fmt: skip


def _row(at: ConsoleContext, key: ProviderKey) -> tuple[Value, ...]:
    state = rules.state(key, at.context.now)
    ended = key.revoked_at is not None or state == "retired"
    dates = (rules.signs_from(key), rules.retires_at(key), rules.published_until(key))
    return (
        Cell(values=(Code(key.kid), _STATES[state])),
        *(phrase("not planned") if each is None else at.moment(each) for each in dates),
        None if ended else at.allowed_link(f"revoke-key/{key.kid}", phrase("Revoke"), key.kid),
    )


def _ask_rotation(*, at_once: bool) -> Callable[[ConsoleContext], Awaitable[Check]]:
    """The check before a key is made, or also used at once.

    Raises StaleStep, access.Forbidden.
    """

    async def ask(at: ConsoleContext) -> Check:
        # The tag of the calendar, by which a repeated form is known.
        seen = (
            at.form.get("decision", "") if at.form else rules.calendar_tag(await flow.list_keys(at.registry, at.actor))
        )

        async def rotate() -> None:
            actor = at.actor_with_reason()
            try:
                await flow.rotate(at.registry, actor, now=at.context.now, at_once=at_once, seen=seen)
            except RotationRefused:
                # The form was sent before, or somebody else has made a key meanwhile: the list shows it.
                raise StaleStep from None

        return Check(
            heading=phrase("Rotate the signing key now?") if at_once else phrase("Rotate the signing key?"),
            parts=_AT_ONCE if at_once else _LATER,
            button=phrase("Rotate now") if at_once else _ROTATE,
            danger=at_once,
            hidden=(("decision", seen),),
            change=rotate,
            done=FormResult("key-used" if at_once else "key-made", KEYS),
        )

    return ask


_LATER: Final = (
    phrase("The key that waits signs in {hours} hours. Another one is published now.", hours=_HOURS),
    phrase("The present key retires at that moment. Its tokens stay valid until they expire."),
)
_AT_ONCE: Final = (
    phrase("Only after a compromise, or before going live."),
    phrase(
        "If it was published less than an hour ago, clients that do not fetch the key set again when they meet an "
        "unknown key refuse tokens for up to an hour."
    ),
)


async def ask_revocation(at: ConsoleContext) -> Check:
    """The check before a key is revoked, whose identifier is typed.

    Raises NotFound, access.Forbidden.
    """
    key = await _this_key(at)

    async def revoke() -> None:
        if at.form.get("typed", "").strip() != key.kid:
            raise InvalidForm(("typed", phrase("This is not the identifier of the key. Copy it from above.")))
        actor = at.actor_with_reason()
        try:
            await flow.revoke(at.registry, actor, key.kid, now=at.context.now)
        except RotationRefused:
            # Somebody else has revoked it meanwhile: the list says so.
            raise StaleStep from None

    typed = at.form.get("typed", "")
    return Check(
        heading=phrase("Revoke this signing key?"),
        parts=(
            phrase("Within ten seconds, tokens that it signed are refused, and people have to sign in again."),
            phrase("If it signs now, the next key signs in its place. This cannot be undone."),
        ),
        fields=(Field(name="typed", label=phrase("Enter this to continue"), hint=key.kid, value=typed),),
        button=phrase("Revoke the key"),
        danger=True,
        change=revoke,
        done=FormResult("key-revoked", KEYS),
    )


async def _this_key(at: ConsoleContext) -> ProviderKey:
    kid = at.page.partition("/")[2]
    for key in await flow.list_keys(at.registry, at.actor):
        if key.kid == kid:
            return key
    raise NotFound


SECTION: Final = Section[ConsoleContext](
    name=KEYS,
    pages={
        KEYS: ConsolePage(view=show_keys),
        "rotate-key": check_page(_ask_rotation(at_once=False), needs=("write", "key"), leads_to=KEYS),
        "rotate-key-now": check_page(_ask_rotation(at_once=True), needs=("write", "key"), leads_to=KEYS),
    },
    named_pages={
        re.compile(r"revoke-key/[A-Za-z0-9_-]{1,128}"): check_page(
            ask_revocation, needs=("delete", "key"), leads_to=KEYS
        )
    },
    fields=frozenset({"decision", "typed", REASON}),
    changes={
        "key-made": phrase("The key has been rotated. The next one signs in {hours} hours.", hours=_HOURS),
        "key-used": phrase("The next key signs now, or within five seconds."),
        "key-revoked": phrase("The key has been revoked."),
    },
)
