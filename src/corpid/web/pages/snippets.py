"""Commands and settings for a registered client, to copy (D66).

They set the variables that the files in `examples/` read.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.jose.keys import WRAPS, KeySetError, parse_client_key_set
from corpid.rules.directory.document import one_entry
from corpid.rules.oauth import discovery
from corpid.rules.oauth.records import CLIENT_MEMBERS, Client
from corpid.web.pages.components import Snippet, ViewPart

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from corpid.rules.oauth.generations import Generation


class Example(ViewPart, frozen=True, kw_only=True):
    """An example relying party: its folder and commands."""

    title: str
    folder: str
    file: str
    prepare: str
    run: str
    port: int
    """where it listens if nothing else is said"""
    trusts: str = ""
    """the variable with the authorities that it trusts; empty: it reads none"""


EXAMPLES: Final = (
    Example(
        title="Node", folder="node", file="rp.mjs", prepare="npm install", run="npm start", port=8410,
        trusts="NODE_EXTRA_CA_CERTS",
    ),
    Example(
        title="Python", folder="python", file="rp.py",
        prepare="python3 -m venv .venv\n.venv/bin/pip install requests-oauth2client starlette uvicorn", run=".venv/bin/python rp.py",
        port=8411, trusts="REQUESTS_CA_BUNDLE",
    ),
    Example(
        title="Python without an OAuth library", folder="python", file="plain_rp.py",
        prepare="python3 -m venv .venv\n.venv/bin/pip install joserfc httpx starlette uvicorn", run=".venv/bin/python plain_rp.py",
        port=8412, trusts="SSL_CERT_FILE",
    ),
    Example(title="Go", folder="go", file="main.go", prepare="", run="go run .", port=8413, trusts="SSL_CERT_FILE"),
    Example(
        title="Java", folder="java", file="RelyingParty.java", prepare="mvn -q dependency:copy-dependencies",
        run="java -cp 'lib/*' RelyingParty.java", port=8414,
    ),
)  # fmt: skip
"""the files of `examples/`, each with the commands of docs/relying-parties.md"""
SCOPES: Final = {
    True: ("openid", "authinfo", "tpauthinfo", "user.name"),
    False: ("openid", "authinfo", "tpauthinfo"),
}
"""what the examples request: with a pushed request, and with legacy"""
_CALLBACK: Final = re.compile(r"http://127\.0\.0\.1:([0-9]{1,5})/callback")


_FRESH: Final = frozenset({"$STATE", "$NONCE", "$CODE_CHALLENGE", "$ASSERTION"})
"""what a client makes anew for each sign-in"""
_SHELL: Final = re.compile(r'[$`"\\!]')
"""what a shell takes for more than itself between double quotes"""


def snippets(
    client: Client, issuer: str, generation: Generation | None, *, authority: Path | None = None
) -> tuple[Snippet, ...]:
    """The examples with this client's values, then settings and files.

    `authority` is the file with the issuer's own certificate authority.
    """
    if generation is None:
        return ()
    curl = curl_with(authority)
    return (
        *(_example(each, client, issuer, generation, authority) for each in EXAMPLES),
        _metadata(client, issuer, generation),
        _curl(client, issuer, generation, curl),
        Snippet(
            title="Directory file (YAML)",
            text=one_entry("clients", client.client_id, members_of(client)).decode().rstrip(),
        ),
    )


def curl_with(authority: Path | None) -> str:
    """The command curl, which trusts the issuer."""
    return f"curl -s --cacert {shlex.quote(str(authority))}" if authority else "curl -s"


def _example(example: Example, client: Client, issuer: str, generation: Generation, authority: Path | None) -> Snippet:
    ports = [found[1] for uri in client.redirect_uris if (found := _CALLBACK.fullmatch(uri))]
    port = ports[0] if ports else str(example.port)
    variables = {
        "ISSUER": issuer,
        "CLIENT_ID": client.client_id,
        "PORT": port,
        "KEYS": "keys.json",
        "GENERATION": (generation.successor if generation.pushed else None) or generation.name,
    }
    if authority and example.trusts:
        variables[example.trusts] = str(authority)
    assignments = [f"{name}={shlex.quote(value)} \\" for name, value in variables.items()]
    lines = [f"cd examples/{example.folder}", example.prepare, *assignments, f"  {example.run}"]
    return Snippet(
        title=example.title,
        text="\n".join(filter(None, lines)),
        note=" ".join(
            _needs(client, generation, port=None if ports else port, untrusted=authority and not example.trusts)
        ),
    )


def _needs(client: Client, generation: Generation, *, port: str | None, untrusted: object) -> Iterator[str]:
    """The needs of an example that this client does not meet."""
    if untrusted:
        yield "Create the trust store by the command that the demo prints, and give java its two options."
    if port is not None:
        yield f"Register the redirect URI http://127.0.0.1:{port}/callback, too: the example has this one."
    missing = [each for each in SCOPES[generation.pushed] if each not in client.scopes]
    if missing:
        yield f"Register the scopes that it requests: {', '.join(missing)}."
    if client.jwks_uri:
        yield "keys.json must hold the private keys of the key set at the registered address."


def _metadata(client: Client, issuer: str, generation: Generation) -> Snippet:
    """The settings that a library asks for, by their standard names."""
    signing, encryption = _algorithms(client)
    answer: dict[str, object] = {
        "issuer": issuer,
        "client_id": client.client_id,
        "redirect_uris": list(client.redirect_uris),
        "response_types": ["code"],
        "grant_types": ["authorization_code"],
        "scope": " ".join(client.scopes),
        "token_endpoint_auth_method": "private_key_jwt",
        "token_endpoint_auth_signing_alg": signing,
        "id_token_signed_response_alg": "ES256",
    }
    if generation.id_token_encrypted or client.id_token_encryption_alg:
        answer["id_token_encrypted_response_alg"] = encryption
        answer["id_token_encrypted_response_enc"] = client.id_token_encryption_enc
    answer["require_pushed_authorization_requests"] = generation.pushed
    answer["dpop_bound_access_tokens"] = generation.sender_constrained
    text = msgspec.json.format(msgspec.json.encode(answer), indent=2).decode()
    return Snippet(title="Another library: client metadata", text=text)


def _algorithms(client: Client) -> tuple[str, str]:
    """The algorithms: of the client's signatures, of keys wrapped for it."""
    named = client.id_token_encryption_alg
    wrap = named if named in WRAPS else ""
    try:
        keys = parse_client_key_set(client.jwks or "")
    except KeySetError:  # they are at an address
        return "ES256", wrap or WRAPS[-1]
    signing = keys.signing[0].verifier.algorithm.name if keys.signing else "ES256"
    return signing, wrap or (keys.encryption.wrap if keys.encryption else WRAPS[-1])


