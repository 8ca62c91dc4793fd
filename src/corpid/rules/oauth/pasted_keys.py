"""Keys as people paste them, made a public key set if possible.

A single key, a list, PEM text or a certificate becomes a key set; what is private is taken out. Source: D27, RFC 7517
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from corpid.jose.encoding import JoseError, base64url, json_object
from corpid.jose.keys import BY_CURVE, RSA, WRAPS, public_jwk, thumbprint
from corpid.rules.oauth.client_registration import PRIVATE_INSIDE, public_key, public_part

_PEM: Final = "-----BEGIN "
_USES: Final = ("sig", "enc")
_OPERATIONS: Final = {"verify": "sig", "sign": "sig", "deriveKey": "enc", "deriveBits": "enc", "wrapKey": "enc"}
_ENCRYPTION_ALGORITHMS: Final = frozenset({*WRAPS, *RSA, "ECDH-ES"})
_RECEIVED: Final = 60
"""characters that a remark repeats of what is no key set"""
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----[^-]{1,16384}-----END \1-----")
_CERTIFICATE: Final = "CERTIFICATE"
_MOST_BLOCKS: Final = 8


class PastedKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Pasted keys: the public key set, and what was changed."""

    jwks: str
    """a key set as JSON text, or what was pasted if it is none; never anything private"""
    private: bool = False
    """whether anything private was in it"""
    fault: str = ""
    """why it is no key set"""
    completed: bool = False
    """whether the use or kid of a key was chosen here"""

    @property
    def key_set(self) -> dict[str, object] | None:
        """The key set, decoded; None if it is none."""
        return None if self.fault or not self.jwks else msgspec.json.decode(self.jwks, type=dict[str, object])


def read_pasted(text: str) -> PastedKeys:
    """Read pasted keys. Source: RFC 7517 §5, D66"""
    text = text.removeprefix("\ufeff").strip()
    if not text:
        return PastedKeys(jwks="")
    private = public_part(text) is not None
    if text.startswith(_PEM) or (_PEM in text and not text.startswith(("{", "["))):
        return _from_pem(text, private=private)
    try:
        # a list is read as a member, since only objects can be
        pasted = json_object(f'{{"keys":{text}}}')["keys"] if text.startswith("[") else json_object(text)
    except JoseError:
        fault = "this is neither a PEM public key nor a JSON key set: paste all of it, with its first and last line"
        if private:
            return PastedKeys(jwks="", private=True, fault=fault)
        return PastedKeys(jwks=text, fault=fault)
    keys, fault = _keys(pasted)
    if keys is None:
        return PastedKeys(jwks="" if private else text, private=private, fault=fault)
    public = [public_key(key) if isinstance(key, dict) else key for key in keys]
    completed = _add_uses(public)
    stays = isinstance(pasted, dict) and keys is pasted.get("keys") and not (private or completed)
    jwks = text if stays else _write(public)
    if public_part(jwks) is not None:  # deeper than a key's own members
        return PastedKeys(jwks="", private=True, fault=PRIVATE_INSIDE)
    return PastedKeys(jwks=jwks, private=private, completed=completed)


def describe_content(content: str) -> str:
    """The beginning of other content, unless it holds a private key.

    For people whose address gives no key set. Source: D48
    """
    if public_part(content) is not None:
        return "something with a private key in it"
    words = " ".join(content.split())
    return f"{words[:_RECEIVED]}…" if len(words) > _RECEIVED else words or "nothing"


def _keys(pasted: object) -> tuple[list[object] | None, str]:
    """The keys of what was pasted, or what is wrong with it."""
    if isinstance(pasted, list):
        return pasted, ""
    if not isinstance(pasted, dict):
        return None, 'this is no key set: write {"keys": [ ]} around the keys'
    if isinstance(pasted.get("keys"), list):
        return pasted["keys"], ""
    if "kty" in pasted:
        return [pasted], ""
    values = list(pasted.values())
    if values and all(isinstance(each, dict) and "kty" in each for each in values):
        return values, ""
    return None, 'this JSON has no array named keys: write {"keys": [ ]} around the keys'


def _write(keys: Sequence[object]) -> str:
    return msgspec.json.format(msgspec.json.encode({"keys": keys})).decode()


def _from_pem(text: str, *, private: bool) -> PastedKeys:
    if private:
        fault = (
            "this was a private key in PEM form: paste its public key, which `openssl pkey -in key.pem -pubout` prints"
        )
        return PastedKeys(jwks="", private=True, fault=fault)
    try:
        keys = _public_jwks(text)
    except JoseError as error:
        return PastedKeys(jwks=text, fault=f"this PEM text cannot be used: {error}")
    if len(keys) == 1:
        fault = "this is one key, which is taken to sign: paste the one to encrypt below it"
        return PastedKeys(jwks=text, fault=fault)
    for key, use in zip(keys, _USES, strict=False):
        key.update(use=use, kid=thumbprint(key))
    return PastedKeys(jwks=_write(keys), completed=True)


def _add_uses(keys: list[object]) -> bool:
    """Add each use that alg or key_ops tell.

    Returns whether one was missing.
    """
    found = [(key, _use(key)) for key in keys if isinstance(key, dict) and key.get("use") is None]
    for key, use in found:
        if use:
            key["use"] = use
    return any(use for _, use in found)


def _use(key: dict[str, object]) -> str:
    alg, operations = key.get("alg"), key.get("key_ops")
    if isinstance(alg, str):
        return "enc" if alg in _ENCRYPTION_ALGORITHMS else "sig"
    found = {_OPERATIONS.get(str(each), "") for each in operations} if isinstance(operations, list) else set()
    return found.pop() if len(found) == 1 else ""


class _PemRefused(JoseError):
    """PEM text without a public key that can be used here."""


def _public_jwks(text: str) -> list[dict[str, object]]:
    """The keys of PEM text, public keys and certificates, in order.

    They have no use, alg or kid. Raises _PemRefused. Source: RFC 7468
    """
    blocks = list(_BLOCK.finditer(text))
    if not blocks:
        raise _PemRefused("it has no complete block, from -----BEGIN to -----END")
    if len(blocks) > _MOST_BLOCKS:
        raise _PemRefused(f"it has more than {_MOST_BLOCKS} blocks")
    return [_jwk(number, block) for number, block in enumerate(blocks, start=1)]


def _jwk(number: int, block: re.Match[str]) -> dict[str, object]:
    try:
        if block[1] == _CERTIFICATE:
            from cryptography import x509  # noqa: PLC0415 - a serving process loads it for this alone

            public: object = x509.load_pem_x509_certificate(block[0].encode()).public_key()
        else:
            public = load_pem_public_key(block[0].encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise _PemRefused(f"block {number} ({block[1]}) is no public key and no certificate") from None
    if isinstance(public, rsa.RSAPublicKey):
        numbers = public.public_numbers()
        return {"kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e)}
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise _PemRefused(f"block {number} is neither an EC nor an RSA key")
    for name, algorithm in BY_CURVE.items():
        if isinstance(public.curve, type(algorithm.curve)):
            return public_jwk(name, public)
    raise _PemRefused(f"block {number} is on the curve {public.curve.name}, which no algorithm here uses")


def _number(value: int) -> str:
    return base64url(value.to_bytes((value.bit_length() + 7) // 8))
