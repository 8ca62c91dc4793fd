"""Sending of queued e-mails at a limited rate: invitations and notices (D60).

Every process looks for e-mails that are due, and takes each in one statement before it sends it: an invitation, or all
notices of one person, kind and entity. If a process dies between taking and storing the outcome, another one sends the
e-mail after some minutes: once too often at most. Only the e-mail has the link of an invitation: the inviter never gets
it, and if it is sent twice, the first link ends.
"""

from __future__ import annotations

from datetime import datetime
from secrets import SystemRandom
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from corpid.flows import namespaces, notifications
from corpid.flows.account import links
from corpid.flows.directory import notice_texts
from corpid.flows.directory.approvals import load_names
from corpid.flows.directory.notice_texts import AccessChange, Reader, RequestInWords, RoleNames
from corpid.flows.directory.person_names import read_names, read_requested_names
from corpid.rules.audit_records import AuditEvent
from corpid.rules.authentication import records
from corpid.rules.authentication.records import NewLink
from corpid.rules.directory.actors import SYSTEM
from corpid.rules.directory.approvals import state_at
from corpid.rules.directory.change_texts import name_actor, summarise_changes
from corpid.rules.directory.changes import Conflict
from corpid.rules.directory.invitations import REFUSED, SENDING_SECONDS, being_sent
from corpid.rules.directory.notices import LONGEST_WAIT_SECONDS, NoticeKind
from corpid.rules.directory.records import Assignment, ChangeRequest, Entity, Service, ThirdPartyAssignment
from corpid.rules.failures import EmailDelayed, MailDelayed, MailRefused, SenderRefused, StoreUnavailable
from corpid.rules.limits import (
    EMAILS_PER_ADDRESS,
    HOUR,
    INVITATIONS_PER_MINUTE,
    MINUTE,
    NOTICES_PER_MINUTE,
    NOTICES_PER_PERSON,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from corpid.flows.namespaces import Namespace
    from corpid.flows.request_context import Provider
    from corpid.rules.directory.invitations import OpenInvitation
    from corpid.rules.directory.notices import NoticeGroup, QueuedNotice
    from corpid.rules.emails import Email
    from corpid.texts import Phrase

INVITATION_OUTCOMES: Final = ("sent", "refused", "delayed", "put off")
NOTICE_OUTCOMES: Final = (*INVITATION_OUTCOMES, "dropped")
_AT_ONCE: Final = 20
"""e-mails that one round sends"""
_GROUPS_AT_ONCE: Final = 200
"""of due notices, among which processes choose"""
_MOST: Final = notice_texts.MOST_LISTED
_SEVERAL_DOMAINS: Final = 3
"""domains for which nothing is taken in a round: then the fault is CorpID's"""
_FIRST_PAUSE_SECONDS: Final = 10.0
_LONGEST_PAUSE_SECONDS: Final = 900.0
_FIRST_STOP_SECONDS: Final = 3600.0
_LONGEST_STOP_SECONDS: Final = 86400.0
"""while the server refuses CorpID itself: an operator has to change something, and then starts it again"""


class _Pauses:
    """The pauses of one task.

    Each is longer than the one before, until an e-mail is sent. `log` writes an event and its detail to the log;
    `delayed` and `stopped` are the names of the events.
    """

    def __init__(
        self, clock: Callable[[], float], log: Callable[[str, str], None], *, delayed: str, stopped: str
    ) -> None:
        self._clock: Final = clock
        self._log: Final = log
        self._delayed: Final = delayed
        self._stopped: Final = stopped
        self._pause = 0.0
        self._wait_until = 0.0
        self._stopped_by = ""
        """the refusal that was logged last"""

    @property
    def waits(self) -> bool:
        """True if nothing is to be sent now."""
        return self._clock() < self._wait_until

    @property
    def seconds(self) -> float:
        """The pause between two attempts; 0.0 if the last e-mail was sent."""
        return self._pause

    def delay(self, reason: str) -> None:
        """Wait up to 15 minutes: the server takes nothing."""
        self._pause = min(max(_FIRST_PAUSE_SECONDS, 2 * self._pause), _LONGEST_PAUSE_SECONDS)
        self._wait_until = self._clock() + self._pause
        self._log(self._delayed, f"{reason}; the next attempt follows in {self._pause:g} seconds")

    def stop(self, reason: str) -> None:
        """Log a refusal of CorpID itself once, and try rarely."""
        self._pause = min(max(_FIRST_STOP_SECONDS, 2 * self._pause), _LONGEST_STOP_SECONDS)
        self._wait_until = self._clock() + self._pause
        if reason != self._stopped_by:
            self._stopped_by = reason
            self._log(
                self._stopped,
                f"{reason}: the mail server refuses this deployment. Look at mail_url and mail_from, then restart",
            )

    def end(self) -> None:
        """Begin with short pauses again: an e-mail was sent."""
        self._pause, self._stopped_by = 0.0, ""


class _Sender:
    """The sending of one process, within limits.

    By minute, and by recipient and day.

    `log` writes an event and its detail to the log, `count` counts an outcome.
    """

    delayed: ClassVar[str]
    stopped: ClassVar[str]
    per_minute: ClassVar[Namespace[int]]
    per_day: ClassVar[Namespace[int]]

    def __init__(self, provider: Provider, log: Callable[[str, str], None], count: Callable[[str], None]) -> None:
        self._provider: Final = provider
        self._registry: Final = provider.registry
        self._log: Final = log
        self._count: Final = count
        self._pauses: Final = _Pauses(provider.clock, log, delayed=self.delayed, stopped=self.stopped)

    @property
    def pause_seconds(self) -> float:
        """The pause between two attempts; 0.0 if the last e-mail was sent."""
        return self._pauses.seconds

    async def _count_minute(self) -> int:
        """Count an e-mail of this minute."""
        now = self._provider.clock()
        counted = self.per_minute.entry(self._provider.policy.deployment_url, str(int(now) // MINUTE))
        async with self._provider.transient.batch(now) as batch:
            return await counted.count(batch)

    async def _count_recipient(self, recipient: str, by: int) -> int:
        """Count an e-mail of this day, or take it back.

        The limit protects people whom entities invite or notify again and again.
        """
        now = self._provider.clock()
        day = str(int(now // self.per_day.seconds))
        entry = self.per_day.entry(self._provider.policy.deployment_url, recipient, day)
        async with self._provider.transient.batch(now) as batch:
            return await entry.count(batch, by)

    def _tomorrow(self) -> float:
        return (self._provider.clock() // self.per_day.seconds + 1) * self.per_day.seconds


class InvitationEmails(_Sender):
    """The sending of invitations by one process."""

    delayed, stopped = "invitation_delayed", "invitations_stopped"
    per_minute, per_day = namespaces.INVITATION_EMAILS, namespaces.INVITATIONS_TO_ADDRESS

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
        found = await self._registry.invitations.due(now=provider.clock(), limit=_AT_ONCE)
        # Processes that find the same e-mails begin with different ones.
        SystemRandom().shuffle(found)
        for invited in found:
            taken = provider.clock()
            if not await self._registry.invitations.take(invited, now=taken):
                continue
            if await self._count_minute() > INVITATIONS_PER_MINUTE:
                seen = invited.membership.invitation_sent_at
                await self._registry.invitations.settle(invited, taken=taken, becomes=seen)
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
        if not sent and len(untaken) >= _SEVERAL_DOMAINS:
            self._pauses.stop(next(iter(untaken.values())))
            self._count("delayed")
        return sent

    async def _send(self, invited: OpenInvitation, taken: float) -> bool:
        """Send one taken e-mail, and store the outcome."""
        provider, address = self._provider, invited.membership.email
        if await self._count_recipient(address.casefold(), 1) > EMAILS_PER_ADDRESS:
            outcome, becomes = "put off", being_sent(self._tomorrow() - SENDING_SECONDS)
        else:
            code = records.code_from(provider.new_id())
            event = AuditEvent(
                actor=SYSTEM,
                action=links.PURPOSES["membership"].made,
                object=invited.user.user_id,
                entity_id=invited.membership.entity_id,
                detail={"membership": invited.membership.membership_id},
            )
            try:
                link = links.make_invitation_link(invited, code, now=taken)
                await provider.registry.factors.keep_link(link, event)
            except Conflict:  # it was revoked
                return False
            except StoreUnavailable:
                await self._count_recipient(address.casefold(), -1)
                raise
            try:
                await provider.mail.deliver(self._write_email(invited, code, link.expires_at))
            except MailDelayed:
                await self._count_recipient(address.casefold(), -1)
                raise
            except MailRefused as refused:
                self._log("invitation_refused", f"membership {invited.membership.membership_id}: {refused}")
                outcome, becomes = "refused", REFUSED
            else:
                self._pauses.end()
                outcome, becomes = "sent", int(provider.clock())
        await self._registry.invitations.settle(invited, taken=taken, becomes=becomes)
        self._count(outcome)
        return outcome == "sent"

    def _write_email(self, invited: OpenInvitation, code: str, expires_at: int) -> Email:
        policy = self._provider.policy
        return notifications.invitation(
            invited.entity,
            NewLink(page=policy.deployment_url + links.PATH, code=code, expires_at=expires_at),
            to=invited.membership.email,
            lead=links.PURPOSES["membership"].lead,
            language=invited.user.language,
            provider_name=policy.name,
        )

    async def _put_off(self, invited: OpenInvitation, taken: float, reason: str) -> None:
        becomes = being_sent(self._provider.clock() + HOUR - SENDING_SECONDS)
        await self._registry.invitations.settle(invited, taken=taken, becomes=becomes)
        self._log("invitation_delayed", f"membership {invited.membership.membership_id}: {reason}; again in an hour")
        self._count("delayed")


class NoticeEmails(_Sender):
    """The sending of notices by one process."""

    delayed, stopped = "notice_delayed", "notices_stopped"
    per_minute, per_day = namespaces.NOTICE_EMAILS, namespaces.NOTICES_TO_PERSON

    async def round(self) -> int:
        """Send the notices that are due; return the number of e-mails.

        While the mail server takes none, the next attempt waits longer each time, as that of invitations does. Raises
        StoreUnavailable. Source: docs/decisions/0022
        """
        provider, sent = self._provider, 0
        untaken: dict[str, str] = {}
        if not provider.mail.works or self._pauses.waits:
            return 0
        found = await self._registry.notices.due(now=provider.clock(), limit=_GROUPS_AT_ONCE)
        # Processes that find the same notices begin with different ones.
        SystemRandom().shuffle(found)
        for group in found[:_AT_ONCE]:
            by, now = provider.new_id(), provider.clock()
            queued = await self._registry.notices.take(group, by=by, now=now)
            if not queued:
                continue
            if await self._count_minute() > NOTICES_PER_MINUTE:
                await self._registry.notices.settle(group, by=by, due_at=int(now))
                return sent
            try:
                sent += await self._send(group, queued, by, untaken)
            except SenderRefused as refused:
                await self._put_off(group, by, 0)
                self._pauses.stop(str(refused))
                return sent
            except MailDelayed as delayed:
                await self._put_off(group, by, 0)
                self._pauses.delay(str(delayed))
                return sent
        if not sent and len(untaken) >= _SEVERAL_DOMAINS:
            self._pauses.stop(next(iter(untaken.values())))
        return sent

    async def _send(self, group: NoticeGroup, queued: Sequence[QueuedNotice], by: str, untaken: dict[str, str]) -> bool:
        """Send one e-mail about taken notices, and store the outcome.

        `untaken` gets the domain of an address that takes nothing now.
        """
        provider = self._provider
        now = provider.clock()
        fresh = [each for each in queued if each.created_at >= now - LONGEST_WAIT_SECONDS]
        email = await self._write_email(group, fresh) if fresh else None
        outcome = "dropped"
        if email is not None:
            if await self._count_recipient(group.user_id, 1) > NOTICES_PER_PERSON:
                await self._registry.notices.settle(group, by=by, due_at=int(self._tomorrow()))
                self._count("put off")
                return False
            try:
                await provider.mail.deliver(email)
            except EmailDelayed as delayed:
                await self._count_recipient(group.user_id, -1)
                untaken[email.to.rpartition("@")[2].casefold()] = str(delayed)
                await self._put_off(group, by, HOUR)
                return False
            except MailDelayed:
                await self._count_recipient(group.user_id, -1)
                raise
            except MailRefused as refused:
                self._log("notice_refused", f"person {group.user_id}: {refused}")
                outcome = "refused"
            else:
                self._pauses.end()
                outcome = "sent"
        await self._registry.notices.settle(group, by=by, sent_at=int(provider.clock()))
        self._count(outcome)
        return outcome == "sent"

    async def _put_off(self, group: NoticeGroup, by: str, seconds: int) -> None:
        await self._registry.notices.settle(group, by=by, due_at=int(self._provider.clock()) + seconds)
        self._count("delayed")

    async def _write_email(self, group: NoticeGroup, queued: Sequence[QueuedNotice]) -> Email | None:
        """The e-mail about notices.

        None if nothing is left to tell, or nobody to tell it to.
        """
        user = await self._registry.directory.user(group.user_id)
        key = (group.entity_id,)
        entity = (await self._registry.directory.read(Entity, [key])).get(key)
        if user is None or entity is None or not user.enabled or user.placeholder or not user.email:
            return None
        policy = self._provider.policy
        reader = Reader(user=user, entity=entity, deployment_url=policy.deployment_url)
        write: Mapping[NoticeKind, Callable[[Reader, Sequence[QueuedNotice]], Awaitable[Email | None]]] = {
            "access": self._write_access,
            "access_ends": self._write_ending,
            "access_of_others_ends": self._write_others_ending,
            "owner": self._write_owner,
            "token": self._write_token,
            "request": self._write_waiting,
            "decision": self._write_decided,
            "review": self._write_review,
        }
        return await write[group.kind](reader, queued)

    async def _write_access(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email:
        names = await self._read_names([each.facts for each in queued])
        changes = [
            AccessChange(
                change=each.facts["change"],
                level=each.facts.get("level", ""),
                role=_name_role(each.facts, names) if each.facts["what"] == "role" else None,
            )
            for each in queued
        ]
        by = await self._name_actors(reader.entity, queued)
        return notice_texts.build_access_email(reader, changes, by=by, at=queued[-1].created_at)

    async def _write_ending(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email | None:
        """The roles that still end on that day."""
        today = datetime.fromtimestamp(self._provider.clock(), self._provider.policy.timezone).date().isoformat()
        still = [each for each in queued if each.facts["end_date"] >= today and await self._still_ends(each)]
        names = await self._read_names([each.facts for each in still])
        roles = [_name_role(each.facts, names) for each in still]
        return notice_texts.build_ending_email(reader, roles) if still else None

    async def _still_ends(self, notice: QueuedNotice) -> bool:
        facts = notice.facts
        service, role, sub_entity = (facts.get(name, "") for name in ("service_id", "role", "sub_entity"))
        ref = facts.get("ref", "")
        client = facts.get("client_entity_id")
        if client:
            key = (notice.user_id, notice.entity_id, client, service, role, sub_entity, ref)
            row = (await self._registry.directory.read(ThirdPartyAssignment, [key])).get(key)
            return row is not None and row.end_date == facts["end_date"]
        own = (notice.user_id, notice.entity_id, service, role, sub_entity, ref)
        held = (await self._registry.directory.read(Assignment, [own])).get(own)
        return held is not None and held.end_date == facts["end_date"]

    async def _write_others_ending(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email | None:
        entity_id, count = reader.entity.entity_id, 0
        rows: list[Assignment | ThirdPartyAssignment] = []
        kinds: tuple[type[Assignment | ThirdPartyAssignment], ...] = (Assignment, ThirdPartyAssignment)
        for each in queued:
            for kind in kinds:
                found, number = await self._registry.notices.ending_on(kind, entity_id, each.subject, limit=_MOST)
                rows += found
                count += number
        if not rows:
            return None
        rows = rows[:_MOST]
        facts = [{name: str(getattr(row, name, "")) for name in row.__struct_fields__} for row in rows]
        names = await self._read_names(facts)
        people = await self._read_people(entity_id, [row.user_id for row in rows])
        roles = [
            (people.get(row.user_id, ""), _name_role(members, names)) for row, members in zip(rows, facts, strict=True)
        ]
        return notice_texts.build_others_ending_email(reader, roles, count)

    async def _write_owner(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email:
        earlier = {each.facts["person"] for each in queued if "person" in each.facts}  # queued by an earlier version
        people = await self._read_people(reader.entity.entity_id, earlier)
        changes = [
            (each.facts["change"], each.facts.get("label") or people.get(each.facts.get("person", ""), ""))
            for each in queued
        ]
        by = await self._name_actors(reader.entity, queued)
        return notice_texts.build_owner_email(reader, changes, by=by, at=queued[-1].created_at)

    async def _write_token(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email | None:
        """The tokens that are still there."""
        wanted = {each.facts["token"] for each in queued}
        held = await self._registry.provisioning.tokens(reader.entity.entity_id)
        found = [(each.name, each.expires_at) for each in held if each.token_id in wanted]
        return notice_texts.build_token_email(reader, found) if found else None

    async def _write_waiting(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email | None:
        """The requests that still wait."""
        now = self._provider.clock()
        requests = [each for each in await self._read_requests(queued) if state_at(each, now).value == "pending"]
        if not requests:
            return None
        held = await self._registry.directory.administrators(reader.entity.entity_id)
        outside = all(each.record.user_id != reader.user.user_id for each in held)
        reader = msgspec.structs.replace(reader, as_operator=outside)
        return notice_texts.build_waiting_email(reader, await self._describe_requests(requests), len(requests))

    async def _write_decided(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email | None:
        decided = [each for each in await self._read_requests(queued) if each.state != "pending"]
        if not decided:
            return None
        return notice_texts.build_decided_email(reader, await self._describe_requests(decided), len(decided))

    async def _write_review(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email | None:
        """The review, if it was not signed off meanwhile."""
        due_at, again = int(queued[-1].facts["due_at"]), any("again" in each.facts for each in queued)
        found = await self._registry.access_reviews.find(reader.entity.entity_id)
        if found is None or found.due_at != due_at:
            return None
        due = datetime.fromtimestamp(due_at, self._provider.policy.timezone).date()
        return notice_texts.build_review_email(reader, due=due, again=again)

    async def _read_requests(self, queued: Sequence[QueuedNotice]) -> list[ChangeRequest]:
        keys = [(each.subject,) for each in queued]
        return list((await self._registry.directory.read(ChangeRequest, keys)).values())

    async def _describe_requests(self, requests: Sequence[ChangeRequest]) -> list[RequestInWords]:
        """The first requests, with the names that their entity knows.

        People are named as they were when it was made. Source: D61, D68
        """
        found = []
        for each in requests[:_MOST]:
            actors = [actor.partition(":")[2] for actor in (each.requester, each.decided_by) if actor]
            names = await load_names(
                self._registry, each.entity_id, each.changes, actors, names_read=read_requested_names(each)
            )
            found.append(
                RequestInWords(
                    record=each,
                    change=summarise_changes(each.changes, names),
                    requester=name_actor(each.requester, names.people),
                    decided_by="" if each.decided_by in ("", SYSTEM) else name_actor(each.decided_by, names.people),
                )
            )
        return found

    async def _name_actors(self, entity: Entity, queued: Sequence[QueuedNotice]) -> tuple[str | Phrase, ...]:
        """The authors of changes, as the entity may know them.

        Nobody of another entity, and none of a notice that an earlier version queued. Source: D61
        """
        actors = [each.facts["by"] for each in queued if each.facts.get("by")]
        people = await read_names(self._registry, entity.entity_id, {each.partition(":")[2] for each in actors})
        known = (each for each in actors if not each.startswith("user:") or each.partition(":")[2] in people)
        return tuple(dict.fromkeys(name_actor(each, people) for each in known))

    async def _read_names(self, facts: Iterable[Mapping[str, str]]) -> dict[str, str]:
        """The names of services and client entities, by `service/…` and `entity/…`."""
        services = {(each["service_id"],) for each in facts if each.get("service_id")}
        clients = {(each["client_entity_id"],) for each in facts if each.get("client_entity_id")}
        found = await self._registry.directory.read(Service, sorted(services))
        known = await self._registry.directory.read(Entity, sorted(clients))
        return {
            **{f"service/{each.service_id}": each.name for each in found.values()},
            **{f"entity/{each.entity_id}": each.name for each in known.values()},
        }

    async def _read_people(self, entity_id: str, user_ids: Iterable[str]) -> dict[str, str]:
        """People's names, as their entity knows them or did (D61, D68)."""
        wanted = list(dict.fromkeys(user_ids))
        return await read_names(self._registry, entity_id, wanted, former=wanted)


def _name_role(facts: Mapping[str, str], names: Mapping[str, str]) -> RoleNames:
    service, client = facts.get("service_id", ""), facts.get("client_entity_id", "")
    return RoleNames(
        service=names.get(f"service/{service}", service),
        role=facts.get("role", ""),
        sub_entity=facts.get("sub_entity", ""),
        client=names.get(f"entity/{client}", client),
        end_date=facts.get("end_date", ""),
    )
