"""Reading a directory file: every fault with its line and reason, never a traceback."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpid.rules.directory.document import SECTIONS, DirectoryDocument, parse
from corpid.rules.directory.nodes import DirectoryError

WORDS = [
    *SECTIONS, *(key for section in SECTIONS.values() for key in section.keys), "third_party", "grants", "true", "SG",
    "2025-01-01", "UEN", "[]", "{}", "- ", ": ", "\n", "\n  ", "\n    ", "{", "}", "[", "]", ",", "&a ", "*a", "!!set ",
    '"', "'", "|", ">", "#", "~", "---", "\t", "\0", "\x85", "%", "? ", "<<",
]  # fmt: skip


def problems_of(text: str, *, plain_passwords: bool = False) -> list[str]:
    with pytest.raises(DirectoryError) as refused:
        parse(text.encode(), "f.yaml", plain_passwords=plain_passwords)
    return refused.value.lines()


def read(content: bytes) -> DirectoryDocument | DirectoryError:
    try:
        return parse(content, "f.yaml", plain_passwords=True)
    except DirectoryError as error:
        return error


@given(st.binary())
@example(b"\xff\xfe")
@example(b"- " * 5000)
@example(b"[" * 5000)
@example(b"a: " * 5000)
@example(b"? " * 5000)
@example(b'a: "\\uD800"')
def test_any_bytes_give_a_document_or_a_directory_error(content: bytes) -> None:
    outcome = read(content)
    assert isinstance(outcome, DirectoryDocument) or outcome.lines()


@given(st.lists(st.sampled_from(WORDS)).map("".join))
def test_anything_that_resembles_a_file_gives_a_document_or_a_directory_error(text: str) -> None:
    outcome = read(text.encode())
    assert isinstance(outcome, DirectoryDocument) or outcome.lines()


@given(
    st.sampled_from(sorted(SECTIONS)).flatmap(
        lambda name: st.tuples(st.just(name), st.sampled_from(sorted(SECTIONS[name].keys)))
    ),
    st.text(),
)
def test_any_value_of_any_key_gives_a_document_or_a_directory_error(place: tuple[str, str], value: str) -> None:
    name, key = place
    quoted = "".join(
        character if character.isalnum() and character.isascii() else f"\\U{ord(character):08X}" for character in value
    )
    body = f'    {key}: "{quoted}"\n'
    text = f"{name}:\n  x:\n{body}" if SECTIONS[name].identifier else f"third_party:\n  grants:\n    -\n  {body}"
    outcome = read(text.encode())
    assert isinstance(outcome, DirectoryDocument) or outcome.lines()


CLEARABLE = sorted(name for name, key in SECTIONS["clients"].keys.items() if key.clearable)


@pytest.mark.parametrize("key", CLEARABLE)
def test_none_takes_a_value_of_a_client_away(key: str) -> None:
    """docs/directory.md: leaving the key out changes nothing."""
    [entry] = parse(f"clients: {{rp: {{{key}: none}}}}".encode(), "f.yaml").entries_of("client").values()
    assert entry.fields == {key: None}


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("legacy_until", "soon", "'soon' is not a date: write YYYY-MM-DD, and 9999-12-31 for no end"),
        ("legacy_until", "2027-02-30", "the date 2027-02-30 does not exist"),
        ("id_token_encryption_alg", "RSA-OAEP", "'RSA-OAEP' is not one of ECDH-ES+A128KW, ECDH-ES+A192KW, ECDH-ES+A256KW, key"),
        ("userinfo_signing_alg", "HS256", "'HS256' is not one of ES256; did you mean 'ES256'?"),
    ],
)  # fmt: skip
def test_what_a_client_cannot_have_is_refused_where_it_stands(key: str, value: str, reason: str) -> None:
    assert problems_of(f"clients:\n  rp:\n    {key}: {value}\n") == [f"f.yaml:3: {key}: {reason}"]


def test_scalars_stay_text_so_norway_is_a_country() -> None:
    document = parse(b"entities:\n  12345: {country: NO, type: NON-UEN, name: On, registration_number: 007}", "f.yaml")
    assert document.entries_of("entity")[("12345",)].fields == {
        "country": "NO", "type": "NON-UEN", "name": "On", "registration_number": "007",
    }  # fmt: skip


def test_every_problem_of_a_file_is_reported_together_with_its_line() -> None:
    text = "entities:\n  A1:\n    tpye: UEN\n    country: XX\n  A1:\n    name: x\nuserz: {}\n"
    assert problems_of(text) == ["f.yaml:5: 'A1' occurs twice here, first in line 2"]
    assert problems_of(text.replace("  A1:\n    name", "  A2:\n    name")) == [
        "f.yaml:3: 'tpye' is not a field of an entity; did you mean 'type'?",
        "f.yaml:4: country: 'XX' is not a country code: two capital letters of ISO 3166-1, such as SG",
        "f.yaml:7: 'userz' is not a section; did you mean 'users'?",
    ]


def test_of_very_many_problems_fifty_are_shown_and_the_rest_counted() -> None:
    lines = problems_of("entities:\n" + "".join(f"  A{number}: {{country: XX}}\n" for number in range(60)))
    assert len(lines) == 51
    assert lines[-1] == "f.yaml: and 10 more problems"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 0, "empty"),
        ("entities:\n", 1, "omit it"),
        ("entities: {A1: {name: }}", 1, "no value"),
        ("entities: [A1]", 1, "one key for each entity"),
        ("users: &x {}\nservices: *x", 1, "anchors"),
        ("users: !!map {}", 1, "tags"),
        ("users: {}\n---\nusers: {}", 2, "second document"),
        ("users:\n\t- x", 2, "not valid YAML"),
        ("assignments:\n  - {user: a, entity: B}", 2, "lacks service"),
        ("assignments:\n  - {user: a, entity: B, service: S}\n  - {user: A, entity: B, service: S}", 3, "already in line 2"),
        ("assignments:\n  - {user: a, entity: B, service: S, start_date: 2025-02-30}", 2, "does not exist"),
        ("users:\n  a b: {name: x}", 2, "U+0020"),
        ("users:\n  Rina: {name: x}\n  rina: {name: y}", 3, "the same user"),
        ("users:\n  rina: {memberships: [A, A]}", 2, "twice"),
        ("users:\n  rina: {totp_secret: ABCDEFGH}", 2, "160"),
        ("users:\n  rina: {password_hash: $2b$12$abc}", 2, "argon2id"),
        ("users:\n  rina: {password_hash: '$argon2id$v=19$m=99999999,t=1,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g'}", 2, "argon2id"),
        ("users:\n  rina: {password_hash: '$argon2id$v=19$m=19456,t=1,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g'}", 2, "safe bounds"),
        ("users:\n  rina: {password_hash: '$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaGhhc2hoYXNoaGFzaGhhc2g'}", 2, "argon2id"),
        ("users:\n  rina:\n    password: long enough here", 3, "--development"),
        ("users:\n  rina: {id: 123}", 2, "UUID"),
        ("services:\n  " + "S" * 26 + ": {name: x}", 2, "at most 25"),
        ("services:\n  S: {roles: [" + "R" * 21 + "]}", 2, "at most 20"),
        ("services:\n  S: {parameters: {" + "P" * 31 + ": {}}}", 2, "at most 30"),
        ("entities:\n  " + "E" * 11 + ": {name: x}", 2, "at most 10"),
        ("assignments:\n  - {user: a, entity: B, service: S, sub_entity: " + "U" * 33 + "}", 2, "at most 32"),
        ("clients:\n  c: {jwks: {keys: []}, jwks_uri: https://x.example/j}", 2, "not both"),
        ("entities:\n  A1: {name: \"a\\u200bb\"}", 2, "U+200B"),
    ],
)  # fmt: skip
def test_each_fault_is_named_in_its_line(text: str, line: int, reason: str) -> None:
    """R-14 (lengths), D44, D45, D51."""
    [problem, *_] = problems_of(text)
    assert problem.startswith(f"f.yaml:{line}: " if line else "f.yaml: ")
    assert reason in problem


def test_a_plain_password_is_accepted_in_development_and_never_repeated_in_an_error() -> None:
    """D44."""
    document = parse(b"users: {rina: {password: harbour lights at dawn}}", "f.yaml", plain_passwords=True)
    assert document.entries_of("credentials")[("rina",)].fields == {"password": "harbour lights at dawn"}
    [problem] = problems_of("users: {rina: {password: hunter2}}", plain_passwords=True)
    assert "hunter2" not in problem


def test_a_test_person_is_marked_in_development_and_nothing_of_the_mark_is_kept() -> None:
    """D66: the mark is for the demo, which reads its own file."""
    marked = "users: {rina: {name: Rina, test: true}}"
    assert problems_of(marked) == ["f.yaml:1: a test person is for development only: apply with --development"]
    for document in (
        parse(marked.encode(), "f.yaml", plain_passwords=True),
        parse(marked.replace("true", "false").encode(), "f.yaml"),
    ):
        assert document.entries_of("user")["rina",].fields == {"name": "Rina"}


def test_a_key_set_may_be_pasted_as_json() -> None:
    """D27."""
    document = parse(b'clients: {c: {jwks: {"keys": [{"kty": "EC", "ext": true, "kid": "1"}]}}}', "f.yaml")
    assert document.entries_of("client")[("c",)].fields["jwks"] == '{"keys":[{"kty":"EC","ext":true,"kid":"1"}]}'


@pytest.mark.parametrize("place", ["country: {}", "{}: 1", "id: {}", "type: {}"])
@pytest.mark.parametrize("section", ["entities", "users"])
def test_a_problem_repeats_the_beginning_of_a_long_value_only(section: str, place: str) -> None:
    """docs/directory.md: a line stays one to read."""
    lines = problems_of(f"{section}:\n  A1:\n    " + place.format("x" * 1000))
    assert lines
    assert all("x" * 81 not in line and len(line) < 400 for line in lines)
