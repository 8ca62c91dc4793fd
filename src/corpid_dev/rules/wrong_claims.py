"""Claims and callbacks with one fault (D66).

A fault that cannot be applied, such as a missing claim that is not there, gives None.

Tokens that are signed or encrypted wrongly in one way (D66).
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from corpid.jose import compact, encryption
from corpid.jose.encoding import base64url, from_base64url, json_object
from corpid.jose.keys import ALGORITHMS, BY_CURVE, EncryptionKey
from corpid_dev.rules.orders import MANY_ROWS, Order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.jose.key_ring import SigningKey

Claims: TypeAlias = "dict[str, Any]"
Pairs: TypeAlias = tuple[tuple[str, str], ...]

ANOTHER_ISSUER: Final = "https://another-issuer.example"
ANOTHER_AUDIENCE: Final = "https://another-audience.example"
_ANOTHER_PERSON: Final = "00000000-0000-4000-8000-000000000000"
_BLOCKS: Final = ("auth_info", "tp_auth_info", "AuthInfo", "TPAuthInfo")
_OWN_BLOCKS: Final = ("auth_info", "AuthInfo")
_ROW: Final = {
    "CPEntID_SUB": "", "CPRole": "Sandbox Role", "StartDate": "2020-01-01", "EndDate": "9999-12-31", "Parameter": [],
}  # fmt: skip
_HOUR: Final = 3600


def claims(order: Order, given: Mapping[str, Any], *, now: int) -> Claims | None:
    """The claims with the fault of a `token` order.

    None if the fault is none of claims, or cannot be applied. Source: D66
    """
    fault = order.text("fault")
    if fault == "missing-claim":
        return _without_claim(given, order.text("claim"))
    return _CHANGES[fault](given, now) if fault in _CHANGES else None


def _without_claim(given: Mapping[str, Any], name: str) -> Claims | None:
    return {each: value for each, value in given.items() if each != name} if name in given else None


def _with_audience(own: object) -> list[object]:
    return [*(own if isinstance(own, list) else [own]), ANOTHER_AUDIENCE]


def _moved(given: Mapping[str, Any], *, by: int) -> Claims | None:
    times = {name: given[name] + by for name in ("iat", "exp") if name in given}
    return {**given, **times} if "exp" in times else None


def _another_person(sub: str) -> str:
    parts = sub.split(",")
    packed = [f"uuid={_ANOTHER_PERSON}" if part.startswith("uuid=") else part for part in parts]
    return ",".join(packed) if packed != parts else _ANOTHER_PERSON


def _add_unknown(results: list[Claims]) -> None:
    """Add an unknown role at each service, and an unknown service."""
    for service in results:
        _add_rows(service, 1)
    results.append({"CPESrvcID": "SANDBOX-SERVICE", "Auth_Result_Set": {"Row_Count": 1, "Row": [dict(_ROW)]}})


def _fill(results: list[Claims]) -> None:
    """Many rows at the first service."""
    if not results:
        results.append({"CPESrvcID": "SANDBOX-SERVICE", "Auth_Result_Set": {"Row_Count": 0, "Row": []}})
    _add_rows(results[0], MANY_ROWS - len(results[0]["Auth_Result_Set"]["Row"]))


def _add_rows(service: Claims, count: int) -> None:
    rows = service["Auth_Result_Set"]["Row"]
    like = rows[0] if rows else _ROW
    rows += [{**like, "CPRole": f"Sandbox Role {number + 1}"} for number in range(count)]
    service["Auth_Result_Set"]["Row_Count"] = len(rows)


def _with_results(
    given: Mapping[str, Any], names: tuple[str, ...], change: Callable[[list[Claims]], None]
) -> Claims | None:
    """The claims with other services in these blocks of roles.

    A block is an object, or a text that holds JSON (D22). None if there is none.
    """
    changed = dict(given)
    found = [name for name in names if name in given]
    for name in found:
        text = isinstance(given[name], str)
        block = msgspec.json.decode(given[name] if text else msgspec.json.encode(given[name]))
        results = block["Result_Set"]["ESrvc_Result"]
        change(results)
        block["Result_Set"]["ESrvc_Row_Count"] = len(results)
        changed[name] = msgspec.json.encode(block).decode() if text else block
    return changed if found else None


_CHANGES: Final[Mapping[str, Callable[[Mapping[str, Any], int], Claims | None]]] = {
    "iss": lambda given, _: {**given, "iss": ANOTHER_ISSUER},
    "aud": lambda given, _: {
        **given,
        "aud": [ANOTHER_AUDIENCE] if isinstance(given.get("aud"), list) else ANOTHER_AUDIENCE,
    },
    "aud-further": lambda given, _: {**given, "aud": _with_audience(given.get("aud"))},
    "nonce": lambda given, _: {**given, "nonce": "another-nonce"},
    "nonce-missing": lambda given, _: _without_claim(given, "nonce"),
    "at-hash": lambda given, _: {**given, "at_hash": "A" * 22},
    "exp": lambda given, now: _moved(given, by=now - _HOUR - int(given.get("exp", now))),
    "iat": lambda given, now: _moved(given, by=now + _HOUR - int(given.get("iat", now))),
    "sub": lambda given, _: {**given, "sub": _another_person(str(given.get("sub", "")))},
    "extra-roles": lambda given, _: _with_results(given, _OWN_BLOCKS, _add_unknown),
    "empty-result-set": lambda given, _: _with_results(given, _BLOCKS, list.clear),
    "many-rows": lambda given, _: _with_results(given, _OWN_BLOCKS, _fill),
}
"""by fault, the claims with it; None if it cannot be applied"""


def callback(order: Order, given: Pairs) -> Pairs | None:
    """The parameters of a callback with the fault of a `callback` order.

    None if it cannot be applied: there is no code in an error's callback, and no `iss` in every one. Source: D66
    """
    sent = dict(given)
    match order.text("fault"):
        case "state":
            return _with(given, "state", "another-state")
        case "iss":
            return _with(given, "iss", ANOTHER_ISSUER)
        case "state-missing" if "state" in sent:
            return _without(given, "state")
        case "iss-missing" if "iss" in sent:
            return _without(given, "iss")
        case "error" | "error-state" as fault if "code" in sent:
            error = (("error", order.text("error")), ("error_description", "an order of the sandbox"))
            kept = _without(given, "code")
            return (*error, *(kept if fault == "error" else _with(kept, "state", "another-state")))
        case "code-twice" if "code" in sent:
            return (*given, ("code", sent["code"]))
        case "code" if "code" in sent:
            return _with(given, "code", _never_issued(sent["code"]))
        case "late" if "code" in sent:
            return given
    return None


def _never_issued(code: str) -> str:
    """A code of the same form; its beginning may name the generation."""
    return code[:8] + code[8:][::-1]


def _with(given: Pairs, name: str, value: str) -> Pairs:
    if all(each != name for each, _ in given):
        return (*given, (name, value))
    return tuple((each, value if each == name else sent) for each, sent in given)


def _without(given: Pairs, name: str) -> Pairs:
    return tuple(pair for pair in given if pair[0] != name)


_ES256: Final = ALGORITHMS["ES256"]
_RSA_BITS: Final = 2048


def sign_token(key: SigningKey, payload: bytes, typ: str) -> str:
    """A compact JWS by any key, under its kid (RFC 7515 §5.1)."""
    return compact.sign(key.headers[typ], payload, key.private, _ES256)


def with_bad_signature(token: str) -> str:
    """The token with a signature that does not verify (RFC 7515 §5.2)."""
    head, _, signature = token.rpartition(".")
    octets = bytearray(from_base64url(signature))
    octets[len(octets) // 2] ^= 0x01
    return f"{head}.{base64url(bytes(octets))}"


def unsigned_token(key: SigningKey, payload: bytes, typ: str) -> str:
    """A token whose algorithm is `none` (RFC 7518 §3.6)."""
    return f"{_head('none', key.kid, typ)}.{base64url(payload)}."


def by_published_key(key: SigningKey, payload: bytes, typ: str) -> str:
    """A token by HS256, whose secret is the published key as PEM (RFC 8725 §2.1)."""
    message = f"{_head('HS256', key.kid, typ)}.{base64url(payload)}"
    secret = key.public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return f"{message}.{base64url(hmac.digest(secret, message.encode('ascii'), 'sha256'))}"


def _head(alg: str, kid: str, typ: str) -> str:
    return base64url(msgspec.json.encode({"alg": alg, "kid": kid, "typ": typ}))


def is_encrypted(token: str) -> bool:
    """Return whether it has the five parts of a compact JWE (RFC 7516 §3.1)."""
    return token.count(".") == 4


def encrypted_to_another(token: str, nested: str) -> str:
    """The JWS, encrypted to a new key under the kid of `token`.

    The algorithms are those of its header. Source: RFC 7516 §5.1
    """
    header: dict[str, Any] = json_object(from_base64url(token.partition(".")[0]))
    alg, enc, curve = str(header["alg"]), str(header["enc"]), str(header.get("epk", {}).get("crv", ""))
    public: ec.EllipticCurvePublicKey | rsa.RSAPublicKey
    if curve:
        public = ec.generate_private_key(BY_CURVE[curve].curve).public_key()
    else:
        public = rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS).public_key()
    key = EncryptionKey(kid=str(header["kid"]), wrap=alg, curve_name=curve, public=public)
    repeated: dict[str, str] = {name: str(header[name]) for name in ("iss", "aud") if name in header}
    return encryption.encrypt(nested, key, enc, claims=repeated)
