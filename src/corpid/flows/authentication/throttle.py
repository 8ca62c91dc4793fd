"""Limits on guessing: delays for attempts, and pauses for codes (D45, D47).

Each attempt is counted before it is tried, in a bucket that also holds the end of the delay
(`rules.authentication.throttling`); there is never a permanent lock. After the free attempts, each attempt begins a
delay; of several that do so at once, only one is tried. An account is counted for each address, so that a stranger
slows only themselves. When very many addresses guess at it, it is also counted for each neighbourhood of addresses;
never for all of them together, or strangers could keep its owner out. A browser with an earlier sign-in is counted on
its own, and by nothing else. An attempt that was never tried is given back, so such counts use fixed windows of time:
nothing carries over into a later window.

Buckets are taken in one order (codes, account or browser, everywhere, address, then those of an unlocked account and of
the neighbourhood); otherwise two concurrent requests could deadlock on PostgreSQL. Those that every attempt raises are
raised together; one that is refused by a bucket is taken back from all of them.

Guesses of codes of an app and by e-mail are also counted in the registry, so that a restart gives none back: for each
browser that is known for the person, for all others together, and for enrolments by a link. They count only after the
password or a link was presented, so no stranger can lock a person out.

The bytes of a form that was rejected are no further attempt when they come once more. An accepted form costs nothing
for this: only after a rejection is it noted which bytes it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from corpid.flows import encrypted_values, namespaces
from corpid.flows.namespaces import Entry
from corpid.rules.authentication.sign_in import fingerprint
from corpid.rules.authentication.throttling import (
    Bucket,
    CodeGuesses,
    CodesPaused,
    blocking,
    bucket,
    delay,
    one_more,
    pause_after,
)
from corpid.rules.limits import CODE_GUESSES, FACTOR_CHANGES, HOUR, MINUTE
from corpid.rules.networks import neighbourhood, site
from corpid.texts import Phrase, counted, phrase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.flows.request_context import RequestContext
    from corpid.rules.audit import AuditEvent
    from corpid.rules.authentication.records import Credentials
    from corpid.stores.transient import TransientBatch

_Who: TypeAlias = tuple[str, ...]
_WINDOW_SECONDS: Final = int(namespaces.ATTEMPTS.seconds)
_FREE_FOR_ACCOUNT: Final = 5
"""from one address, or in one known browser"""
_FREE_FOR_ACCOUNT_EVERYWHERE: Final = 100
"""after them, a neighbourhood is counted like an address"""
_LONGEST_NEARBY_SECONDS: Final = 60
"""shorter, since neighbours share it"""
_FREE_FOR_ADDRESS: Final = 50
_FREE_FOR_LINK_CODES: Final = 20
"""wrong codes from one address"""
_LONGEST_SECONDS: Final = 300
_COUNTED_IN_SECONDS: Final = 300
"""longer delays are given in minutes"""
_ENTRY: Final = attrgetter("entry")
UNKNOWN_BROWSERS: Final = ""
"""all browsers that are not known for the person, counted together"""
LINK_GUESSES: Final = "link"
_IN_HOURS: Final = 2 * HOUR
"""a shorter time is given in minutes"""


class Throttled(Exception):
    """Too many attempts; `seconds` until the next may be tried."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"try again in {seconds} seconds")
        self.seconds = seconds

    @property
    def sentence(self) -> Phrase:
        """The explanation for the person."""
        if self.seconds > _COUNTED_IN_SECONDS:
            return counted(
                -(-self.seconds // 60),
                "Too many attempts. Wait {count} minute, then try again.",
                "Too many attempts. Wait {count} minutes, then try again.",
            )
        return counted(
            self.seconds,
            "Too many attempts. Wait {count} second, then try again.",
            "Too many attempts. Wait {count} seconds, then try again.",
        )


class _Count(msgspec.Struct, frozen=True, kw_only=True):
    """One of the counts that an attempt has raised."""

    entry: Entry[int]
    until: int = 0
    """end of the delay that it has begun, in epoch seconds; 0: none"""
    step: int = 0
    """the increment that began the delay"""


class _Limit(msgspec.Struct, frozen=True, kw_only=True):
    """The free attempts of one counter, and what follows them."""

    who: _Who
    entry: Entry[int]
    free: int
    user_name: str = ""
    """mapped form, if an operator can end the delay by unlocking the account"""
    longest: int = _LONGEST_SECONDS
    """seconds of the longest delay"""
    nearby: _Limit | None = None
    """the limit that counts after the free attempts, in place of a delay"""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """An admitted attempt and its counts."""

    counts: tuple[_Count, ...]
    known: bool = False
    """true if the browser is known for the account"""
    earlier: bool = False
    """true if the first of the limits has counted others"""


async def last_entity(context: RequestContext, user_name: str, browser_key: str, *, user_id: str = "") -> str | None:
    """Return the entity that a person last chose in a known browser.

    The result is empty if there is none yet; None if the browser is not known for the person, also if it is for
    somebody who had the user name before. Before the password is checked, `user_id` is empty. Source: D17, D47
    """
    known = namespaces.KNOWN_BROWSER.entry(context.provider.policy.deployment_url, user_name, browser_key)
    found = await known.read(context.provider.transient, now=context.now)
    entity_id, _, owner = (found or "").partition(" ")
    return None if found is None or (user_id and owner and owner != user_id) else entity_id


async def remember(
    context: RequestContext,
    batch: TransientBatch,
    user_name: str,
    browser_key: str,
    entity_id: str | None,
    *,
    user_id: str,
) -> None:
    """Remember a browser as known, with the person's last entity (D17, D47)."""
    known = namespaces.KNOWN_BROWSER.entry(context.provider.policy.deployment_url, user_name, browser_key)
    await known.put(batch, f"{entity_id or ''} {user_id}")


async def is_known(context: RequestContext, user_name: str, browser_key: str, *, user_id: str = "") -> bool:
    """Return whether a person has fully signed in here before (D47)."""
    return await last_entity(context, user_name, browser_key, user_id=user_id) is not None


def _everywhere(issuer: str, user_name: str) -> Entry[int]:
    return namespaces.ATTEMPTS.entry(issuer, "account", user_name)


def _in_window(context: RequestContext, *who: str) -> _Who:
    """Return the counter that begins again with each window of time."""
    return (*who, str(int(context.now) // _WINDOW_SECONDS))


def _codes(user_name: str) -> _Who:
    return ("codes", user_name)


def _address(context: RequestContext) -> _Who:
    return _in_window(context, "address", site(context.address))


async def attempt_password(context: RequestContext, user_name: str, browser_key: str, *, known: bool) -> Attempt:
    """Count an attempt at a password.

    `known` says that the browser is known for the account. Raises Throttled if the attempt comes too early. Source: D47
    """
    async with context.provider.transient.batch(context.now) as batch:
        if known:
            return await _attempt_in_browser(context, batch, user_name, browser_key)
        here = _in_window(context, "account", user_name, site(context.address))
        around = _in_window(context, "account", user_name, neighbourhood(context.address))
        nearby = _limit(context, around, _FREE_FOR_ACCOUNT, user_name=user_name, longest=_LONGEST_NEARBY_SECONDS)
        everywhere = _Limit(
            who=(),
            entry=_everywhere(context.provider.policy.deployment_url, user_name),
            free=_FREE_FOR_ACCOUNT_EVERYWHERE,
            nearby=nearby,
        )
        own = _limit(context, here, _FREE_FOR_ACCOUNT, user_name=user_name)
        return await _admit(context, batch, own, everywhere, _limit(context, _address(context), _FREE_FOR_ADDRESS))


async def attempt_second_factor(
    context: RequestContext, batch: TransientBatch, user_name: str, browser_key: str, *, known: bool
) -> Attempt:
    """Count an attempt at a second factor that can be guessed.

    It requires the password, so an account's attempts in unknown browsers are counted together, from any address. A
    known browser belongs to the owner, who must not be kept out by a thief of the password. Raises Throttled if the
    attempt comes too early. Source: D45, D47
    """
    if known:
        return await _attempt_in_browser(context, batch, user_name, browser_key)
    here = _in_window(context, "account", user_name, site(context.address))
    return await _admit(
        context,
        batch,
        _limit(context, _codes(user_name), _FREE_FOR_ACCOUNT),
        _limit(context, here, _FREE_FOR_ACCOUNT, user_name=user_name),
        _limit(context, _address(context), _FREE_FOR_ADDRESS),
    )


async def _attempt_in_browser(
    context: RequestContext, batch: TransientBatch, user_name: str, browser_key: str
) -> Attempt:
    own = _limit(
        context, _in_window(context, "browser", user_name, browser_key), _FREE_FOR_ACCOUNT, user_name=user_name
    )
    return replace(await _admit(context, batch, own), known=True)


async def attempt_unguessable(context: RequestContext, batch: TransientBatch) -> Attempt:
    """Count an attempt with a passkey or a recovery code.

    A signature or 80 random bits cannot be guessed, so nothing is counted for the owner; otherwise a stranger or a
    thief of the password could keep them out. Raises Throttled if the attempt comes too early. Source: D45, D46, D47
    """
    return await _admit(context, batch, _limit(context, _address(context), _FREE_FOR_ADDRESS))


async def attempt_with_link(context: RequestContext, link_hash: str) -> Attempt:
    """Count an attempt at a factor in an enrolment by a link.

    Attempts with a link are counted by the link alone, so that guesses in the sign-in never block recovery. Raises
    Throttled if the attempt comes too early. Source: D47
    """
    async with context.provider.transient.batch(context.now) as batch:
        of_link = _limit(context, _in_window(context, "link", link_hash), _FREE_FOR_ACCOUNT)
        return await _admit(context, batch, of_link, _limit(context, _address(context), _FREE_FOR_ADDRESS))


async def attempt_link_code(context: RequestContext) -> Attempt:
    """Count an attempt to open a link by its code.

    Raises Throttled if the attempt comes too early. Source: D47
    """
    async with context.provider.transient.batch(context.now) as batch:
        return await _admit(context, batch, _limit(context, _link_codes(context), _FREE_FOR_LINK_CODES))


async def link_code_accepted(context: RequestContext, batch: TransientBatch, attempt: Attempt) -> None:
    """Give back the attempt that opened a link.

    Many people may share one address. Source: D47
    """
    context.counts.settle(attempt.counts)
    await _bucket_of(context, _link_codes(context)).count(batch, -1)


def _link_codes(context: RequestContext) -> _Who:
    """Return the counter for link codes from this address.

    Fixed windows make attempts and opened links end together.
    """
    return _in_window(context, "link codes", site(context.address))


async def attempt_change(context: RequestContext, by: str) -> Attempt:
    """Count an attempt to change one's own factors.

    `by` is a person's id or the hash of a link. Each attempt may cost a hash and an e-mail, and hashing and mail are
    shared by everybody. Attempts with a link are counted by the link alone, so that a thief in the account never blocks
    recovery. Raises Throttled if the attempt comes too early. Source: D47
    """
    async with context.provider.transient.batch(context.now) as batch:
        return await _admit(context, batch, _limit(context, _in_window(context, "change", by), FACTOR_CHANGES))


async def give_back(context: RequestContext, attempt: Attempt) -> None:
    """Remove an attempt in which nothing was tried, or guessed (D47)."""
    async with context.provider.transient.batch(context.now) as batch:
        await give_back_within(context, batch, attempt)


async def give_back_within(context: RequestContext, batch: TransientBatch, attempt: Attempt) -> None:
    """As `give_back`, in a batch that is open (D47)."""
    context.counts.settle(attempt.counts)
    await _take_back(context, attempt.counts, batch)


async def _take_back(context: RequestContext, counts: Sequence[_Count], batch: TransientBatch) -> None:
    for each in counts:
        # After the delay has ended, another attempt may have begun a new one.
        begun = each.step if context.provider.clock() < each.until else 0
        await each.entry.count(batch, -1 - begun)


def _bucket_of(context: RequestContext, who: _Who) -> Entry[int]:
    return namespaces.ATTEMPT_BUCKET.entry(context.provider.policy.deployment_url, *who)


def _limit(
    context: RequestContext, who: _Who, free: int, *, user_name: str = "", longest: int = _LONGEST_SECONDS
) -> _Limit:
    entry = namespaces.ATTEMPT_BUCKET.entry(context.provider.policy.deployment_url, *who)
    return _Limit(who=who, entry=entry, free=free, user_name=user_name, longest=longest)


async def _admit(context: RequestContext, batch: TransientBatch, *limits: _Limit) -> Attempt:
    """Count an attempt at each limit, in order.

    Raises Throttled if the attempt comes too early; then it is counted at no limit, and has begun no delay.
    """
    counted = await namespaces.count_each(batch, [*map(_ENTRY, limits)])
    counts: list[_Count] = []
    for limit, value in zip(limits, counted, strict=True):
        found = bucket(value)
        try:
            if found.attempts > limit.free:
                counts += await _beyond(context, batch, limit, found)
            else:
                counts.append(_Count(entry=limit.entry))
        except Throttled:
            for each in limits:
                await each.entry.count(batch, -1)
            own = {each.entry for each in limits}
            for begun in counts:
                if by := -begun.step - (begun.entry not in own):
                    await begun.entry.count(batch, by)
            raise
    raised = tuple(counts)
    context.counts.note(raised, partial(_take_back, context, raised))
    return Attempt(counts=raised, earlier=bucket(counted[0]).attempts > 1)


async def _beyond(context: RequestContext, batch: TransientBatch, limit: _Limit, found: Bucket) -> Sequence[_Count]:
    """Return what was counted for an attempt beyond the free ones.

    `found` includes it. Raises Throttled if the attempt comes too early.
    """
    who, free, longest = limit.who, limit.free, limit.longest
    if limit.nearby is not None:
        return (_Count(entry=limit.entry), *await _admitted(context, batch, limit.nearby))
    unlocks = await _unlocks(context, batch, limit.user_name)
    if unlocks:
        since = _limit(context, (*who, unlocks), free, longest=longest)
        return (_Count(entry=limit.entry), *await _admitted(context, batch, since))
    now, ends = int(context.now), found.blocked_until(context.now)
    if context.now < ends:
        raise Throttled(min(max(1, ends - now), longest))
    until = now + delay(found.attempts, free=free, longest=longest)
    step = until - ends
    begun = bucket(await limit.entry.count(batch, blocking(step)))
    if begun.blocked != found.blocked + step:
        # Another attempt has begun a delay meanwhile: that one is tried.
        await limit.entry.count(batch, -blocking(step))
        raise Throttled(max(1, until - now))
    return (_Count(entry=limit.entry, until=until, step=blocking(step)),)


async def _admitted(context: RequestContext, batch: TransientBatch, limit: _Limit) -> Sequence[_Count]:
    """Return the counts of a limit that stands for another."""
    attempt = await _admit(context, batch, limit)
    context.counts.settle(attempt.counts)
    return attempt.counts


async def _unlocks(context: RequestContext, batch: TransientBatch, user_name: str) -> str:
    """Return the part of a counter's key that each unlocking changes.

    It is used after the free attempts, so that they are counted again after each unlocking, which knows neither
    addresses nor browsers. The result is empty if there was no unlocking, and for counters that cannot be unlocked.
    """
    if not user_name:
        return ""
    unlocks = await namespaces.UNLOCKS.entry(context.provider.policy.deployment_url, user_name).get(batch)
    return str(unlocks) if unlocks else ""


async def forget_attempts(
    context: RequestContext, batch: TransientBatch, user_name: str, browser_key: str, *, known: bool, of_address: int
) -> None:
    """Forget an account's attempts after full authentication.

    In a known browser, only the attempts made there are forgotten. Those from very many addresses stay counted, so that
    a sign-in of the owner gives nothing back to those who guess at the account. The address gets back the attempts that
    this sign-in cost it (`of_address`) and no more; otherwise an attacker's own account would be a licence to try the
    passwords of others. Source: D47
    """
    if known:
        await _forget(context, batch, user_name, _in_window(context, "browser", user_name, browser_key))
    else:
        here = _in_window(context, "account", user_name, site(context.address))
        await _forget(context, batch, user_name, here, _codes(user_name))
    if of_address:
        await _bucket_of(context, _address(context)).count_unseen(batch, -of_address)


async def _forget(context: RequestContext, batch: TransientBatch, user_name: str, own: _Who, *others: _Who) -> None:
    """Forget what is counted for `others` and for `own`.

    Of `own` also what was counted since the account was unlocked.
    """
    issuer, entry = context.provider.policy.deployment_url, namespaces.ATTEMPT_BUCKET.entry
    *_, stored = await namespaces.pipeline(batch, *[entry(issuer, *who).taking() for who in (*others, own)])
    if bucket(stored or 0).attempts > _FREE_FOR_ACCOUNT:
        unlocks = await _unlocks(context, batch, user_name)
        if unlocks:
            await entry(issuer, *own, unlocks).take(batch)


async def unlock(batch: TransientBatch, issuer: str, user_name: str) -> None:
    """End the delay of an account for an operator.

    `user_name` is in its mapped form. Source: D47
    """
    await namespaces.ATTEMPT_BUCKET.entry(issuer, *_codes(user_name)).take(batch)
    await _everywhere(issuer, user_name).take(batch)
    unlocks = namespaces.UNLOCKS.entry(issuer, user_name)
    # Written, not counted: each unlocking lasts as long as the first.
    await unlocks.put(batch, (await unlocks.get(batch) or 0) + 1)


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
                duration=pause_duration(self.seconds),
            )
        return phrase(
            "Too many wrong codes were entered for this account, so codes from an app or by e-mail are not "
            "accepted here {duration}. Use a passkey or a recovery code if you have one, or wait.",
            duration=pause_duration(self.seconds),
        )


def pause_duration(seconds: int) -> Phrase:
    """Return a duration in minutes, or in hours from two hours on.

    It is rounded up. Source: D45
    """
    if seconds < _IN_HOURS:
        return counted(ceil(seconds / MINUTE), "for {count} minute", "for {count} minutes")
    return counted(ceil(seconds / HOUR), "for {count} hour", "for {count} hours")


def guess_group(context: RequestContext, user_id: str, browser_key: str, *, known: bool) -> str:
    """Return the counter key of a known browser, or of all others.

    Guesses in unknown browsers are common to the deployment's issuers, since the codes are. A known browser is one
    issuer's: its key comes from that issuer's cookie. Source: D45, D62
    """
    if not known:
        return UNKNOWN_BROWSERS
    return namespaces.KNOWN_BROWSER.entry(context.provider.policy.base_url, user_id, browser_key).key.hex()


async def guesses_with_links(context: RequestContext, user_id: str) -> CodeGuesses:
    """Return the count of a person's guesses in enrolments by a link. Source: D45"""
    return await context.provider.registry.code_guesses.get(user_id, LINK_GUESSES)


async def attempt_code_with_link(
    context: RequestContext, seen: CodeGuesses, credentials: Credentials, link_hash: str
) -> tuple[Attempt, CodeGuesses]:
    """Count a guess in an enrolment by a link.

    `seen` is that of `guesses_with_links`. Returns the attempt, and the count including it. Raises Paused and
    Throttled. Source: D45, D47
    """
    factors = fingerprint(credentials)
    after = one_more_guess(context, seen, factors)
    attempt = await attempt_with_link(context, link_hash)
    return attempt, await count_guess(context, seen, after, factors)


async def give_guess_back(context: RequestContext, counted: CodeGuesses) -> None:
    """Take back a guess, unless others were counted since.

    `counted` includes it. Source: D45, D73
    """
    before = msgspec.structs.replace(counted, guesses=counted.guesses - 1, paused_until=0)
    context.counts.settle(counted)
    await context.provider.registry.code_guesses.replace(counted, before)


async def _taken_back(context: RequestContext, counted: CodeGuesses, _: TransientBatch) -> None:
    await give_guess_back(context, counted)


def pause_event(entry: AuditEvent, guesses: CodeGuesses) -> AuditEvent:
    """Return an audit entry with the details of a new pause (D45)."""
    where = {UNKNOWN_BROWSERS: "new", LINK_GUESSES: "link"}.get(guesses.browser, "known")
    seconds = pause_after(guesses.guesses)
    detail = {"guesses": str(guesses.guesses), "pause_seconds": str(seconds), "browser": where}
    return msgspec.structs.replace(entry, detail={**entry.detail, **detail})


async def count_guess(context: RequestContext, seen: CodeGuesses, after: CodeGuesses, factors: bytes) -> CodeGuesses:
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


async def forget_guesses(context: RequestContext, seen: CodeGuesses, group: str, *, guessed: bool) -> None:
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
        raise Paused(max(1, ceil(paused.until - context.now)), elsewhere=seen.browser == UNKNOWN_BROWSERS) from None


class Repeated(Exception):
    """A form whose bytes were rejected a short time ago.

    Nothing is tried, and nothing counted.
    """


@dataclass(slots=True, kw_only=True)
class SentForm:
    """The bytes of a form, and what was counted for them."""

    place: tuple[str, ...]
    """whose form it is, and of which page (`encrypted_values`)"""
    digest: bytes
    """SHA-256 of the form"""
    attempt: Attempt | None = None
    first: bool | None = None
    """whether its rejection is the first of these bytes; None: not known yet"""


async def refuse_repeated(context: RequestContext, form: SentForm | None) -> None:
    """Raise Repeated for a form that was rejected before.

    Its attempt is given back. This costs a statement, so a form whose attempt is the first in its window of time is not
    looked up. Raises StoreUnavailable. Source: D73
    """
    if form is None or (form.attempt is not None and not form.attempt.earlier):
        return
    if not await encrypted_values.was_rejected(context, form.place, form.digest):
        return
    if form.attempt is not None:
        await give_back(context, form.attempt)
    raise Repeated


async def rejection_counts(context: RequestContext, form: SentForm | None) -> bool:
    """Return whether a rejected form counts.

    The first of those with the same bytes does, however often it is asked. The attempt of a later one is given back.
    Raises StoreUnavailable. Source: D73
    """
    if form is None:
        return True
    if form.first is None:
        form.first = await encrypted_values.is_first_rejection(context, form.place, form.digest)
        # Alone in its window of time, a repeated one stays counted: otherwise any number would cost nothing.
        if not form.first and form.attempt is not None and form.attempt.earlier:
            await give_back(context, form.attempt)
    return form.first
