"""Sending of notices, at a limited rate.

Every process looks for notices that are due, and takes all of one person, kind and entity in one statement before it
sends them as one e-mail. If a process dies between taking and storing the outcome, another one sends them after some
minutes: once too often at most.
"""

from __future__ import annotations

from datetime import datetime
from secrets import SystemRandom
from typing import TYPE_CHECKING, Final

from corpid.flows import namespaces
from corpid.flows.directory import notice_texts
from corpid.flows.directory.notice_texts import AccessChange, EndingRole, Reader, RequestDecision, RoleNames
from corpid.flows.directory.person_names import names_of
from corpid.flows.mail_pauses import SEVERAL_DOMAINS, MailPauses
from corpid.rules.directory.approvals import LIFETIME_SECONDS, decision_reason, state_at
from corpid.rules.directory.notices import LONGEST_WAIT_SECONDS
from corpid.rules.directory.records import (
    Assignment,
    ChangeRequest,
    Entity,
    Service,
    ThirdPartyAssignment,
)
from corpid.rules.failures import EmailDelayed, MailDelayed, MailRefused, SenderRefused
from corpid.rules.limits import HOUR, MINUTE, NOTICES_PER_MINUTE, NOTICES_PER_PERSON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from corpid.flows.provider import Provider
    from corpid.rules.directory.notices import NoticeGroup, QueuedNotice
    from corpid.rules.emails import Email

OUTCOMES: Final = ("sent", "refused", "delayed", "put off", "dropped")
_FOUND_AT_ONCE: Final = 200
_SENT_AT_ONCE: Final = 20
_MOST: Final = notice_texts.MOST_LISTED


