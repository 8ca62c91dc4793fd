"""A member of a client is declared once, and what is known of it follows from there (docs/architecture.md, "One declaration")."""

from __future__ import annotations

from typing import Annotated, Literal

from corpid.rules.directory.document import SECTIONS
from corpid.rules.fields import Field, documented_fields
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.records import CLIENT_MEMBERS, Client
from corpid.rules.readers import ListReader, day, one_of, yes_or_no


class Wider(Client, frozen=True, kw_only=True):
    """A client with members of each kind."""

    colour: Annotated[Literal["red", "blue"], Field(read=one_of("red", "blue"))] = "red"
    tags: Annotated[tuple[Literal["a", "b"], ...], Field(read=ListReader(one_of("a", "b")))] = ()
    quiet: Annotated[bool, Field(read=yes_or_no)] = False
    last: Annotated[str | None, Field(read=day, clearable=True)] = None


def test_every_member_of_a_client_but_its_identifier_is_declared() -> None:
    assert {"client_id", *CLIENT_MEMBERS} == set(Client.__struct_fields__)


def test_a_file_has_a_key_for_every_member_that_it_may_set_and_no_other() -> None:
    assert list(SECTIONS["clients"].keys) == [each.name for each in CLIENT_MEMBERS.values()]


def test_form_and_values_and_default_follow_from_the_declaration() -> None:
    found = documented_fields(Wider)
    assert list(found)[-4:] == ["colour", "tags", "quiet", "last"]
    told = [(each.form, each.words, each.listed, each.default) for each in list(found.values())[-4:]]
    assert told == [
        ("word", ("red", "blue"), False, "red"), ("word", ("a", "b"), True, ()), ("flag", (), False, False),
        ("day", (), False, None),
    ]  # fmt: skip
    assert [found[name].empties for name in ("colour", "tags", "quiet", "last")] == [False, True, False, True]
    assert (found["tags"].option, found["colour"].option) == ("tag", "colour")


def test_what_a_member_concerns_is_a_yes_or_no_of_generations() -> None:
    """Spec "Generations": data, never a branch."""
    concerns = {each.concerns for each in CLIENT_MEMBERS.values()} - {""}
    assert concerns
    for field in concerns:
        assert {getattr(each, field) for each in GENERATIONS.values()} == {True, False}
