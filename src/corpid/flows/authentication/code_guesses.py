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
from corpid.flows.authentication import interactions, throttle
from corpid.flows.authentication.throttle import Throttled
from corpid.rules.authentication.code_guesses import CodesPaused, one_more, pause_after
from corpid.rules.directory import names
from corpid.rules.limits import CODE_GUESSES
from corpid.texts import counted, phrase

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.ports import AuditEvent
    from corpid.rules.authentication.code_guesses import CodeGuesses
    from corpid.rules.authentication.records import Credentials
    from corpid.rules.directory.records import User
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


async def attempt(context: RequestContext, user: User, credentials: Credentials, browser_key: str) -> CodeGuesses:
    """Count a guess after the right password; returns the count with it. Raises Paused and Throttled (D45, D47)."""
    name = names.user_name(user.user_name)
    known = await throttle.is_known(context, name, browser_key)
    browser = known_browser(context, user.user_id, browser_key) if known else UNKNOWN
    await refuse_paused(context, credentials, browser)
    await throttle.attempt_second_factor(context, name, browser_key)
    return await _count(context, credentials, browser)


async def attempt_with_link(context: RequestContext, credentials: Credentials, link_hash: str) -> CodeGuesses:
    """Count a guess by whoever has a link; returns the count with it. Raises Paused and Throttled (D45, D47)."""
    await refuse_paused(context, credentials, LINK)
    await throttle.attempt_with_link(context, link_hash)
    return await _count(context, credentials, LINK)


async def refuse_mail(context: RequestContext, user: User, credentials: Credentials, browser_key: str) -> None:
    """Return if a code by e-mail could be typed in this browser. Raises Paused (D45)."""
    known = await throttle.is_known(context, names.user_name(user.user_name), browser_key)
    browser = known_browser(context, user.user_id, browser_key) if known else UNKNOWN
    await refuse_paused(context, credentials, browser)


async def refuse_paused(context: RequestContext, credentials: Credentials, browser: str) -> None:
    """Return if a guess may be tried, which counts nothing. Raises Paused (D45)."""
    seen = await context.provider.registry.code_guesses.get(credentials.user_id, browser)
    _one_more(seen, credentials, context.now)


def pause_event(entry: AuditEvent, guesses: CodeGuesses) -> AuditEvent:
    """An entry of the audit with what is to be known of the pause that has just begun (D45)."""
    where = {UNKNOWN: "new", LINK: "link"}.get(guesses.browser, "known")
    seconds = pause_after(guesses.guesses)
    detail = {"guesses": str(guesses.guesses), "pause_seconds": str(seconds), "browser": where}
    return msgspec.structs.replace(entry, detail={**entry.detail, **detail})


async def _count(context: RequestContext, credentials: Credentials, browser: str) -> CodeGuesses:
    """Each time that somebody else was quicker is a guess of theirs, so the pause comes before the last round."""
    for _ in range(2 * CODE_GUESSES):
        seen = await context.provider.registry.code_guesses.get(credentials.user_id, browser)
        after = _one_more(seen, credentials, context.now)
        if await context.provider.registry.code_guesses.replace(seen, after):
            return after
    raise Throttled(1)


def _one_more(seen: CodeGuesses, credentials: Credentials, now: float) -> CodeGuesses:
    try:
        return one_more(seen, interactions.fingerprint(credentials).hex(), now)
    except CodesPaused as paused:
        raise Paused(max(1, ceil(paused.until - now)), elsewhere=seen.browser == UNKNOWN) from None
