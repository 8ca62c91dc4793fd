"""`corpid client add` and clients in a directory file: generations, presets, every member there and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from corpid.rules.oauth.generations import SCOPES
from corpid.rules.oauth.records import CLIENT_MEMBERS, Client

if TYPE_CHECKING:
    from corpid.rules.fields import Field
    from tests.cli.conftest import Terminal

ADD = (
    "client",
    "add",
    "rp",
    "--name",
    "RP",
    "--redirect-uri",
    "https://rp.example/cb",
    "--jwks-uri",
    "https://rp.example/j",
)
FILE = "clients: {rp: {name: RP, redirect_uris: ['https://rp.example/cb'], jwks_uri: https://rp.example/j}}"
LEAVING = ("--generation", "current", "--generation", "legacy", "--legacy-until", "2027-03-31")
EXAMPLES: dict[str, Any] = {
    **{each.name: each.example for each in CLIENT_MEMBERS.values()},
    "generations": ("current", "legacy"),  # only tests may name them
}


def given(declared: Field) -> list[str]:
    """The option of a member with its example; nothing for one that no option sets."""
    value, option = EXAMPLES[declared.name], f"--{declared.option.replace('_', '-')}"
    if not declared.help or value is None:
        return []
    if declared.is_flag_or_none:
        return [option, str(value).lower()]
    if isinstance(value, bool):
        return [option if value else option.replace("--", "--no-", 1)]
    values = value if isinstance(value, tuple) else (value,)
    return [word for each in values for word in (option, str(each))]


OPTIONS = tuple(word for each in CLIENT_MEMBERS.values() for word in given(each))
EVERY_OPTION = ("client", "add", "rp", *OPTIONS)
EVERY_MEMBER: dict[str, Any] = json.loads(json.dumps({**EXAMPLES, "enabled": True}))
UPDATE = ("client", "update", "rp")


def shown(terminal: Terminal, client_id: str = "rp") -> dict[str, Any]:
    read: dict[str, Any] = json.loads(terminal.done("client", "show", client_id, "--json"))
    del read["client_id"]
    return read


def told(output: str) -> list[str]:
    return [" ".join(line.split()) for line in output.splitlines()]


def test_every_member_of_a_client_can_be_given_to_the_command(terminal: Terminal) -> None:
    terminal.done(*EVERY_OPTION)
    assert shown(terminal) == EVERY_MEMBER


def test_every_member_of_a_client_can_be_given_in_a_file(terminal: Terminal) -> None:
    """docs/directory.md; JSON is YAML."""
    entry = {name: value for name, value in EXAMPLES.items() if value is not None}
    terminal.done("apply", terminal.file(json.dumps({"clients": {"rp": entry}})))
    assert shown(terminal) == {**EVERY_MEMBER, "enabled": False}


def test_every_member_that_can_be_given_to_a_new_client_can_be_changed_later(terminal: Terminal) -> None:
    """docs/directory.md; what is printed are the differences, as `corpid apply` prints them."""
    terminal.done(*ADD)
    printed = terminal.done(*UPDATE, *OPTIONS)
    assert shown(terminal) == EVERY_MEMBER
    assert "sector: private → government" in told(printed)
    assert printed.startswith("~ client rp\n")
    assert printed.endswith("Done: 1 changed.\n")
    assert terminal.done(*UPDATE, *OPTIONS) == "Nothing to change.\n"


def test_an_update_leaves_alone_what_it_does_not_name(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a preset says anything of a client that is there."""
    terminal.done(*EVERY_OPTION)
    monkeypatch.setenv("CORPID_PRESET", "public-service")
    terminal.done(*UPDATE, "--name", "Other", "--no-stringified-blocks", "--scope", "openid")
    assert shown(terminal) == {**EVERY_MEMBER, "name": "Other", "stringified_blocks": False, "scopes": ["openid"]}


def test_none_empties_every_member_that_may_be_empty(terminal: Terminal) -> None:
    """docs/directory.md."""
    terminal.done(*EVERY_OPTION)
    emptied = [each for each in CLIENT_MEMBERS.values() if each.empties]
    terminal.done(*UPDATE, *(word for each in emptied for word in (f"--{each.option.replace('_', '-')}", "none")))
    empty: dict[str, Any] = {each.name: [] if each.listed else None for each in emptied}
    assert {"services", "generations", "legacy_until", "userinfo_signing_alg"} <= empty.keys()
    assert shown(terminal) == {**EVERY_MEMBER, **empty}


