"""A benchmark of a provider that answers wrongly is worth nothing, so wrong answers are found."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc import jwe
from joserfc.jwk import ECKey

from benchmarks import floor, report, steps
from benchmarks.flow_benchmark import Plan
from benchmarks.generations import CURRENT, FAPI2, GENERATIONS, INTERMEDIATE, LEGACY, Generation
from benchmarks.http_client import Answer
from benchmarks.load import Hopeless, Load
from benchmarks.provider import Provider, free_port
from benchmarks.relying_party import (
    CLIENT_ID,
    Endpoints,
    Flow,
    Keys,
    Maker,
    base64url,
    generate_key,
    open_key,
    public_jwk,
    sign,
    thumbprint,
)
from benchmarks.steps import Wrong
from benchmarks.verification import Verifier, all_differ

if TYPE_CHECKING:
    from collections.abc import Iterator

ISSUER = "https://op.example"
ON_POSTGRESQL = [report.section(Plan(engines="postgresql", workers=workers)) for workers in (1, 2)]
DOCUMENT = Path(__file__).parents[2] / "docs" / "benchmarks.md"
KEYS = Keys(signing=generate_key(), encryption=generate_key())
PROVIDER_KEY = ec.generate_private_key(ec.SECP256R1())
PUBLISHED = {"keys": [{**public_jwk(PROVIDER_KEY), "kid": "op", "use": "sig", "alg": "ES256"}]}


def endpoints(issuer: str = ISSUER, generation: Generation = CURRENT) -> Endpoints:
    return Endpoints(
        issuer=issuer,
        par=f"{issuer}/par" if generation.pushed else "",
        authorize=f"{issuer}/authorize",
        token=f"{issuer}/token",
        resources=tuple(f"{issuer}/{resource.name}" for resource in generation.resources),
        jwks=f"{issuer}/jwks",
        generation=generation,
    )


def answered(
    *,
    identity: dict[str, Any] | None = None,
    access: dict[str, Any] | None = None,
    resource: dict[str, Any] | None = None,
    signer: ec.EllipticCurvePrivateKey = PROVIDER_KEY,
    generation: Generation = CURRENT,
) -> Flow:
    """A flow with true tokens, except for these claims; `resource` is about the last one."""
    flow = Maker(KEYS, endpoints(generation=generation)).flow()
    now = int(time.time())
    every = {"iss": ISSUER, "iat": now, "exp": now + 600, "sub": "somebody"}
    granted = {"aud": list(endpoints(generation=generation).resources), "client_id": CLIENT_ID}
    bound = {"cnf": {"jkt": thumbprint(flow.proof_jwk)}} if generation.bound else {}
    flow.access_token = signed("at+jwt", {**every, **granted, **bound, **(access or {})}, signer)
    half = base64url(hashlib.sha256(flow.access_token.encode()).digest()[:16])
    about = {"aud": CLIENT_ID, "nonce": flow.nonce, "at_hash": half}
    inner = signed("JWT", {**every, **about, **(identity or {})}, signer)
    header = {"alg": "ECDH-ES+A256KW", "enc": "A256CBC-HS512", "kid": "enc", "cty": "JWT"}
    recipient = ECKey.import_key(dict(public_jwk(open_key(KEYS.encryption))))
    flow.id_token = jwe.encrypt_compact(header, inner, recipient) if generation.id_token_encrypted else inner
    for each in generation.resources:
        block = {"Result_Set": {"ESrvc_Row_Count": 1}} if each.services else {"entity_type": "UEN"}
        claims = {**every, "aud": CLIENT_ID, each.block: block}
        if each is generation.resources[-1]:
            claims |= resource or {}
        flow.answers[each.name] = signed("JWT", claims, signer) if generation.resources_signed else json.dumps(claims)
    return flow


def signed(typ: str, claims: dict[str, Any], key: ec.EllipticCurvePrivateKey) -> str:
    return sign(key, {"alg": "ES256", "kid": "op", "typ": typ}, claims)


def verify(flow: Flow, generation: Generation = CURRENT) -> None:
    Verifier(KEYS, endpoints(generation=generation), PUBLISHED).verify(flow)


@pytest.mark.parametrize("generation", GENERATIONS.values(), ids=list(GENERATIONS))
def test_true_tokens_pass(generation: Generation) -> None:
    verify(answered(generation=generation), generation)


@pytest.mark.parametrize(
    "lie",
    [
        {"identity": {"nonce": "another"}},
        {"identity": {"at_hash": "another"}},
        {"identity": {"aud": "another"}},
        {"identity": {"iss": "https://another.example"}},
        {"identity": {"exp": 1}},
        {"access": {"aud": ["https://another.example"]}},
        {"access": {"cnf": {"jkt": "another"}}},
        {"access": {"sub": "somebody else"}},
        {"resource": {"sub": "somebody else"}},
        {"resource": {"auth_info": {"Result_Set": {"ESrvc_Row_Count": 0}}}},
        {"signer": ec.generate_private_key(ec.SECP256R1())},
    ],
    ids=lambda lie: "-".join([*lie, *(next(iter(lie.values())) if isinstance(next(iter(lie.values())), dict) else ())]),
)
def test_a_false_token_is_found(lie: dict[str, Any]) -> None:
    with pytest.raises(Wrong):
        verify(answered(**lie))


@pytest.mark.parametrize(
    ("generation", "lie"),
    [
        (INTERMEDIATE, {"resource": {"sub": "somebody else"}}),
        (INTERMEDIATE, {"resource": {"entity_info": {}}}),
        (INTERMEDIATE, {"access": {"aud": [f"{ISSUER}/userinfo"]}}),
        (FAPI2, {"resource": {"sub": "somebody else"}}),
        (FAPI2, {"resource": {"exp": 1}}),
        (FAPI2, {"identity": {"nonce": "another"}}),
        (LEGACY, {"access": {"cnf": {"jkt": "another"}}}),
        (LEGACY, {"resource": {"AuthInfo": {"Result_Set": {"ESrvc_Row_Count": 0}}}}),
    ],
)
def test_a_false_token_of_another_generation_is_found(generation: Generation, lie: dict[str, Any]) -> None:
    with pytest.raises(Wrong):
        verify(answered(generation=generation, **lie), generation)


@pytest.mark.parametrize(("expected", "received"), [(CURRENT, FAPI2), (FAPI2, CURRENT)], ids=["encrypted", "signed"])
def test_an_id_token_of_another_form_is_found(expected: Generation, received: Generation) -> None:
    """FAPI2 has a signed ID token, the others an encrypted one."""
    flow = answered(generation=expected)
    flow.id_token = answered(generation=received).id_token
    with pytest.raises(Wrong):
        verify(flow, expected)


def test_the_floor_of_a_generation_has_its_own_cryptography() -> None:
    """Assertions, proofs, thumbprints, access tokens, signatures, then three operations of an encryption."""
    times = {name: [item.times for item in floor.measure(each, 1e-4)] for name, each in GENERATIONS.items()}
    assert times == {
        "current": [2, 3, 3, 1, 3, 1, 1, 1],
        "intermediate": [2, 4, 4, 2, 4, 1, 1, 1],
        "fapi2": [2, 3, 3, 1, 2],
        "legacy": [1, 1, 3, 1, 1, 1],
    }


def test_a_token_that_two_flows_were_given_is_found() -> None:
    first, second = answered(), answered()
    for name in ("request_uri", "code"):
        setattr(first, name, "one")
        setattr(second, name, "two")
    all_differ([first, second])
    second.access_token = first.access_token
    with pytest.raises(Wrong, match="access_token"):
        all_differ([first, second])


@pytest.mark.parametrize(
    ("status", "location"),
    [
        (200, ""),
        (303, "https://rp.example/callback?code=c&state={state}"),
        (302, "https://rp.example/callback?error=access_denied&state={state}"),
        (302, "https://rp.example/callback?code=c&state=another"),
        (302, "https://rp.example/elsewhere?code=c&state={state}"),
    ],
)
def test_a_callback_that_is_not_one_is_found(status: int, location: str) -> None:
    flow = answered()
    there = location.format(state=flow.state).encode()
    with pytest.raises(Wrong):
        steps.called_back(flow, Answer(status=status, headers=[(b"location", there)]))


@pytest.mark.parametrize("iss", ["", "&iss=https%3A%2F%2Fanother.example"], ids=["none", "another"])
def test_a_callback_without_the_right_iss_is_found_if_the_generation_has_one(iss: str) -> None:
    """RFC 9207 section 2.4."""
    flow = answered(generation=LEGACY)
    there = f"https://rp.example/callback?code=c&state={flow.state}"
    steps.called_back(flow, callback(f"{there}&iss={ISSUER}"))
    with pytest.raises(Wrong):
        steps.called_back(flow, callback(there + iss))


def callback(location: str) -> Answer:
    return Answer(status=302, headers=[(b"location", location.encode())])


@contextmanager
def file_server(directory: Path) -> Iterator[tuple[Provider, str]]:
    """A server that is no provider: it refuses every POST."""
    port = free_port()
    command = [sys.executable, "-u", "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    child = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert child.stdout is not None
        assert child.stdout.readline()
        yield Provider(child), f"http://127.0.0.1:{port}"
    finally:
        child.kill()
        child.communicate()


async def test_refusals_are_counted_and_end_the_run_when_they_are_many(tmp_path: Path) -> None:
    async def story(provider: Provider, issuer: str) -> Load:
        load = Load(provider, issuer, 1)
        maker = Maker(KEYS, endpoints(issuer))
        flows = [maker.flow() for _ in range(3)]
        cost, _ = await load.run(flows, steps.of_a_flow(maker))
        assert cost.latencies == []
        assert all(flow.failed for flow in flows)
        assert load.problems.total() == 3
        with pytest.raises(Hopeless):
            await load.run([maker.flow() for _ in range(50)], steps.of_a_flow(maker))
        load.close()
        return load

    with file_server(tmp_path) as (provider, issuer):
        load = await story(provider, issuer)
    verdict = report.verdict({"valid": not load.problems, "problems": dict(load.problems)})
    assert verdict.startswith("INVALID")
    assert "PAR: status 501" in verdict


@pytest.mark.parametrize("section", ["flow", *ON_POSTGRESQL, "scale", "many entities", "independent driver"])
def test_tables_go_into_their_own_section_of_the_document(tmp_path: Path, section: str) -> None:
    copy = tmp_path / "benchmarks.md"
    copy.write_text(DOCUMENT.read_text(encoding="utf-8"), encoding="utf-8")
    report.put_into(copy, section, "| a \\1 table |")
    before, after = DOCUMENT.read_text(encoding="utf-8"), copy.read_text(encoding="utf-8")
    marked = f"<!-- numbers: {section} -->\n"
    head, _, rest = after.partition(f"{marked}| a \\1 table |\n<!-- /numbers -->")
    assert before.startswith(head + marked)
    assert before.endswith(rest)
    assert rest
