"""Checks of a strict relying party on each response.

Each function checks the envelope of one answer and returns what is in it. An OAuth error in place of
the answer raises ProviderError; an answer that is not as it should be, CheckFailed.

Each check has a name and is kept, passed or failed, so that a page or a report can list them.
The first one that fails raises CheckFailed. Times are epoch seconds.

Checks of the claims that a relying party receives.

Source: Spec 2.5, 2.6, R-12.2
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64decode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from joserfc.errors import JoseError

from corpid_dev.relying_party import jwt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import httpx
    from joserfc.jwk import Key, KeySet

    from corpid_dev.relying_party.interfaces import Interface, Reading


class Callback(str):
    """The URL of a callback, with its fragment.

    `form` is None if nothing was posted.
    """

    __slots__ = ("form",)
    form: tuple[tuple[str, str], ...] | None

    def __new__(cls, url: str, form: Iterable[tuple[str, str]] | None = None) -> Self:
        """A callback by link, or with the fields that were posted.

        A callback stays what it is.
        """
        made = super().__new__(cls, url)
        given = url.form if isinstance(url, Callback) else None
        made.form = given if form is None else tuple(form)
        return made

    @property
    def address(self) -> str:
        """Scheme, host and path."""
        parts = urlsplit(self)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"

    def carried(self) -> dict[str, list[tuple[str, str]]]:
        """response_mode → the parameters received in this mode.

        Source: RFC 6749 §4.1.2, OAuth 2.0 Form Post Response Mode §2
        """
        parts = urlsplit(self)
        return {
            "query": parse_qsl(parts.query, keep_blank_values=True),
            "fragment": parse_qsl(parts.fragment, keep_blank_values=True),
            "form_post": list(self.form or ()),
        }

    @property
    def state(self) -> str:
        """The state that it carries, unverified; empty if there is none."""
        return next((value for pairs in self.carried().values() for name, value in pairs if name == "state"), "")


REQUEST_URI_PREFIX: Final = "urn:ietf:params:oauth:request_uri:"


class ProviderError(Exception):
    """The provider refused with an OAuth error.

    `status` is 0 for an error in the callback.
    """

    def __init__(self, where: str, error: str, description: str, status: int) -> None:
        super().__init__(f"{where}: {error}{f' ({status})' if status else ''}: {description}")
        self.where = where
        self.error = error
        self.description = description
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer:
    """A verified token answer."""

    raw: dict[str, Any]
    scope: str
    id_token_header: dict[str, Any]
    id_token: dict[str, Any]
    access_token_header: dict[str, Any]
    access_token_claims: dict[str, Any]

    @property
    def access_token(self) -> str:
        """The access token as it is sent to resources."""
        return str(self.raw["access_token"])


def metadata(checks: Checklist, response: httpx.Response, *, issuer: str, interface: Interface) -> dict[str, Any]:
    """The discovery document, with the members that the interface uses.

    Other members are not judged (Spec 2.8).
    """
    what = "discovery"
    document = _public(checks, what, response, content_type="application/json")
    checks.equal(f"{what}: issuer", document.get("issuer"), issuer)
    missing = [name for name in interface.endpoints if not str(document.get(name, "")).startswith(f"{issuer}/")]
    checks.that(f"{what}: endpoints", not missing, f"not under the issuer: {', '.join(missing)}", f"{issuer}/…")
    lacking = [
        f"{name} lacks {value}" for name, value in interface.lists.items() if value not in document.get(name, [])
    ]
    checks.that(f"{what}: supports what we use", not lacking, "; ".join(lacking))
    return document


def provider_keys(checks: Checklist, response: httpx.Response, *, certificates: bool = False) -> KeySet:
    """The provider's key set (Spec 2.9).

    With `certificates` every key must carry its own.
    """
    what = "provider keys"
    document = _public(checks, what, response, content_type="application/jwk-set+json")
    entries = document.get("keys")
    listed = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    checks.that(f"{what}: list of keys", listed, "keys is not a list of objects")
    kids = [entry.get("kid") for entry in document["keys"]]
    checks.that(f"{what}: unique kids", len(set(kids)) == len(kids) and None not in kids, f"kids are {kids}", kids)
    private = [entry.get("kid") for entry in document["keys"] if {"d", "p", "q", "k"} & entry.keys()]
    checks.that(f"{what}: public members only", not private, f"private members in {private}")
    problems = [problem for entry in document["keys"] if (problem := _certificate_fault(entry, needed=certificates))]
    checks.that(f"{what}: certificates", not problems, "; ".join(problems))
    return jwt.key_set(document)


def _certificate_fault(entry: Mapping[str, Any], *, needed: bool) -> str:
    """The fault of a published JWK's certificate (Spec 2.9).

    Empty if right, or absent and not needed.
    """
    kid, present = entry.get("kid"), _CERTIFICATE_MEMBERS & entry.keys()
    if not present and not needed:
        return ""
    if present != _CERTIFICATE_MEMBERS:
        return f"{kid} lacks {', '.join(sorted(_CERTIFICATE_MEMBERS - present))}"
    try:
        encoded = b64decode(entry["x5c"][0], validate=True)
        key = x509.load_der_x509_certificate(encoded).public_key()
    except (ValueError, TypeError, LookupError) as error:
        return f"{kid}: x5c holds no certificate ({error})"
    thumbprints = (
        jwt.base64url(hashlib.sha1(encoded, usedforsecurity=False).digest()),
        jwt.base64url(hashlib.sha256(encoded).digest()),
    )
    if (entry["x5t"], entry["x5t#S256"]) != thumbprints:
        return f"{kid}: x5t or x5t#S256 is not the certificate's"
    return "" if _is_key_of(entry, key) else f"{kid}: the certificate is for another key"


def _is_key_of(entry: Mapping[str, Any], key: object) -> bool:
    if not isinstance(key, EllipticCurvePublicKey):
        return False
    point = key.public_numbers()
    return (point.x, point.y) == tuple(int.from_bytes(jwt.from_base64url(str(entry.get(name)))) for name in ("x", "y"))


def pushed(checks: Checklist, response: httpx.Response) -> str:
    """The request_uri of a pushed authorization request (D3)."""
    what = "pushed request"
    _no_error(what, response)
    answer(checks, what, response, status=201, content_type="application/json")
    document = json_object(checks, what, response.content)
    request_uri = str(document.get("request_uri"))
    fits = request_uri.startswith(REQUEST_URI_PREFIX) and len(request_uri) >= len(REQUEST_URI_PREFIX) + 43
    checks.that(f"{what}: request_uri", fits, f"got {request_uri}", request_uri)
    checks.equal(f"{what}: expires_in", document.get("expires_in"), 60)
    return request_uri


def callback(
    checks: Checklist, arrived: Callback, *, mode: str, redirect_uri: str, state: str, issuer: str | None
) -> str:
    """The code of a callback in this response mode.

    `issuer` is what `iss` must be, None if the provider sends none (RFC 9207 §2.4). Source: Spec 4.2, D38
    """
    what = "callback"
    checks.equal(f"{what}: redirect_uri", arrived.address, redirect_uri.partition("?")[0])
    carried = arrived.carried()
    pairs = carried.pop(mode)
    astray = {name for others in carried.values() for name, _ in others} & {"code", "state", "error", "iss"}
    checks.that(f"{what}: response mode", not astray, f"{', '.join(sorted(astray))} did not come by {mode}", mode)
    given = dict(pairs)
    checks.that(f"{what}: nothing twice", len(pairs) == len(given), "a parameter is there twice")
    checks.equal(f"{what}: state", given.get("state"), state)
    checks.equal(f"{what}: iss", given.get("iss"), issuer)
    if "error" in given:
        raise ProviderError(what, given["error"], given.get("error_description", ""), 0)
    checks.that(f"{what}: code", bool(given.get("code")), "has neither code nor error", given.get("code"))
    return given["code"]


def token(checks: Checklist, response: httpx.Response, *, asked: str, token_type: str) -> dict[str, Any]:
    """The members of a token answer (Spec 2.4).

    `asked` is the scope that was requested.
    """
    what = "token"
    _no_error(what, response)
    answer(checks, what, response, status=200, content_type="application/json")
    document = json_object(checks, what, response.content)
    for name in ("access_token", "id_token", "scope"):
        text = isinstance(document.get(name), str)
        checks.that(f"{what}: {name}", text, f"expected a string, got {document.get(name)!r}", document.get(name))
    checks.equal(f"{what}: token_type", document.get("token_type"), token_type)
    checks.equal(f"{what}: expires_in", document.get("expires_in"), TOKEN_SECONDS)
    beyond = set(document["scope"].split()) - set(asked.split())
    checks.that(f"{what}: no scope that was not asked for", not beyond, f"got {sorted(beyond)} as well")
    return document


def resource(checks: Checklist, what: str, response: httpx.Response) -> str:
    """The JWT that a resource answers with (Spec 2.5, D22, D24)."""
    _resource(checks, what, response, "application/jwt")
    return response.text


def plain_resource(checks: Checklist, what: str, response: httpx.Response) -> dict[str, Any]:
    """The JSON object of an unsigned resource answer (OpenID Connect Core §5.3.2)."""
    _resource(checks, what, response, "application/json")
    return json_object(checks, what, response.content)


def kid(token: str) -> object:
    """The kid in a JWT's header, unverified; None if there is none."""
    try:
        return jwt.peek(token)[0].get("kid")
    except ValueError:
        return None


