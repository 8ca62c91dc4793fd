"""A client whose key set is fetched and cannot be used: what it is told, and when it is fetched again (Spec 7.1 to 7.3, D27)."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from corpid.jose.encoding import base64url
from corpid.rules.oauth.records import FetchedKeySet
from tests.adapters.rp_server import answer, relying_party
from tests.protocol.expectations import EVERY, PUSHED, SIGNED
from tests.protocol.refusals import json_refusal, logged, told_error
from tests.world.clients import rp_keys
from tests.world.provider import EVENT

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

    import httpx

    from tests.protocol.provider import World, Worlds

ORIGIN = "http://localhost:8080"
SIGNING, ENCRYPTION = rp_keys("rp-1").public()["keys"]
WHOLE = {"keys": [SIGNING, ENCRYPTION]}
OFF_THE_CURVE = {**SIGNING, "x": SIGNING["y"]}
NO_SIGNING_KEY: dict[str, tuple[list[Any], str]] = {
    "off the curve": ([OFF_THE_CURVE, ENCRYPTION], "key 1: x and y are no point on the curve"),
    "cut short": ([{**SIGNING, "y": SIGNING["y"][:-3]}], "key 1: y is not 32 bytes long"),
    "empty": ([], "no key has use sig"),
    "none to sign": ([ENCRYPTION], "no key has use sig"),
}
SHORT, LONG = base64url(b"x" * 31), base64url(b"\0" + b"x" * 32)
NO_ENCRYPTION_KEY: dict[str, tuple[list[Any], str]] = {
    "without kid": ([{**ENCRYPTION, "kid": None}], "key 2: an encryption key needs a kid: give it one"),
    "31 bytes": (
        [{**ENCRYPTION, "x": SHORT}],
        "key 2: x is not 32 bytes long but 31: pad it with zero bytes on the left",
    ),
    "33 bytes": ([{**ENCRYPTION, "y": LONG}], "key 2: y is not 32 bytes long but 33: leave out zero bytes"),
    "for agreement": ([{**ENCRYPTION, "alg": "ECDH-ES"}], "is for ECDH-ES: leave its alg out, or have that registered"),
    "RSA1_5": ([{**ENCRYPTION, "alg": "RSA1_5"}], "key 2: alg is not one of ECDH-ES+A128KW"),
    "without use": ([{**ENCRYPTION, "use": None}], "key 2: use is neither sig nor enc"),
    "absent": ([], "no key has use enc"),
}
PATHS = count()


@dataclass(slots=True)
class KeyHost:
    """Where rp-1 publishes its keys: what stands there, and how often it was fetched."""

    world: World
    keys: dict[str, Any] = field(default_factory=lambda: WHOLE)
    fetches: int = 0
    origin: str = ""
    before: bytes = b""
    """what stands before them"""

    async def behave(self, writer: asyncio.StreamWriter) -> None:
        self.fetches += 1
        await answer(self.before + json.dumps(self.keys).encode())(writer)

    def publishes(self, *keys: Any, elsewhere: bool = True) -> None:
        """From now on these keys stand there; `elsewhere`: under a URL that the provider has not seen yet."""
        self.keys = {"keys": list(keys)}
        if elsewhere:
            url = f"{self.origin}/{next(PATHS)}"
            self.world.registers(jwks=None, jwks_uri=url, **REGISTERED)


REGISTERED: dict[str, Any] = {"userinfo_encryption_enc": "A256GCM"}


@pytest.fixture
def host(worlds: Worlds) -> Iterator[KeyHost]:
    """rp-1, in developer mode, since its keys stand on a server of this machine."""
    world = worlds.fresh(base_url=ORIGIN, developer_mode=True)
    made = KeyHost(world)
    serving = relying_party(made.behave, tls=False)
    made.origin = f"http://127.0.0.1:{world.run(serving.__aenter__()).port}"
    made.publishes(SIGNING, ENCRYPTION)
    yield made
    world.run(serving.__aexit__(None, None, None))


def detail_of(refused: httpx.Response) -> str:
    reference = refused.json()["error_description"].rpartition("reference ")[2].removesuffix(")")
    return str(logged(reference)["detail"])


@pytest.mark.generations(*PUSHED)
@pytest.mark.parametrize("case", NO_SIGNING_KEY)
def test_a_fetched_set_without_a_signing_key_is_a_server_error_that_names_the_cause(host: KeyHost, case: str) -> None:
    """D27: server_error 500, and not "unknown client_id", which sends people the wrong way; Spec 7.1, 7.3."""
    keys, cause = NO_SIGNING_KEY[case]
    host.publishes(*keys)
    with host.world.nothing_spent():
        refused = host.world.push(state="s")
    sentence = json_refusal(refused, 500, "server_error", state="s")
    assert f"has no usable signing key: {cause}" in sentence
    assert f"has no usable signing key: {cause}" in detail_of(refused)


@pytest.mark.generations(*EVERY)
@pytest.mark.parametrize("case", NO_SIGNING_KEY)
def test_the_token_endpoint_says_the_same_and_spends_nothing(host: KeyHost, case: str) -> None:
    """Spec 7.3: the RP's JWK endpoint returns a malformed JWK; D27."""
    code = host.world.code()
    keys, cause = NO_SIGNING_KEY[case]
    host.publishes(*keys)
    with host.world.nothing_spent():
        assert cause in json_refusal(host.world.redeem(code), 500, "server_error")
    host.publishes(SIGNING, ENCRYPTION)
    assert host.world.redeem(code).status_code == 200