def test_a_key_set_takes_the_place_of_its_url_and_the_url_that_of_a_key_set(terminal: Terminal) -> None:
    """D27: exactly one of them."""
    terminal.done(*ADD)
    key = {"kty": "EC", "crv": "P-256", "use": "sig", "kid": "1",
           "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}  # fmt: skip
    keys = terminal.file(json.dumps({"keys": [key, {**key, "use": "enc", "kid": "2"}]}), "keys.json")
    terminal.done(*UPDATE, "--jwks", keys)
    assert shown(terminal)["jwks_uri"] is None
    assert [each["kid"] for each in json.loads(shown(terminal)["jwks"])["keys"]] == ["1", "2"]
    terminal.done(*UPDATE, "--jwks-uri", "https://rp.example/j")
    assert (shown(terminal)["jwks"], shown(terminal)["jwks_uri"]) == (None, "https://rp.example/j")


def test_a_dry_run_of_an_update_prints_the_differences_and_writes_nothing(terminal: Terminal) -> None:
    """docs/directory.md."""
    terminal.done(*ADD)
    before = terminal.done("export"), terminal.done("audit", "list", "--json")
    printed = terminal.done(*UPDATE, "--name", "Other", "--dry-run")
    assert told(printed) == ["~ client rp", "name: RP → Other", "Would be: 1 changed."]
    told_as_json = json.loads(terminal.done(*UPDATE, "--name", "Other", "--dry-run", "--json"))
    change = {"sign": "~", "subject": "client rp", "members": ["name: RP → Other"]}
    assert told_as_json == {"changes": [change], "written": False}
    assert (terminal.done("export"), terminal.done("audit", "list", "--json")) == before
    assert json.loads(terminal.done(*UPDATE, "--name", "Other", "--json"))["written"] is True
    assert shown(terminal)["name"] == "Other"


def test_an_update_is_audited_with_the_client_and_the_members_that_changed(terminal: Terminal) -> None:
    terminal.done(*ADD)
    terminal.done(*UPDATE, "--name", "Other", "--sector", "government", "--pkce", "required")
    terminal.done(*UPDATE, "--name", "Other")
    entries = [json.loads(line) for line in terminal.done("audit", "list", "--json").splitlines()]
    assert [each["action"] for each in entries] == ["client.update", "client.add"]
    last = entries[0]
    assert (last["object"], last["client_id"], last["detail"]) == ("rp", "rp", {"members": "name sector"})


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("client", "update", "nobody", "--name", "RP"), "there is no client 'nobody': `corpid client list` shows"),
        (UPDATE, "nothing was named to change: `corpid client update --help` lists what can be"),
        ((*UPDATE, "--generation", "legacy"), "legacy_until: legacy is served until an end date only"),
        ((*UPDATE, "--redirect-uri", "http://rp.example/"), "begin with https://"),
        ((*UPDATE, "--redirect-uri", "none"), "redirect_uris: none"),
        ((*UPDATE, "--scope", "none"), "scopes: 'none' is not one of"),
        ((*UPDATE, "--service", "none", "--service", "other"), "there is no service 'none'"),
        ((*UPDATE, "--name", ""), "name"),
        ((*UPDATE, "--jwks", "keys.json", "--jwks-uri", "https://rp.example/j"), "either jwks or jwks_uri, not both"),
    ],
)  # fmt: skip
def test_an_update_that_cannot_be_is_one_clear_sentence_and_changes_nothing(
    terminal: Terminal, arguments: tuple[str, ...], reason: str
) -> None:
    """Spec 1, D27, D38: an update keeps the rules of a registration."""
    terminal.done(*ADD)
    terminal.file('{"keys": []}', "keys.json")
    before = terminal.done("export")
    assert reason in terminal.refused(*arguments)
    assert terminal.done("export") == before


@pytest.mark.parametrize("preset", ["", "public-service"])
def test_every_member_of_a_client_comes_back_from_an_export(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, preset: str
) -> None:
    """Whatever the preset of the place where it is applied: a file that names a member wins."""
    terminal.done(*EVERY_OPTION)
    terminal.done("client", "add", "plain", *ADD[3:])
    before = shown(terminal), shown(terminal, "plain")
    exported = terminal.file(terminal.done("export"))
    assert terminal.done("apply", exported) == "Nothing to change.\n"
    monkeypatch.setenv("CORPID_DATA_DIR", str(terminal.folder / "elsewhere"))
    monkeypatch.setenv("CORPID_PRESET", preset)
    terminal.done("apply", exported)
    assert (shown(terminal), shown(terminal, "plain")) == before


