"""The same sentence at every door for what the rules refuse (D53, D55, R-14, R-21)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from corpid import cli
from corpid.cli.records import NOUNS as COMMANDS_ON_RECORDS
from corpid.flows.directory.apply import apply_document, prepare_entry
from corpid.flows.directory.approvals import StaleRequest, approve_request
from corpid.flows.directory.single_records import BY_KIND
from corpid.flows.directory.write import (
    NEEDS_APPROVAL,
    InvalidMembers,
    Refused,
    RequestDetails,
    write_changes,
)
from corpid.rules import scim
from corpid.rules.directory.access import (
    Actor,
    ApiClient,
    CommandLine,
    DeploymentOperator,
    Forbidden,
    Person,
    ProvisioningToken,
)
from corpid.rules.directory.document import NOUNS, Kind, from_nodes, one_entry, parse
from corpid.rules.directory.document import SECTIONS as EVERY_SECTION
from corpid.rules.directory.nodes import DirectoryError, json_value, nodes
from corpid.rules.directory.objects import InvalidObject, parse_object
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    ChangedMeanwhile,
    Membership,
    Operator,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
)
from corpid.rules.directory.tables import parse_access, parse_people
from tests.manage.scene import ACME, BANYAN
from tests.manage.test_requests import acme
from tests.manage.test_who_is_meant import owner
from tests.sign_in.world import World, entity

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.rules.fields import KeyedRecord

PERMITS: Final = Service(service_id="PERMITS", name="Permits", roles=("Maker",), third_parties=True)
CORA: Final[dict[str, Any]] = {"user_id": "id-cora", "entity_id": ACME, "service_id": "PERMITS"}
ROLE: Final = Assignment(**CORA, role="Maker")
OFFER: Final = ThirdPartyGrant(client_entity_id=ACME, entity_id=BANYAN, service_id="PERMITS", state="offered")
FOR_BANYAN: Final = ThirdPartyAssignment(**CORA, client_entity_id=BANYAN, role="Maker")
BROKEN: Final[dict[str, tuple[KeyedRecord, str]]] = {
    "assignment": (
        replace(ROLE, role="Makr"),
        "role: 'Makr' is no role of PERMITS; its roles are Maker; did you mean 'Maker'?",
    ),
    "administrator": (
        Administrator(user_id="id-cora", entity_id=ACME, level="administrator", services=("PERMITS",)),
        "services: administrator has every service: only a sub_administrator has a list of services",
    ),
    "grant": (replace(OFFER, entity_id=ACME), "an entity cannot be its own third party"),
    "third-party row": (
        replace(FOR_BANYAN, start_date="2026-01-02", end_date="2026-01-01"),
        "the row ends on 2026-01-01, before it starts on 2026-01-02",
    ),
}
"""of each kind with rules about what it names, a record that breaks one, and the sentence of that rule"""
SECTIONS: Final = {
    "assignment": "assignments", "administrator": "administrators", "grant": "third_party.grants",
    "third-party row": "third_party.assignments",
}  # fmt: skip
ROOT: Final = CommandLine(by="root@host")


def asking(made: World, unique: str = "u1") -> RequestDetails:
    return RequestDetails("A new colleague", made.clock(), unique)


async def by(made: World, actor: Actor, record: KeyedRecord) -> None:
    await write_changes(made.provider.registry, actor, [Change(None, record)], asking=asking(made))


async def on_a_page(made: World, record: KeyedRecord) -> None:
    await by(made, owner(made, "alice"), record)


async def in_the_console(made: World, record: KeyedRecord) -> None:
    now = made.clock()
    await by(made, DeploymentOperator(user_id="id-olga", level="operator", auth_time=now, now=now), record)


async def by_a_client(made: World, record: KeyedRecord) -> None:
    await by(made, ApiClient(client_id="c", scopes=frozenset({"directory.write"}), entity_id=ACME), record)


async def by_a_token(made: World, record: KeyedRecord) -> None:
    await by(made, ProvisioningToken(token_id="t", entity_id=ACME), record)


async def for_oneself(made: World, record: KeyedRecord) -> None:
    await by(made, Person("id-cora"), record)


async def as_a_request(made: World, record: KeyedRecord) -> None:
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    await on_a_page(made, record)


async def at_its_approval(made: World, record: KeyedRecord) -> None:
    """Of a request that was right when it was made."""
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    alice, bob, registry = owner(made, "alice"), owner(made, "bob"), made.provider.registry
    request = await write_changes(registry, alice, [Change(None, record)], asking=asking(made), planned=True)
    assert request is not None
    await approve_request(registry, request.request_id, actor=bob, reason="Yes", now=made.clock())


WRITTEN: Final[dict[str, dict[str, object]]] = {
    "assignment": {"user": "cora", "entity": ACME, "service": "PERMITS", "role": "Makr"},
    "administrator": {"user": "cora", "entity": ACME, "level": "administrator", "services": ["PERMITS"]},
    "grant": {"client_entity": ACME, "third_party": ACME, "service": "PERMITS"},
    "third-party row": {
        "user": "cora", "third_party": ACME, "client_entity": BANYAN, "service": "PERMITS", "role": "Maker",
        "start_date": "2026-01-02", "end_date": "2026-01-01",
    },
}  # fmt: skip
"""the broken records as in a directory file"""


async def in_a_file(made: World, record: KeyedRecord) -> None:
    kind = Change(None, record).kind
    document = parse(one_entry(SECTIONS[kind], None, WRITTEN[kind]), "f.yaml", typed=True)
    await apply_document(
        made.provider.registry, made.provider.passwords, b"", file="f.yaml", actor=ROOT, new_user_id=str,
        document=document,
    )  # fmt: skip


async def by_a_command(made: World, record: KeyedRecord) -> None:
    kind = Change(None, record).kind
    await prepare_entry(made.provider.registry, made.provider.passwords, SECTIONS[kind], None, WRITTEN[kind])


DOORS: Final[dict[str, Callable[[World, KeyedRecord], Awaitable[None]]]] = {
    each.__name__: each
    for each in (
        on_a_page, in_the_console, by_a_client, by_a_token, for_oneself, as_a_request, at_its_approval, in_a_file,
        by_a_command,
    )
}  # fmt: skip
ONLY_ROLES: Final = {"by_a_token", "for_oneself"}
"""doors through which nothing else comes"""
CASES: Final = [(door, kind) for door, kind in product(DOORS, BROKEN) if kind == "assignment" or door not in ONLY_ROLES]


async def scene(made: World) -> None:
    await acme(made)
    await made.person("olga", entity(BANYAN, "Banyan"), name="Olga")
    accepted = replace(OFFER, client_entity_id=BANYAN, entity_id=ACME, state="accepted")
    await made.write(
        entity(ACME, "Acme Pte. Ltd."), entity(BANYAN, "Banyan"), PERMITS, accepted,
        Operator(user_id="id-olga", level="operator"),
    )  # fmt: skip


def sentences(error: Exception) -> list[str]:
    if isinstance(error, DirectoryError):
        return [each.reason for each in error.problems]
    if isinstance(error, InvalidMembers):
        return [*error.faults]
    return [str(text).strip() for text in error.args]


@pytest.mark.parametrize(("door", "kind"), CASES)
async def test_a_record_that_breaks_a_rule_is_refused_in_the_same_words(made: World, door: str, kind: str) -> None:
    await scene(made)
    record, sentence = BROKEN[kind]
    with pytest.raises((Refused, DirectoryError)) as refused:
        await DOORS[door](made, record)
    assert sentence in sentences(refused.value)
    assert not await made.provider.registry.directory.read(type(record), [record.key])


@pytest.mark.parametrize("kind", ["assignment", "membership", "administrator", "grant"])
@pytest.mark.parametrize("who", ["owner", "client", "command"])
async def test_what_was_changed_meanwhile_is_refused_in_the_same_words(made: World, who: str, kind: str) -> None:
    """D53, D55: what a decision rests on is looked at again in the transaction of the change."""
    await scene(made)
    member = (await made.provider.registry.directory.read(Membership, [("id-cora", ACME)]))["id-cora", ACME]
    there: dict[str, tuple[KeyedRecord, KeyedRecord]] = {
        "assignment": (ROLE, replace(ROLE, end_date="2030-01-01")),
        "membership": (member, replace(member, enabled=False)),
        "administrator": (
            Administrator(user_id="id-cora", entity_id=ACME, level="sub_administrator", services=("PERMITS",)),
            Administrator(user_id="id-cora", entity_id=ACME, level="sub_administrator"),
        ),
        "grant": (OFFER, replace(OFFER, end_date="2030-01-01")),
    }
    seen, now = there[kind]
    await made.write(now)
    scopes = frozenset({"directory.write"})
    actors: dict[str, Actor] = {
        "owner": owner(made, "alice"), "command": CommandLine(by="lee@node1", reason="Closed"),
        "client": ApiClient(client_id="c", scopes=scopes, entity_id=ACME),  # type: ignore[arg-type]
    }  # fmt: skip
    actor = actors[who]
    with pytest.raises(ChangedMeanwhile, match="something that this rests on was changed at the same moment"):
        changes = [Change(seen, None)]
        await write_changes(made.provider.registry, actor, changes, asking=asking(made))
    found = await made.provider.registry.directory.read(type(now), [now.key])
    assert found == {now.key: now}


@pytest.mark.parametrize("kind", ["assignment", "membership", "administrator"])
async def test_a_stale_request_is_refused_in_the_same_words(made: World, kind: str) -> None:
    await scene(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    member = (await made.provider.registry.directory.read(Membership, [("id-cora", ACME)]))["id-cora", ACME]
    level = Administrator(user_id="id-cora", entity_id=ACME, level="sub_administrator", services=("PERMITS",))
    since: dict[str, tuple[KeyedRecord, KeyedRecord]] = {
        "assignment": (ROLE, replace(ROLE, end_date="2030-01-01")),
        "membership": (member, replace(member, enabled=False)),
        "administrator": (level, replace(level, services=())),
    }
    before, after = since[kind]
    await made.write(before)
    registry = made.provider.registry
    request = await write_changes(registry, owner(made, "alice"), [Change(before, None)], asking=asking(made))
    assert request is not None
    await made.write(after)
    with pytest.raises(StaleRequest) as stale:
        await approve_request(registry, request.request_id, actor=owner(made, "bob"), reason="Yes", now=made.clock())
    assert stale.value.args[0] == "this was changed since it was requested, and has to be requested again:"


@pytest.mark.parametrize("kind", ["assignment", "membership", "administrator", "grant"])
@pytest.mark.parametrize("who", ["owner", "client", "token"])
async def test_what_needs_approval_is_refused_in_the_same_words_where_nobody_can_ask(
    made: World, who: str, kind: str
) -> None:
    await scene(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    member = (await made.provider.registry.directory.read(Membership, [("id-cora", ACME)]))["id-cora", ACME]
    level = Administrator(user_id="id-cora", entity_id=ACME, level="sub_administrator")
    changes = {
        "assignment": Change(None, ROLE), "membership": Change(member, replace(member, enabled=False)),
        "administrator": Change(None, level), "grant": Change(None, OFFER),
    }  # fmt: skip
    actors: dict[str, Actor] = {
        "owner": owner(made, "alice"),
        "client": ApiClient(client_id="c", scopes=frozenset({"directory.write"}), entity_id=ACME),
        "token": ProvisioningToken(token_id="t", entity_id=ACME),
    }
    with pytest.raises(Forbidden) as refused:
        await write_changes(made.provider.registry, actors[who], [changes[kind]])
    may = who != "token" or kind in {"assignment", "membership"}
    assert (refused.value.reason == NEEDS_APPROVAL) is may


KEYS: Final = {"entity": ACME, "user": "cora", "service": "PERMITS", "client": "rp"}
"""of kinds whose entries have a key outside"""
STRANGE: Final = {"zzz": "red"}


def unknown_in_a_file(kind: Kind) -> list[str]:
    [section] = [name for name, each in EVERY_SECTION.items() if each.kind == kind]
    with pytest.raises(DirectoryError) as refused:
        parse(one_entry(section, KEYS.get(kind), STRANGE), "f.yaml")
    return sentences(refused.value)


def unknown_in_the_api(kind: Kind) -> list[str]:
    with pytest.raises(InvalidObject) as refused:
        parse_object(BY_KIND[kind], STRANGE)  # type: ignore[arg-type]
    return [each.detail for each in refused.value.faults]


def unknown_in_a_document_of_the_api(kind: Kind) -> list[str]:
    [section] = [name for name, each in EVERY_SECTION.items() if each.kind == kind]
    outer, _, inner = section.partition(".")
    entry: Any = [STRANGE] if kind not in KEYS else {KEYS[kind]: STRANGE}
    with pytest.raises(DirectoryError) as refused:
        from_nodes(nodes({outer: {inner: entry} if inner else entry}).root, "")
    return sentences(refused.value)


def unknown_in_a_table(kind: Kind) -> list[str]:
    try:
        if kind == "user":
            parse_people(b"user_name,name,zzz\n", "p.csv", entity_id="")
        else:
            parse_access("user_name,service,zzz\n")
    except DirectoryError as refused:
        return sentences(refused)
    raise AssertionError("the table is refused")


FILED: Final = tuple(each.kind for each in EVERY_SECTION.values())
UNKNOWN: Final = [
    *product((unknown_in_a_file, unknown_in_a_document_of_the_api), FILED),
    *product((unknown_in_the_api,), BY_KIND),
    *product((unknown_in_a_table,), ("user", "assignment")),
]
"""not SCIM, which leaves such an attribute out, since large vendors send some (RFC 7644 §3.3); nor the options of
commands, which typer refuses before anything of the command runs"""


@pytest.mark.parametrize(("door", "kind"), UNKNOWN)
def test_a_field_that_a_kind_does_not_have_is_refused_in_the_same_words(
    door: Callable[[Kind], list[str]], kind: Kind
) -> None:
    assert f"'zzz' is not a field of {NOUNS[kind]}" in door(kind)


@pytest.mark.parametrize("kind", FILED)
async def test_a_command_refuses_such_a_field_in_the_same_words(made: World, kind: Kind) -> None:
    """What a command hands on, beyond the options that typer knows."""
    [section] = [name for name, each in EVERY_SECTION.items() if each.kind == kind]
    with pytest.raises(InvalidMembers) as refused:
        await prepare_entry(made.provider.registry, made.provider.passwords, section, KEYS.get(kind), STRANGE)
    assert f"'zzz' is not a field of {NOUNS[kind]}" in sentences(refused.value)


@pytest.mark.parametrize("noun", sorted(COMMANDS_ON_RECORDS))
def test_an_option_that_a_command_does_not_have_is_refused_by_typer(noun: str) -> None:
    runner = CliRunner()
    refused = runner.invoke(cli.app, [noun, "list", "--zzz", "red"])
    assert refused.exit_code == 2
    assert "No such option: --zzz" in refused.output


def test_scim_leaves_an_attribute_out_that_it_does_not_know() -> None:
    """RFC 7644 §3.3."""
    sent = {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": "cora", "zzz": "red"}
    read = scim.USER.model_validate(sent, scim_policy=scim.POLICY)
    assert scim.read_details(read).details.user_name == "cora"


@pytest.mark.parametrize(
    ("door", "written"),
    [
        (lambda content: parse(content, "f.yaml"), b"colours: {}"),
        (lambda content: from_nodes(nodes(json_value(content)).root, ""), b'{"colours": {}}'),
    ],
)
def test_a_kind_that_there_is_not_is_refused_in_the_same_words(door: Callable[[bytes], object], written: bytes) -> None:
    with pytest.raises(DirectoryError) as refused:
        door(written)
    assert sentences(refused.value) == ["'colours' is not a section"]


def test_a_noun_that_no_command_has_is_refused_by_typer() -> None:
    refused = CliRunner().invoke(cli.app, ["colours", "list"])
    assert refused.exit_code == 2
    assert "No such command 'colours'" in refused.output