@pytest.mark.generations(*SIGNED)
@pytest.mark.parametrize("case", NO_ENCRYPTION_KEY)
def test_a_set_whose_encryption_keys_cannot_be_used_says_why(host: KeyHost, case: str) -> None:
    """D21, D28: at PAR, token and userinfo; a coordinate has all its bytes (RFC 7518 §6.2.1.2)."""
    keys, cause = NO_ENCRYPTION_KEY[case]
    world, code = host.world, host.world.code()
    host.publishes(SIGNING, *keys)
    for refused, status, error in (
        (world.push(state="s"), 400, "invalid_request"),
        (world.redeem(code), 500, "server_error"),
    ):
        assert (refused.status_code, refused.json()["error"]) == (status, error)
        assert cause in refused.json()["error_description"]
        assert cause in detail_of(refused)
    host.publishes(SIGNING, ENCRYPTION)
    world.clock.now += 60
    world.tokens()
    host.publishes(SIGNING, *keys)
    refused = world.userinfo()
    assert refused.status_code == 500
    assert cause in refused.json()["error_description"]


@pytest.mark.generations(*SIGNED)
def test_outside_developer_mode_they_say_it_in_the_log(worlds: Worlds) -> None:
    """D28: answers say no more than which key is missing."""
    world = worlds.fresh()
    url = "https://rp.example/encryption"
    world.registers(jwks=None, jwks_uri=url)
    spoilt = json.dumps({"keys": [SIGNING, {**ENCRYPTION, "x": SHORT}]})
    kept = FetchedKeySet(jwks_uri=url, jwks=spoilt, fetched_at=int(world.clock.now))
    world.run(world.provider.registry.clients.keep_fetched_key_set("rp-1", kept))
    refused = world.push(state="s")
    sentence = json_refusal(refused, 400, "invalid_request", state="s")
    assert sentence == "the key set of this client has no usable key with use enc for the ID token"
    assert "pad it with zero bytes on the left" in detail_of(refused)


@pytest.mark.generations(*PUSHED)
def test_a_signature_key_that_was_left_out_is_named_beside_the_usable_ones(host: KeyHost) -> None:
    """D27, D28."""
    (other, *_) = rp_keys("rp-2").public()["keys"]
    host.publishes(other, {**SIGNING, "y": SHORT}, ENCRYPTION)
    sentence = json_refusal(host.world.push(state="s"), 401, "invalid_client", state="s")
    assert "key 2: y is not 32 bytes long but 31: pad it" in sentence


@pytest.mark.generations(*PUSHED)
def test_outside_developer_mode_the_cause_stands_in_the_log_alone(worlds: Worlds) -> None:
    """D28: before authentication a refusal speaks only of what the caller itself sent."""
    world = worlds.fresh()
    url = "https://rp.example/jwks"
    world.registers(jwks=None, jwks_uri=url)
    kept = FetchedKeySet(jwks_uri=url, jwks=json.dumps({"keys": [OFF_THE_CURVE]}), fetched_at=int(world.clock.now))
    world.run(world.provider.registry.clients.keep_fetched_key_set("rp-1", kept))
    refused = world.push(state="s")
    sentence = json_refusal(refused, 500, "server_error", state="s")
    assert sentence == "the key set of this client cannot be fetched or used"
    assert "x and y are no point on the curve" in detail_of(refused)


