"""Roles in words (D23, D50, R-21)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from corpid.rules.directory.records import (
    Assignment,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.rules.directory.roles import RoleRecords, in_words, last_day, reasons, sentence

TODAY = "2026-11-22"
ENTITY = Entity(entity_id="A1", type="UEN", registration_number="A1", country="SG", name="Alpha")
CLIENT = msgspec.structs.replace(ENTITY, entity_id="C3", name="Gamma")
USER = User(user_id="u", user_name="rina", name="Rina")
MEMBER = Membership(user_id="u", entity_id="A1")
SERVICE = Service(service_id="PERMITS", name="Permits", third_parties=True)


def role(**row: Any) -> RoleRecords:
    own = Assignment(user_id="u", entity_id="A1", service_id="PERMITS", **row)
    return RoleRecords(row=own, user=USER, entity=ENTITY, membership=MEMBER, service=SERVICE)


def through(*grants: tuple[str, str], **row: Any) -> RoleRecords:
    """A role through a third party, with grants of these first and last days."""
    own = ThirdPartyAssignment(user_id="u", entity_id="A1", client_entity_id="C3", service_id="PERMITS", **row)
    given = [
        ThirdPartyGrant(client_entity_id="C3", entity_id="A1", service_id="PERMITS", start_date=start, end_date=end)
        for start, end in grants
    ]
    return RoleRecords(
        row=own, user=USER, entity=ENTITY, membership=MEMBER, service=SERVICE,
        client_entity=CLIENT, grants=tuple(given),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (role(), "May act at PERMITS for A1 (Alpha)."),
        (role(role="Filer", end_date=TODAY), "May act as Filer at PERMITS for A1 (Alpha) until 22 November 2026."),
        (role(start_date=TODAY, sub_entity="N"), "May act at PERMITS (sub-entity N) for A1 (Alpha)."),
        (role(end_date="2026-11-21"), "Cannot act at PERMITS for A1 (Alpha): it ended on 21 November 2026."),
        (role(start_date="2026-11-23"), "Cannot act at PERMITS for A1 (Alpha): it starts on 23 November 2026."),
        (
            through((TODAY, "2027-01-31")),
            "May act at PERMITS for C3 (Gamma) through A1 (Alpha) until 31 January 2027.",
        ),
        (
            through(("2020-01-01", "2026-11-21"), ("2027-01-01", "2027-12-31")),
            "Cannot act at PERMITS for C3 (Gamma) through A1 (Alpha): C3 does not grant this to A1 today.",
        ),
        (
            through((TODAY, TODAY), end_date="2026-01-01"),
            "Cannot act at PERMITS for C3 (Gamma) through A1 (Alpha): it ended on 1 January 2026.",
        ),
    ],
)
def test_a_role_is_a_sentence(held: RoleRecords, said: str) -> None:
    assert sentence(held, TODAY) == said


@pytest.mark.parametrize("member", ["user", "entity", "membership", "service"])
def test_each_link_of_the_chain_that_is_disabled_is_a_reason(member: str) -> None:
    """D50."""
    link = msgspec.structs.replace(getattr(role(), member), enabled=False)
    [why] = reasons(msgspec.structs.replace(role(), **{member: link}), TODAY)
    assert why.endswith(" is suspended" if member == "membership" else " is disabled")


def test_the_last_day_of_a_third_partys_role_is_cut_to_the_grants() -> None:
    """D23."""
    assert last_day(through((TODAY, "2027-01-31"), ("2020-01-01", "2027-03-31"), end_date="2028-01-01"), TODAY) == (
        "2027-03-31"
    )
    assert last_day(through((TODAY, "9999-12-31")), TODAY) == ""


def test_what_is_no_day_is_shown_as_it_is() -> None:
    assert (in_words("2024-02-29"), in_words("soon")) == ("29 February 2024", "soon")
