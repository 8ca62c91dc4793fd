"""Registration of userinfo encryption, by generation and keys (Spec 2.8, D22)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.jose.keys import RSA, SMALLEST_BITS
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.urls import shorten_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from corpid.jose.keys import ClientKeySet
    from corpid.rules.oauth.generations import Generation, Resource

ALG: Final = "userinfo_encryption_alg"
ENC: Final = "userinfo_encryption_enc"
SHARED_SECRET_ALGS: Final = ("A128KW", "A256KW", "dir")
"""published by the oldest generation, since the specification lists them (Spec 2.8)"""


def _every() -> Iterator[Resource]:
    return (resource for generation in GENERATIONS.values() for resource in generation.resources)


ALGS: Final = tuple(dict.fromkeys(alg for resource in _every() for alg in resource.encryption_algs))
ENCS: Final = tuple(dict.fromkeys(enc for resource in _every() for enc in resource.encryption_encs))


def faults(alg: str | None, enc: str | None, generations: Sequence[Generation]) -> Iterator[tuple[str, str]]:
    """Invalid or ineffective members of a client's registration, with the reason.

    `generations` are those that the client uses. Source: Spec 2.8, D22, Spec "Generations"
    """
    if alg is not None and alg not in ALGS:
        yield ALG, _unknown_alg(alg)
    elif alg is not None and enc is None:
        yield ALG, f"it has no effect without {ENC}: give one of {_listed(ENCS)}, or no alg"
    elif enc in ENCS:
        yield from _without_effect(alg, enc, generations)


def _unknown_alg(alg: str) -> str:
    if alg in SHARED_SECRET_ALGS:
        return f"{alg} needs a shared secret, which no client has: name one of {_listed(ALGS)}"
    return f"{shorten_url(alg)!r} is not one of {_listed(ALGS)}"


def _without_effect(alg: str | None, enc: str, generations: Sequence[Generation]) -> Iterator[tuple[str, str]]:
    resources = [(generation, resource) for generation in generations for resource in generation.resources]
    if not resources:
        return
    if alg is not None and not any(alg in resource.encryption_algs for _, resource in resources):
        able = [each.name for each in GENERATIONS.values() if any(alg in one.encryption_algs for one in each.resources)]
        yield (
            ALG,
            f"{alg} is not offered by a generation of this client, but by {_listed(able)}: name another alg, or give none",
        )
        return
    for generation, resource in resources:
        wanted = alg in resource.encryption_algs or resource.encrypted_by_enc
        if wanted and enc not in resource.encryption_encs:
            yield ENC, f"{enc} is not offered by {generation.name}: name one of {_listed(resource.encryption_encs)}"
            return
    if not any(resource.nesting(alg, enc) for _, resource in resources):
        generation, resource = resources[0]
        yield (
            ENC,
            (
                f"it has no effect: {generation.name} encrypts {resource.name} only for a client with {ALG}; "
                f"name one of {_listed(resource.encryption_algs)} there, or give no enc"
            ),
        )


def takes_effect(alg: str | None, enc: str | None, generations: Iterable[Generation]) -> bool:
    """Return whether any response to a client is encrypted.

    To one of these generations. Source: D22
    """
    return any(resource.nesting(alg, enc) for generation in generations for resource in generation.resources)


def missing_keys(
    alg: str | None, enc: str | None, generations: Iterable[Generation], keys: ClientKeySet
) -> Iterator[str]:
    """Keys that a key set lacks to encrypt every answer.

    Source: D21, D22, D27
    """
    nestings = {resource.nesting(alg, enc) for generation in generations for resource in generation.resources}
    for needed in sorted({nesting.alg or "" for nesting in nestings if nesting is not None}):
        if keys.encryption_for(needed or None) is None:
            yield _described(needed)


def _described(alg: str) -> str:
    if not alg:
        return "an EC key with use enc and a kid"
    kind = f"an RSA key of at least {SMALLEST_BITS} bits" if alg in RSA else "an EC key"
    return f"{kind} with use enc, a kid, and the alg {alg} or none"


def _listed(values: Iterable[str]) -> str:
    return ", ".join(values)
