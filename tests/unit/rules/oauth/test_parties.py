"""The two parties of a token: the person, and the entity they act for (D1, D2, D20)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from corpid.rules.oauth.tokens import LegacyClaims, Parties, party_claims, read

if TYPE_CHECKING:
    from corpid.rules.oauth.records import SubjectMode

BOTH = Parties(user_id="u", entity_id="e", user_attributes={"name": "Rina"}, entity_attributes={"entity_name": "Works"})
PACKED = msgspec.structs.replace(
    BOTH,
    packed=LegacyClaims(
        sub="s=S1,uuid=u,u=eS1,c=SG", attributes={"userInfo": {"CPUID_FullName": "Rina"}, "entityInfo": {}}
    ),
)
SILENT = Parties(user_id="u", entity_id="e", user_attributes={}, entity_attributes={})
USER = {"sub": "u", "sub_type": "user"}
ENTITY = {"sub": "e", "sub_type": "entity"}


def test_the_subject_carries_the_other_party_within() -> None:
    """D2: subject=entity: act; subject=user: entity."""
    user, entity = {**USER, "sub_attributes": {"name": "Rina"}}, {**ENTITY, "sub_attributes": {"entity_name": "Works"}}
    assert party_claims(BOTH, "user", attributes=True) == {**user, "entity": entity}
    assert party_claims(BOTH, "entity", attributes=True) == {**entity, "act": user}


def test_without_granted_attributes_there_is_no_member_for_them() -> None:
    for parties, attributes in ((BOTH, False), (SILENT, True)):
        assert party_claims(parties, "user", attributes=attributes) == {**USER, "entity": ENTITY}
        assert party_claims(parties, "entity", attributes=attributes) == {**ENTITY, "act": USER}


@pytest.mark.parametrize(("mode", "sub"), [("user", "u"), ("entity", "e")])
def test_every_token_has_the_same_subject_and_both_parties_are_read_back(mode: SubjectMode, sub: str) -> None:
    written = party_claims(BOTH, mode, attributes=False)
    assert written["sub"] == sub
    assert read(written) == ("u", "e")


@pytest.mark.parametrize("token", [{}, USER, {**USER, "entity": "e"}, {**USER, "entity": {"sub": 1}}, {"act": USER}, {"sub": 1, "act": USER}])  # fmt: skip
def test_without_both_there_are_no_parties(token: dict[str, object]) -> None:
    assert read(token) is None


@pytest.mark.parametrize("mode", ["user", "entity"])
def test_a_packed_subject_is_the_same_in_every_token_whatever_the_client_registered(mode: SubjectMode) -> None:
    """D1, R-12.2: the ID token tells of both, the access token names the entity alone, and both are read back."""
    assert PACKED.packed is not None
    assert party_claims(PACKED, mode, attributes=True) == {"sub": PACKED.packed.sub, **PACKED.packed.attributes}
    written = party_claims(PACKED, mode, attributes=False)
    assert written == {"sub": PACKED.packed.sub, "entity": ENTITY}
    assert read(written) == ("u", "e")


@pytest.mark.parametrize(
    ("sub", "user"), [("uuid=u%2C1,s=x", "u,1"), ("s=uuid=7,uuid=u", "u"), ("s=S1,u=e", ""), ("", "")]
)
def test_the_person_is_read_from_the_uuid_of_a_packed_subject_alone(sub: str, user: str) -> None:
    assert read({"sub": sub, "entity": ENTITY}) == (user, "e")