def test_a_client_leaves_legacy_by_a_file_and_an_older_export_takes_it_back(terminal: Terminal) -> None:
    terminal.done(*EVERY_OPTION)
    before = shown(terminal)
    exported = terminal.file(terminal.done("export"), "before.yaml")
    leaving = "clients: {rp: {generations: [current], legacy_until: none, endpoint_audience_until: none, "
    leaving += "pkce: required, pkce_optional_until: none, userinfo_encryption_alg: none}}"
    assert "legacy_until: 2027-03-31 → (none)" in terminal.done("apply", "--take-over", terminal.file(leaving))
    assert (shown(terminal)["legacy_until"], shown(terminal)["generations"]) == (None, ["current"])
    terminal.done("apply", exported)
    assert shown(terminal) == before


FORMER = "token_endpoint_audience_until: 2026-12-31"


def test_a_file_may_use_the_former_name_of_a_key_and_is_told_the_new_one(terminal: Terminal) -> None:
    """D64: today's member migrates; an export of an older version applies, and the next export has the new name."""
    result = terminal.run("apply", terminal.file(FILE.replace("}}", f", {FORMER}}}}}")))
    assert "token_endpoint_audience_until is deprecated: use endpoint_audience_until" in result.stderr
    assert shown(terminal)["endpoint_audience_until"] == "2026-12-31"
    exported = terminal.done("export")
    assert "    endpoint_audience_until: 2026-12-31" in exported.replace("'", "")
    assert "token_endpoint" not in exported


def test_both_names_of_a_key_are_refused(terminal: Terminal) -> None:
    """D64: nobody has to guess which of them holds."""
    both = FILE.replace("}}", f", {FORMER}, endpoint_audience_until: 2027-01-01}}}}")
    said = terminal.refused("apply", terminal.file(both))
    assert "endpoint_audience_until: line 1 already has it, under its other name" in said


def test_the_command_takes_the_former_name_of_its_option(terminal: Terminal) -> None:
    """D64."""
    terminal.done(*ADD, "--token-endpoint-audience-until", "2026-12-31")
    assert shown(terminal)["endpoint_audience_until"] == "2026-12-31"


def test_the_refusal_of_a_file_says_in_which_line_a_generation_lacks_its_end(terminal: Terminal) -> None:
    said = terminal.refused("apply", terminal.file("clients:\n  rp:\n    generations: [legacy]\n" + "    name: RP\n"
        "    redirect_uris: ['https://rp.example/cb']\n    jwks_uri: https://rp.example/j\n"))  # fmt: skip
    assert "directory.yaml:2: legacy_until: legacy is served until an end date only" in said


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--generation", "legacy"), "legacy_until: legacy is served until an end date only: name its last day, YYYY-MM-DD"),
        (("--legacy-until", "2027-03-31"), "no generation of this client has such a day: name legacy among them"),
        (("--pkce", "plain"), "pkce: 'plain' is not one of"),
        (("--pkce-optional-until", "2027-03-31", *LEAVING), "pkce_optional_until: pkce is required: register pkce optional"),
        ((*LEAVING[:-1], "2027-02-30"), "legacy_until: the date 2027-02-30 does not exist"),
        (LEAVING + LEAVING[:2], "generations: 'current' occurs twice in the list"),
        (("--redirect-uri", "http://localhost:8080/cb"), "http://localhost:8080/cb: begin with https://"),
        (("--redirect-uri", "https://OP.example:443/cb"), "this is the address of the provider itself"),
        (("--generation", "future"), "'future' is not one of current, fapi2, intermediate, legacy"),
        (("--id-token-encryption-alg", "ECDH-ES"), "'ECDH-ES' is not one of ECDH-ES+A128KW"),
        (("--context-type", "ANYTHING"), "context_types: 'ANYTHING' is not one of"),
        (("--context-type-rule", "never"), "context_type_rule: 'never' is not one of required, optional, refused"),
        (("--assurance-level", "9"), "assurance_level: 9 is not one of 2"),
    ],
)  # fmt: skip
def test_what_cannot_be_registered_is_one_clear_sentence(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], reason: str
) -> None:
    monkeypatch.setenv("CORPID_BASE_URL", "https://op.example")
    monkeypatch.setenv("CORPID_TRUSTED_PROXIES", "10.0.0.1")
    assert reason in terminal.refused(*ADD, *arguments)


