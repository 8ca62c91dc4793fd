"""Counting guesses at the codes of an app and by e-mail, before they are tried (D45).

They are counted in the registry, so that a restart gives none back: for each browser that is known for the person, for
all others together, and for enrolments by a link. Only whoever has shown the password, or a link, is counted here, so
no stranger shuts anybody out.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import namespaces
from corpid.flows.authentication import throttle
from corpid.flows.authentication.throttle import Throttled
from corpid.rules.authentication.code_guesses import CodesPaused, one_more, pause_after
from corpid.rules.authentication.sign_in import fingerprint
from corpid.rules.limits import CODE_GUESSES
from corpid.texts import counted, phrase

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.ports import AuditEvent
    from corpid.rules.authentication.code_guesses import CodeGuesses
    from corpid.rules.authentication.records import Credentials
    from corpid.texts import Phrase

UNKNOWN: Final = ""
"""browsers that are not known for the person, all together"""
LINK: Final = "link"
_MINUTE: Final = 60
_HOUR: Final = 3600
_IN_HOURS: Final = 2 * _HOUR
"""a shorter time is given in minutes"""


class Paused(Throttled):
    """Too many wrong codes: none of an app or by e-mail is taken for some time (D45)."""

    def __init__(self, seconds: int, *, elsewhere: bool) -> None:
        super().__init__(seconds)
        self.elsewhere = elsewhere
        """whether a browser that is known for the person has an allowance of its own"""

    @property
    def sentence(self) -> Phrase:
        """What happened, and what the person can do."""
        if self.elsewhere:
            return phrase(
                "Too many wrong codes were typed for this account, so codes of an app or by e-mail are not accepted here "
                "{duration}. Use a passkey or a recovery code if you have one, sign in with a browser that you have "
                "used before, or wait.",
                duration=duration(self.seconds),
            )
        return phrase(
            "Too many wrong codes were typed for this account, so codes of an app or by e-mail are not accepted here "
            "{duration}. Use a passkey or a recovery code if you have one, or wait.",
            duration=duration(self.seconds),
        )


def duration(seconds: int) -> Phrase:
    """For how long, in minutes or, from two on, in hours; rounded up (D45)."""
    if seconds < _IN_HOURS:
        return counted(ceil(seconds / _MINUTE), "for {count} minute", "for {count} minutes")
    return counted(ceil(seconds / _HOUR), "for {count} hour", "for {count} hours")


def known_browser(context: RequestContext, user_id: str, browser_key: str) -> str:
    """What a browser that is known for a person is counted by (D45)."""
    return namespaces.key(namespaces.KNOWN_BROWSER, context.provider.policy.base_url, user_id, browser_key).hex()


def group(context: RequestContext, user_id: str, browser_key: str, *, known: bool) -> str:
    """The browser, or group of browsers, that the guesses at a person's codes are counted by (D45)."""
    return known_browser(context, user_id, browser_key) if known else UNKNOWN


async def attempt_with_link(context: RequestContext, credentials: Credentials, link_hash: str) -> CodeGuesses:
    """Count a guess by whoever has a link; returns the count with it. Raises Paused and Throttled (D45, D47)."""
    seen = await context.provider.registry.code_guesses.get(credentials.user_id, LINK)
    after = one_more_guess(context, seen, credentials)
    await throttle.attempt_with_link(context, link_hash)
    return await count(context, seen, after, credentials)


def pause_event(entry: AuditEvent, guesses: CodeGuesses) -> AuditEvent:
    """An entry of the audit with what is to be known of the pause that has just begun (D45)."""
    where = {UNKNOWN: "new", LINK: "link"}.get(guesses.browser, "known")
    seconds = pause_after(guesses.guesses)
    detail = {"guesses": str(guesses.guesses), "pause_seconds": str(seconds), "browser": where}
    return msgspec.structs.replace(entry, detail={**entry.detail, **detail})


async def count(
    context: RequestContext, seen: CodeGuesses, after: CodeGuesses, credentials: Credentials
) -> CodeGuesses:
    """Count a guess that is about to be tried: `after` instead of `seen`. Returns the count. Raises Paused and Throttled.

    Each time that somebody else was quicker is a guess of theirs, so the pause comes before the last round. Source: D45
    """
    guesses = context.provider.registry.code_guesses
    for _ in range(2 * CODE_GUESSES):
        if await guesses.replace(seen, after):
            return after
        seen = await guesses.get(seen.user_id, seen.browser)
        after = one_more_guess(context, seen, credentials)
    raise Throttled(1)


def one_more_guess(context: RequestContext, seen: CodeGuesses, credentials: Credentials) -> CodeGuesses:
    """The count with another guess, of which nothing is written yet. Raises Paused if none may be tried. Source: D45"""
    try:
        return one_more(seen, fingerprint(credentials).hex(), context.now)
    except CodesPaused as paused:
        raise Paused(max(1, ceil(paused.until - context.now)), elsewhere=seen.browser == UNKNOWN) from None