def demanded_nonce(response: httpx.Response) -> str | None:
    """The nonce that an answer demands of the next DPoP proof.

    Source: RFC 9449 §8, §9
    """
    said = response.headers.get("www-authenticate", "") + response.text
    return response.headers.get("dpop-nonce") if response.is_client_error and "use_dpop_nonce" in said else None


def _resource(checks: Checklist, what: str, response: httpx.Response, content_type: str) -> None:
    _no_error(what, response)
    answer(checks, what, response, status=200, content_type=content_type)
    checks.that(f"{what}: no challenge", "www-authenticate" not in response.headers, "a challenge with a response")


def _public(checks: Checklist, what: str, response: httpx.Response, *, content_type: str) -> dict[str, Any]:
    checks.equal(f"{what}: status", response.status_code, 200)
    got = response.headers.get("content-type", "").split(";")[0].strip()
    checks.equal(f"{what}: content type", got, content_type)
    return json_object(checks, what, response.content)


def _no_error(where: str, response: httpx.Response) -> None:
    if response.status_code < 400:
        return
    try:
        document = json.loads(response.content)
    except ValueError:
        document = {}
    error = document.get("error", "") if isinstance(document, dict) else ""
    challenge = response.headers.get("www-authenticate", "")
    description = (
        document.get("error_description", challenge) if error else f"answered without an error code {challenge}"
    )
    raise ProviderError(where, error or "(no error code)", description, response.status_code)