def test_the_relying_party_is_told_what_is_true_of_the_pushed_generation(terminal: Terminal) -> None:
    lines = told(terminal.done(*ADD))
    for line in (
        f"With current scopes are {' '.join(SCOPES)}",
        "requests are pushed (PAR)",
        "tokens are DPoP, bound to its key",
        "ID tokens are signed, encrypted with A256CBC-HS512",
        "sub names the person, and the entity is nested",
        "acr is urn:idp:authentication:loa:2",
        "userinfo is signed",
    ):
        assert line in lines
    assert not [line for line in lines if "JSON" in line]


@pytest.mark.parametrize("rule", ["optional", "refused"])
def test_the_relying_party_is_told_whether_a_context_type_is_wanted(terminal: Terminal, rule: str) -> None:
    """D63."""
    assert f"authentication_context_type is {rule}" in told(terminal.done(*ADD, "--context-type-rule", rule))


def test_the_relying_party_is_told_what_is_true_of_each_generation(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORPID_GENERATIONS", "current,legacy")
    monkeypatch.setenv("CORPID_ACR_PREFIX", "urn:own:")
    output = terminal.done(
        *ADD, *LEAVING, "--endpoint-audience-until", "2026-12-31", "--userinfo-encryption-enc", "A256GCM",
        "--stringified-blocks", "--subject", "entity", "--pkce", "optional", "--pkce-optional-until", "2027-01-31",
    )  # fmt: skip
    legacy, _, current = output.partition("With legacy")[2].partition("With current")
    for line in (
        "until the end of 2027-03-31 (UTC)",
        "until the end of 2026-12-31 the token endpoint is accepted as aud, too",
        "PKCE is optional, until the end of 2027-01-31",
        "scopes are openid authinfo tpauthinfo",
        "requests are query parameters of authorize",
        "tokens are Bearer",
        "sub names the person, packed into one text of key=value",
        "authorization-info is signed",
        "blocks of authorization-info are text that holds JSON: AuthInfo, TPAuthInfo",
    ):
        assert line in told(legacy)
        assert line not in told(current)
    assert not [line for line in told(legacy) if line.startswith("acr")]
    for line in (
        "sub names the entity, and the person is nested",
        "until the end of 2026-12-31 the PAR or token endpoint that is asked is accepted as aud, too",
        "acr is urn:own:2",
        "blocks of userinfo are text that holds JSON: auth_info, tp_auth_info",
    ):
        assert line in told(current)
    assert "userinfo is signed, encrypted with A256GCM" in told(current)


def test_the_relying_party_is_told_of_blocks_that_need_no_scope(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spec "LEGACY's authorization-info"."""
    monkeypatch.setenv("CORPID_GENERATIONS", "current,legacy")
    output = terminal.done(*ADD, *LEAVING, "--scope", "openid", "--stringified-blocks", "--pkce", "optional")
    legacy, _, current = output.partition("With legacy")[2].partition("With current")
    assert "blocks of authorization-info are text that holds JSON: AuthInfo, TPAuthInfo" in told(legacy)
    assert "PKCE is optional" in told(legacy)
    assert not [line for line in told(current) if "JSON" in line or "PKCE" in line]


def test_with_fapi2_nothing_is_encrypted_that_was_not_registered(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORPID_GENERATIONS", "fapi2")
    lines = told(terminal.done(*ADD))
    assert {"ID tokens are signed", "userinfo is JSON"} <= set(lines)
    lines = told(terminal.done("client", "add", "other", *ADD[3:], "--id-token-encryption-alg", "ECDH-ES+A256KW"))
    assert "ID tokens are signed, encrypted with ECDH-ES+A256KW, A256CBC-HS512" in lines
    lines = told(terminal.done("client", "add", "third", *ADD[3:], "--id-token-encryption-alg", "key"))
    assert "ID tokens are signed, encrypted with A256CBC-HS512" in lines


def test_a_client_that_no_served_generation_is_for_is_remarked_on(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORPID_GENERATIONS", "legacy")
    result = terminal.run(*ADD)
    assert result.exit_code == 0
    assert "rp cannot be used so far: it uses pushed requests, and this deployment serves only legacy" in result.stderr
    monkeypatch.setenv("CORPID_GENERATIONS", "current")
    result = terminal.run("client", "add", "other", *ADD[3:], *LEAVING[2:])
    assert "With legacy not served here so far: CORPID_GENERATIONS does not name it" in told(result.stdout)
    assert "other cannot be used so far: it uses legacy, and this deployment serves only current" in result.stderr


def test_the_list_says_which_generations_each_client_is_for(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who names none is for the pushed one; the columns fit a terminal of 80 characters."""
    monkeypatch.setenv("COLUMNS", "80")
    terminal.done(*ADD)
    terminal.done("client", "add", "other", *ADD[3:], *LEAVING)
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in terminal.done("client", "list").splitlines()]
    assert [row[3] for row in cells if row] == ["legacy", "current", "current", ""]
    assert [row[0] for row in cells if row] == ["other", "RP", "rp", "RP"]


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"\xff", "cannot be read: it is not a JSON Web Key Set"), (b" " * 65537, "is larger than 64 KiB"),
     (None, "cannot be read: No such file or directory")],
)  # fmt: skip
def test_a_file_that_cannot_be_a_key_set_is_named(terminal: Terminal, content: bytes | None, why: str) -> None:
    if content is not None:
        (terminal.folder / "keys.json").write_bytes(content)
    assert f"keys.json {why}" in terminal.refused(*ADD[:-2], "--jwks", "keys.json")


