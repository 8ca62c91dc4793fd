"""Sending the e-mails of invitations, at a limited rate (D60).

Every process looks for e-mails that are due, and takes each before it sends it. Only the e-mail has the link: the
inviter never gets it. If a process dies between taking an e-mail and storing the outcome, another one sends it after
some minutes, so it is sent once too often at most; its first link ends then.
"""

from __future__ import annotations

from secrets import SystemRandom
from typing import TYPE_CHECKING, Final

from corpid.flows import namespaces, notifications
from corpid.flows.account import links
from corpid.flows.mail_pauses import SEVERAL_DOMAINS, MailPauses
from corpid.rules.audit_records import AuditEvent
from corpid.rules.authentication import link_codes
from corpid.rules.authentication.link_codes import NewLink
from corpid.rules.directory.actors import SYSTEM
from corpid.rules.directory.changes import Conflict
from corpid.rules.directory.invitations import REFUSED, SENDING_SECONDS, being_sent
from corpid.rules.failures import EmailDelayed, MailDelayed, MailRefused, SenderRefused, StoreUnavailable
from corpid.rules.limits import EMAILS_PER_ADDRESS, INVITATIONS_PER_MINUTE, MINUTE

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.flows.provider import Provider
    from corpid.rules.directory.invitations import OpenInvitation
    from corpid.rules.emails import Email

OUTCOMES: Final = ("sent", "refused", "delayed", "put off")
_AT_ONCE: Final = 20
"""e-mails that one round finds"""
_LATER_SECONDS: Final = 3600
"""until an e-mail is tried again that alone was not taken"""


class InvitationEmails:
    """The sending of one process.

    `log` writes an event and its detail to the log, `count` counts an outcome, one of `OUTCOMES`.
    """

    def __init__(self, provider: Provider, log: Callable[[str, str], None], count: Callable[[str], None]) -> None:
        self._provider: Final = provider
        self._log: Final = log
        self._count: Final = count
        self._pauses: Final = MailPauses(
            provider.clock, log, delayed="invitation_delayed", stopped="invitations_stopped"
        )

    @property
    def pause_seconds(self) -> float:
        """The pause between two attempts; 0.0 if the last e-mail was sent."""
        return self._pauses.seconds

    async def round(self) -> int:
        """Send the e-mails that are due, and return how many were sent.

        While the mail server takes none, the next attempt waits longer each time, up to 15 minutes, and up to a day if
        it refuses CorpID itself; what is due stays due. An e-mail that alone is not taken waits for an hour, and keeps
        no other from being sent. Raises StoreUnavailable. Source: D60
        """
        provider, sent = self._provider, 0
        untaken: dict[str, str] = {}
        if not provider.mail.works or self._pauses.waits:
            return 0
        found = await provider.registry.invitations.due(now=provider.clock(), limit=_AT_ONCE)
        # Processes that find the same e-mails begin with different ones.
        SystemRandom().shuffle(found)
        for invited in found:
            taken = provider.clock()
            if not await provider.registry.invitations.take(invited, now=taken):
                continue
            if not await self._admitted():
                seen = invited.membership.invitation_sent_at
                await provider.registry.invitations.settle(invited, taken=taken, becomes=seen)
                return sent
            try:
                sent += await self._send(invited, taken)
            except SenderRefused as refused:
                self._pauses.stop(str(refused))
                self._count("delayed")
                return sent
            except EmailDelayed as delayed:
                untaken[invited.membership.email.rpartition("@")[2].casefold()] = str(delayed)
                await self._put_off(invited, taken, str(delayed))
            except MailDelayed as delayed:
                self._pauses.delay(str(delayed))
                self._count("delayed")
                return sent
        if not sent and len(untaken) >= SEVERAL_DOMAINS:
            self._pauses.stop(next(iter(untaken.values())))
            self._count("delayed")
        return sent

    async def _admitted(self) -> bool:
        """Count an e-mail; False beyond the limit of this minute."""
        now = self._provider.clock()
        window = str(int(now) // MINUTE)
        counted = namespaces.INVITATION_EMAILS.entry(self._provider.policy.deployment_url, window)
        async with self._provider.transient.batch(now) as batch:
            return await counted.count(batch) <= INVITATIONS_PER_MINUTE

    async def _send(self, invited: OpenInvitation, taken: float) -> bool:
        """Send one taken e-mail, and store the outcome."""
        provider, address = self._provider, invited.membership.email
        if not await self._wanted(address):
            tomorrow = (self._day() + 1) * namespaces.INVITATIONS_TO_ADDRESS.seconds
            outcome, becomes = "put off", being_sent(tomorrow - SENDING_SECONDS)
        else:
            code = link_codes.code_from(provider.new_id())
            try:
                link = links.of_invitation(invited, code, now=taken)
                await provider.registry.factors.keep_link(link, _event(invited))
            except Conflict:  # it was revoked
                return False
            except StoreUnavailable:
                await self._count_address(address, -1)
                raise
            try:
                await provider.mail.deliver(self._email(invited, code, link.expires_at))
            except MailDelayed:
                await self._count_address(address, -1)
                raise
            except MailRefused as refused:
                self._log("invitation_refused", f"membership {invited.membership.membership_id}: {refused}")
                outcome, becomes = "refused", REFUSED
            else:
                self._pauses.end()
                outcome, becomes = "sent", int(provider.clock())
        await provider.registry.invitations.settle(invited, taken=taken, becomes=becomes)
        self._count(outcome)
        return outcome == "sent"

    def _email(self, invited: OpenInvitation, code: str, expires_at: int) -> Email:
        policy = self._provider.policy
        return notifications.invitation(
            invited.entity,
            NewLink(page=policy.deployment_url + links.PATH, code=code, expires_at=expires_at),
            to=invited.membership.email,
            lead=links.PURPOSES["membership"].lead,
            language=invited.user.language,
            provider_name=policy.name,
        )

    async def _wanted(self, address: str) -> bool:
        """Count an e-mail to an address; False beyond the limit.

        The limit protects people whom entities invite again and again.
        """
        return await self._count_address(address, 1) <= EMAILS_PER_ADDRESS

    async def _count_address(self, address: str, by: int) -> int:
        deployment, day = self._provider.policy.deployment_url, str(self._day())
        entry = namespaces.INVITATIONS_TO_ADDRESS.entry(deployment, address.casefold(), day)
        async with self._provider.transient.batch(self._provider.clock()) as batch:
            return await entry.count(batch, by)

    def _day(self) -> int:
        return int(self._provider.clock() // namespaces.INVITATIONS_TO_ADDRESS.seconds)

    async def _put_off(self, invited: OpenInvitation, taken: float, reason: str) -> None:
        becomes = being_sent(self._provider.clock() + _LATER_SECONDS - SENDING_SECONDS)
        await self._provider.registry.invitations.settle(invited, taken=taken, becomes=becomes)
        self._log("invitation_delayed", f"membership {invited.membership.membership_id}: {reason}; again in an hour")
        self._count("delayed")


def _event(invited: OpenInvitation) -> AuditEvent:
    return AuditEvent(
        actor=SYSTEM,
        action=links.PURPOSES["membership"].made,
        object=invited.user.user_id,
        entity_id=invited.membership.entity_id,
        detail={"membership": invited.membership.membership_id},
    )
