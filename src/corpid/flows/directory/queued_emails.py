"""Sending of queued e-mails at a limited rate: invitations and notices (D60).

Every process looks for e-mails that are due, and takes each in one statement before it sends it: an invitation, or all
notices of one person, kind and entity. If a process dies between taking and storing the outcome, another one sends the
e-mail after some minutes: once too often at most. Only the e-mail has the link of an invitation: the inviter never gets
it, and if it is sent twice, the first link ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from datetime import datetime
from functools import partial
from secrets import SystemRandom
from typing import TYPE_CHECKING, ClassVar, Final, Generic, NamedTuple, TypeVar

import msgspec

from corpid.flows import namespaces, notifications
from corpid.flows.account import links
from corpid.flows.directory import notice_texts
from corpid.flows.directory.approvals import build_request_object, list_actors, load_names
from corpid.flows.directory.notice_texts import AccessChange, Reader, RequestInWords, RoleNames
from corpid.flows.directory.person_names import read_names, read_requested_names
from corpid.rules.audit import COMMENT, AuditEvent
from corpid.rules.authentication import records
from corpid.rules.authentication.records import NewLink
from corpid.rules.directory.access import SYSTEM
from corpid.rules.directory.access_texts import GONE, name_actor, title_changes
from corpid.rules.directory.approvals import is_asked_for_oneself, state_at
from corpid.rules.directory.memberships import REFUSED, SENDING_SECONDS, OpenInvitation, being_sent
from corpid.rules.directory.names import label_invited
from corpid.rules.directory.notices import (
    LONGEST_WAIT_SECONDS,
    WAITED_FOR,
    NoticeGroup,
    NoticeKind,
    QueuedNotice,
    is_still_told,
    may_approve,
)
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    ChangeRequest,
    Conflict,
    Entity,
    Membership,
    Operator,
    Service,
    ThirdPartyAssignment,
)
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
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

    from corpid.flows.namespaces import Namespace
    from corpid.flows.request_context import Provider
    from corpid.rules.emails import Email
    from corpid.texts import Phrase

T = TypeVar("T")
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


class _Sender(ABC, Generic[T]):
    """The sending of one process, within limits.

    By minute, and by recipient and day. A subclass says which e-mails are due, and what becomes of one that this
    process has taken. `log` writes an event and its detail to the log, `count` counts an outcome.
    """

    delayed: ClassVar[str]
    stopped: ClassVar[str]
    refused: ClassVar[str]
    """names of events in the log"""
    per_minute: ClassVar[Namespace[int]]
    per_day: ClassVar[Namespace[int]]
    most_per_minute: ClassVar[int]
    most_per_day: ClassVar[int]

    def __init__(self, provider: Provider, log: Callable[[str, str], None], count: Callable[[str], None]) -> None:
        self._provider: Final = provider
        self._registry: Final = provider.registry
        self._log: Final = log
        self._count: Final = count
        self._wait_until = 0.0
        self._stopped_by = ""
        """the refusal that was logged last"""
        self._untaken: dict[str, str] = {}
        """domain of an address that takes nothing now → the server's words"""
        self.pause_seconds = 0.0
        """between two attempts, longer than the one before; 0.0 if the last e-mail was sent"""

    @abstractmethod
    async def _take_due(self) -> AsyncIterator[T]:
        """E-mails that are due, each taken by this process."""
        yield  # type: ignore[misc]

    @abstractmethod
    def _name(self, taken: T) -> str:
        """Whom it is for, in the log."""

    @abstractmethod
    def _find_recipient(self, taken: T) -> str:
        """By whom e-mails of a day are counted."""

    @abstractmethod
    async def _write_email(self, taken: T) -> Email | None:
        """The e-mail; None if nothing is left to tell.

        Raises Conflict if it is no longer wanted.
        """

    @abstractmethod
    async def _give_back(self, taken: T) -> None:
        """Leave it to whoever sends next."""

    @abstractmethod
    async def _postpone(self, taken: T, until: float) -> None:
        """Have it due at a moment, in epoch seconds."""

    @abstractmethod
    async def _settle(self, taken: T, outcome: str) -> None:
        """Store that it is done."""

    async def round(self) -> int:
        """Send the e-mails that are due, and return how many were sent.

        While the mail server takes none, the next attempt waits longer each time, up to 15 minutes, and up to a day if
        it refuses CorpID itself; what is due stays due. An e-mail that alone is not taken waits for an hour, and keeps
        no other from being sent. Raises StoreUnavailable. Source: D60, docs/decisions/0022
        """
        sent = 0
        self._untaken = {}
        if not self._provider.mail.works or self._provider.clock() < self._wait_until:
            return 0
        async for taken in self._take_due():
            if await self._count_minute() > self.most_per_minute:
                await self._give_back(taken)
                return sent
            try:
                sent += await self._send(taken)
            except MailDelayed as delayed:
                await self._leave(taken)
                self._count("delayed")
                (self._stop if isinstance(delayed, SenderRefused) else self._delay)(str(delayed))
                return sent
        if not sent and len(self._untaken) >= _SEVERAL_DOMAINS:
            self._stop(next(iter(self._untaken.values())))
        return sent

    async def _send(self, taken: T) -> bool:
        """Send one taken e-mail, and store the outcome."""
        recipient, outcome = self._find_recipient(taken), "dropped"
        if await self._count_recipient(recipient, 1) > self.most_per_day:
            await self._postpone(taken, (self._provider.clock() // self.per_day.seconds + 1) * self.per_day.seconds)
            self._count("put off")
            return False
        try:
            email = await self._write_email(taken)
            if email is not None:
                outcome = await self._deliver(taken, email)
        except Conflict:
            return False
        except (MailDelayed, StoreUnavailable):
            await self._count_recipient(recipient, -1)
            raise
        if outcome in {"dropped", "delayed"}:
            await self._count_recipient(recipient, -1)
        if outcome != "delayed":
            await self._settle(taken, outcome)
        self._count(outcome)
        return outcome == "sent"

    async def _deliver(self, taken: T, email: Email) -> str:
        """Hand an e-mail to the mail server, and return the outcome.

        Raises MailDelayed if the server takes nothing now.
        """
        try:
            await self._provider.mail.deliver(email)
        except EmailDelayed as delayed:
            self._untaken[email.to.rpartition("@")[2].casefold()] = str(delayed)
            await self._put_off(taken, str(delayed))
            return "delayed"
        except MailRefused as refused:
            self._log(self.refused, f"{self._name(taken)}: {refused}")
            return "refused"
        self.pause_seconds, self._stopped_by = 0.0, ""
        return "sent"

    async def _put_off(self, taken: T, reason: str) -> None:  # noqa: ARG002 - one of the two logs it
        """Wait for an hour: the server does not take this one now."""
        await self._postpone(taken, self._provider.clock() + HOUR)

    async def _leave(self, taken: T) -> None:
        """Leave it while the server takes nothing; as it is, by default."""

    def _delay(self, reason: str) -> None:
        """Wait up to 15 minutes: the server takes nothing."""
        self._pause(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
        self._log(self.delayed, f"{reason}; the next attempt follows in {self.pause_seconds:g} seconds")

    def _stop(self, reason: str) -> None:
        """Log a refusal of CorpID itself once, and try rarely."""
        self._pause(_FIRST_STOP_SECONDS, _LONGEST_STOP_SECONDS)
        if reason != self._stopped_by:
            self._stopped_by = reason
            self._log(
                self.stopped,
                f"{reason}: the mail server refuses this deployment. Look at mail_url and mail_from, then restart",
            )

    def _pause(self, first: float, longest: float) -> None:
        self.pause_seconds = min(max(first, 2 * self.pause_seconds), longest)
        self._wait_until = self._provider.clock() + self.pause_seconds

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


class InvitationEmails(_Sender["tuple[OpenInvitation, float]"]):
    """The sending of invitations by one process.

    Each is taken at a moment, in epoch seconds.
    """

    delayed, stopped, refused = "invitation_delayed", "invitations_stopped", "invitation_refused"
    per_minute, per_day = namespaces.INVITATION_EMAILS, namespaces.INVITATIONS_TO_ADDRESS
    most_per_minute, most_per_day = INVITATIONS_PER_MINUTE, EMAILS_PER_ADDRESS

    async def _take_due(self) -> AsyncIterator[tuple[OpenInvitation, float]]:
        found = await self._registry.invitations.due(now=self._provider.clock(), limit=_AT_ONCE)
        # Processes that find the same e-mails begin with different ones.
        SystemRandom().shuffle(found)
        for invited in found:
            taken = self._provider.clock()
            if await self._registry.invitations.take(invited, now=taken):
                yield invited, taken

    def _name(self, taken: tuple[OpenInvitation, float]) -> str:
        return f"membership {taken[0].membership.membership_id}"

    def _find_recipient(self, taken: tuple[OpenInvitation, float]) -> str:
        return taken[0].membership.email.casefold()

    async def _write_email(self, taken: tuple[OpenInvitation, float]) -> Email:
        (invited, at), provider, policy = taken, self._provider, self._provider.policy
        code = records.code_from(provider.new_id())
        event = AuditEvent(
            actor=SYSTEM,
            action=links.PURPOSES["membership"].made,
            object=invited.user.user_id,
            entity_id=invited.membership.entity_id,
            detail={"membership": invited.membership.membership_id},
        )
        link = links.make_invitation_link(invited, code, now=at)
        await provider.registry.factors.keep_link(link, event)
        return notifications.invitation(
            invited.entity,
            NewLink(page=policy.deployment_url + links.PATH, code=code, expires_at=link.expires_at),
            to=invited.membership.email,
            lead=links.PURPOSES["membership"].lead,
            language=invited.user.language,
            provider_name=policy.name,
        )

    async def _give_back(self, taken: tuple[OpenInvitation, float]) -> None:
        invited, at = taken
        seen = invited.membership.invitation_sent_at
        await self._registry.invitations.settle(invited, taken=at, becomes=seen)

    async def _postpone(self, taken: tuple[OpenInvitation, float], until: float) -> None:
        invited, at = taken
        await self._registry.invitations.settle(invited, taken=at, becomes=being_sent(until - SENDING_SECONDS))

    async def _settle(self, taken: tuple[OpenInvitation, float], outcome: str) -> None:
        invited, at = taken
        becomes = REFUSED if outcome == "refused" else int(self._provider.clock())
        await self._registry.invitations.settle(invited, taken=at, becomes=becomes)

    async def _put_off(self, taken: tuple[OpenInvitation, float], reason: str) -> None:
        await super()._put_off(taken, reason)
        self._log(self.delayed, f"{self._name(taken)}: {reason}; again in an hour")


class _TakenNotices(NamedTuple):
    group: NoticeGroup
    queued: Sequence[QueuedNotice]
    by: str
    """names this process and moment in the store"""


class NoticeEmails(_Sender[_TakenNotices]):
    """The sending of notices by one process."""

    delayed, stopped, refused = "notice_delayed", "notices_stopped", "notice_refused"
    per_minute, per_day = namespaces.NOTICE_EMAILS, namespaces.NOTICES_TO_PERSON
    most_per_minute, most_per_day = NOTICES_PER_MINUTE, NOTICES_PER_PERSON

    async def _take_due(self) -> AsyncIterator[_TakenNotices]:
        found = await self._registry.notices.due(now=self._provider.clock(), limit=_GROUPS_AT_ONCE)
        # Processes that find the same notices begin with different ones, after those that somebody waits for.
        SystemRandom().shuffle(found)
        found.sort(key=lambda group: group.kind not in WAITED_FOR)
        for group in found[:_AT_ONCE]:
            by = self._provider.new_id()
            if queued := await self._registry.notices.take(group, by=by, now=self._provider.clock()):
                yield _TakenNotices(group, queued, by)

    def _name(self, taken: _TakenNotices) -> str:
        return f"person {taken.group.user_id}"

    def _find_recipient(self, taken: _TakenNotices) -> str:
        return taken.group.user_id

    async def _give_back(self, taken: _TakenNotices) -> None:
        await self._postpone(taken, self._provider.clock())

    async def _leave(self, taken: _TakenNotices) -> None:
        await self._give_back(taken)

    async def _postpone(self, taken: _TakenNotices, until: float) -> None:
        await self._registry.notices.settle(taken.group, by=taken.by, due_at=int(until))

    async def _settle(self, taken: _TakenNotices, outcome: str) -> None:  # noqa: ARG002 - all are done alike
        await self._registry.notices.settle(taken.group, by=taken.by, sent_at=int(self._provider.clock()))

    async def _write_email(self, taken: _TakenNotices) -> Email | None:
        """None also if there is nobody to tell it to."""
        group, oldest = taken.group, self._provider.clock() - LONGEST_WAIT_SECONDS
        queued = [each for each in taken.queued if each.created_at >= oldest]
        user = await self._registry.directory.user(group.user_id)
        entity = await self._registry.directory.find(Entity, group.entity_id)
        if not queued or user is None or entity is None or not user.enabled or user.placeholder or not user.email:
            return None
        held = await self._registry.directory.administrators(group.entity_id)
        level = next((each.record for each in held if each.enabled and each.record.user_id == group.user_id), None)
        if not is_still_told(group.kind, level):
            return None
        reader = Reader(user=user, entity=entity, deployment_url=self._provider.policy.deployment_url)
        write: Mapping[NoticeKind, Callable[[Reader, Sequence[QueuedNotice]], Awaitable[Email | None]]] = {
            "access": self._write_access,
            "access_ends": self._write_ending,
            "access_of_others_ends": self._write_others_ending,
            "owner": self._write_owner,
            "token": self._write_token,
            "request": partial(self._write_waiting, level=level),
            "comment": partial(self._write_comments, level=level),
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
        facts, find = notice.facts, self._registry.directory.find
        role = [facts.get(name, "") for name in ("service_id", "role", "sub_entity", "ref")]
        client = facts.get("client_entity_id")
        row: Assignment | ThirdPartyAssignment | None
        if client:
            row = await find(ThirdPartyAssignment, notice.user_id, notice.entity_id, client, *role)
        else:
            row = await find(Assignment, notice.user_id, notice.entity_id, *role)
        return row is not None and row.end_date == facts["end_date"]

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
        changes: list[tuple[str, str]] = []
        for each in queued:
            label = each.facts.get("label") or people.get(each.facts.get("person", "")) or GONE
            changes.append((each.facts["change"], label_invited(label) if "invited" in each.facts else label))
        by = await self._name_actors(reader.entity, queued)
        return notice_texts.build_owner_email(reader, changes, by=by, at=queued[-1].created_at)

    async def _write_token(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email | None:
        """The tokens that are still there."""
        wanted = {each.facts["token"] for each in queued}
        held = await self._registry.provisioning.tokens(reader.entity.entity_id)
        found = [(each.name, each.expires_at) for each in held if each.token_id in wanted]
        return notice_texts.build_token_email(reader, found) if found else None

    async def _write_waiting(
        self, reader: Reader, queued: Sequence[QueuedNotice], level: Administrator | None
    ) -> Email | None:
        """The requests that still wait, and that the reader can decide."""
        now = self._provider.clock()
        requests = [each for each in await self._read_requests(queued) if state_at(each, now).value == "pending"]
        if level is None:
            operator = await self._registry.directory.find(Operator, reader.user.user_id)
            requests = requests if operator is not None and operator.level == "operator" else []
        else:
            requests = [
                each for each in requests if may_approve(level, build_request_object(each, "approval"), now=now)
            ]
        if not requests:
            return None
        reader = msgspec.structs.replace(reader, as_operator=level is None)
        return notice_texts.build_waiting_email(reader, await self._describe_requests(requests), len(requests))

    async def _write_decided(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email | None:
        decided = [each for each in await self._read_requests(queued) if each.state != "pending"]
        if not decided:
            return None
        return notice_texts.build_decided_email(reader, await self._describe_requests(decided), len(decided))

    async def _write_comments(
        self, reader: Reader, queued: Sequence[QueuedNotice], level: Administrator | None
    ) -> Email | None:
        """Comments on waiting requests of the reader, or for them to decide.

        Nobody who has left, or has lost their level, reads any.
        """
        now, own = self._provider.clock(), f"user:{reader.user.user_id}"
        belongs = await self._registry.directory.find(Membership, reader.user.user_id, reader.entity.entity_id)
        requests = [
            each
            for each in await self._read_requests(queued)
            if state_at(each, now).value == "pending"
            and (
                (each.requester == own and belongs is not None and (level is not None or is_asked_for_oneself(each)))
                or (level is not None and may_approve(level, build_request_object(each, "approval"), now=now))
            )
        ]
        if not requests:
            return None
        new_comments = defaultdict[str, set[int]](set)
        for each in queued:
            new_comments[each.subject.partition("/")[0]].add(int(each.facts[COMMENT]))
        described = await self._describe_requests(requests)
        return notice_texts.build_comments_email(reader, described, len(requests), new_comments)

    async def _write_review(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email | None:
        """The review, if it was not signed off meanwhile."""
        due_at, again = int(queued[-1].facts["due_at"]), any("again" in each.facts for each in queued)
        found = await self._registry.access_reviews.find(reader.entity.entity_id)
        if found is None or found.due_at != due_at:
            return None
        due = datetime.fromtimestamp(due_at, self._provider.policy.timezone).date()
        return notice_texts.build_review_email(reader, due=due, again=again)

    async def _read_requests(self, queued: Sequence[QueuedNotice]) -> list[ChangeRequest]:
        keys = {(each.subject.partition("/")[0],) for each in queued}
        return list((await self._registry.directory.read(ChangeRequest, keys)).values())

    async def _describe_requests(self, requests: Sequence[ChangeRequest]) -> list[RequestInWords]:
        """The first requests, with the names that their entity knows.

        People are named as they were when it was made. Source: D61, D68
        """
        found = []
        for each in requests[:_MOST]:
            actors = [actor.partition(":")[2] for actor in list_actors(each)]
            names = await load_names(
                self._registry, each.entity_id, each.changes, actors, names_read=read_requested_names(each)
            )
            found.append(
                RequestInWords(
                    record=each,
                    change=title_changes(each.changes, names),
                    requester=name_actor(each.requester, names.people),
                    decided_by="" if each.decided_by in ("", SYSTEM) else name_actor(each.decided_by, names.people),
                    comments=tuple((comment, name_actor(comment.author, names.people)) for comment in each.comments),
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
            **{f"entity/{each.entity_id}": each.name_for("") for each in known.values()},
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
