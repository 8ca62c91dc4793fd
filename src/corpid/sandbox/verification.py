"""What a strict relying party checks before it believes an answer.

Each check has a name and is kept, passed or failed, so that a page or a report can list them.
The first one that fails raises CheckFailed. Times are epoch seconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from joserfc.errors import JoseError

from corpid.sandbox import jwt

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx
    from joserfc.jwk import Key, KeySet

CLOCK_LEEWAY_SECONDS: Final = 10
TOKEN_SECONDS: Final = 600  # Spec 8
SIGNING_ALGORITHM: Final = "ES256"
DANGEROUS_HEADERS: Final = frozenset({"crit", "zip", "b64", "jku", "x5u", "jwk"})


class CheckFailed(Exception):
    """The relying party refuses an answer; `check` names what did not hold."""

    def __init__(self, check: str, problem: str) -> None:
        super().__init__(f"{check}: {problem}")
        self.check = check
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked and what was seen."""

    name: str
    passed: bool
    seen: str


@dataclass(slots=True)
class Checklist:
    """The checks of one sign-in, in order."""

    checks: list[Check] = field(default_factory=list)

    def that(self, name: str, holds: bool, problem: str, seen: object = "") -> None:
        """Keep a check; raises CheckFailed with `problem` unless it holds."""
        self.checks.append(Check(name, holds, _short(seen) if holds else problem))
        if not holds:
            raise CheckFailed(name, problem)

    def equal(self, name: str, seen: object, expected: object) -> None:
        """Keep a check that a value and its type are exactly these; raises CheckFailed."""
        same = type(seen) is type(expected) and seen == expected
        self.that(name, same, f"expected {_short(expected)}, got {_short(seen)}", seen)

    def failed(self, name: str, problem: str) -> CheckFailed:
        """Keep a failed check; the exception to raise."""
        self.checks.append(Check(name, False, problem))
        return CheckFailed(name, problem)


def answer(checks: Checklist, what: str, response: httpx.Response, *, status: int, content_type: str) -> None:
    """Status, content type and that nobody may keep it (Spec 4, D31)."""
    checks.equal(f"{what}: status", response.status_code, status)
    checks.equal(f"{what}: content type", response.headers.get("content-type", "").split(";")[0].strip(), content_type)
    checks.equal(f"{what}: not cached", response.headers.get("cache-control"), "no-store")
    checks.equal(f"{what}: not cached (HTTP/1.0)", response.headers.get("pragma"), "no-cache")


def json_object(checks: Checklist, what: str, content: bytes | str) -> dict[str, Any]:
    """A JSON object."""
    try:
        document = json.loads(content)
    except ValueError:
        raise checks.failed(f"{what}: JSON", "is not JSON") from None
    checks.that(f"{what}: JSON object", isinstance(document, dict), "is JSON, but not an object")
    return dict(document)


def signed(
    checks: Checklist, what: str, token: str, keys: KeySet, *, types: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims of a JWS, verified with the provider's key that its kid names (Spec 4.7, D20, D21)."""
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
    """The key with this kid and use=sig, if the set has one (Spec 4.7)."""
    return next((key for key in keys if key.get("kid") == kid and key.get("use") == "sig"), None)


def opened(
    checks: Checklist, what: str, token: str, key: Key, *, alg: str, enc: str, repeated: Mapping[str, str]
) -> str:
    """The JWS inside a JWE that was encrypted to our key; `repeated` are claims that its header may hold too (D21)."""
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
