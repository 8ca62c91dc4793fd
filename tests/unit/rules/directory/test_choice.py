"""Which entities can be chosen at a client (R-19, R-20)."""

from __future__ import annotations

import msgspec
import pytest

from corpid.rules.directory.entity_choice import FORMS, accepted_entities, search_words, usable
from corpid.rules.directory.records import Entity, Membership, Service

ENTITY = Entity(entity_id="A1", type="UEN", registration_number="A1", country="SG", name="Alpha", status="Registered")
MEMBER = Membership(user_id="u", entity_id="A1")
SERVICE = Service(service_id="S", name="S", entity_types=("UEN",), entity_statuses=("Registered",))


def test_a_client_without_services_accepts_every_entity() -> None:
    deregistered = msgspec.structs.replace(ENTITY, status="Deregistered", type="GSTN")
    assert usable(deregistered, MEMBER, []).usable


def test_one_service_that_accepts_type_and_status_is_enough() -> None:
    foreign_only = msgspec.structs.replace(SERVICE, entity_types=("NON-UEN",))
    assert usable(ENTITY, MEMBER, [foreign_only, SERVICE]).usable


@pytest.mark.parametrize(
    ("entity", "membership", "service", "reason"),
    [
        ({"enabled": False}, {}, {}, "This organisation is disabled."),
        ({}, {"enabled": False}, {}, "You no longer act for this organisation."),
        ({}, {}, {"enabled": False}, "This service is disabled."),
        ({"type": "GSTN"}, {}, {}, "This service does not accept organisations of this type."),
        ({"status": "Withdrawn"}, {}, {}, "This service does not accept organisations with the status Withdrawn."),
        ({"status": ""}, {}, {}, "This service does not accept organisations with the status unknown."),
    ],
)
def test_what_cannot_be_chosen_says_why(
    entity: dict[str, object], membership: dict[str, object], service: dict[str, object], reason: str
) -> None:
    choice = usable(
        msgspec.structs.replace(ENTITY, **entity),
        msgspec.structs.replace(MEMBER, **membership),
        [msgspec.structs.replace(SERVICE, **service)],
    )
    assert (choice.usable, choice.reason) == (False, reason)


def test_type_and_status_must_be_accepted_by_the_same_service() -> None:
    """A type that one service takes and a status that only another takes make no usable entity."""
    withdrawn_foreign = msgspec.structs.replace(SERVICE, entity_types=("NON-UEN",), entity_statuses=("Withdrawn",))
    withdrawn = msgspec.structs.replace(ENTITY, status="Withdrawn")
    assert not usable(withdrawn, MEMBER, [SERVICE, withdrawn_foreign]).usable


def test_a_client_without_services_accepts_every_type_and_status() -> None:
    assert accepted_entities([]) == set(FORMS)
    assert len(FORMS) == 12


def test_what_is_accepted_are_the_types_and_statuses_of_each_service_that_is_switched_on() -> None:
    """R-19, R-20: never the type of one with the status of another."""
    foreign = msgspec.structs.replace(SERVICE, entity_types=("NON-UEN", "GSTN"), entity_statuses=("Withdrawn", ""))
    off = msgspec.structs.replace(SERVICE, entity_statuses=("Deregistered",), enabled=False)
    assert accepted_entities([SERVICE, foreign, off]) == {
        ("UEN", "Registered"),
        ("NON-UEN", "Withdrawn"),
        ("NON-UEN", ""),
        ("GSTN", "Withdrawn"),
        ("GSTN", ""),
    }
    assert accepted_entities([off]) == set()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        (" \t\u3000\u00a0\n", ()),
        ("Acme  PTE.", ("acme", "pte.")),
        ("Hauptstra\u00dfe", ("hauptstrasse",)),
        ("\uff21\uff22\u3000\uff11", ("ab", "1")),
        ("e\u0301", ("\u00e9",)),
        ("a\x00b \u202e \ud800", ("a\ufffdb", "\ufffd", "\ufffd")),
    ],
)
def test_words_are_folded_alike_however_they_are_typed(text: str, words: tuple[str, ...]) -> None:
    """Spec 3; what cannot be printed stands in no name (D51), and matches none."""
    assert search_words(text) == words
    assert search_words(" ".join(words)) == words
