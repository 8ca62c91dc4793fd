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


def ok(seen: str, *, about: str = "") -> Finding:
    """As it should be.

    `about` is left out, here as below, by a check that is named by its table (`named`). Source: D49
    """
    return Finding(about=about, verdict="ok", seen=plain(seen))


def warning(seen: str, remedy: str, *, about: str = "") -> Finding:
    """It works, but not well, or cannot be judged from here. Source: D49"""
    return Finding(about=about, verdict="warning", seen=plain(seen), change=_change(remedy))


def problem(seen: str, remedy: str = "", *, about: str = "") -> Finding:
    """Something does not work, or is not safe.

    `remedy` is empty if the observation says what to do. Source: D49
    """
    return Finding(about=about, verdict="problem", seen=plain(seen), change=_change(remedy))


def _change(remedy: str) -> str:
    return plain(f"Change: {remedy}.") if remedy else ""


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
        return problem(
            "No key is signing now.",
            "start a node, which creates the first key, or run `corpid key rotate`",
            about="signing keys",
        )
    since, kid = max(signing)
    days = (now - since) / DAY
    seen = f"{kid} has signed for {days:.0f} days."
    if days > OLD_KEY_DAYS:
        return warning(seen, "run `corpid key rotate`, once a year", about="signing keys")
    return ok(seen, about="signing keys")


def audit_seals(unsealed_since: int | None, *, now: float) -> Finding:
    """Audit entries unsealed for too long (D58)."""
    waits = 0.0 if unsealed_since is None else now - unsealed_since
    if waits > UNSEALED_SECONDS:
        return warning(
            f"Entries have been waiting for a seal for {waits / HOUR:.0f} hours. Without a seal they are not protected.",
            "look for sweep_failed in the log of a running server, or run `corpid audit seal`",
            about="audit seals",
        )
    return ok("No audit entry has been waiting too long for its seal.", about="audit seals")


def invitation_emails(waiting: int, oldest: int, *, sends: bool, now: float) -> Finding:
    """Invitation e-mails that wait too long (D60)."""
    if waiting and not sends:
        return warning(
            f"{waiting:,} invitation e-mails are waiting, because no mail server is set.",
            "set mail_url and mail_from",
            about="invitations",
        )
    days = (now - oldest) / DAY
    if waiting and days > LETTER_DAYS:
        return warning(
            f"{waiting:,} invitation e-mails are waiting; the oldest invitation is {days:.0f} days old.",
            "look for invitations_stopped and invitation_delayed in the log of a running server",
            about="invitations",
        )
    return ok("No invitation e-mail has been waiting too long.", about="invitations")


def processes(registered: Iterable[ServerProcess], *, now: float) -> Iterator[Finding]:
    """Live processes of another version or with other settings (D43, D49)."""
    lives = live(registered, now=now)
    found = differences(lives)
    for name, values in found.items():
        said = "; ".join(
            f"{value or 'nothing'} at {', '.join(each.name for each in having)}" for value, having in values.items()
        )
        if name == VERSION:
            yield warning(
                f"They differ: {said}.",
                "finish the upgrade, or go back on all nodes: `corpid migrate --contract` waits for it",
                about="versions of the processes",
            )
        else:
            yield problem(
                f"It differs: {said}.",
                "give every node the same value, and restart those that have another one",
                about=f"{name} of the processes",
            )
    if not found and lives:
        several = f"{len(lives):,} processes serve, with the same version and settings."
        yield ok(several if len(lives) > 1 else "One process serves.", about="processes")


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
        named = f"{', '.join(found)} can omit it (pkce optional)"
        yield warning(
            f"{named}. A request with neither code_challenge nor nonce does not meet RFC 9700 2.1.1.",
            "register pkce required, or the last day as pkce_optional_until, as soon as they send a challenge",
            about="PKCE",
        )
    elif allowing:
        yield ok("No client can omit it.", about="PKCE")


def unknown_issuers(named: Iterable[tuple[str, tuple[str, ...]]], known: Iterable[str]) -> Iterator[Finding]:
    """Clients that name an issuer absent from the settings (D62)."""
    issuers = frozenset(known)
    gone = [f"{client_id} ({name})" for client_id, names in named for name in names if name not in issuers]
    if gone:
        yield problem(
            f"Clients name issuers that this deployment does not have: {', '.join(gone)}.",
            "add them to [[issuers]], or update the clients",
            about="issuers",
        )


class SkippedCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A check that could not be made, and why."""

    about: str
    verdict: Literal["not_looked_at"] = "not_looked_at"
    seen: str
    change: str = ""


Reported = Finding | SkippedCheck


def not_looked_at(reason: str, *, about: str = "") -> SkippedCheck:
    """Not known from here; `reason` says what to do about it. Source: D49"""
    return SkippedCheck(about=about, seen=plain(reason))


def named(about: str, found: Reported | Iterable[Reported] | None) -> list[Reported]:
    """The findings of a check, named by its table.

    One that has a name keeps it. Source: D49
    """
    several = [found] if isinstance(found, (Finding, SkippedCheck)) else found or ()
    return [each if each.about else msgspec.structs.replace(each, about=about) for each in several]
