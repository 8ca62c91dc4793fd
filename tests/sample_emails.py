"""Every e-mail that CorpID sends, as its flows make it, with names of one's choice."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from corpid.flows import notifications
from corpid.flows.account import links
from corpid.flows.authentication import throttle
from corpid.flows.directory import notice_texts
from corpid.flows.directory.notice_texts import AccessChange, Reader, RequestInWords, RoleNames
from corpid.flows.notifications import Notice
from corpid.rules.authentication.records import NewLink
from corpid.rules.directory.access_texts import OPERATOR, RequestNames, name_actor, title_changes
from corpid.rules.directory.approvals import LIFETIME_SECONDS
from corpid.rules.directory.records import Assignment, Change, ChangeRequest, Entity, RequestComment, User
from corpid.texts import phrase
from tests.contexts import context
from tests.postbox import Postbox
from tests.sign_in.world import world

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.rules.emails import Email

BASE: Final = "https://id.harbour.example"
CODE: Final = "482913"
FIREFOX: Final = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:133.0) Gecko/20100101 Firefox/133.0"
ADDRESS: Final = "wei.ling@harbour.example"


def notices(entity: Entity, device: str) -> dict[str, Notice]:
    """Every notice, also those of no names."""
    fixed = {name.lower(): each for name, each in vars(notifications).items() if isinstance(each, Notice)}
    pause = throttle.pause_duration(900)
    return fixed | {
        "joined": notifications.notify_joined(entity),
        "second_factor_changed": notifications.second_factor_changed(
            phrase("A new authenticator app was set up for your account.")
        ),
        "codes_paused_here": notifications.codes_paused(20, duration=pause, known=True, recover=f"{BASE}/recover"),
        "codes_paused": notifications.codes_paused(20, duration=pause, known=False, recover=f"{BASE}/recover"),
        "new_device": notifications.new_device(device),
        "new_browser": notifications.new_device(""),
        "code_used": notifications.code_used(7),
        "email_changed": notifications.email_changed("w•••@city.example"),
    }


def samples(*, issuer: str = "", **names: Any) -> dict[str, Email]:
    """The e-mails by name, of a deployment in Singapore. `names` are those of `_samples`.

    `issuer` is the URL of a further issuer, at which people do what they are written about.
    """

    async def collected() -> dict[str, Email]:
        postbox = Postbox()
        async with world(base=BASE, postbox=postbox, timezone="Asia/Singapore") as made:
            asked = replace(await context(made.provider), user_agent=FIREFOX)
            if issuer:
                policy = replace(made.provider.policy, issuer_id="further", base_url=issuer)
                asked = replace(asked, provider=replace(made.provider, policy=policy))
            return _samples(asked, postbox, **names)

    # In a thread of its own, since a browser may hold the loop of the caller's.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, collected()).result()


def _samples(
    made_by: RequestContext,
    postbox: Postbox,
    *,
    person: str = "Tan Wei Ling",
    entity: str = "Harbour Works Pte. Ltd.",
    client: str = "Harbour Board",
    user_name: str = "wei.ling@harbour.example",
) -> dict[str, Email]:
    policy = made_by.provider.policy
    user = User(user_id="id-wei", user_name=user_name, name=person, email=ADDRESS)
    firm = Entity(
        entity_id="1", type="UEN", registration_number="200000001A", country="SG", name=entity, status="Registered"
    )
    link = NewLink(page=f"{BASE}/enrol", code="7Q3M-0KXV-2HTB-9WZC-5RDN", expires_at=int(made_by.now) + 1800)
    found: dict[str, Email] = {}

    def sent(name: str) -> None:
        found[name] = postbox.emails.pop().email

    for name, notice in notices(firm, made_by.device).items():
        notifications.notify(made_by, user, notice)
        sent(name)
    for purpose, texts in links.PURPOSES.items():
        if not texts.steps:
            notifications.email_will_change(made_by, user, link, address="w•••@city.example", lead=texts.lead)
            sent("email_will_change")
        elif texts.joins:
            found["invitation_of_entity"] = notifications.invitation(
                firm, link, to=ADDRESS, lead=texts.lead, language="en", provider_name=policy.name
            )
        else:
            notifications.link(postbox, user, link, heading=texts.heading, lead=texts.lead, provider_name=policy.name)
            sent(f"link_{purpose}")
    for name, why in {
        "code_to_sign_in": notifications.signing_in(client, policy.name),
        "code_to_set_up": notifications.setting_up(policy.name),
    }.items():
        notifications.mailed_code(made_by, user, CODE, why=why)
        sent(name)
    notifications.no_link(made_by, user)
    sent("no_link")
    asked = notifications.asked_by(user, firm)
    notifications.no_help(made_by, user, asked)
    sent("no_help")
    notifications.tell(made_by.provider, user, notifications.notify_unlocked(asked), now=made_by.now)
    sent("unlocked")
    texts = links.PURPOSES["password"]
    notifications.link(
        postbox, user, link, heading=texts.heading, lead=texts.lead, provider_name=policy.name, asked=asked
    )
    sent("link_asked_by_administrator")
    notifications.tell(made_by.provider, user, notifications.EMAIL_STAYS, now=made_by.now)
    sent("email_stays_later")
    notifications.send_erasure_notice(postbox, user, provider_name=policy.name)
    sent("erased")
    return found | _administration(user, firm, int(made_by.now))


def _administration(user: User, firm: Entity, now: int) -> dict[str, Email]:
    """Notices about the administration of an entity."""
    reader = Reader(user=user, entity=firm, deployment_url=BASE)
    role = RoleNames(service="Harbour permits", role="Approver", sub_entity="North pier", end_date="2027-12-31")
    for_client = RoleNames(service="Harbour permits", client="Saltwater Foods", end_date="2027-11-30")
    changes = (
        AccessChange(change="given", role=role),
        AccessChange(change="changed", level="administrator"),
        AccessChange(change="ended", role=for_client),
        AccessChange(change="restored"),
    )
    given = Change(None, Assignment(user_id="id-siti", entity_id="1", service_id="permits", role="Approver"))
    record = ChangeRequest(
        request_id="1", entity_id="1", requester="user:id-marcus", reason="A new colleague starts in March",
        changes=(given,), created_at=now + 86400 - LIFETIME_SECONDS,
    )  # fmt: skip
    names = RequestNames(
        people={"id-siti": f"{user.name} (siti)", "id-marcus": f"{user.name} (marcus)"},
        entities={"1": firm.name},
        services={"permits": "Harbour permits"},
    )
    asked = RequestInWords(
        record=record,
        change=title_changes(record.changes, names),
        requester=name_actor(record.requester, names.people),
    )
    many = [
        structs.replace(
            asked,
            record=structs.replace(record, state=each, decided_reason="Seen", created_at=now),
            decided_by="Tan Wei Ling (wei.ling)",
        )
        for each in ("approved", "declined", "expired")
    ]
    own = structs.replace(many[0], record=structs.replace(many[0].record, requester="user:id-siti"))
    comments = (
        (RequestComment(author="user:id-nadia", text="Until when does she need it?", at=now), "Nadia Rahman (nadia)"),
        (RequestComment(author="user:id-nadia", text="I ask her manager", at=now), f"{user.name} (nadia)"),
    )
    commented = structs.replace(asked, comments=comments)
    new_comments = {record.request_id: {1, 2}}
    by = (f"{user.name} (marcus)", OPERATOR)
    due = date(2027, 1, 15)
    return {
        "access_changed": notice_texts.build_access_email(reader, changes, by=by, at=now),
        **{
            f"access_{each.change}": notice_texts.build_access_email(reader, [each], by=by[:1], at=now)
            for each in (*changes[:3:2], AccessChange(change="changed", role=role))
        },
        "access_ends": notice_texts.build_ending_email(reader, [role, for_client]),
        "one_access_ends": notice_texts.build_ending_email(reader, [role]),
        "access_of_others_ends": notice_texts.build_others_ending_email(reader, [("Marcus Lee", role)] * 12, 40),
        "owners_changed": notice_texts.build_owner_email(
            reader, [("appointed", "Marcus Lee"), ("ended", "Siti Aminah")], by=by, at=now
        ),
        "owner_appointed": notice_texts.build_owner_email(reader, [("appointed", "Marcus Lee")], by=(), at=now),
        "owner_ended": notice_texts.build_owner_email(reader, [("ended", "Siti Aminah")], by=by[:1], at=now),
        "token_ends": notice_texts.build_token_email(reader, [("Personnel system", now)]),
        "tokens_end": notice_texts.build_token_email(reader, [("Personnel system", now), ("Payroll", now)]),
        "request_waits": notice_texts.build_waiting_email(reader, [asked], 1),
        "request_waits_for_operator": notice_texts.build_waiting_email(
            structs.replace(reader, as_operator=True), [asked], 1
        ),
        "requests_wait": notice_texts.build_waiting_email(reader, [asked, asked], 12),
        "request_commented": notice_texts.build_comments_email(reader, [commented], 1, new_comments),
        "requests_commented": notice_texts.build_comments_email(reader, [commented, commented], 12, new_comments),
        **{f"request_{each.record.state}": notice_texts.build_decided_email(reader, [each], 1) for each in many},
        "requests_decided": notice_texts.build_decided_email(reader, many, 3),
        "own_request_decided": notice_texts.build_decided_email(reader, [own], 1),
        "review_due": notice_texts.build_review_email(reader, due=due, again=False),
        "review_overdue": notice_texts.build_review_email(reader, due=due, again=True),
    }
