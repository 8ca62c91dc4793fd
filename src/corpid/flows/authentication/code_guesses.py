"""Guess counters for codes of an app and by e-mail.

A guess is counted before it is tried. Guesses are counted in the registry, so that a restart gives none back: for each
browser that is known for the person, for all others together, and for enrolments by a link. Guesses count only after
the password or a link was presented, so no stranger can lock a person out. Source: D45
"""

from __future__ import annotations

from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import namespaces
from corpid.flows.authentication import throttle
from corpid.flows.authentication.throttle import Throttled
from corpid.rules.authentication.sign_in import fingerprint
from corpid.rules.authentication.throttling import CodesPaused, one_more, pause_after
from corpid.rules.limits import CODE_GUESSES, HOUR, MINUTE
from corpid.texts import counted, phrase

if TYPE_CHECKING:
    from corpid.flows.authentication.throttle import Attempt
    from corpid.flows.request_context import RequestContext
    from corpid.rules.audit_records import AuditEvent
    from corpid.rules.authentication.records import Credentials
    from corpid.rules.authentication.throttling import CodeGuesses
    from corpid.stores.transient import TransientBatch
    from corpid.texts import Phrase

UNKNOWN: Final = ""
"""all browsers that are not known for the person, counted together"""
LINK: Final = "link"
_IN_HOURS: Final = 2 * HOUR
"""a shorter time is given in minutes"""


class Paused(Throttled):
    """A pause after too many wrong codes.

    For some time no code of an app or by e-mail is accepted. Source: D45
    """

    def __init__(self, seconds: int, *, elsewhere: bool) -> None:
        super().__init__(seconds)
        self.elsewhere = elsewhere
        """true if a browser that is known for the person has an allowance of its own"""

    @property
    def sentence(self) -> Phrase:
        """The explanation for the person, and the options left."""
        if self.elsewhere:
            return phrase(
                "Too many wrong codes were entered for this account, so codes from an app or by e-mail are not "
                "accepted here {duration}. Use a passkey or a recovery code if you have one, sign in with a "
                "browser that you have used before, or wait.",
                duration=duration(self.seconds),
            )
        return phrase(
            "Too many wrong codes were entered for this account, so codes from an app or by e-mail are not "
            "accepted here {duration}. Use a passkey or a recovery code if you have one, or wait.",
            duration=duration(self.seconds),
        )


def duration(seconds: int) -> Phrase:
    """Return a duration in minutes, or in hours from two hours on.

    It is rounded up. Source: D45
    """
    if seconds < _IN_HOURS:
        return counted(ceil(seconds / MINUTE), "for {count} minute", "for {count} minutes")
    return counted(ceil(seconds / HOUR), "for {count} hour", "for {count} hours")


def group(context: RequestContext, user_id: str, browser_key: str, *, known: bool) -> str:
    """Return the counter key of a known browser, or of all others.

    Guesses in unknown browsers are common to the deployment's issuers, since the codes are. A known browser is one
    issuer's: its key comes from that issuer's cookie. Source: D45, D62
    """
    if not known:
        return UNKNOWN
    return namespaces.KNOWN_BROWSER.entry(context.provider.policy.base_url, user_id, browser_key).key.hex()


async def of_links(context: RequestContext, user_id: str) -> CodeGuesses:
    """Return the count of a person's guesses in enrolments by a link. Source: D45"""
    return await context.provider.registry.code_guesses.get(user_id, LINK)


async def attempt_with_link(
    context: RequestContext, seen: CodeGuesses, credentials: Credentials, link_hash: str
) -> tuple[Attempt, CodeGuesses]:
    """Count a guess in an enrolment by a link.

    `seen` is that of `of_links`. Returns the attempt, and the count including it. Raises Paused and Throttled. Source:
    D45, D47
    """
    factors = fingerprint(credentials)
    after = one_more_guess(context, seen, factors)
    attempt = await throttle.attempt_with_link(context, link_hash)
    return attempt, await count(context, seen, after, factors)


async def give_back(context: RequestContext, counted: CodeGuesses) -> None:
    """Take back a guess, unless others were counted since.

    `counted` includes it. Source: D45, D73
    """
    before = msgspec.structs.replace(counted, guesses=counted.guesses - 1, paused_until=0)
    context.counts.settle(counted)
    await context.provider.registry.code_guesses.replace(counted, before)


async def _taken_back(context: RequestContext, counted: CodeGuesses, _: TransientBatch) -> None:
    await give_back(context, counted)


def pause_event(entry: AuditEvent, guesses: CodeGuesses) -> AuditEvent:
    """Return an audit entry with the details of a new pause (D45)."""
    where = {UNKNOWN: "new", LINK: "link"}.get(guesses.browser, "known")
    seconds = pause_after(guesses.guesses)
    detail = {"guesses": str(guesses.guesses), "pause_seconds": str(seconds), "browser": where}
    return msgspec.structs.replace(entry, detail={**entry.detail, **detail})


async def count(context: RequestContext, seen: CodeGuesses, after: CodeGuesses, factors: bytes) -> CodeGuesses:
    """Count a guess that is about to be tried.

    It writes `after` in place of `seen` and returns the count. `factors` is the fingerprint of the credentials. Each
    lost race means that a concurrent request made a guess, so the pause begins before the last round. Raises Paused and
    Throttled. Source: D45
    """
    guesses = context.provider.registry.code_guesses
    for _ in range(2 * CODE_GUESSES):
        if await guesses.replace(seen, after):
            context.counts.note(after, partial(_taken_back, context, after))
            return after
        seen = await guesses.get(seen.user_id, seen.browser)
        after = one_more_guess(context, seen, factors)
    raise Throttled(1)


async def forget(context: RequestContext, seen: CodeGuesses, group: str, *, guessed: bool) -> None:
    """Forget a person's guesses in this group after a success.

    `seen` is the count as it was loaded, `guessed` says that this request has raised it since. Nothing is written if
    there was none. Source: D45
    """
    if guessed or seen.guesses or seen.browser != group:
        await context.provider.registry.code_guesses.forget(seen.user_id, group)


def one_more_guess(context: RequestContext, seen: CodeGuesses, factors: bytes) -> CodeGuesses:
    """Return the count including another guess, without writing it.

    `factors` is the fingerprint of the credentials. Raises Paused if no guess is allowed. Source: D45
    """
    try:
        return one_more(seen, factors.hex(), context.now)
    except CodesPaused as paused:
        raise Paused(max(1, ceil(paused.until - context.now)), elsewhere=seen.browser == UNKNOWN) from None
