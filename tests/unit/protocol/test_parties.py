"""The two parties of a token: the person, and the entity they act for (D1, D2, D20)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.protocol.parties import Parties, claims, read, subject

if TYPE_CHECKING:
    from corpid.protocol.records import SubjectMode

BOTH = Parties(user_id="u", entity_id="e", user_attributes={"name": "Rina"}, entity_attributes={"entity_name": "Works"})
SILENT = Parties(user_id="u", entity_id="e", user_attributes={}, entity_attributes={})
USER = {"sub": "u", "sub_type": "user"}
ENTITY = {"sub": "e", "sub_type": "entity"}


def test_the_subject_carries_the_other_party_within() -> None:
    """D2: subject=entity: act; subject=user: entity."""
    user, entity = {**USER, "sub_attributes": {"name": "Rina"}}, {**ENTITY, "sub_attributes": {"entity_name": "Works"}}
    assert claims(BOTH, "user", attributes=True) == {**user, "entity": entity}
    assert claims(BOTH, "entity", attributes=True) == {**entity, "act": user}


def test_without_granted_attributes_there_is_no_member_for_them() -> None:
    for parties, attributes in ((BOTH, False), (SILENT, True)):
        assert claims(parties, "user", attributes=attributes) == {**USER, "entity": ENTITY}
        assert claims(parties, "entity", attributes=attributes) == {**ENTITY, "act": USER}


@pytest.mark.parametrize(("mode", "sub"), [("user", "u"), ("entity", "e")])
def test_every_token_has_the_same_subject_and_both_parties_are_read_back(mode: SubjectMode, sub: str) -> None:
    written = claims(BOTH, mode, attributes=False)
    assert subject(BOTH, mode) == written["sub"] == sub
    assert read(written) == ("u", "e")


@pytest.mark.parametrize("token", [{}, USER, {**USER, "entity": "e"}, {**USER, "entity": {"sub": 1}}, {"act": USER}, {"sub": 1, "act": USER}])  # fmt: skip
def test_without_both_there_are_no_parties(token: dict[str, object]) -> None:
    assert read(token) is None
