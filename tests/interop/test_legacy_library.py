"""The relying parties' own library, npm's @govtechsg/singpass-myinfo-oidc-helper, unchanged, with the preset."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

from corpid.rules.oauth.discovery import DISCOVERY_PATH
from corpid_dev.relying_party.interfaces import CURRENT, LEGACY, Interface
from corpid_dev.relying_party.people import Person
from tests.interop import stock_legacy
from tests.interop.libraries import FAR_AWAY
from tests.interop.running import PASSWORD, SECRET, Provider
from tests.interop.stock_clients import Refused, public_keys, write_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from corpid_dev.relying_party.verification import Callback
    from tests.interop.stock_legacy import LegacyClient

    Serving = Callable[..., Provider]

pytestmark = pytest.mark.full

REDIRECT_URI = "http://127.0.0.1:9/callback"
"""nobody listens there: the browser stops before it"""
NUMBER = "S0000001X"

served = pytest.mark.parametrize(
    "generations",
    [(CURRENT, LEGACY), pytest.param((LEGACY,), marks=pytest.mark.full)],
    ids=["as the preset says", "legacy alone"],
)


@contextmanager
def client_of(running: Provider, tmp_path: Path, **members: Any) -> Iterator[LegacyClient]:
    """A client with what the preset gives a new one, but for what has to be named, and for these members."""
    keys, client_id = write_keys(tmp_path / "keys.json"), tmp_path.name
    client = {
        "name": "Interop",
        "redirect_uris": [REDIRECT_URI],
        "jwks": public_keys(keys),
        "services": ["HARBOUR-PERMIT"],
        "generations": ["legacy"],
        "legacy_until": FAR_AWAY,
        **members,
    }
    running.apply({"clients": {client_id: client}})
    discovery = running.issuer + DISCOVERY_PATH
    with stock_legacy.connected(
        discovery=discovery, client_id=client_id, redirect_uri=REDIRECT_URI, keys=keys
    ) as library:
        yield library


def numbered(running: Provider, user_name: str) -> Person:
    """Somebody with an identity number, who may act as Approver."""
    user = {
        "name": "Noor Example", "password": PASSWORD, "totp_secret": SECRET, "memberships": ["209900042K"],
        "identity_number": NUMBER, "identity_country": "SG",
    }  # fmt: skip
    own = {"user": user_name, "entity": "209900042K", "service": "HARBOUR-PERMIT", "role": "Approver"}
    other = {
        "user": user_name, "third_party": "209900042K", "client_entity": "209912345D", "service": "HARBOUR-PERMIT",
        "role": "Applicant",
    }  # fmt: skip
    running.apply({"users": {user_name: user}, "assignments": [own], "third_party": {"assignments": [other]}})
    return Person(user_name=user_name, password=PASSWORD, totp_secret=SECRET)


def arrived(callback: Callback) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(callback).query))


@served
@pytest.mark.parametrize("nonce", ["a-nonce", pytest.param(None, marks=pytest.mark.full)], ids=["nonce", "no nonce"])
def test_a_person_signs_in_and_their_roles_are_read(
    serving: Serving, tmp_path: Path, generations: tuple[Interface, ...], nonce: str | None
) -> None:
    """Spec "LEGACY without PKCE", Spec "LEGACY's authorization-info"; R-12.2, R-0.6: every method of the library."""
    running = serving(*generations, preset="public-service")
    with client_of(running, tmp_path) as library:
        address = library.begin("a-state", nonce)
        sent = parse_qs(urlsplit(address).query)
        assert sent.keys() == {
            "state",
            "redirect_uri",
            "scope",
            "client_id",
            "response_type",
            *(["nonce"] if nonce else []),
        }
        assert sent["scope"] == ["openid"]

        callback = arrived(running.visited(address, numbered(running, f"{tmp_path.name}.noor")))
        assert (callback["state"], callback["iss"]) == ("a-state", running.issuer)
        found = library.finish(callback["code"])
        assert found.answer["token_type"] == "Bearer"
        assert found.identity.get("nonce") == nonce
        assert found.identity["userInfo"] == {
            "CPAccType": "User",
            "CPUID_FullName": "Noor Example",
            "ISSPHOLDER": "YES",
        }
        assert found.identity["entityInfo"]["CPEntID"] == "209900042K"
        assert found.subject == {"nric": NUMBER, "uuid": f"209900042K{NUMBER}", "countryCode": "SG"}
        assert found.access["aud"] == [f"{running.issuer}/authorization-info"]

        roles = library.roles()
        assert roles.payload["sub"] == found.identity["sub"]
        assert {name: [row["CPRole"] for row in rows] for name, rows in roles.active.items()} == {
            "HARBOUR-PERMIT": ["Approver"]
        }
        [service] = roles.payload["TPAuthInfo"]["Result_Set"]["ESrvc_Result"]
        assert [each["CP_Clnt_ID"] for each in service["Auth_Set"]["TP_Auth"]] == ["209912345D"]


def test_somebody_without_any_role_has_no_active_one(serving: Serving, tmp_path: Path) -> None:
    """D23: AuthInfo is there and counts nothing, TPAuthInfo is absent."""
    running = serving(preset="public-service")
    running.apply({"services": {"OTHER": {"name": "Another service"}}})
    with client_of(running, tmp_path, services=["OTHER"]) as library:
        address = library.begin("a-state", None)
        library.finish(arrived(running.visited(address, numbered(running, f"{tmp_path.name}.noor")))["code"])
        roles = library.roles()
        assert (roles.active, "TPAuthInfo" in roles.payload) == ({}, False)


def test_a_client_whose_pkce_is_required_cannot_use_it(serving: Serving, tmp_path: Path) -> None:
    """Spec "Generations": this is what the member `pkce` changes; without the preset it is the default."""
    running = serving(preset="public-service")
    with client_of(running, tmp_path, pkce="required") as library:
        callback = arrived(running.visited(library.begin("a-state", "a-nonce"), numbered(running, "noor.required")))
        assert callback["error"] == "invalid_request"
        assert callback["error_description"].startswith("parameter code_challenge is missing")
        with pytest.raises(Refused) as refused:
            library.finish("l" + "x" * 43)
        assert (refused.value.code, refused.value.status) == ("invalid_request", 400)
