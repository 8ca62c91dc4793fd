"""An operator's certificates for the provider's keys (Spec 2.9), and when the key set shows any."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from corpid.flows.directory.write import Refused
from corpid.flows.operations import signing_keys as signing_key_flows
from corpid.flows.operations.signing_keys import SigningKeys, open_key
from corpid.jose.certificates import members, pem
from corpid.rules import signing_keys as signing_key_rules
from corpid.rules.directory.access import CommandLine, Forbidden, Person
from corpid.stores.encryption_at_rest import SecretCipher
from tests.adapters.opened import EVENT, KEY, sqlite
from tests.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from cryptography import x509

    from corpid.stores.sql.registry import Registry

NOW = 1_800_000_000
OPERATOR = CommandLine(by="lee@node1")
MEMBERS = {"x5c", "x5t", "x5t#S256"}
ROOT = Authority("Root")


@asynccontextmanager
async def registry_at(path: Path) -> AsyncIterator[Registry]:
    async with sqlite(path) as stores:
        await signing_key_flows.ensure_first_keys(stores.registry, now=NOW)
        yield stores.registry


async def kid_of(registry: Registry) -> str:
    return (await signing_key_flows.stored_keys(registry))[0].kid


async def chain_for(registry: Registry, *, seconds: int = 3600) -> tuple[x509.Certificate, ...]:
    key, _ = await signing_key_flows.stored_keys(registry)
    return (ROOT.certify(open_key(key).public, begin=NOW, seconds=seconds), *ROOT.chain)


async def jwk_of(signing_keys: SigningKeys, now: float) -> dict[str, Any]:
    jwk: dict[str, Any] = json.loads((await signing_keys.keys_at(now)).ring.public_key_set)["keys"][0]
    return jwk


async def test_keys_carry_certificates_only_where_a_served_generation_wants_them(tmp_path: Path) -> None:
    """Also one that an operator stored is not shown."""
    async with registry_at(tmp_path) as registry:
        chain = await chain_for(registry)
        await signing_key_flows.certify(registry, OPERATOR, await kid_of(registry), pem(chain), now=NOW)
        assert MEMBERS.isdisjoint(await jwk_of(SigningKeys(registry), NOW))
        shown = await jwk_of(SigningKeys(registry, certificates=True), NOW)
        assert {name: shown[name] for name in MEMBERS} == members(chain)


async def test_the_default_is_the_same_for_every_process_and_after_a_restart(tmp_path: Path) -> None:
    async def published(registry: Registry) -> None:
        for _ in range(2):
            seen.add((await SigningKeys(registry, certificates=True).keys_at(NOW + len(seen))).ring.public_key_set)

    seen: set[bytes] = set()
    for _ in range(2):
        async with registry_at(tmp_path) as registry:
            await published(registry)
    assert len(seen) == 1


async def test_a_new_chain_is_published_within_five_seconds_and_given_up_again(tmp_path: Path) -> None:
    async with registry_at(tmp_path) as registry:
        signing_keys, kid = SigningKeys(registry, certificates=True), await kid_of(registry)
        default = await jwk_of(signing_keys, NOW)
        chain = await chain_for(registry)
        await signing_key_flows.certify(registry, OPERATOR, kid, pem(chain), now=NOW)
        assert await jwk_of(signing_keys, NOW + 4) == default
        assert (await jwk_of(signing_keys, NOW + 5))["x5c"] == members(chain)["x5c"]
        await signing_key_flows.remove_certificate(registry, OPERATOR, kid)
        assert await jwk_of(signing_keys, NOW + 10) == default
        events = [(each.action, each.object) for each in await registry.audit.entries()]
        assert events == [("key.certify", kid)] * 2


async def test_a_chain_that_is_not_the_keys_or_not_valid_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    async with registry_at(tmp_path) as registry:
        kid = await kid_of(registry)
        expired = pem(await chain_for(registry, seconds=10))
        for text, why in (("", "no certificate in PEM form"), (pem(ROOT.chain), "is not of this key")):
            with pytest.raises(Refused, match=f"no certificate chain for the key {kid}: .*{why}"):
                await signing_key_flows.certify(registry, OPERATOR, kid, text, now=NOW)
        with pytest.raises(Refused, match="expired at"):
            await signing_key_flows.certify(registry, OPERATOR, kid, expired, now=NOW + 11)
        with pytest.raises(Refused, match="no certificate is stored with the key"):
            await signing_key_flows.remove_certificate(registry, OPERATOR, kid)
        assert (await signing_key_flows.stored_keys(registry))[0].certificate_chain is None
        assert await registry.audit.entries() == []


async def test_an_unknown_and_a_revoked_key_are_refused(tmp_path: Path) -> None:
    async with registry_at(tmp_path) as registry:
        kid, chain = await kid_of(registry), pem(await chain_for(registry))
        with pytest.raises(Refused, match="there is no signing key with the kid nothing"):
            await signing_key_flows.certify(registry, OPERATOR, "nothing", chain, now=NOW)
        await signing_key_flows.revoke(registry, OPERATOR, kid, now=NOW)
        with pytest.raises(Refused, match="is revoked"):
            await signing_key_flows.certify(registry, OPERATOR, kid, chain, now=NOW)
        with pytest.raises(Refused, match="is revoked"):
            await signing_key_flows.request_certificate(registry, OPERATOR, kid, subject_name="op.example")


async def test_only_an_operator_certifies_keys(tmp_path: Path) -> None:
    async with registry_at(tmp_path) as registry:
        kid, person = await kid_of(registry), Person(user_id="u1")
        with pytest.raises(Forbidden):
            await signing_key_flows.certify(registry, person, kid, "", now=NOW)
        with pytest.raises(Forbidden):
            await signing_key_flows.request_certificate(registry, person, kid, subject_name="op.example")
        with pytest.raises(Forbidden):
            await signing_key_flows.remove_certificate(registry, person, kid)


async def test_rotation_and_rewrapping_keep_the_chain(tmp_path: Path) -> None:
    """D42, D43."""
    kept: list[Any] = []
    async with registry_at(tmp_path) as registry:
        kid, chain = await kid_of(registry), pem(await chain_for(registry))
        await signing_key_flows.certify(registry, OPERATOR, kid, chain, now=NOW)
        await signing_key_flows.rotate(registry, OPERATOR, now=NOW)
        kept.append(await registry.keys.list_all())
    async with sqlite(tmp_path, cipher=SecretCipher(bytes(32), [KEY])) as stores:
        assert await stores.registry.keys.rewrap(EVENT) > 0
    async with sqlite(tmp_path, cipher=SecretCipher(bytes(32))) as stores:
        assert await stores.registry.keys.list_all() == kept[0]
    assert sum(key.certificate_chain is not None for key in kept[0]) == 1


@pytest.mark.parametrize("command", ["certify", "give_up"])
async def test_a_revocation_meanwhile_is_not_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """D42: another operator revokes the key just before the chain is written."""
    async with registry_at(tmp_path) as registry:
        kid, chain = await kid_of(registry), pem(await chain_for(registry))
        await signing_key_flows.certify(registry, OPERATOR, kid, chain, now=NOW)

        def after_a_revocation(write: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
            async def written(*arguments: Any) -> None:
                monkeypatch.undo()
                await signing_key_flows.revoke(registry, OPERATOR, kid, now=NOW + 60)
                await write(*arguments)

            return written

        for name in ("change", "update"):
            monkeypatch.setattr(registry.keys, name, after_a_revocation(getattr(registry.keys, name)))
        if command == "certify":
            with pytest.raises(Refused, match="is revoked"):
                await signing_key_flows.certify(registry, OPERATOR, kid, chain, now=NOW + 60)
        else:
            await signing_key_flows.remove_certificate(registry, OPERATOR, kid)
        (key,) = [key for key in await signing_key_flows.stored_keys(registry) if key.kid == kid]
        assert signing_key_rules.state(key, NOW + 70) == "revoked"