CLOCK_LEEWAY_SECONDS: Final = 10
TOKEN_SECONDS: Final = 600  # Spec 8
SIGNING_ALGORITHM: Final = "ES256"
_CERTIFICATE_MEMBERS = frozenset({"x5c", "x5t", "x5t#S256"})
DANGEROUS_HEADERS: Final = frozenset({"crit", "zip", "b64", "jku", "x5u", "jwk"})


class CheckFailed(Exception):
    """The relying party refuses a response; `check` names the failed check."""

    def __init__(self, check: str, problem: str) -> None:
        super().__init__(f"{check}: {problem}")
        self.check = check
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Check:
    """A check, and the observation."""

    name: str
    passed: bool
    seen: str


@dataclass(slots=True)
class Checklist:
    """The checks of one sign-in, in order."""

    checks: list[Check] = field(default_factory=list)

    def that(self, name: str, holds: bool, problem: str, seen: object = "") -> None:
        """Record a check; raise CheckFailed with `problem` unless it holds."""
        self.checks.append(Check(name, holds, _short(seen) if holds else problem))
        if not holds:
            raise CheckFailed(name, problem)

    def equal(self, name: str, seen: object, expected: object) -> None:
        """Check that a value and its type equal the expected ones.

        Raises CheckFailed.
        """
        same = type(seen) is type(expected) and seen == expected
        self.that(name, same, f"expected {_short(expected)}, got {_short(seen)}", seen)

    def failed(self, name: str, problem: str) -> CheckFailed:
        """Record a failed check; returns the exception to raise."""
        self.checks.append(Check(name, False, problem))
        return CheckFailed(name, problem)


