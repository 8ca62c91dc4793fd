"""docs/generations.md: the oldest generation, and each later one's differences.

`make tables` writes the page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from corpid.rules.oauth.generations import GENERATIONS, Generation, ProtectedResource

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pushed": "requests are pushed (PAR), not sent in the query",
        "scheme": "token type, and scheme at resources",
        "resources": "resources",
        "scopes": "scopes",
        "returns_iss": "callbacks carry `iss`",
        "required_parameters": "required in addition to RFC 6749 and PKCE",
        "key_binding_required": "PAR needs a DPoP proof or `dpop_jkt`",
        "pkce_optional": "a client can be registered to omit PKCE",
        "bad_verifier_code": "error of a missing or malformed `code_verifier`",
        "statuses": "statuses that differ at PAR and token",
        "unknown_acr_refused": "`acr_values` without a supported value are refused",
        "assertion_algorithms": "algorithms of client assertions",
        "proof_algorithms": "algorithms of DPoP proofs",
        "assertion_seconds": "longest lifetime of a client assertion, in seconds",
        "assertion_iat_required": "a client assertion needs `iat`",
        "assertion_jti_required": "a client assertion needs `jti`, used once",
        "endpoint_audience": "a client can be allowed to use the endpoint's URL (PAR, token) as `aud`, until a day",
        "audience_arrays": "`aud` of a client assertion can be an array: of the issuer alone, or with the endpoint where a client can use that",
        "response_modes": "response modes, the default first",
        "acr_in_id_token": "the ID token has `acr`",
        "sid_in_id_token": "the ID token has `sid` if the person stays signed in (`session_seconds`)",
        "packed_subject": "`sub` packs the person; `userInfo` and `entityInfo` have the rest",
        "id_token_encrypted": "the ID token is always encrypted",
        "userinfo_signed": "resources always respond with a signed JWT",
        "certificates": "published keys carry `x5c`, `x5t` and `x5t#S256`",
        "code_prefix": "first character of its codes",
        "stands_alone": "must be the only generation of an issuer",
        "ends": "serves a client until that client's end date",
        "successor": "its clients must move to",
    }
)
"""field of a generation → what a page calls it; `name` and `metadata` are shown otherwise"""
_HEAD: Final = """# The generations of the interface

CorpID serves all generations from one engine. Each is a record of constants, and `make tables` writes this page from
these records. The setting `generations` names the generations that a deployment serves: at most one with pushed
requests, and at most one with requests in the query. A client names its generations in its record; without a name it
uses the one with pushed requests. [Further issuers](operate.md#several-issuers) of a deployment have their own
generations. This page lists only the differences. [The specification](specification/generations.md) has the rules that
no table of values can hold.
"""


def page() -> str:
    """The page as Markdown."""
    oldest = next(iter(GENERATIONS.values()))
    parts = [_HEAD, _in_full(oldest), *(_difference(*pair) for pair in pairwise(GENERATIONS.values()))]
    return "\n".join(parts)


def _in_full(generation: Generation) -> str:
    rows = [f"| {meaning} | {_words(getattr(generation, name))} |" for name, meaning in MEANINGS.items()]
    published = [f"| `{name}` | {_words(value)} |" for name, value in sorted(generation.metadata.items())]
    return _section(generation.name, ["| | |", "|---|---|", *rows, *published])


def _difference(before: Generation, after: Generation) -> str:
    rows = [f"| {what} | {was} | {becomes} |" for what, was, becomes in _changes(before, after)]
    head = [f"What differs from {before.name}:", "", f"| | {before.name} | {after.name} |", "|---|---|---|"]
    return _section(after.name, [*head, *rows])


def _section(name: str, lines: list[str]) -> str:
    return "\n".join([f"## {name}", "", *lines, ""])


def _changes(before: Generation, after: Generation) -> Iterator[tuple[str, str, str]]:
    for name, meaning in MEANINGS.items():
        was, becomes = getattr(before, name), getattr(after, name)
        if was != becomes:
            yield meaning, _words(was), _words(becomes)
    for member in sorted({*before.metadata, *after.metadata}):
        was, becomes = before.metadata.get(member), after.metadata.get(member)
        if was != becomes:
            yield f"`{member}`", _words(was), _words(becomes)


def _resource(resource: ProtectedResource) -> str:
    scoped, names = resource.scoped, resource.claim_names.items()
    blocks = [f"`{member}` {f'by scope `{scope}`' if scoped else 'whatever the scopes'}" for scope, member in names]
    if resource.entity_member is not None:
        blocks.append(f"`{resource.entity_member}` by scopes `entity.*`")
    nested = "nested in a JWE if the client is registered for it"
    if not resource.encrypted_by_enc:
        *most, last = map(_words, resource.encryption_algs)
        nested = f"nested in a JWE only for a client that names {', '.join(most)} or {last}"
    return f"`{resource.path}` ({', '.join(blocks)}; {nested})"


def _words(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return str(value)
        case ProtectedResource():
            return _resource(value)
        case Mapping():
            return ", ".join(f"{name} {one}" for name, one in value.items()) or "none"
        case None:
            return "none"
        case Collection() if not isinstance(value, str):
            listed = value if isinstance(value, tuple | list) else sorted(value)
            return ", ".join(map(_words, listed)) or "none"
    return f"`{value}`"