PUBLIC_SERVICE = {
    "subject": "entity",
    "id_token_encryption_alg": "key",
    "userinfo_encryption_enc": "A256GCM",
    "stringified_blocks": True,
}


@pytest.mark.parametrize("by", ["command", "file"])
def test_a_new_client_gets_what_the_preset_says_where_nothing_was_said(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """D1, D21, D22, R-0.6, R-4.2."""
    monkeypatch.setenv("CORPID_PRESET", "public-service")
    terminal.done(*ADD) if by == "command" else terminal.done("apply", terminal.file(FILE))
    client = shown(terminal)
    assert {member: client[member] for member in PUBLIC_SERVICE} == PUBLIC_SERVICE
    assert client["scopes"] == [
        "openid", "authinfo", "tpauthinfo", "entity.identity", "entity.basic_profile.name",
        "entity.basic_profile.uen_status", "user.identity", "user.name",
    ]  # fmt: skip


LEGACY_ALONE = ("--generation", "legacy", "--legacy-until", "2027-03-31")


def test_a_new_client_of_legacy_alone_gets_no_encryption_that_would_have_no_effect(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D22, Spec "Generations": with the preset, too, its libraries find a signed JWT; who names an alg gets the preset's enc."""
    monkeypatch.setenv("CORPID_PRESET", "public-service")
    terminal.done(*ADD, *LEGACY_ALONE)
    assert shown(terminal)["userinfo_encryption_enc"] is None
    other = ("client", "add", "other", *ADD[3:], *LEGACY_ALONE)
    printed = terminal.done(*other, "--userinfo-encryption-alg", "RSA-OAEP-256")
    assert shown(terminal, "other")["userinfo_encryption_enc"] == "A256GCM"
    assert "authorization-info is signed, encrypted with RSA-OAEP-256, A256GCM" in " ".join(told(printed))


@pytest.mark.parametrize("alg", ["dir", "A128KW", "A256KW"])
def test_an_encryption_that_needs_a_shared_secret_is_refused_with_that_sentence(terminal: Terminal, alg: str) -> None:
    """Spec "Generations"."""
    options = ("--userinfo-encryption-alg", alg, "--userinfo-encryption-enc", "A256GCM")
    assert f"{alg} needs a shared secret, which no client has" in terminal.refused(*ADD, *LEGACY_ALONE, *options)


@pytest.mark.parametrize("by", ["command", "file"])
def test_what_the_command_or_the_file_says_wins_over_the_preset(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setenv("CORPID_PRESET", "public-service")
    said = "subject: user, id_token_encryption_alg: none, userinfo_encryption_enc: none, stringified_blocks: false, scopes: [openid]"
    options = (
        "--subject user --id-token-encryption-alg none --userinfo-encryption-enc none --no-stringified-blocks "
        "--scope openid"
    )
    if by == "command":
        terminal.done(*ADD, *options.split())
    else:
        terminal.done("apply", terminal.file(FILE.replace("}}", f", {said}}}}}")))
    client = shown(terminal)
    ordinary = Client(client_id="rp", name="RP", redirect_uris=())
    assert {member: client[member] for member in (*PUBLIC_SERVICE, "scopes")} == {
        **{member: msgspec.structs.asdict(ordinary)[member] for member in PUBLIC_SERVICE}, "scopes": ["openid"],
    }  # fmt: skip


def test_a_client_that_is_there_keeps_what_it_has_when_a_preset_comes(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.done("apply", terminal.file(FILE))
    before = shown(terminal)
    monkeypatch.setenv("CORPID_PRESET", "public-service")
    assert terminal.done("apply", terminal.file(FILE)) == "Nothing to change.\n"
    assert shown(terminal) == before