def _curl(client: Client, issuer: str, generation: Generation, curl: str) -> Snippet:
    """The first requests of a sign-in, with variables for fresh values."""
    parameters = {
        "client_id": client.client_id,
        "response_type": "code",
        "redirect_uri": client.redirect_uris[0],
        "scope": " ".join(each for each in client.scopes if each in generation.scopes),
        "state": "$STATE",
        "nonce": "$NONCE",
        "code_challenge": "$CODE_CHALLENGE",
        "code_challenge_method": "S256",
    }
    get = f"{curl} {issuer}{discovery.DISCOVERY_PATH}"
    if not generation.pushed:
        lines = [f"{curl} -o /dev/null -w '%{{redirect_url}}\\n' -G {issuer}{discovery.AUTHORIZATION_PATH} \\"]
    else:
        if "authentication_context_type" in generation.required_parameters and client.context_type_rule == "required":
            parameters["authentication_context_type"] = client.context_types[0]
        parameters["client_assertion_type"] = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        parameters["client_assertion"] = "$ASSERTION"
        lines = [f'{curl} {issuer}{discovery.PAR_PATH} -H "DPoP: $PROOF" \\']
    fields = [f"  --data-urlencode {_quoted(name, value)}" for name, value in parameters.items()]
    return Snippet(title="curl", text="\n".join([get, *lines, " \\\n".join(fields)]))


def _quoted(name: str, value: str) -> str:
    """A parameter as a word of a shell.

    It replaces nothing but our own variables.
    """
    text = f"{name}={value}"
    return f'"{text}"' if value in _FRESH or not _SHELL.search(text) else shlex.quote(text)


def members_of(client: Client) -> dict[str, object]:
    """The members that are not the default, as in a directory file."""
    members: dict[str, object] = {}
    for name, each in CLIENT_MEMBERS.items():
        value = getattr(client, name)
        if value not in (None, each.default):
            members[name] = msgspec.json.decode(value) if name == "jwks" else msgspec.to_builtins(value)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in members.items()}