def answer(checks: Checklist, what: str, response: httpx.Response, *, status: int, content_type: str) -> None:
    """Check status, content type and no-store (Spec 4, D31)."""
    checks.equal(f"{what}: status", response.status_code, status)
    checks.equal(f"{what}: content type", response.headers.get("content-type", "").split(";")[0].strip(), content_type)
    checks.equal(f"{what}: not cached", response.headers.get("cache-control"), "no-store")
    checks.equal(f"{what}: not cached (HTTP/1.0)", response.headers.get("pragma"), "no-cache")


def json_object(checks: Checklist, what: str, content: bytes | str) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except ValueError:
        raise checks.failed(f"{what}: JSON", "is not JSON") from None
    checks.that(f"{what}: JSON object", isinstance(document, dict), "is JSON, but not an object")
    return dict(document)


def signed(
    checks: Checklist, what: str, token: str, keys: KeySet, *, types: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims of a JWS, verified by its kid's key.

    The provider's. Source: Spec 4.7, D20, D21
    """
    header = _header(checks, what, token, parts=3)
    checks.equal(f"{what}: alg", header.get("alg"), SIGNING_ALGORITHM)
    checks.that(f"{what}: typ", header.get("typ") in types, f"expected {types[0]}, got {_short(header.get('typ'))}",
                header.get("typ"))  # fmt: skip
    key = signature_key(keys, header.get("kid"))
    if key is None:
        raise checks.failed(f"{what}: kid", f"no key with use=sig has the kid {_short(header.get('kid'))}")
    try:
        payload = jwt.verified(token, key, SIGNING_ALGORITHM)
    except (JoseError, ValueError) as error:
        raise checks.failed(f"{what}: signature", f"does not verify ({error})") from error
    checks.that(f"{what}: signature", True, "", f"ES256, kid {header['kid']}")
    return header, json_object(checks, f"{what}: claims", payload)


def signature_key(keys: KeySet, kid: object) -> Key | None:
    """The key with this kid and use=sig, if the set has one.

    Source: Spec 4.7
    """
    return next((key for key in keys if key.get("kid") == kid and key.get("use") == "sig"), None)


def opened(
    checks: Checklist, what: str, token: str, key: Key, *, alg: str, enc: str, repeated: Mapping[str, str]
) -> str:
    """The JWS inside a JWE that was encrypted to our key.

    `repeated` are claims that its header may hold too (D21).
    """
    header = _header(checks, what, token, parts=5)
    checks.equal(f"{what}: encryption alg", header.get("alg"), alg)
    checks.equal(f"{what}: encryption enc", header.get("enc"), enc)
    checks.equal(f"{what}: encrypted to our kid", header.get("kid"), key.get("kid"))
    checks.equal(f"{what}: cty", header.get("cty"), "JWT")
    for name in repeated.keys() & header.keys():
        checks.equal(f"{what}: {name} of the encryption's header", header[name], repeated[name])
    try:
        plaintext = jwt.decrypted(token, key, (alg, enc)).decode("ascii")
    except (JoseError, ValueError) as error:
        raise checks.failed(f"{what}: decryption", f"cannot be decrypted with our key ({error})") from error
    checks.that(f"{what}: decryption", True, "", f"{alg}, {enc}")
    return plaintext


def times(checks: Checklist, what: str, claims: Mapping[str, Any], *, now: float) -> None:
    """Issued just now, not expired, ten minutes long (Spec 8)."""
    iat, exp = claims.get("iat"), claims.get("exp")
    if not isinstance(iat, int) or not isinstance(exp, int) or bool in (type(iat), type(exp)):
        raise checks.failed(f"{what}: iat and exp are whole numbers", f"got {_short(iat)} and {_short(exp)}")
    checks.that(f"{what}: iat", iat <= now + CLOCK_LEEWAY_SECONDS, f"is {iat - now:.0f} s in the future", iat)
    checks.that(f"{what}: exp", exp > now, f"passed {now - exp:.0f} s ago", exp)
    checks.equal(f"{what}: lives ten minutes", exp - iat, TOKEN_SECONDS)


def _header(checks: Checklist, what: str, token: str, *, parts: int) -> dict[str, Any]:
    kind = {3: "signed (JWS)", 5: "encrypted (JWE)"}[parts]
    checks.that(f"{what}: {kind}", token.count(".") == parts - 1, f"has {token.count('.') + 1} parts, not {parts}")
    try:
        header, _ = jwt.peek(token)
    except ValueError as error:
        raise checks.failed(f"{what}: header", str(error)) from error
    surprising = sorted(DANGEROUS_HEADERS & header.keys())
    checks.that(f"{what}: no dangerous header member", not surprising, f"its header has {', '.join(surprising)}")
    return header


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 120 else f"{text[:117]}…"


def objects(checks: Checklist, what: str, block: Any, *, stringified: bool) -> Any:
    """A block as an object, parsed if the client registered text.

    Source: D22
    """
    if not stringified:
        return block
    checks.that(f"{what}: text", isinstance(block, str), f"expected a text that holds JSON, got {type(block).__name__}")
    return json_object(checks, what, block)


def assignments(checks: Checklist, what: str, block: Any) -> None:
    """The roles for the entity itself. Raises CheckFailed."""
    _services(checks, what, block, _assignments)


def third_parties(checks: Checklist, what: str, block: Any) -> None:
    """The roles for other entities. Raises CheckFailed."""
    _services(checks, what, block, _third_parties)


def _services(checks: Checklist, what: str, block: Any, rows_of: Callable[[Mapping[str, Any]], str]) -> None:
    try:
        result_set = block["Result_Set"]
        services = result_set["ESrvc_Result"]
        counted = result_set["ESrvc_Row_Count"] == len(services)
        problem = "" if counted else f"ESrvc_Row_Count is {result_set['ESrvc_Row_Count']}, not {len(services)}"
        for service in services:
            problem = problem or rows_of(service)
    except (KeyError, TypeError) as error:
        raise checks.failed(f"{what}: shape", f"is not as Spec 2.6 says ({error!r})") from error
    checks.that(f"{what}: shape and counts", not problem, problem, f"{len(services)} services")


def _assignments(service: Mapping[str, Any]) -> str:
    return _rows(service["CPESrvcID"], service["Auth_Result_Set"], "CPEntID_SUB")


def _third_parties(service: Mapping[str, Any]) -> str:
    chains = service["Auth_Set"]["TP_Auth"]
    if service["Auth_Set"]["ENT_ROW_COUNT"] != len(chains):
        return f"{service['CPESrvcID']}: ENT_ROW_COUNT does not count TP_Auth"
    problems = (
        _rows(f"{chain['CP_Clnt_ID']} {chain['CP_ClntEnt_TYPE']}", chain["Auth_Result_Set"], "CP_ClntEnt_SUB")
        for chain in chains
    )
    return next(filter(None, problems), "")


def _rows(name: str, result_set: Mapping[str, Any], sub_entity: str) -> str:
    rows = result_set["Row"]
    if result_set["Row_Count"] != len(rows):
        return f"{name}: Row_Count does not count Row"
    members = {sub_entity, "CPRole", "StartDate", "EndDate", "Parameter"}
    return next((f"{name}: a row has {sorted(row)}, not {sorted(members)}" for row in rows if set(row) != members), "")


MEMBERS: Final = ("s", "uuid", "u", "c")
"""identity number, the user's identifier, the account, the country of identity"""
MEMBER: Final = re.compile(r"([a-z]+)=((?:[!-$&-+\--<>-~]|%[0-9A-F]{2})*)")
"""a name and a value without space, comma and equals sign; % begins an escape"""
ACCOUNT_TYPES: Final = ("User", "Sub-Admin", "Admin")
USER: Final = ("CPAccType", "CPUID_FullName", "ISSPHOLDER")
ENTITY: Final = ("CPEntID", "CPEnt_TYPE", "CPEnt_Status", "CPNonUEN_Country", "CPNonUEN_RegNo", "CPNonUEN_Name")
ENTITY_TYPES: Final = ("UEN", "NON-UEN", "GSTN")
STATUSES: Final = ("Registered", "De-Registered", "Withdrawn", "")


def members(sub: str) -> dict[str, str]:
    """The members of a packed subject, unescaped.

    Raises ValueError if it is none.
    """
    found = [MEMBER.fullmatch(part) for part in sub.split(",")]
    if None in found:
        raise ValueError(f"{sub!r} is not made of key=value")
    parts = [(match[1], unquote(match[2], errors="strict")) for match in found if match is not None]
    if sorted(name for name, _ in parts) != sorted(MEMBERS):
        raise ValueError(f"it names {', '.join(name for name, _ in parts)}, not each of {', '.join(MEMBERS)} once")
    return dict(parts)


def parties(checks: Checklist, what: str, claims: Mapping[str, Any]) -> None:
    """sub, userInfo and entityInfo of an ID token.

    Every member is there, blank rather than absent. Raises CheckFailed.
    """
    sub = claims.get("sub")
    try:
        parts = members(sub) if isinstance(sub, str) else {}
    except ValueError as error:
        raise checks.failed(f"{what}: sub", str(error)) from error
    checks.that(f"{what}: sub", bool(parts.get("uuid")), f"tells no uuid: {sub!r}", sub)
    user = _texts(checks, f"{what}: userInfo", claims.get("userInfo"), USER)
    entity = _texts(checks, f"{what}: entityInfo", claims.get("entityInfo"), ENTITY)
    _one_of(checks, f"{what}: ISSPHOLDER", user["ISSPHOLDER"], ("YES", "NO"))
    _one_of(checks, f"{what}: CPAccType", user["CPAccType"], ACCOUNT_TYPES)
    checks.that(f"{what}: CPEntID", bool(entity["CPEntID"]), "is blank", entity["CPEntID"])
    kind = entity["CPEnt_TYPE"]
    _one_of(checks, f"{what}: CPEnt_TYPE", kind, ENTITY_TYPES)
    _one_of(checks, f"{what}: CPEnt_Status", entity["CPEnt_Status"], ("",) if kind == "NON-UEN" else STATUSES)
    given = [name for name in ENTITY if name.startswith("CPNonUEN_") and entity[name]]
    checks.that(f"{what}: CPNonUEN_* blank for UEN", kind != "UEN" or not given, f"tells {', '.join(given)}")


def _texts(checks: Checklist, name: str, found: Any, expected: tuple[str, ...]) -> dict[str, str]:
    shaped = isinstance(found, dict) and set(found) == set(expected) and all(isinstance(v, str) for v in found.values())
    checks.that(name, shaped, f"expected the texts {', '.join(expected)}, got {found!r}", found)
    return dict(found)


def _one_of(checks: Checklist, name: str, value: str, allowed: tuple[str, ...]) -> None:
    checks.that(name, value in allowed, f"{value!r} is none of {', '.join(map(repr, allowed))}", value)


OTHER_PARTY = {"user": ("entity", "entity"), "entity": ("act", "user")}
"""sub_type → the claim that holds the other party, and its sub_type (D2)"""
SHAPES = {"authinfo": assignments, "tpauthinfo": third_parties}
"""scope → the check of the block that it grants"""
ALWAYS = frozenset({"authinfo"})
"""the scopes whose block is there even without rows (D23)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedClaims:
    """Expected claims of every document, and the moment of the check."""

    issuer: str
    client_id: str
    now: float
    packed_subject: bool = False
    """`sub` packs the person; userInfo and entityInfo have the rest (R-12.2)"""


def id_token(
    checks: Checklist, claims: Mapping[str, Any], expected: ExpectedClaims, *, nonce: str | None, access_token: str
) -> None:
    """The claims of an ID token (OpenID Connect Core §3.1.3.7, D2, R-12.2).

    Raises CheckFailed.
    """
    what = "ID token"
    checks.equal(f"{what}: iss", claims.get("iss"), expected.issuer)
    checks.equal(f"{what}: aud", claims.get("aud"), expected.client_id)
    times(checks, what, claims, now=expected.now)
    checks.equal(f"{what}: nonce", claims.get("nonce"), nonce)
    checks.equal(f"{what}: at_hash", claims.get("at_hash"), jwt.half_digest(access_token))
    _auth_time(checks, what, claims, now=expected.now)
    amr = claims.get("amr")
    strings = isinstance(amr, list) and bool(amr) and all(isinstance(one, str) for one in amr)
    checks.that(f"{what}: amr", strings, f"expected a list of methods, got {amr!r}", amr)
    if expected.packed_subject:
        parties(checks, what, claims)
    else:
        _acr(checks, what, claims)
        _parties(checks, what, claims)


def access_token(
    checks: Checklist,
    claims: Mapping[str, Any],
    expected: ExpectedClaims,
    *,
    scope: str,
    jkt: str | None,
    resources: Sequence[str],
    identity: Mapping[str, Any],
) -> None:
    """The claims of an access token.

    `jkt` is the thumbprint of the key it is bound to, None if it is bound to none; `identity` are the ID
    token's claims. Raises CheckFailed.
    Source: RFC 9068 §2.2, RFC 9449 §6.1, D20
    """
    what = "access token"
    checks.equal(f"{what}: iss", claims.get("iss"), expected.issuer)
    audience = claims.get("aud")
    names_them = isinstance(audience, list) and set(resources) <= set(audience)
    checks.that(f"{what}: aud", names_them, f"expected a list with {', '.join(resources)}, got {audience!r}", audience)
    checks.equal(f"{what}: client_id", claims.get("client_id"), expected.client_id)
    checks.equal(f"{what}: scope", claims.get("scope"), scope)
    times(checks, what, claims, now=expected.now)
    jti = claims.get("jti")
    checks.that(f"{what}: jti", isinstance(jti, str) and bool(jti), f"expected a string, got {jti!r}", jti)
    if jkt is None:
        checks.that(f"{what}: bound to no key", "cnf" not in claims, "it has a cnf, but is a bearer token")
    else:
        bound = claims.get("cnf")
        checks.equal(f"{what}: cnf.jkt", bound.get("jkt") if isinstance(bound, dict) else None, jkt)
    _acr(checks, what, claims)
    _auth_time(checks, what, claims, now=expected.now)
    checks.equal(f"{what}: sub as in the ID token", claims.get("sub"), identity.get("sub"))
    if expected.packed_subject:
        other, party = "entity", {"sub": identity["entityInfo"]["CPEntID"], "sub_type": "entity"}
    else:
        other, kind = OTHER_PARTY[str(identity["sub_type"])]
        party = {"sub": identity[other]["sub"], "sub_type": kind}
    checks.equal(f"{what}: {other} as in the ID token", claims.get(other), party)


def envelope(checks: Checklist, what: str, claims: Mapping[str, Any], expected: ExpectedClaims) -> None:
    """Check the claims common to all signed answers of a resource.

    Raises CheckFailed. Source: Spec 2.5, 2.6, D26
    """
    checks.equal(f"{what}: iss", claims.get("iss"), expected.issuer)
    checks.equal(f"{what}: aud", claims.get("aud"), expected.client_id)
    times(checks, what, claims, now=expected.now)


def userinfo(
    checks: Checklist, claims: Mapping[str, Any], reading: Reading, *, sub: str, scope: str, stringified: bool
) -> dict[str, Any]:
    """The claims of a userinfo answer, its blocks as objects.

    Raises CheckFailed.

    `stringified` says that this client registered blocks that are texts.
    Source: Spec 2.5, 2.6, D22, D23
    """
    what = reading.name
    checks.equal(f"{what}: sub as in the ID token", claims.get("sub"), sub)
    granted = scope.split() if reading.scoped else [*reading.blocks]
    for name, block in reading.blocks.items():
        checks.that(f"{what}: no {block} without {name}", name in granted or block not in claims, "is there unasked")
    given = dict(claims)
    for name, block in reading.blocks.items():
        if block in claims or name in ALWAYS.intersection(granted):
            given[block] = objects(checks, f"{what}: {block}", claims.get(block), stringified=stringified)
            SHAPES[name](checks, f"{what}: {block}", given[block])
    return given


def parties_of(claims: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The claims on person and entity in an ID token (D2)."""
    other, _ = OTHER_PARTY[str(claims["sub_type"])]
    return (claims, claims[other]) if claims["sub_type"] == "user" else (claims[other], claims)


def entity_info(checks: Checklist, claims: Mapping[str, Any], what: str, *, identity: Mapping[str, Any]) -> None:
    """The claims of an entity-info answer.

    `identity` are the ID token's claims (D26). Raises CheckFailed.
    """
    checks.equal(f"{what}: sub as in the ID token", claims.get("sub"), identity.get("sub"))
    _, entity = parties_of(identity)
    given = claims.get("entity_info")
    checks.equal(f"{what}: entity_info as in the ID token", given, entity.get("sub_attributes", {}))


def _acr(checks: Checklist, what: str, claims: Mapping[str, Any]) -> None:
    acr = claims.get("acr")
    checks.that(f"{what}: acr", isinstance(acr, str) and bool(acr), f"expected a URN, got {acr!r}", acr)


def _auth_time(checks: Checklist, what: str, claims: Mapping[str, Any], *, now: float) -> None:
    auth_time = claims.get("auth_time")
    known = isinstance(auth_time, int) and not isinstance(auth_time, bool) and auth_time <= now + CLOCK_LEEWAY_SECONDS
    checks.that(f"{what}: auth_time", known, f"expected a moment in the past, got {auth_time!r}", auth_time)


def _parties(checks: Checklist, what: str, claims: Mapping[str, Any]) -> None:
    sub, sub_type = claims.get("sub"), claims.get("sub_type")
    checks.that(f"{what}: sub", isinstance(sub, str) and bool(sub), f"expected a string, got {sub!r}", sub)
    checks.that(f"{what}: sub_type", sub_type in OTHER_PARTY, f"expected user or entity, got {sub_type!r}", sub_type)
    name, kind = OTHER_PARTY[str(sub_type)]
    party = claims.get(name)
    shaped = isinstance(party, dict) and isinstance(party.get("sub"), str) and party.get("sub_type") == kind
    checks.that(f"{what}: {name}", shaped, f"expected an object with sub and sub_type {kind}, got {party!r}", party)