@pytest.mark.generations(*PUSHED)
def test_a_usable_set_without_the_key_that_the_assertion_names_is_invalid_client(host: KeyHost) -> None:
    """D27."""
    (other, *_) = rp_keys("rp-2").public()["keys"]
    host.publishes(other, ENCRYPTION)
    sentence = json_refusal(host.world.push(state="s"), 401, "invalid_client", state="s")
    assert sentence.startswith("no registered signing key has this kid and alg")


@pytest.mark.generations(*PUSHED)
def test_a_set_that_lacked_a_signing_key_is_fetched_again_at_most_once_a_minute(host: KeyHost) -> None:
    """D27: and works with the next request after that minute, without an operator."""
    host.publishes(OFF_THE_CURVE, ENCRYPTION)
    host.world.push()
    before = host.fetches
    host.publishes(SIGNING, ENCRYPTION, elsewhere=False)
    for _ in range(5):
        host.world.clock.now += 10
        assert host.world.push().status_code == 500
    assert host.fetches == before
    host.world.clock.now += 10
    assert host.world.push().status_code == 201
    assert host.fetches == before + 1


@pytest.mark.generations(*SIGNED)
def test_a_set_without_an_encryption_key_is_fetched_again_at_most_once_a_minute_at_a_push(host: KeyHost) -> None:
    """D27: it was refused until the hour was over, or an operator dropped the set."""
    host.publishes(SIGNING)
    json_refusal(host.world.push(state="s"), 400, "invalid_request", state="s")
    before = host.fetches
    host.publishes(SIGNING, ENCRYPTION, elsewhere=False)
    for _ in range(5):
        host.world.clock.now += 10
        json_refusal(host.world.push(state="s"), 400, "invalid_request", state="s")
    assert host.fetches == before
    host.world.clock.now += 10
    assert host.world.push().status_code == 201
    assert host.fetches == before + 1


@pytest.mark.generations("legacy", *SIGNED)
def test_and_at_the_token_endpoint_where_nothing_is_spent(host: KeyHost) -> None:
    """D27: server_error 500 with nothing spent; the same code works once the key is there."""
    world, code = host.world, host.world.code()
    host.publishes(SIGNING)
    with world.nothing_spent():
        json_refusal(world.redeem(code), 500, "server_error")
        before = host.fetches
        json_refusal(world.redeem(code), 500, "server_error")
    assert host.fetches == before
    world.run(world.provider.registry.clients.drop_fetched_key_set("rp-1", EVENT))
    world.clock.now += 6
    host.publishes(SIGNING, ENCRYPTION, elsewhere=False)
    assert world.redeem(code).status_code == 200


@pytest.mark.generations("legacy")
def test_and_at_authorize(host: KeyHost) -> None:
    """D27: callback invalid_request at LEGACY authorize."""
    host.publishes(SIGNING)
    told_error(host.world.get(host.world.asked(state="s")), "invalid_request", state="s", iss=ORIGIN)
    before = host.fetches
    host.publishes(SIGNING, ENCRYPTION, elsewhere=False)
    host.world.clock.now += 30
    told_error(host.world.get(host.world.asked(state="s")), "invalid_request", state="s", iss=ORIGIN)
    assert host.fetches == before
    host.world.clock.now += 30
    assert host.world.get(host.world.asked(state="s")).headers["location"].startswith("/sign-in/")
    assert host.fetches == before + 1


@pytest.mark.generations(*SIGNED)
def test_and_at_userinfo(host: KeyHost) -> None:
    """D22, D27."""
    host.world.tokens()
    host.publishes(SIGNING)
    assert host.world.userinfo().status_code == 500
    before = host.fetches
    host.publishes(SIGNING, ENCRYPTION, elsewhere=False)
    host.world.clock.now += 30
    assert (host.world.userinfo().status_code, host.fetches) == (500, before)
    host.world.clock.now += 30
    assert (host.world.userinfo().status_code, host.fetches) == (200, before + 1)


@pytest.mark.generations(*SIGNED)
def test_a_byte_order_mark_before_the_set_is_ignored(host: KeyHost) -> None:
    """RFC 8259 §8.1; also in the copy that is kept, from which private members are gone."""
    host.before = BOM_UTF8
    host.publishes({**SIGNING, "d": SHORT}, ENCRYPTION)
    assert host.world.push().status_code == 201
    stored = host.world.run(host.world.provider.registry.clients.fetched_key_set("rp-1"))
    assert stored is not None
    assert json.loads(stored.jwks) == WHOLE
