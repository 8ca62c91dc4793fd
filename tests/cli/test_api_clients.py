"""`corpid client … --api`: clients of the admin API, as an operator registers, changes and ends them (D59)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from corpid.rules.oauth.api_client import API_SCOPES
from tests.world.clients import rp_keys

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

URL = "https://portal.example/keys"
ADD = ("client", "add", "portal", "--api", "--name", "Portal", "--scope", "directory.read", "--jwks-uri", URL)
RELYING_PARTY = ("--name", "RP", "--redirect-uri", "https://rp.example/cb", "--jwks-uri", "https://rp.example/j")
ENTITY = ("entity", "add", "209900042K", "--type", "UEN", "--country", "SG", "--name", "Harbour")


def keys(terminal: Terminal, name: str = "keys.json") -> str:
    return terminal.file(json.dumps(rp_keys("portal").public()), name)


def shown(terminal: Terminal) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(terminal.done("client", "show", "portal", "--json"))
    return read


def entries(terminal: Terminal) -> list[dict[str, Any]]:
    return [json.loads(line) for line in terminal.done("audit", "list", "--client", "portal", "--json").splitlines()]


def told(output: str) -> list[str]:
    return [" ".join(line.split()) for line in output.splitlines()]


def test_a_client_of_the_api_is_registered_and_told_what_it_needs(terminal: Terminal) -> None:
    """D59: both issuer and audience are those of the API; what is printed is enough to configure it."""
    lines = told(terminal.done(*ADD, "--scope", "audit.read"))
    assert "Issuer http://localhost:8080/api" in lines
    assert "Metadata http://localhost:8080/.well-known/oauth-authorization-server/api" in lines
    assert "Token endpoint http://localhost:8080/api/token" in lines
    assert "Entity none: the whole deployment" in lines
    assert {"Scopes directory.read", "audit.read"} <= set(lines)
    read = shown(terminal)
    assert read.pop("created_at") > 0
    assert read == {
        "client_id": "portal", "name": "Portal", "scopes": ["directory.read", "audit.read"], "jwks": None,
        "jwks_uri": URL, "entity_id": "", "enabled": True,
    }  # fmt: skip


def test_a_client_may_be_bound_to_one_entity_and_bring_its_keys(terminal: Terminal) -> None:
    """D27, D59: private members are dropped."""
    terminal.done(*ENTITY)
    every = [word for scope in API_SCOPES for word in ("--scope", scope)]
    terminal.done(*ADD[:6], *every, "--jwks", keys(terminal), "--entity", "209900042K")
    read = shown(terminal)
    assert (read["entity_id"], tuple(read["scopes"])) == ("209900042K", API_SCOPES)
    assert [key["use"] for key in json.loads(read["jwks"])["keys"]] == ["sig", "enc"]
    lines = told(terminal.done("client", "show", "portal"))
    assert {"kind client of the admin API", "entity_id 209900042K", "enabled true"} <= set(lines)


def test_every_change_is_audited_before_and_after(terminal: Terminal) -> None:
    """D57: by whom, of which client, and for which entity."""
    terminal.done(*ENTITY)
    terminal.done(*ADD, "--entity", "209900042K")
    printed = terminal.done("client", "update", "portal", "--name", "Other", "--scope", "audit.read")
    assert told(printed) == [
        "~ API client portal", "name: Portal → Other", "scopes: directory.read → audit.read", "Done: 1 changed.",
    ]  # fmt: skip
    terminal.done("client", "disable", "portal")
    terminal.done("client", "enable", "portal")
    terminal.done("client", "update", "portal", "--jwks", keys(terminal))
    assert terminal.done("client", "remove", "portal") == "- API client portal\nDone: 1 removed.\n"
    found = entries(terminal)
    assert [each["action"] for each in reversed(found)] == [
        "api_client.add", "api_client.update", "api_client.disable", "api_client.enable", "api_client.update",
        "api_client.remove",
    ]  # fmt: skip
    assert {(each["object"], each["entity_id"], each["actor"][:8]) for each in found} == {
        ("portal", "209900042K", "command:")
    }
    assert (found[4]["before"], found[4]["after"]) == (
        {"name": "Portal", "scopes": ["directory.read"]},
        {"name": "Other", "scopes": ["audit.read"]},
    )
    assert (found[1]["before"], found[1]["after"]) == (
        {"jwks": None, "jwks_uri": URL},
        {"jwks": "set", "jwks_uri": None},
    )
    assert "there is no client 'portal'" in terminal.refused("client", "show", "portal")


def test_a_dry_run_changes_nothing(terminal: Terminal) -> None:
    terminal.done(*ADD)
    before = shown(terminal), entries(terminal)
    assert terminal.done("client", "update", "portal", "--name", "Other", "--dry-run").endswith(
        "Would be: 1 changed.\n"
    )
    assert terminal.done("client", "remove", "portal", "--dry-run").endswith("Would be: 1 removed.\n")
    assert (shown(terminal), entries(terminal)) == before
    assert terminal.done("client", "update", "portal", "--name", "Portal") == "Nothing to change.\n"


def test_the_list_shows_both_kinds_and_json_each_for_itself(terminal: Terminal) -> None:
    """Scripts that read the relying parties as JSON get relying parties."""
    terminal.done("client", "add", "rp", *RELYING_PARTY)
    assert "admin API" not in terminal.done("client", "list")
    terminal.done(*ADD)
    everything = terminal.done("client", "list")
    assert everything.index("Relying parties") < everything.index("Clients of the admin API")
    assert "Relying parties" not in terminal.done("client", "list", "--api")
    for options, expected in (((), ["rp"]), (("--api",), ["portal"])):
        assert [
            each["client_id"] for each in json.loads(terminal.done("client", "list", *options, "--json"))
        ] == expected


def test_each_kind_of_client_is_sorted_searched_counted_and_paged(terminal: Terminal) -> None:
    """D83: as in the admin API; JSON is the whole list whatever the page."""
    for client in ("rp1", "rp2"):
        terminal.done("client", "add", client, *RELYING_PARTY)
        terminal.done("client", "add", client.replace("rp", "api"), *ADD[3:])
    for kind, first, second in (((), "rp2", "rp1"), (("--api",), "api2", "api1")):
        page = terminal.done("client", "list", *kind, "--sort=-id", "--limit=1")
        assert (first in page, second in page, "2 in all." in page) == (True, False, True)
        further = [line.partition("corpid ")[2].split() for line in page.splitlines() if "There are more" in line]
        assert second in terminal.done(*further[0])
        listed = json.loads(terminal.done("client", "list", *kind, "--sort=-id", "--limit=1", "--json"))
        assert [each["client_id"] for each in listed] == [first, second]
        found = terminal.done("client", "list", *kind, f"--search={second}", "--total")
        assert (second in found, first in found, "1 in all." in found) == (True, False, True)
    *_, line = terminal.done("client", "list", "--limit=1").splitlines()
    page = terminal.done(*line.partition("corpid ")[2].split())
    assert ("api2" in page, "api1" in page, "Relying parties" in page) == (True, False, False)
    assert "the admin API, which does not show these records" in terminal.refused("client", "list", "--api", "--csv")


def test_an_identifier_belongs_to_one_kind_of_client(terminal: Terminal) -> None:
    """D59: by command and by file."""
    terminal.done(*ADD)
    terminal.done("client", "add", "rp", *RELYING_PARTY)
    assert "is taken by a client of the admin API" in terminal.refused("client", "add", "portal", *RELYING_PARTY)
    assert "the client rp exists already" in terminal.refused("client", "add", "rp", *ADD[3:])
    assert "the client portal exists already" in terminal.refused(*ADD)
    text = "clients: {portal: {name: RP, redirect_uris: ['https://rp.example/cb'], jwks_uri: https://rp.example/j}}"
    said = terminal.refused("apply", terminal.file(text))
    assert "Client portal: a client of another kind has this identifier" in said
    said = terminal.refused(
        "apply", terminal.file(text.replace("https://rp.example/j}", "'https://[::ffff:8.8.8.8]/j'}"))
    )
    assert "use a public host name, such as keys.example.org, instead of an IP address" in said


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((*ADD, "--scope", "directory.reed"), "'directory.reed' is not one of directory.read, directory.write"),
        ((*ADD, "--scope", "directory.reed"), "did you mean 'directory.read'?"),
        ((*ADD, "--scope", "openid"), "'openid' is not one of"),
        ((*ADD, "--scope", "directory.read"), "occurs twice in the list"),
        ((*ADD[:6], "--jwks-uri", URL), "the client portal is new and lacks scopes"),
        (ADD[:8], "jwks: exactly one of jwks and jwks_uri is needed"),
        ((*ADD, "--jwks", "keys.json"), "either jwks or jwks_uri, not both"),
        ((*ADD[:8], "--jwks-uri", "http://portal.example/k"), "jwks_uri: http://portal.example/k: begin with https://"),
        ((*ADD[:8], "--jwks-uri", "https://8.8.8.0x8/k"), "jwks_uri: https://8.8.8.0x8/k: use a public host name"),
        (("client", "add", "rp", *RELYING_PARTY[:5], "https://8.8.8.0x8/k"), "use a public host name, such as keys.example.org"),
        ((*ADD[:8], "--jwks", "none.json"), "no usable signing key: an EC key with use sig is needed"),
        ((*ADD[:5], "", *ADD[6:]), "name"),
        ((*ADD, "--redirect-uri", "https://x.example/"), "redirect_uris: a client of the API does not have this"),
        ((*ADD, "--subject", "entity"), "its members are name, scopes, jwks, jwks_uri and its entity"),
        ((*ADD, "--entity", "209900042"), "there is no entity '209900042'"),
        (("client", "add", "a b", *ADD[3:]), "'a b' is not an identifier"),
        (("client", "add", "rp", *RELYING_PARTY, "--entity", "E"), "--entity is for a client of the admin API"),
        (("client", "add", "rp", "--name", "RP", "--jwks-uri", URL), "the client rp is new and lacks redirect_uris"),
    ],
)  # fmt: skip
def test_what_cannot_be_registered_is_one_clear_sentence(
    terminal: Terminal, arguments: tuple[str, ...], reason: str
) -> None:
    """D27, D59: nothing is half-written."""
    keys(terminal)
    terminal.file('{"keys": []}', "none.json")
    assert reason in terminal.refused(*arguments)
    assert terminal.done("client", "list", "--api", "--json") == "[]\n"
    assert terminal.done("audit", "list", "--json") == ""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("update", "portal"), "nothing was named to change"),
        (("update", "portal", "--scope", "none"), "scopes: 'none' is not one of"),
        (("update", "portal", "--sector", "government"), "sector: a client of the API does not have this"),
        (("enable", "portal"), "the API client portal is already enabled"),
        (("disable", "nobody"), "there is no client 'nobody'"),
        (("remove", "nobody"), "there is no client 'nobody'"),
    ],
)
def test_a_change_that_cannot_be_says_why(terminal: Terminal, arguments: tuple[str, ...], reason: str) -> None:
    terminal.done(*ADD)
    assert reason in terminal.refused("client", *arguments)
    assert len(entries(terminal)) == 1


def test_a_relying_party_is_removed_with_what_was_counted_of_it(terminal: Terminal) -> None:
    """D50."""
    terminal.done("client", "add", "rp", *RELYING_PARTY)
    assert told(terminal.done("client", "remove", "rp", "--dry-run")) == ["- client rp", "Would be: 1 removed."]
    assert told(terminal.done("client", "remove", "rp")) == ["- client rp", "Done: 1 removed."]
    assert terminal.done("client", "list", "--json") == "[]\n"
    [first, _] = [json.loads(line) for line in terminal.done("audit", "list", "--json").splitlines()]
    assert (first["action"], first["object"]) == ("client.remove", "rp")


def test_fetched_keys_are_dropped_and_own_ones_are_not(terminal: Terminal) -> None:
    """D27."""
    terminal.done(*ADD)
    assert "is dropped" in terminal.done("client", "drop-keys", "portal")
    terminal.done("client", "update", "portal", "--jwks", keys(terminal))
    assert "stand in its record" in terminal.refused("client", "drop-keys", "portal")
    assert [each["action"] for each in entries(terminal)][1:] == ["client.drop_keys", "api_client.add"]
