"""Records of every kind that refer to one another, and how a scenario writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.rules.audit import AuditEvent
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    ChangeRequest,
    Entity,
    Membership,
    Operator,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.directory.values import Parameter, ParameterDefinition, RoleDescription
from corpid.rules.oauth.records import Client
from tests.adapters.opened import EVENT

if TYPE_CHECKING:
    from corpid.rules.fields import KeyedRecord
    from corpid.stores.sql.open import SqlStores

TAN = User(
    user_id="u1",
    user_name="Tan.WeiMing",
    name="Tan Wei Ming",
    email="tan@example.org",
    language="zh",
    identity_number="S1234567D",
    identity_country="SG",
    account_type="foreign",
    enabled=False,
)
LIM = User(user_id="u2", user_name="lim", name="Lim")
ACME = Entity(
    entity_id="E1",
    type="NON-UEN",
    registration_number="200312345A",
    country="MY",
    name="Acme",
    status="Withdrawn",
    enabled=False,
    approvals="roles",
)
BOOKS = Entity(entity_id="E2", type="UEN", registration_number="2", country="SG", name="books Pte")
TRADE = Service(
    service_id="s1",
    name="Trade",
    roles=("Preparer", "Approver"),
    parameters=(ParameterDefinition(name="limit", kind="number", mandatory=True),),
    third_parties=True,
    sub_entity="optional",
    entity_types=("UEN",),
    entity_statuses=("Registered",),
    enabled=False,
    approval_required=True,
    description="Permits to trade.",
    role_descriptions=(RoleDescription(name="Approver", description="Approves applications."),),
)
LEVY = Service(service_id="s2", name="Levy")
MEMBER = Membership(
    user_id="u1",
    entity_id="E1",
    enabled=False,
    membership_id="5e1c7a3e-0000-4000-8000-000000000001",
    user_name="Tan@Acme",
    external_id="4711",
    name="Tan W.M.",
    given_name="Wei Ming",
    family_name="Tan",
    email="tan@acme.example",
    created_at=1,
    changed_at=2,
    invitation_sent_at=3,
)
ADMINISTERS = Administrator(user_id="u1", entity_id="E1", level="sub_administrator", services=("s1",))
OPERATES = Operator(user_id="u2", level="operator")
ASSIGNED = Assignment(
    user_id="u1",
    entity_id="E1",
    service_id="s1",
    role="Preparer",
    sub_entity="B1",
    ref="r",
    start_date="2026-01-01",
    end_date="2026-12-31",
    parameters=(Parameter(name="limit", value="5"), Parameter(name="limit", value="6")),
)
GRANTED = ThirdPartyGrant(
    client_entity_id="E2", entity_id="E1", service_id="s1", parameters=(Parameter(name="a", value="b"),)
)
FOR_BOOKS = ThirdPartyAssignment(user_id="u1", entity_id="E1", client_entity_id="E2", service_id="s1", role="Approver")
FACTORS = Credentials(
    user_id="u1",
    password_hash="$argon2id$old",
    password_set_by="user",
    password_source="abc",
    totp_secret="JBSWY3DP",
    totp_set_by="operator",
    totp_last_step=5,
)
REQUEST = ChangeRequest(
    request_id="6742f0a1-9b2c",
    entity_id="E1",
    requester="client:c",
    bound_to="E1",
    changes=(Change(BOOKS, None),),
    reason="Because",
    created_at=1,
    state="declined",
    decided_by="user:u2",
    decided_reason="No",
    decided_at=2,
)
CLIENT = Client(client_id="rp", name="RP", redirect_uris=("https://rp.example/cb",), jwks="{}", services=("s1",))
EVERYTHING: tuple[KeyedRecord, ...] = (
    TAN, LIM, ACME, BOOKS, TRADE, LEVY, MEMBER, ADMINISTERS, OPERATES, ASSIGNED, GRANTED, FOR_BOOKS, FACTORS, REQUEST,
)  # fmt: skip
CLIENT_EVENT = AuditEvent(actor="client:rp", action="code.replay", client_id="rp", entity_id="E1", outcome="refused")


async def write(stores: SqlStores, *records: KeyedRecord) -> None:
    await stores.registry.directory.write([Change(None, record) for record in records], EVENT)


async def remove(stores: SqlStores, *records: KeyedRecord) -> None:
    await stores.registry.directory.write([Change(record, None) for record in records], EVENT)


async def everything(stores: SqlStores) -> list[KeyedRecord]:
    kinds = {type(record): None for record in EVERYTHING}
    return [record for kind in kinds for record in [found async for found in stores.registry.directory.scan(kind)]]
