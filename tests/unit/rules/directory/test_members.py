"""What may be told of a record's members, declared once (D57, D61)."""

from __future__ import annotations

import msgspec
import pytest

from corpid.rules.authentication.records import Credentials, FactorLink, Passkey
from corpid.rules.directory.members import compare_members, disclosures, mask_text, merge_members, visible_members
from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken
from corpid.rules.directory.records import RECORDS, ChangeRequest, Membership, Service, User
from corpid.rules.directory.values import Parameter
from corpid.rules.fields import Disclosure
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.records import Client, FetchedKeySet
from corpid.rules.signing_keys import ProviderKey

LIM = User(user_id="u2", user_name="lim", name="Lim", email="lim@example.org", identity_number="S1234567D")
TOLD: tuple[type[msgspec.Struct], ...] = (
    Client, RegisteredApiClient, RegisteredProvisioningToken, Passkey, ProviderKey, FactorLink, FetchedKeySet, ChangeRequest, *RECORDS.values(),
)  # fmt: skip
LOOKS_SECRET = ("password", "secret", "hash", "jwks", "private")
"""in the name of a member that is not told without a decision"""


@pytest.mark.parametrize("record", TOLD, ids=lambda record: record.__name__)
def test_a_member_that_sounds_secret_is_declared(record: type[msgspec.Struct]) -> None:
    """D57: one that is added to a record needs a line here or there."""
    declared = disclosures(record)
    disclosed = {
        name
        for name in record.__struct_fields__
        if any(word in name for word in LOOKS_SECRET) and name != "jwks_uri" and name not in declared
    }
    assert disclosed == set()


def test_an_identity_number_shows_its_last_four_characters() -> None:
    assert mask_text("S1234567D") == "•••••567D"
    assert mask_text("567D") == "••••"
    assert mask_text("") == ""
    made = compare_members(LIM, msgspec.structs.replace(LIM, identity_number="S7654321Z"))
    assert (made.before, made.after) == ({"identity_number": "•••••567D"}, {"identity_number": "•••••321Z"})
    assert made.personal == {"identity_number"}


def test_a_secret_is_set_changed_or_gone() -> None:
    none, first = Credentials(user_id="u2"), Credentials(user_id="u2", totp_secret="JBSWY3DP")
    second = first.with_app("KRSXG5BA", "user", step=7)
    assert compare_members(none, first).after == {"totp_secret": "set"}
    assert (compare_members(first, second).before, compare_members(first, second).after) == (
        {"totp_secret": "set"},
        {"totp_secret": "changed"},
    )
    assert compare_members(second, none).after == {"totp_secret": None}
    assert compare_members(None, first).after == {"user_id": "u2", "totp_secret": "set"}


def test_bookkeeping_is_no_change() -> None:
    was = Credentials(user_id="u2", totp_secret="JBSWY3DP")
    assert compare_members(was, msgspec.structs.replace(was, totp_last_step=9)).names == []
    assert "totp_last_step" not in visible_members(was)


def test_an_added_record_tells_what_is_set_and_a_removed_one_the_same() -> None:
    member = Membership(user_id="u2", entity_id="E1", enabled=False)
    disclosed = {"user_id": "u2", "entity_id": "E1", "enabled": False}
    assert (compare_members(None, member).before, compare_members(None, member).after) == ({}, disclosed)
    assert (compare_members(member, None).before, compare_members(member, None).after) == (disclosed, {})
    assert compare_members(None, member).names == []


def test_values_are_those_of_json() -> None:
    made = compare_members(None, Service(service_id="s", name="S", roles=("A", "B")))
    assert made.after["roles"] == ("A", "B")
    assert compare_members(None, Parameter(name="a", value="b")).after == {"name": "a", "value": "b"}


def test_parts_of_one_change_are_told_together() -> None:
    of_name = compare_members(LIM, msgspec.structs.replace(LIM, name="Lim B"))
    of_language = compare_members(LIM, msgspec.structs.replace(LIM, language="ms"))
    made = merge_members(of_name, of_language)
    assert (made.names, made.personal) == (["name", "language"], frozenset({"name"}))


def test_every_way_to_tell_is_declared_of_some_member() -> None:
    assert {how for record in TOLD for how in disclosures(record).values()} == set(Disclosure)
