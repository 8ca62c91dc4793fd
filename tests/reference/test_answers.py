"""The declared answers, held against a running provider in both directions."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest

from corpid.rules.oauth.generations import GENERATIONS
from corpid_dev.relying_party.interfaces import INTERFACES
from scripts.reference import answers, shapes
from tests.reference import recording
from tests.tiers import first_or_full

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scripts.reference.shapes import Record, Shape

# A process that stops is not ready, and a member that the provider lost is none of its answers here.
NOT_MET = {("Health", "part")}
ISS_SETTING = ("CallbackParameters", "iss"), ("CallbackErrorParameters", "iss")


@cache
def recorded(name: str) -> recording.Recorded:
    """Sign-ins of people who stay signed in, at a provider that sets `iss` in every callback."""
    return asyncio.run(recording.recorded(INTERFACES[name], session_seconds=3600, return_iss=True))


def strict(value: Any) -> Any:
    """A schema that takes no member which is not declared."""
    if isinstance(value, list):
        return [strict(each) for each in value]
    if not isinstance(value, dict):
        return value
    made = {name: strict(each) for name, each in value.items()}
    return {**made, "additionalProperties": False} if made.get("type") == "object" else made


def met(shape: Shape, value: Any) -> Iterator[tuple[str, str]]:
    """Record and member of everything that occurs in a value."""
    match shape:
        case shapes.Record():
            for member in shape.members:
                if member.name in value:
                    yield shape.name, member.name
                    yield from met(member.shape, value[member.name])
        case shapes.ListOf():
            for each in value:
                yield from met(shape.item, each)
        case shapes.Either():
            for one in (shape.first, shape.other):
                if isinstance(value, str) == isinstance(one, shapes.Scalar):
                    yield from met(one, value)
        case shapes.Scalar() if "contentSchema" in shape.schema:
            assert json.loads(value)


@pytest.mark.parametrize("name", first_or_full(GENERATIONS, first="current"))
def test_real_answers_are_as_their_schemas_say_and_hold_nothing_else(name: str) -> None:
    """Spec 2.2-2.9, D2, D20, D22, D23, D26."""
    schema = strict(answers.schemas()[name])
    wrong = [
        f"{kind}: {error.message} at {list(error.instance_path)}"
        for kind, answer in recorded(name).answers
        for error in jsonschema_rs.Draft202012Validator({**schema, "$ref": f"#/$defs/{kind}"}).iter_errors(answer)
    ]
    assert not wrong, wrong


@pytest.mark.parametrize("name", first_or_full(GENERATIONS, first="current"))
def test_every_declared_member_occurs_in_a_real_answer(name: str) -> None:
    """The declarations promise nothing that does not come."""
    roots: dict[str, Record] = {each.name: each for each in answers.answers(GENERATIONS[name])}
    seen = {pair for kind, answer in recorded(name).answers for pair in met(roots[kind], answer)}
    declared = {
        (record.name, member.name)
        for record in shapes.records(list(roots.values())).values()
        for member in record.members
    }
    assert {kind for kind, _ in recorded(name).answers} == set(roots)
    assert declared - seen - NOT_MET == set()


@pytest.mark.parametrize("name", first_or_full(GENERATIONS, first="current"))
def test_the_examples_in_the_reference_are_what_a_provider_answers(name: str) -> None:
    """No token in docs/reference is invented; `make examples` records them."""
    stored = json.loads(recording.path_of(INTERFACES[name]).read_text(encoding="utf-8"))
    again = asyncio.run(recording.recorded(INTERFACES[name])).document()
    assert recording.stable(stored) == recording.stable(again), "run `make examples`, then `make tables`"


def test_a_text_that_is_not_the_declared_one_is_refused() -> None:
    """Otherwise the first test would prove nothing."""
    schema = strict(answers.schemas()["current"])
    [claims] = [answer for kind, answer in recorded("current").answers if kind == "IDTokenClaims"][:1]
    validator = jsonschema_rs.Draft202012Validator({**schema, "$ref": "#/$defs/IDTokenClaims"})
    assert validator.is_valid(claims)
    for wrong in ({**claims, "more": 1}, {**claims, "sub": 7}, {**claims, "act": claims["entity"]},
                  {key: value for key, value in claims.items() if key != "nonce"}):  # fmt: skip
        assert not validator.is_valid(wrong)
