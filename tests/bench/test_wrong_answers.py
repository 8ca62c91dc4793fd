"""A benchmark of a provider that answers wrongly is worth nothing, so wrong answers are found."""

from __future__ import annotations

import asyncio
import hashlib
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

from benchmarks import report, steps
from benchmarks.flow_benchmark import Plan
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


def endpoints(issuer: str = ISSUER) -> Endpoints:
    return Endpoints(
        issuer=issuer,
        par=f"{issuer}/par",
        authorize=f"{issuer}/authorize",
        token=f"{issuer}/token",
        userinfo=f"{issuer}/userinfo",
        jwks=f"{issuer}/jwks",
    )


def answered(
    *,
    identity: dict[str, Any] | None = None,
    access: dict[str, Any] | None = None,
    userinfo: dict[str, Any] | None = None,
    signer: ec.EllipticCurvePrivateKey = PROVIDER_KEY,
) -> Flow:
    """A flow with tokens of a provider that tells the truth, but for these claims."""
    flow = Maker(KEYS, endpoints()).flow()
    now = int(time.time())
    every = {"iss": ISSUER, "iat": now, "exp": now + 600, "sub": "somebody"}
    bound = {"aud": [f"{ISSUER}/userinfo"], "client_id": CLIENT_ID, "cnf": {"jkt": thumbprint(flow.proof_jwk)}}
    flow.access_token = signed("at+jwt", {**every, **bound, **(access or {})}, signer)
    half = base64url(hashlib.sha256(flow.access_token.encode()).digest()[:16])
    about = {"aud": CLIENT_ID, "nonce": flow.nonce, "at_hash": half}
    inner = signed("JWT", {**every, **about, **(identity or {})}, signer)
    header = {"alg": "ECDH-ES+A256KW", "enc": "A256CBC-HS512", "kid": "enc", "cty": "JWT"}
    recipient = ECKey.import_key(dict(public_jwk(open_key(KEYS.encryption))))
    flow.id_token = jwe.encrypt_compact(header, inner, recipient)
    told = {"aud": CLIENT_ID, "auth_info": {"Result_Set": {"ESrvc_Row_Count": 1}}}
    flow.userinfo = signed("JWT", {**every, **told, **(userinfo or {})}, signer)
    return flow


def signed(typ: str, claims: dict[str, Any], key: ec.EllipticCurvePrivateKey) -> str:
    return sign(key, {"alg": "ES256", "kid": "op", "typ": typ}, claims)


VERIFIER = Verifier(KEYS, endpoints(), PUBLISHED)


def test_true_tokens_pass() -> None:
    VERIFIER.verify(answered())


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
        {"userinfo": {"sub": "somebody else"}},
        {"userinfo": {"auth_info": {"Result_Set": {"ESrvc_Row_Count": 0}}}},
        {"signer": ec.generate_private_key(ec.SECP256R1())},
    ],
    ids=lambda lie: "-".join([*lie, *(next(iter(lie.values())) if isinstance(next(iter(lie.values())), dict) else ())]),
)
def test_a_false_token_is_found(lie: dict[str, Any]) -> None:
    with pytest.raises(Wrong):
        VERIFIER.verify(answered(**lie))


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


def test_refusals_are_counted_and_end_the_run_when_they_are_many(tmp_path: Path) -> None:
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
        load = asyncio.run(story(provider, issuer))
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