class NoticeEmails:
    """The sending of one process.

    `log` writes an event and its detail to the log, `count` counts an outcome, one of `OUTCOMES`.
    """

    def __init__(self, provider: Provider, log: Callable[[str, str], None], count: Callable[[str], None]) -> None:
        self._provider: Final = provider
        self._registry: Final = provider.registry
        self._log: Final = log
        self._count: Final = count
        self._pauses: Final = MailPauses(provider.clock, log, delayed="notice_delayed", stopped="notices_stopped")

    @property
    def pause_seconds(self) -> float:
        """The pause between two attempts; 0.0 if the last e-mail was sent."""
        return self._pauses.seconds

    async def round(self) -> int:
        """Send the notices that are due; return the number of e-mails.

        While the mail server takes none, the next attempt waits longer each time, as that of invitations does. Raises
        StoreUnavailable. Source: docs/decisions/0022
        """
        provider, sent = self._provider, 0
        untaken: dict[str, str] = {}
        if not provider.mail.works or self._pauses.waits:
            return 0
        found = await self._registry.notices.due(now=provider.clock(), limit=_FOUND_AT_ONCE)
        # Processes that find the same notices begin with different ones.
        SystemRandom().shuffle(found)
        for group in found[:_SENT_AT_ONCE]:
            by, now = provider.new_id(), provider.clock()
            queued = await self._registry.notices.take(group, by=by, now=now)
            if not queued:
                continue
            if not await self._admitted():
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
        if not sent and len(untaken) >= SEVERAL_DOMAINS:
            self._pauses.stop(next(iter(untaken.values())))
        return sent

    async def _admitted(self) -> bool:
        """Count an e-mail; False beyond the limit of this minute."""
        now = self._provider.clock()
        counted = namespaces.NOTICE_EMAILS.entry(self._provider.policy.deployment_url, str(int(now) // MINUTE))
        async with self._provider.transient.batch(now) as batch:
            return await counted.count(batch) <= NOTICES_PER_MINUTE

    async def _send(self, group: NoticeGroup, queued: Sequence[QueuedNotice], by: str, untaken: dict[str, str]) -> bool:
        """Send one e-mail about taken notices, and store the outcome.

        `untaken` gets the domain of an address that takes nothing now.
        """
        provider = self._provider
        now = provider.clock()
        fresh = [each for each in queued if each.created_at >= now - LONGEST_WAIT_SECONDS]
        email = await self._email(group, fresh, now) if fresh else None
        outcome = "dropped"
        if email is not None:
            if await self._count_person(group.user_id, 1) > NOTICES_PER_PERSON:
                tomorrow = (self._day() + 1) * namespaces.NOTICES_TO_PERSON.seconds
                await self._registry.notices.settle(group, by=by, due_at=int(tomorrow))
                self._count("put off")
                return False
            try:
                await provider.mail.deliver(email)
            except EmailDelayed as delayed:
                await self._count_person(group.user_id, -1)
                untaken[email.to.rpartition("@")[2].casefold()] = str(delayed)
                await self._put_off(group, by, HOUR)
                return False
            except MailDelayed:
                await self._count_person(group.user_id, -1)
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

    async def _count_person(self, user_id: str, by: int) -> int:
        deployment, day = self._provider.policy.deployment_url, str(self._day())
        entry = namespaces.NOTICES_TO_PERSON.entry(deployment, user_id, day)
        async with self._provider.transient.batch(self._provider.clock()) as batch:
            return await entry.count(batch, by)

    def _day(self) -> int:
        return int(self._provider.clock() // namespaces.NOTICES_TO_PERSON.seconds)

    async def _email(self, group: NoticeGroup, queued: Sequence[QueuedNotice], now: float) -> Email | None:
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
        match group.kind:
            case "access":
                return await self._access(reader, queued)
            case "access_ends":
                return await self._access_ends(reader, queued, now)
            case "access_of_others_ends":
                return await self._access_of_others_ends(reader, queued)
            case "owner":
                return await self._owner(reader, queued)
            case "token":
                return await self._token(reader, queued)
            case "request":
                return await self._request(reader, queued, now)
            case "decision":
                return await self._decision(reader, queued)
            case "review":
                return await self._review(reader, queued)

    async def _access(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email:
        names = await self._names([each.facts for each in queued])
        changes = [
            AccessChange(
                change=each.facts["change"],
                level=each.facts.get("level", ""),
                role=_role(each.facts, names) if each.facts["what"] == "role" else None,
            )
            for each in queued
        ]
        return notice_texts.access(reader, changes, at=queued[-1].created_at)

    async def _access_ends(self, reader: Reader, queued: Sequence[QueuedNotice], now: float) -> Email | None:
        """The roles that still end on that day."""
        today = datetime.fromtimestamp(now, self._provider.policy.timezone).date().isoformat()
        still = [each for each in queued if each.facts["end_date"] >= today and await self._still_ends(each)]
        names = await self._names([each.facts for each in still])
        return notice_texts.access_ends(reader, [_role(each.facts, names) for each in still]) if still else None

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

    async def _access_of_others_ends(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email | None:
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
        names = await self._names(facts)
        people = await self._people(entity_id, [row.user_id for row in rows])
        roles = [
            EndingRole(person=people.get(row.user_id, ""), role=_role(members, names))
            for row, members in zip(rows, facts, strict=True)
        ]
        return notice_texts.access_of_others_ends(reader, roles, count)

    async def _owner(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email:
        earlier = {each.facts["person"] for each in queued if "person" in each.facts}  # queued by an earlier version
        people = await self._people(reader.entity.entity_id, earlier)
        changes = [
            (each.facts["change"], each.facts.get("label") or people.get(each.facts.get("person", ""), ""))
            for each in queued
        ]
        return notice_texts.owner(reader, changes, at=queued[-1].created_at)

    async def _token(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email | None:
        """The tokens that are still there."""
        wanted = {each.facts["token"] for each in queued}
        held = await self._registry.provisioning.tokens(reader.entity.entity_id)
        found = [(each.name, each.expires_at) for each in held if each.token_id in wanted]
        return notice_texts.token(reader, found) if found else None

    async def _request(self, reader: Reader, queued: Sequence[QueuedNotice], now: float) -> Email | None:
        """The requests that still wait."""
        requests = [each for each in await self._requests(queued) if state_at(each, now).value == "pending"]
        people = await self._people(reader.entity.entity_id, [_requester(each) for each in requests])
        waiting = [
            RequestDecision(
                requester=people.get(_requester(each), each.requester), reason=each.reason, at=each.created_at
            )
            for each in requests
        ]
        return notice_texts.notify_waiting(reader, waiting, ends_after=LIFETIME_SECONDS) if waiting else None

    async def _decision(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email | None:
        decided = [
            RequestDecision(state=each.state, reason=decision_reason(each), at=each.created_at)
            for each in await self._requests(queued)
            if each.state != "pending"
        ]
        return notice_texts.notify_decided(reader, decided) if decided else None

    async def _review(self, reader: Reader, queued: Sequence[QueuedNotice]) -> Email | None:
        """The review, if it was not signed off meanwhile."""
        due_at, again = int(queued[-1].facts["due_at"]), any("again" in each.facts for each in queued)
        found = await self._registry.access_reviews.find(reader.entity.entity_id)
        if found is None or found.due_at != due_at:
            return None
        due = datetime.fromtimestamp(due_at, self._provider.policy.timezone).date()
        return notice_texts.review(reader, due=due, again=again)

    async def _requests(self, queued: Sequence[QueuedNotice]) -> list[ChangeRequest]:
        keys = [(each.subject,) for each in queued]
        return list((await self._registry.directory.read(ChangeRequest, keys)).values())

    async def _names(self, facts: Iterable[Mapping[str, str]]) -> dict[str, str]:
        """The names of services and client entities, by `service/…` and `entity/…`."""
        services = {(each["service_id"],) for each in facts if each.get("service_id")}
        clients = {(each["client_entity_id"],) for each in facts if each.get("client_entity_id")}
        found = await self._registry.directory.read(Service, sorted(services))
        known = await self._registry.directory.read(Entity, sorted(clients))
        return {
            **{f"service/{each.service_id}": each.name for each in found.values()},
            **{f"entity/{each.entity_id}": each.name for each in known.values()},
        }

    async def _people(self, entity_id: str, user_ids: Iterable[str]) -> dict[str, str]:
        """People's names, as their entity knows them or did (D61, D68)."""
        wanted = list(dict.fromkeys(user_ids))
        return await names_of(self._registry, entity_id, wanted, former=wanted)


def _role(facts: Mapping[str, str], names: Mapping[str, str]) -> RoleNames:
    service, client = facts.get("service_id", ""), facts.get("client_entity_id", "")
    return RoleNames(
        service=names.get(f"service/{service}", service),
        role=facts.get("role", ""),
        sub_entity=facts.get("sub_entity", ""),
        client=names.get(f"entity/{client}", client),
        end_date=facts.get("end_date", ""),
    )


def _requester(request: ChangeRequest) -> str:
    """The identifier of the person or program that asks."""
    return request.requester.partition(":")[2]
