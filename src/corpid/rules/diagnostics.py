"""Findings for operators, and checks of what the database holds.

`corpid doctor` and the overview of the console make the same ones, from what each of them reads. `corpid doctor` also
checks what only it can see: the way through the proxy, a node's files, and a database that no server can use yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from corpid.rules.characters import printable
from corpid.rules.limits import DAY, HOUR
from corpid.rules.oauth.client_registration import is_registered_at, pkce_optional
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.server_processes import VERSION, ServerProcess, differences, live

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from corpid.rules.oauth.records import Client

Verdict = Literal["ok", "warning", "problem"]

OLD_KEY_DAYS: Final = 400
"""a key is rotated once a year; the age at which an alert is due (CorpidSigningKeyOld)"""
LETTER_DAYS: Final = 2
"""the age at which a waiting invitation e-mail is a warning"""
UNSEALED_SECONDS: Final = 2 * HOUR
"""how long an audit entry can be unsealed: twice the longest time that sealing takes"""
_MOST: Final = 2000
"""characters of one text"""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check.

    `about` names it and is unique in a report. `change` is empty if all is well, or if `seen` names the remedy.
    """

    about: str
    verdict: Verdict
    seen: str
    change: str = ""


def ok(about: str, seen: str) -> Finding:
    """As it should be. Source: D49"""
    return Finding(about=about, verdict="ok", seen=plain(seen))


def warning(about: str, seen: str, change: str) -> Finding:
    """It works, but not well, or cannot be judged from here. Source: D49"""
    return Finding(about=about, verdict="warning", seen=plain(seen), change=plain(change))


def problem(about: str, seen: str, change: str = "") -> Finding:
    """Something does not work, or is not safe.

    `change` is empty if the observation says what to do. Source: D49
    """
    return Finding(about=about, verdict="problem", seen=plain(seen), change=plain(change))


def plain(text: str) -> str:
    """One printable line of bounded length, for text from other parties. Source: D28"""
    return printable(text if len(text) <= _MOST else f"{text[:_MOST]}...")


def count_noun(number: int, noun: str) -> str:
    """`1 problem`, `2 problems`. Source: D49"""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def sentence(error: object) -> str:
    """The text of an error as a sentence.

    Settings and addresses stay as they are. Source: D49
    """
    text = str(error).rstrip(".")
    first, space, rest = text.partition(" ")
    begun = f"{first.capitalize() if first.isalpha() and first.islower() else first}{space}{rest}"
    return begun if begun.endswith("?") else f"{begun}."


def signing_keys(keys: Iterable[tuple[str, int, int | None]], *, now: float) -> Finding:
    """Age of the key that signs.

    A key is kid, activation and retirement; revoked ones are left out. Source: D42
    """
    signing = [(begun, kid) for kid, begun, ends in keys if begun <= now and (ends is None or ends > now)]
    if not signing:
        change = "Change: start a node, which creates the first key, or run `corpid key rotate`."
        return problem("signing keys", "No key is signing now.", change)
    since, kid = max(signing)
    days = (now - since) / DAY
    seen = f"{kid} has signed for {days:.0f} days."
    if days > OLD_KEY_DAYS:
        return warning("signing keys", seen, "Change: run `corpid key rotate`, once a year.")
    return ok("signing keys", seen)


def audit_seals(unsealed_since: int | None, *, now: float) -> Finding:
    """Audit entries unsealed for too long (D58)."""
    waits = 0.0 if unsealed_since is None else now - unsealed_since
    if waits > UNSEALED_SECONDS:
        seen = (
            f"Entries have been waiting for a seal for {waits / HOUR:.0f} hours. Without a seal they are not protected."
        )
        change = "Change: look for sweep_failed in the log of a running server, or run `corpid audit seal`."
        return warning("audit seals", seen, change)
    return ok("audit seals", "No audit entry has been waiting too long for its seal.")


def invitation_emails(waiting: int, oldest: int, *, sends: bool, now: float) -> Finding:
    """Invitation e-mails that wait too long (D60)."""
    if waiting and not sends:
        seen = f"{waiting:,} invitation e-mails are waiting, because no mail server is set."
        return warning("invitations", seen, "Change: set mail_url and mail_from.")
    days = (now - oldest) / DAY
    if waiting and days > LETTER_DAYS:
        seen = f"{waiting:,} invitation e-mails are waiting; the oldest invitation is {days:.0f} days old."
        change = "Change: look for invitations_stopped and invitation_delayed in the log of a running server."
        return warning("invitations", seen, change)
    return ok("invitations", "No invitation e-mail has been waiting too long.")


def processes(registered: Iterable[ServerProcess], *, now: float) -> Iterator[Finding]:
    """Live processes of another version or with other settings (D43, D49)."""
    lives = live(registered, now=now)
    found = differences(lives)
    for name, values in found.items():
        said = "; ".join(
            f"{value or 'nothing'} at {', '.join(each.name for each in having)}" for value, having in values.items()
        )
        if name == VERSION:
            change = "Change: finish the upgrade, or go back on all nodes: `corpid migrate --contract` waits for it."
            yield warning("versions of the processes", f"They differ: {said}.", change)
        else:
            change = "Change: give every node the same value, and restart those that have another one."
            yield problem(f"{name} of the processes", f"It differs: {said}.", change)
    if not found and lives:
        several = f"{len(lives):,} processes serve, with the same version and settings."
        yield ok("processes", several if len(lives) > 1 else "One process serves.")


def pkce(clients: Iterable[Client], generations: Mapping[str, Sequence[str]], *, today: str) -> Iterator[Finding]:
    """Enabled clients that may omit PKCE today.

    `generations` are the names of those that each issuer serves. Source: Spec "LEGACY without PKCE"
    """
    allowing = [
        (issuer_id, GENERATIONS[name])
        for issuer_id, names in generations.items()
        for name in names
        if GENERATIONS[name].pkce_optional
    ]
    found = [
        one.client_id
        for one in clients
        if one.enabled
        and any(is_registered_at(one, issuer_id) and pkce_optional(one, each, today) for issuer_id, each in allowing)
    ]
    if found:
        change = (
            "Change: register pkce required, or the last day as pkce_optional_until, as soon as they send a challenge."
        )
        named = f"{', '.join(found)} can omit it (pkce optional)"
        seen = f"{named}. A request with neither code_challenge nor nonce does not meet RFC 9700 2.1.1."
        yield warning("PKCE", seen, change)
    elif allowing:
        yield ok("PKCE", "No client can omit it.")


def unknown_issuers(named: Iterable[tuple[str, tuple[str, ...]]], known: Iterable[str]) -> Iterator[Finding]:
    """Clients that name an issuer absent from the settings (D62)."""
    issuers = frozenset(known)
    gone = [f"{client_id} ({name})" for client_id, names in named for name in names if name not in issuers]
    if gone:
        seen = f"Clients name issuers that this deployment does not have: {', '.join(gone)}."
        yield problem("issuers", seen, "Change: add them to [[issuers]], or update the clients.")


class SkippedCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A check that could not be made, and why."""

    about: str
    verdict: Literal["not_looked_at"] = "not_looked_at"
    seen: str
    change: str = ""


Reported = Finding | SkippedCheck


def not_looked_at(about: str, reason: str) -> SkippedCheck:
    """Not known from here; `reason` says what to do about it. Source: D49"""
    return SkippedCheck(about=about, seen=plain(reason))
