"""Several issuers on one deployment: each with its own document and clients, on common people and keys (D62).

That nothing of one works at another is in test_across_issuers.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from corpid import app, settings
from corpid.engines import StartError
from corpid.jose.encoding import from_base64url, json_object
from tests.protocol.deployment import ISSUER
from tests.protocol.issuers import BELOW, BESIDE, FURTHER, PLACES, TwoIssuers, two
from tests.protocol.provider import Worlds, query
from tests.protocol.refusals import LOG, error_page, json_refusal
from tests.protocol.test_discovery import golden
from tests.world.clients import FAR

if TYPE_CHECKING:
    from pathlib import Path


@PLACES
def test_each_issuer_publishes_its_exact_document_and_key_set(worlds: Worlds, there: str) -> None:
    """D62: the documents that each generation alone publishes, and x5c in a LEGACY issuer's JWKS only."""
    made = two(worlds, there)
    documents = [made.get(f"{base}/.well-known/openid-configuration").json() for base in (ISSUER, there)]
    assert documents == [golden("current"), golden("legacy", there)]
    keys = [made.get(document["jwks_uri"]).json()["keys"] for document in documents]
    assert [["x5c" in key for key in each] for each in keys] == [[False, False], [True, True]]
    assert keys[0][0]["kid"] == keys[1][0]["kid"]


@PLACES
def test_one_client_speaks_legacy_at_one_issuer_and_current_at_the_other(worlds: Worlds, there: str) -> None:
    """D62: the move itself; people, entities and keys are common, and callbacks carry iss as each document says."""
    made = two(worlds, there)
    modern, old = made.tokens(made.here), made.tokens(made.further)
    assert (modern.raw["token_type"], old.raw["token_type"]) == ("DPoP", "Bearer")
    assert (modern.id_token["iss"], old.id_token["iss"]) == (ISSUER, there)
    info = made.world.run(made.here.userinfo()), made.world.run(made.further.userinfo())
    assert info[0]["auth_info"] == info[1]["AuthInfo"]


def test_each_issuer_answers_in_the_shape_of_its_own_preset(worlds: Worlds) -> None:
    """D10, D21, D62: `iss` in the callback, the prefix of acr, and the header of the JWE; the other stays as it is."""
    made = TwoIssuers(worlds, BELOW, ("current", "current"), own={"preset": "public-service"})
    shapes = []
    for rp in (made.here, made.further):
        callback = made.signed_in(rp, made.browser())
        tokens = made.world.run(rp.believe(made.world.redeem(rp.callback(callback), rp)))
        header = json_object(from_base64url(tokens.raw["id_token"].partition(".")[0]))
        shapes.append((query(callback).get("iss"), tokens.id_token["acr"], header.get("iss")))
    assert shapes == [
        (None, "urn:idp:authentication:loa:2", None),
        (BELOW, "urn:singpass:authentication:loa:2", BELOW),
    ]


@PLACES
def test_a_client_is_unknown_at_an_issuer_it_does_not_name(worlds: Worlds, there: str) -> None:
    """D62: default the first."""
    made = two(worlds, there)
    made.world.registers("rp-2", generations=("legacy", "current"), legacy_until=FAR)
    error_page(made.get(made.world.asked(made.party("rp-2"))))
    made.world.registers("rp-2", generations=("legacy", "current"), legacy_until=FAR, issuers=(FURTHER,))
    json_refusal(made.world.push(made.world.party("rp-2"), state="s"), 401, "invalid_client", state="s")
    assert made.tokens(made.party("rp-2")).id_token["iss"] == there


@PLACES
def test_a_client_that_names_no_generation_speaks_at_each_issuer_what_is_pushed_there(
    worlds: Worlds, there: str
) -> None:
    """D62: its generations are read per issuer; LEGACY is named per client (Spec "No downgrade")."""
    made = two(worlds, there)
    made.world.registers("rp-2", issuers=("first", FURTHER))
    assert made.tokens(made.world.party("rp-2")).raw["token_type"] == "DPoP"
    error_page(made.get(made.world.asked(made.party("rp-2"))))


@PLACES
def test_the_account_and_links_are_at_the_first_issuer_only(worlds: Worlds, there: str) -> None:
    """D62: a further issuer's pages lead to the first one's."""
    made = two(worlds, there)
    for path in ("/account", "/account/password", "/recover", "/link", "/link/x", "/enrolment/x"):
        assert made.get(f"{there}{path}").status_code == 404, path
    assert made.get(f"{ISSUER}/account").status_code == 303
    page = made.get(f"{there}/", accept="text/html").text
    assert f'href="{ISSUER}/account"' in page


def test_passkeys_are_offered_only_within_their_domain(worlds: Worlds) -> None:
    """D46, D62: default the first issuer's host; at an issuer outside of it no page asks for one."""
    assert "data-options" not in _password_page(two(worlds, BESIDE))
    assert "data-options" in _password_page(two(worlds, BELOW))
    assert "data-options" in _password_page(two(worlds, "https://legacy.op.example"))
    assert "data-options" in _password_page(two(worlds, BESIDE, passkey_rp_id="legacy.example"))


