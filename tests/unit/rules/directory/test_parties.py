"""Attributes by granted scope (R-4.1, R-12.4)."""

from __future__ import annotations

from typing import TypeVar

import msgspec
import pytest

from corpid.rules.directory.parties import (
    IDENTITY_SCOPES,
    consent_items,
    entity_attributes,
    packed_parties,
    packed_subject,
    user_attributes,
)
from corpid.rules.directory.records import Administrator, AdministratorLevel, Entity, User
from corpid.rules.oauth import generations

R = TypeVar("R", bound=msgspec.Struct)

ENTITY = Entity(entity_id="A1", type="UEN", registration_number="A1", country="SG", name="Alpha", status="Registered")
USER = User(user_id="u", user_name="rina", name="Rina", identity_number="S1", identity_country="SG")

CONSENT = {
    "entity.identity": (
        "The organisation's type, registration number and country", "entity_type", "entity_reg_number", "entity_coi",
    ),
    "entity.basic_profile.name": ("The organisation's name", "entity_name"),
    "entity.basic_profile.uen_status": ("The organisation's registration status", "entity_uen_status"),
    "user.identity": (
        "Your account type, identity number and the country that issued it",
        "account_type", "identity_number", "identity_coi",
    ),
    "user.name": ("Your name", "name"),
}  # fmt: skip
"""by scope: what the page says, and the attributes that it speaks of"""


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


def filled(record: R) -> R:
    """The record with no text empty."""
    texts = [field.name for field in msgspec.structs.fields(record) if field.type is str]
    return msgspec.structs.replace(record, **dict.fromkeys(texts, "x"))


def test_consent_names_each_attribute_that_a_scope_releases() -> None:
    """D29: who adds an attribute here has read what the page says beside it, and has said it there too."""
    entity, user = msgspec.structs.replace(filled(ENTITY), type="UEN"), filled(USER)
    for scope, (words, *released) in CONSENT.items():
        assert [*entity_attributes(entity, {scope}), *user_attributes(user, {scope})] == released
        assert [str(item) for item in consent_items((scope,))] == [words]
    assert set(CONSENT) == set(IDENTITY_SCOPES)


def test_every_scope_of_the_protocol_has_its_words_for_consent() -> None:
    """Spec 4.9, D29: protocol and directory name the same scopes; each has a line of its own."""
    assert set(IDENTITY_SCOPES) == set(generations.IDENTITY_SCOPES)
    assert all(len(consent_items((scope,))) == 1 for scope in generations.SCOPES)
    assert len(set(consent_items(generations.SCOPES))) == len(generations.SCOPES)


def test_a_packed_subject_holds_number_account_and_country() -> None:
    """R-12.2: the mock builds u as entity ID and identity number."""
    assert packed_subject(USER, ENTITY) == "s=S1,uuid=u,u=A1S1,c=SG"


@pytest.mark.parametrize(
    ("number", "written"),
    [("1,uuid=x", "1%2Cuuid%3Dx"), ("a b", "a%20b"), ("100%", "100%25"), ("é", "%C3%A9"), ("", "")],
)
def test_nothing_in_an_identity_number_poses_as_another_member(number: str, written: str) -> None:
    """A client strips spaces, then splits at commas and equals signs (R-12.2)."""
    found = packed_subject(msgspec.structs.replace(USER, identity_number=number), ENTITY)
    assert found == f"s={written},uuid=u,u=A1{written},c=SG"
    members = dict(part.split("=") for part in found.replace(" ", "").split(","))
    assert members.keys() == {"s", "uuid", "u", "c"}
    assert members["uuid"] == "u"


OF_A_UEN = {
    "CPEntID": "A1", "CPEnt_TYPE": "UEN", "CPEnt_Status": "Registered",
    "CPNonUEN_Country": "", "CPNonUEN_RegNo": "", "CPNonUEN_Name": "",
}  # fmt: skip
FOREIGN = {"CPNonUEN_Country": "SG", "CPNonUEN_RegNo": "A1", "CPNonUEN_Name": "Alpha"}


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({}, {}),
        ({"status": "Deregistered"}, {"CPEnt_Status": "De-Registered"}),
        ({"status": "Withdrawn"}, {"CPEnt_Status": "Withdrawn"}),
        ({"status": ""}, {"CPEnt_Status": ""}),
        ({"type": "NON-UEN"}, {"CPEnt_TYPE": "NON-UEN", "CPEnt_Status": "", **FOREIGN}),
        ({"type": "GSTN"}, {"CPEnt_TYPE": "GSTN", **FOREIGN}),
    ],
)
def test_every_member_of_entity_info_is_there_and_blank_where_it_does_not_apply(
    change: dict[str, str], shown: dict[str, str]
) -> None:
    """R-12.2: blank rather than absent."""
    told = packed_parties(USER, msgspec.structs.replace(ENTITY, **change), None)
    assert told["entityInfo"] == {**OF_A_UEN, **shown}


@pytest.mark.parametrize(("account_type", "holder"), [("standard", "YES"), ("foreign", "NO")])
def test_user_info_tells_the_name_and_whether_the_account_is_a_national_one(account_type: str, holder: str) -> None:
    """R-12.2."""
    user = msgspec.structs.replace(USER, account_type=account_type)
    assert packed_parties(user, ENTITY, None)["userInfo"] == {
        "CPAccType": "User",
        "CPUID_FullName": "Rina",
        "ISSPHOLDER": holder,
    }


@pytest.mark.parametrize(
    ("level", "shown"), [("owner", "Admin"), ("administrator", "Admin"), ("sub_administrator", "Sub-Admin")]
)
def test_user_info_tells_whether_the_person_administers_the_entity(level: AdministratorLevel, shown: str) -> None:
    """D53."""
    administrator = Administrator(user_id=USER.user_id, entity_id=ENTITY.entity_id, level=level)
    assert packed_parties(USER, ENTITY, administrator)["userInfo"]["CPAccType"] == shown
