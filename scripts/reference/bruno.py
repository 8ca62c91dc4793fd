"""Collections for the HTTP client Bruno, one for each generation, in plain text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from corpid.rules.oauth.authorization_request import PARAMETERS
from corpid.rules.oauth.generations import GENERATIONS, Generation
from scripts.reference.endpoints import ASSERTION_TYPE, Endpoint, Parameter, endpoints

if TYPE_CHECKING:
    from collections.abc import Mapping


FOLDER: Final = Path(__file__).parents[2] / "examples" / "bruno"
LIBRARY: Final = "corpid.js"
VALUES: Final[Mapping[str, str]] = {
    **{each.name: each.example for each in PARAMETERS},
    "client_id": "{{client_id}}",
    "client_assertion_type": ASSERTION_TYPE,
    "client_assertion": "{{client_assertion}}",
    "redirect_uri": "{{redirect_uri}}",
    "scope": "{{scope}}",
    "state": "{{state}}",
    "nonce": "{{nonce}}",
    "code_challenge": "{{code_challenge}}",
    "grant_type": "authorization_code",
    "code": "{{code}}",
    "code_verifier": "{{code_verifier}}",
    "request_uri": "{{request_uri}}",
    "DPoP": "{{dpop}}",
    "dpop_jkt": "{{dpop_jkt}}",
}
"""parameter → what the collections send"""
_ALWAYS: Final = frozenset(
    {"client_id", "state", "nonce", "code_challenge", "code_challenge_method", "code_verifier", "DPoP"}
)
"""what is sent although it may be left out"""
_IN_BROWSER: Final = """Open this request's URL, which its script prints, in a browser within 60 seconds, and sign in. The browser ends at your redirect
  URI, where nothing listens: copy `code` from its address into the environment's variable `code`, and send the token request within 60 seconds."""
_SCOPES: Final = ("openid", "authinfo", "tpauthinfo", "user.name", "entity.basic_profile.name")
"""what the collections ask for, if the generation has it"""


def files() -> dict[Path, str]:
    """Every file of the collections."""
    made: dict[Path, str] = {}
    for generation in GENERATIONS.values():
        folder = FOLDER / generation.name
        made[folder / "bruno.json"] = _collection(generation)
        made[folder / "environments" / "demo.bru"] = _environment(generation)
        made[folder / LIBRARY] = (FOLDER / LIBRARY).read_text(encoding="utf-8")
        for number, endpoint in enumerate(endpoints(generation), start=1):
            made[folder / f"{number} {endpoint.name}.bru"] = _request(number, endpoint, generation)
    return made


def _collection(generation: Generation) -> str:
    scripts = {"moduleWhitelist": ["crypto", "fs", "path"], "filesystemAccess": {"allow": True}}
    content = {"version": "1", "name": f"CorpID {generation.name}", "type": "collection", "scripts": scripts}
    return json.dumps(content, indent=2) + "\n"


def _environment(generation: Generation) -> str:
    values = {
        "issuer": "http://localhost:8400",
        "client_id": "bruno-rp",
        "redirect_uri": "http://127.0.0.1:8490/callback",
        "scope": " ".join(scope for scope in _SCOPES if scope in generation.scopes),
        "code": "",
    }
    return _block("vars", values)


def _request(number: int, endpoint: Endpoint, generation: Generation) -> str:
    method = endpoint.methods[0].lower()
    sent = [each for each in endpoint.parameters if not each.refused]
    url = "{{issuer}}" + endpoint.path
    in_query = method == "get" and bool(sent)
    query = "&".join(f"{each.name}={VALUES[each.name]}" for each in sent if _is_sent(each)) if in_query else ""
    parts = [
        _block("meta", {"name": endpoint.title, "type": "http", "seq": str(number)}),
        _block(
            method,
            {
                "url": f"{url}?{query}" if query else url,
                "body": "formUrlEncoded" if method == "post" else "none",
                "auth": "none",
            },
        ),
    ]
    if in_query:
        parts.append(_pairs("params:query", sent))
    headers = [each for each in endpoint.headers if each.name in VALUES]
    authorization = f"{generation.scheme} {{{{access_token}}}}"
    if any(each.name == "Authorization" for each in endpoint.headers):
        parts.append(
            _block("headers", {"Authorization": authorization, **{each.name: VALUES[each.name] for each in headers}})
        )
    elif headers:
        parts.append(_pairs("headers", headers))
    if method == "post":
        parts.append(_pairs("body:form-urlencoded", sent))
    before, after = _before(endpoint, method, generation), _after(endpoint)
    parts += [_script("pre-request", before)] if before else []
    parts += [_script("post-response", after)] if after else []
    parts.append(f"docs {{\n  {_docs(endpoint)}\n}}\n")
    return "\n".join(parts)


def _before(endpoint: Endpoint, method: str, generation: Generation) -> list[str]:
    lines: list[str] = []
    first = "par" if generation.pushed else "authorize"
    if endpoint.name == first:
        lines.append("corpid.begin(bru)")
    if endpoint.name == "authorize":
        names = ", ".join(f"'{each.name}'" for each in endpoint.parameters if _is_sent(each))
        values = ", ".join(f"'{VALUES[each.name]}'" for each in endpoint.parameters if _is_sent(each))
        lines.append(f"corpid.print(bru, bru.getEnvVar('issuer') + '{endpoint.path}', [{names}], [{values}])")
    if any(each.name == "client_assertion" for each in endpoint.parameters):
        lines.append("corpid.authenticate(bru)")
    if any(each.name == "DPoP" for each in endpoint.headers):
        token = ", bru.getVar('access_token')" if any(each.name == "Authorization" for each in endpoint.headers) else ""
        lines.append(f"corpid.prove(bru, '{method.upper()}', bru.getEnvVar('issuer') + '{endpoint.path}'{token})")
    return [f"const corpid = require('./{LIBRARY}')", *lines] if lines else []


def _after(endpoint: Endpoint) -> list[str]:
    kept = {"par": "request_uri", "token": "access_token"}.get(endpoint.name)
    if kept:
        return [f"bru.setVar('{kept}', res.body.{kept})"]
    if any(each.name == "Authorization" for each in endpoint.headers):
        claims = "typeof res.body === 'string' && res.status === 200 ? corpid.claims(res.body) : res.body"
        return [f"const corpid = require('./{LIBRARY}')", f"console.log(JSON.stringify({claims}, null, 2))"]
    return []


def _docs(endpoint: Endpoint) -> str:
    if endpoint.name == "authorize":
        return f"{_IN_BROWSER}\n  See docs/reference/endpoints.md#authorization."
    return f"See docs/reference/endpoints.md. {endpoint.success.about}".strip()


def _is_sent(parameter: Parameter) -> bool:
    return parameter.required or parameter.name in _ALWAYS


def _pairs(name: str, parameters: list[Parameter]) -> str:
    """A block of pairs; those that a request need not have are switched off."""
    return _block(name, {f"{'' if _is_sent(each) else '~'}{each.name}": VALUES[each.name] for each in parameters})


def _block(name: str, values: Mapping[str, str]) -> str:
    return f"{name} {{\n{''.join(f'  {key}: {value}{chr(10)}' for key, value in values.items())}}}\n"


def _script(name: str, lines: list[str]) -> str:
    return f"script:{name} {{\n{''.join(f'  {line}{chr(10)}' for line in lines)}}}\n"