def _password_page(made: TwoIssuers) -> str:
    browser = made.browser()
    return made.world.run(browser.http.get(made.world.asked(made.further), follow_redirects=True)).text


def test_the_longest_path_of_a_host_answers(worlds: Worlds) -> None:
    """D32, D62: a prefix that ends within a segment is none, and a hidden slash opens nothing."""
    further = (
        {"id": "one", "base_url": f"{ISSUER}/a", "generations": ["legacy"]},
        {"id": "two", "base_url": f"{ISSUER}/a/b", "generations": ["fapi2"]},
    )
    world = worlds.fresh(generations=("current",), issuers=further)

    def issuer(path: str, host: str = "op.example") -> object:
        url = f"{ISSUER}{path}/.well-known/openid-configuration"
        answer = world.run(world.http.get(url, headers={"host": host}))
        return answer.json()["issuer"] if answer.status_code == 200 else answer.status_code

    assert issuer("") == issuer("", "op.example:443") == issuer("", "OP.example") == ISSUER
    assert (issuer("/a"), issuer("/a/b"), issuer("/ab"), issuer("/a/bc")) == (f"{ISSUER}/a", f"{ISSUER}/a/b", 404, 404)
    assert (issuer("/a%2Fb"), issuer("", "elsewhere.example")) == (404, 421)
    for path in ("/healthz", "/readyz"):
        assert world.run(world.http.get(f"{ISSUER}{path}")).status_code == 200
        assert world.run(world.http.get(f"{ISSUER}/a{path}")).status_code == 404


def test_the_log_line_names_the_issuer_where_there_are_several(worlds: Worlds) -> None:
    """D48, D62."""
    made = two(worlds, BESIDE)
    start = LOG.tell()
    for base in (ISSUER, BESIDE):
        made.get(f"{base}/.well-known/keys")
    made.world.run(made.world.http.get(f"{ISSUER}/healthz"))
    lines = [json.loads(line) for line in LOG.getvalue()[start:].splitlines()]
    answered = [line.get("issuer") for line in lines if "path" in line]
    assert answered == ["first", FURTHER, None]
    start = LOG.tell()
    alone = worlds.fresh()
    alone.run(alone.http.get(f"{ISSUER}/.well-known/keys"))
    assert "issuer" not in json.loads(LOG.getvalue()[start:].splitlines()[-1])


def test_the_audit_is_common_and_names_a_further_issuer(worlds: Worlds) -> None:
    """D62: an entry of the first one is as it was."""
    made = two(worlds, BESIDE)
    made.signed_in(made.here, made.browser())
    made.signed_in(made.further, made.browser())
    entries = made.world.run(made.world.provider.registry.audit.entries(limit=10_000))
    ended = [entry.detail.get("issuer") for entry in entries if entry.action == "sign_in.complete"]
    assert ended[-2:] == [None, FURTHER]


def test_fapi2_and_legacy_run_in_one_deployment(worlds: Worlds) -> None:
    """D62: on different issuers, for one client."""
    made = TwoIssuers(worlds, BESIDE, ("fapi2", "legacy"))
    assert made.tokens(made.here).id_token["iss"] == ISSUER
    assert made.tokens(made.further).id_token["iss"] == BESIDE


async def opened(world: Any) -> None:

    chosen = settings.load(data_dir=world.directory, base_url=ISSUER, trusted_proxies=("127.0.0.1",))
    async with app.create(chosen, clock=world.clock):
        pass


def test_a_client_that_names_an_issuer_that_is_gone_is_told_at_the_start(worlds: Worlds) -> None:
    """D62: a sentence at start; the client is known nowhere else meanwhile."""
    world = worlds.fresh()
    rp = world.registers("rp-2", issuers=("gone",))
    json_refusal(world.push(rp, state="s"), 401, "invalid_client", state="s")
    start = LOG.tell()

    world.run(opened(world))
    lines = [json.loads(line) for line in LOG.getvalue()[start:].splitlines()]
    [line] = [line for line in lines if line["event"] == "unknown_issuer"]
    assert line["detail"].startswith("rp-2 names the issuer gone, which this deployment does not have")


@pytest.mark.parametrize(
    "path",
    [
        "/account",
        "/api",
        "/sign-in/x",
        *(
            pytest.param(path, marks=pytest.mark.full)
            for path in ("/sign-in", "/.well-known", "/userinfo", "/mga/sps", "/link/x/y")
        ),
    ],
)
async def test_an_issuer_cannot_lie_on_a_path_of_another(tmp_path: Path, path: str) -> None:
    """D32, D62: it would hide a page or an endpoint; a sentence at the start says what to write."""
    table = {"id": "legacy", "base_url": f"http://localhost:8080/op{path}", "generations": ["legacy"]}

    with pytest.raises(StartError, match=r"lies on a path of first: write another path, such as .*/op/legacy$"):
        chosen = settings.load(data_dir=tmp_path, base_url="http://localhost:8080/op", issuers=(table,))
        async with app.create(chosen):
            pass
