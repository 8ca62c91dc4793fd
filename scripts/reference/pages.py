"""docs/reference/endpoints.md: the endpoints of all generations, with recorded exchanges."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from corpid.rules.limits import (
    ACCESS_TOKEN_SECONDS,
    CLOCK_AHEAD_SECONDS,
    CODE_SECONDS,
    DESCRIPTION_CHARACTERS,
    JTI_CHARACTERS,
    METADATA_CACHE_SECONDS,
    PROOF_AGE_SECONDS,
    REQUEST_URI_SECONDS,
)
from scripts.reference import errors as error_page
from scripts.reference.claims import MADE, ORDER, pretty, recorded
from scripts.reference.endpoints import EVERY, Endpoint, Parameter, endpoints
from scripts.reference.shapes import Member, said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from corpid.rules.oauth.generations import Generation

_SHOWN_CHARACTERS: Final = 48
_LONG: Final = re.compile(rf"([\w-]{{{_SHOWN_CHARACTERS}}})[\w.-]{{20,}}")
_SHOWN_AS: Final = {"misdirected_request": "invalid_request"}
"""what the log calls an error -> what the response says"""
_HEAD: Final = f"""# Endpoints

{MADE}
Take the URLs from the discovery document. Paths stand under the provider's base URL. The four generations differ as the tables say
([side by side](../generations.md)); what names no generation holds in each that has the endpoint. A deployment can serve legacy together with current or intermediate: then discovery is
theirs, with `authorization-info_endpoint` added ([legacy.md](../legacy.md)). Examples are recorded at a running provider; a token that is cut
(`…`) stands whole in the recordings ([current](examples/current.json), [fapi2](examples/fapi2.json), [intermediate](examples/intermediate.json), [legacy](examples/legacy.json)). For programs: [schemas.md](schemas.md).
"""
_STEPS: Final = """
A sign-in: push the request ([PAR](#pushed-authorization-request)) → send the browser to [authorize](#authorization) → the person signs in → callback with a
code → redeem it ([token](#token)) → read [userinfo](#userinfo). In legacy there is no PAR: the request is the query of authorize.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD, _STEPS, _limits(), _assertion(), _proof(), _every()]
    parts += [_endpoint(name, of) for name, of in _by_name().items()]
    return "".join(parts)


def _by_name() -> dict[str, dict[str, Endpoint]]:
    """Endpoint → generation → its declaration there, in the order of a sign-in."""
    found: dict[str, dict[str, Endpoint]] = {}
    for generation in ORDER:
        for each in endpoints(generation):
            found.setdefault(each.name, {})[generation.name] = each
    last = ("keys", "healthz", "readyz")
    return {name: found[name] for name in sorted(found, key=lambda name: last.index(name) + 1 if name in last else 0)}


def _limits() -> str:
    rows = (
        ("`request_uri`", f"{REQUEST_URI_SECONDS} seconds to arrive at authorize"),
        ("code", f"{CODE_SECONDS} seconds, one use"),
        ("access token", f"{ACCESS_TOKEN_SECONDS // 60} minutes"),
        ("ID token and resource JWTs", "10 minutes"),
        ("discovery and keys", f"cache them for {METADATA_CACHE_SECONDS // 3600} hour"),
        ("clocks", f"`iat` and `nbf` at most {CLOCK_AHEAD_SECONDS} s ahead of the provider"),
        ("`error_description`", f"{DESCRIPTION_CHARACTERS} characters"),
        ("each request", EVERY),
    )
    return f"\n## Limits\n\n| What | Limit |\n|---|---|\n{''.join(f'| {what} | {limit} |{chr(10)}' for what, limit in rows)}"


def _assertion() -> str:
    rows = [
        ("header `alg`", "the registered key's: " + _differing(lambda each: _codes(each.assertion_algorithms))),
        ("header `kid`", "names your key; without it every fitting key is tried"),
        ("header `typ`", "absent, `JWT` or `client-authentication+jwt`; `crit`, `zip` and `b64` are refused"),
        ("`iss`, `sub`", "your `client_id`"),
        ("`aud`", "the issuer, as one string. Not the endpoint's URL"),
        ("`exp`", "required; lifetime at most " + _differing(lambda each: f"{each.assertion_seconds} s")),
        ("`iat`", _differing(lambda each: "required" if each.assertion_iat_required else "optional")),
        (
            "`jti`",
            _differing(lambda each: "required" if each.assertion_jti_required else "optional")
            + f"; new each time, {JTI_CHARACTERS} characters",
        ),
    ]
    return _section("Client assertion", "A JWT that you sign, new for each request to PAR and token (RFC 7523).", rows)


def _proof() -> str:
    bound = [each for each in ORDER if each.sender_constrained]
    rows = [
        ("header `typ`", "`dpop+jwt`"),
        ("header `alg`", _differing(lambda each: _codes(each.proof_algorithms), bound)),
        ("header `jwk`", "your public key, without private members; one key from PAR to userinfo"),
        ("`htm`, `htu`", "the request's method, and its URL without query"),
        ("`iat`", f"at most {PROOF_AGE_SECONDS} s ago"),
        ("`jti`", f"new each time, {JTI_CHARACTERS} characters"),
        ("`ath`", "at resources: SHA-256 of the access token, base64url"),
        (
            "`nonce`",
            "only if a response with `use_dpop_nonce` had a `DPoP-Nonce` header: repeat the request once with it",
        ),
    ]
    names = _names([each.name for each in bound])
    return _section(
        "DPoP proof",
        f"A JWT in the header `DPoP`, new for each request (RFC 9449). In {names}; legacy does not look at it.",
        rows,
    )


def _every() -> str:
    http = endpoints(ORDER[0])[0]
    errors = "".join(
        f"| {_status_of_every(code, http)} | `{_SHOWN_AS.get(code, code)}` | {_links(reason.code for reason in reasons)} |\n"
        for code, reasons in http.errors().items()
    )
    return (
        "\n## At every endpoint\n\nHEAD is answered wherever GET is. 404 and 405 (with `Allow`) are JSON. 429 and 503 have `Retry-After`: wait that long. "
        "Every response has `X-Content-Type-Options: nosniff`, over https also `Strict-Transport-Security` (not in developer mode). Reasons about parameters and forms apply to "
        "endpoints that take them.\n\n"
        f"| Status | Error | Reasons |\n|---|---|---|\n{errors}"
    )


def _status_of_every(code: str, endpoint: Endpoint) -> str:
    others = error_page.OTHER_STATUSES.get(code)
    return f"{endpoint.status(code)}, {others}" if others else str(endpoint.status(code))


def _endpoint(name: str, of: Mapping[str, Endpoint]) -> str:
    one = next(iter(of.values()))
    where = "" if len(of) == len(ORDER) else f"Only in {_names(of)}.\n\n"
    facts = [
        ("Request", f"`{' or '.join(one.methods)} {one.path}`"),
        *([("In the discovery document", f"`{one.metadata}`")] if one.metadata else []),
        ("Authentication", _merged({each: endpoint.authentication for each, endpoint in of.items()})),
        ("Rate limit", one.limit),
    ]
    parts = [
        f"\n## {one.title}\n\n{where}",
        "| | |\n|---|---|\n",
        *(f"| {what} | {value} |\n" for what, value in facts),
    ]
    parts += _parameters("Headers", {each: endpoint.headers for each, endpoint in of.items()})
    parts += _parameters("Parameters", {each: endpoint.parameters for each, endpoint in of.items()})
    parts.append(_success(name, of))
    parts += _errors(of)
    parts += [_example(example, of) for example in one.examples]
    return "".join(parts)


def _parameters(title: str, of: Mapping[str, tuple[Parameter, ...]]) -> Iterator[str]:
    names = list(dict.fromkeys(each.name for listed in of.values() for each in listed))
    if not names:
        return
    rows = []
    for name in names:
        there = {generation: each for generation, listed in of.items() for each in listed if each.name == name}
        needed = _needed(there, of)
        value = _merged({generation: each.value for generation, each in there.items()})
        meaning = _merged({generation: each.meaning for generation, each in there.items()})
        rows.append(f"| `{name}` | {needed} | {value} | {meaning} |\n")
    yield f"\n{title}:\n\n| Name | Required | Value | Meaning |\n|---|---|---|---|\n{''.join(rows)}"


def _needed(there: Mapping[str, Parameter], of: Mapping[str, object]) -> str:
    needed = {generation: _condition(each) for generation, each in there.items()}
    needed |= {generation: "not read" for generation in of if generation not in there}
    return _merged(needed)


def _condition(parameter: Parameter) -> str:
    if parameter.refused:
        return "refused"
    if parameter.condition and not parameter.required:
        return parameter.condition
    return ", ".join(filter(None, ("yes" if parameter.required else "no", parameter.condition)))


def _success(name: str, of: Mapping[str, Endpoint]) -> str:
    one = next(iter(of.values())).success
    kind = _merged(
        {each: f"`{endpoint.success.content_type}`" for each, endpoint in of.items() if endpoint.success.content_type}
    )
    headers = ", ".join(f"`{header}: {value}`" for header, value in one.headers.items())
    form = f", {kind}" if kind else ""
    begin = (
        f"\nSuccess: **{one.status}**{form}; {headers}. {_merged({each: e.success.about for each, e in of.items()})}\n"
    )
    if name in {"par", "token", "authorize", "healthz", "readyz"}:
        shapes = {each: endpoint.success.record.members for each, endpoint in of.items() if endpoint.success.record}
        return f"{begin}\n{_tables(shapes)}"
    if name == "keys":
        return f"{begin}\n{_tables({each: e.success.record.members[0].shape.item.members for each, e in of.items() if e.success.record})}"  # type: ignore[union-attr]
    if name == "discovery":
        return f"{begin}\n{_tables({each: e.success.record.members for each, e in of.items() if e.success.record})}"
    return f"{begin} Its claims: [claims.md](claims.md), [authorization-data.md](authorization-data.md).\n"


def _tables(of: Mapping[str, Sequence[Member]]) -> str:
    """One table of the members in all generations, with what differs."""
    names = list(dict.fromkeys(member.name for members in of.values() for member in members))
    rows = []
    for name in names:
        there = {generation: each for generation, members in of.items() for each in members if each.name == name}
        when = {generation: each.when or "always" for generation, each in there.items()}
        when |= {generation: "never" for generation in of if generation not in there}
        kind = _merged({generation: said(each.shape) for generation, each in there.items()})
        meaning = _merged({generation: each.meaning for generation, each in there.items()})
        rows.append(f"| `{name}` | {kind} | {_merged(when)} | {meaning} |\n")
    return f"| Member | Type | There | Meaning |\n|---|---|---|---|\n{''.join(rows)}"


def _errors(of: Mapping[str, Endpoint]) -> Iterator[str]:
    common = {reason for endpoint in endpoints(ORDER[0])[:1] for reason in endpoint.reasons}
    codes = list(dict.fromkeys(code for endpoint in of.values() for code in endpoint.errors()))
    rows = []
    for code in codes:
        reasons = dict.fromkeys(
            reason for endpoint in of.values() for reason in endpoint.errors().get(code, ()) if reason not in common
        )
        if not reasons:
            continue
        status = _merged({each: _place(endpoint, code) for each, endpoint in of.items() if code in endpoint.errors()})
        shown = "" if code == "credentials_required" else f"`{code}`"
        rows.append(
            f"| {status} | {shown or 'no error code, no body'} | {_links(reason.code for reason in reasons)} |\n"
        )
    if rows:
        yield (
            "\nErrors, in addition to those [at every endpoint](#at-every-endpoint):\n\n"
            f"| Status | Error | Reasons |\n|---|---|---|\n{''.join(rows)}"
        )


def _place(endpoint: Endpoint, code: str) -> str:
    if endpoint.success.status != _REDIRECT:
        return str(endpoint.status(code))
    if code == "invalid_request":
        return "error page 400, or callback"
    return (
        "error page 400, or callback"
        if code == "invalid_request_uri"
        else "callback"
        if endpoint.status(code) < _SERVER
        else f"error page {endpoint.status(code)}, or callback"
    )


_REDIRECT: Final = 302
_SERVER: Final = 500


def _example(name: str, of: Mapping[str, Endpoint]) -> str:
    generation = next(iter(of))
    exchange = recorded(generation)["exchanges"][name]
    title = f"\nRecorded in {generation}, `{name}`:\n\n"
    if "parameters" in exchange:
        pairs = "\n".join(f"  {key}={_cut(value)}" for key, value in exchange["parameters"].items())
        return f"{title}```\nhttps://rp.example/callback with\n{pairs}\n```\n"
    request, response = exchange["request"], exchange["response"]
    path = request["url"].split("/", 3)[3]
    lines = [
        f"{request['method']} /{path} HTTP/1.1",
        *(f"{key}: {_cut(value)}" for key, value in request["headers"].items()),
    ]
    if "form" in request:
        lines += [
            "",
            *(f"{mark}{key}={_cut(quote(value, safe=':/.-_~'))}" for mark, (key, value) in _marked(request["form"])),
        ]
    lines += [
        "",
        f"HTTP/1.1 {response['status']}",
        *(f"{key}: {_cut(value)}" for key, value in response["headers"].items()),
    ]
    body = response["body"]
    if body:
        lines += ["", _cut(body if isinstance(body, str) else pretty(body))]
    return f"{title}```http\n" + "\n".join(lines) + "\n```\n"


def _marked(form: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str]]]:
    for number, pair in enumerate(form.items()):
        yield "&" if number else "", pair


def _cut(text: str) -> str:
    return _LONG.sub(lambda found: f"{found[1]}…", text)


def _section(title: str, about: str, rows: Sequence[tuple[str, str]]) -> str:
    return f"\n## {title}\n\n{about}\n\n| | |\n|---|---|\n{''.join(f'| {name} | {value} |{chr(10)}' for name, value in rows)}"


def _differing(of: Callable[[Generation], str], among: Iterable[Generation] = ORDER) -> str:
    return _merged({each.name: of(each) for each in among})


def _merged(of: Mapping[str, str]) -> str:
    """One text if all are the same; else the first, and what differs from it."""
    groups: dict[str, list[str]] = {}
    for generation, text in of.items():
        groups.setdefault(text, []).append(generation)
    if len(groups) <= 1:
        return next(iter(groups), "")
    return "; ".join(f"{text.rstrip('.') or 'none'} ({_names(names)})" for text, names in groups.items())


def _names(names: Iterable[str]) -> str:
    return ", ".join(names)


def _codes(values: Iterable[str]) -> str:
    return ", ".join(f"`{value}`" for value in values)


def _links(codes: Iterable[str]) -> str:
    return ", ".join(f"[{code}](errors.md#{code})" for code in codes)
