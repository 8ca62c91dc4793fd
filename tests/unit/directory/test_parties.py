"""Attributes by granted scope (R-4.1, R-12.4)."""

from __future__ import annotations

import msgspec
import pytest

from corpid.directory.parties import IDENTITY_SCOPES, entity_attributes, user_attributes, what_a_scope_tells
from corpid.directory.records import Entity, User
from corpid.protocol import scopes

ENTITY = Entity(entity_id="A1", type="UEN", registration_number="A1", country="SG", name="Alpha", status="Registered")
USER = User(user_id="u", user_name="rina", name="Rina", identity_number="S1", identity_country="SG")


@pytest.mark.parametrize(
    ("scope", "attributes"),
    [
        ("entity.identity", {"entity_type": "UEN", "entity_reg_number": "A1", "entity_coi": "SG"}),
        ("entity.basic_profile.name", {"entity_name": "Alpha"}),
        ("entity.basic_profile.uen_status", {"entity_uen_status": "Registered"}),
        ("user.identity", {}),
        ("openid", {}),
    ],
)
def test_an_entity_scope_tells_its_attributes_and_no_others(scope: str, attributes: dict[str, str]) -> None:
    assert entity_attributes(ENTITY, {scope}) == attributes


@pytest.mark.parametrize(
    ("scope", "attributes"),
    [
        ("user.identity", {"account_type": "standard", "identity_number": "S1", "identity_coi": "SG"}),
        ("user.name", {"name": "Rina"}),
        ("entity.identity", {}),
    ],
)
def test_a_user_scope_tells_its_attributes_and_no_others(scope: str, attributes: dict[str, str]) -> None:
    assert user_attributes(USER, {scope}) == attributes


def test_the_registration_status_is_told_of_uen_entities_only() -> None:
    foreign = msgspec.structs.replace(ENTITY, type="NON-UEN")
    assert "entity_uen_status" not in entity_attributes(foreign, IDENTITY_SCOPES)


def test_what_the_directory_does_not_know_is_left_out() -> None:
    unknown = msgspec.structs.replace(USER, identity_number="", identity_country="")
    assert user_attributes(unknown, IDENTITY_SCOPES) == {"account_type": "standard", "name": "Rina"}


def test_every_scope_of_the_protocol_that_tells_something_has_its_words_for_consent() -> None:
    """D29: protocol and directory name the same scopes."""
    assert set(IDENTITY_SCOPES) == set(scopes.IDENTITY_SCOPES)
    assert all(what_a_scope_tells(scope) for scope in IDENTITY_SCOPES)
