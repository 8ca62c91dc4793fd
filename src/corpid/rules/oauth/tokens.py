"""Tokens and resource answers: their claims, and verification of an access token.

Source: RFC 9068, D1, D2, D20
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import unquote

import msgspec

from corpid.jose import compact
from corpid.jose.encoding import JoseError, MalformedToken, base64url, tuple_bytes
from corpid.jose.key_ring import ACCESS_TOKEN, KeyRing
from corpid.rules.limits import ACCESS_TOKEN_SECONDS, ID_TOKEN_SECONDS, USERINFO_SECONDS
from corpid.rules.oauth.errors import (
    CredentialsRequired,
    InsufficientScope,
    InvalidRequest,
    InvalidToken,
    abbreviate_hash,
    shorten_value,
    without_query,
)
from corpid.rules.oauth.jwt_claims import BadClaim, jti, numeric_date, seconds
from corpid.rules.oauth.records import ALG_OF_KEY, Client, Grant, SubjectMode
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from corpid.rules.oauth.generations import Generation


class LegacyClaims(msgspec.Struct, frozen=True, kw_only=True):
    """Both parties in the format of a generation with packed subjects (R-12.2)."""

    sub: str
    """key=value, separated by commas; `uuid` is the user_id"""
    attributes: Mapping[str, Mapping[str, str]]
    """userInfo and entityInfo"""


class Parties(msgspec.Struct, frozen=True, kw_only=True):
    """Identifiers of both, and their attributes by granted scope."""

    user_id: str
    entity_id: str
    user_attributes: Mapping[str, str]
    entity_attributes: Mapping[str, str]
    packed: LegacyClaims | None = None


def party_claims(parties: Parties, mode: SubjectMode, *, attributes: bool) -> dict[str, object]:
    """sub, sub_type and the other party nested.

    With attributes if asked for (D1, D2, D20).
    """
    entity: dict[str, object] = {"sub": parties.entity_id, "sub_type": "entity"}
    if parties.packed is not None:
        return {"sub": parties.packed.sub, **(parties.packed.attributes if attributes else {"entity": entity})}
    user: dict[str, object] = {"sub": parties.user_id, "sub_type": "user"}
    if attributes and parties.user_attributes:
        user["sub_attributes"] = dict(parties.user_attributes)
    if attributes and parties.entity_attributes:
        entity["sub_attributes"] = dict(parties.entity_attributes)
    return {**user, "entity": entity} if mode == "user" else {**entity, "act": user}


def _packed_user(sub: str) -> str:
    return unquote(dict(part.partition("=")[::2] for part in sub.split(",")).get("uuid", ""))


def read(claims_of_token: Mapping[str, object]) -> tuple[str, str] | None:
    """user_id and entity_id of an access token.

    One of them is its subject. Source: D20
    """
    nested = claims_of_token.get("act") or claims_of_token.get("entity")
    sub = claims_of_token.get("sub")
    if not isinstance(nested, dict) or not isinstance(sub, str) or not isinstance(nested.get("sub"), str):
        return None
    if "sub_type" not in claims_of_token:
        return _packed_user(sub), nested["sub"]
    return (sub, nested["sub"]) if claims_of_token["sub_type"] == "user" else (nested["sub"], sub)


_SCHEME: Final = re.compile(r"[a-z0-9-]{1,12}")
"""a longer text may be the token itself"""
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")


def refuse_absent(headers: Sequence[bytes], scheme: str) -> None:
    """Raise CredentialsRequired without a header, or with one of another scheme.

    Source: Spec 7.4 rule 2, D24
    """
    if not headers:
        raise CredentialsRequired(Reason.CREDENTIALS_MISSING, "no Authorization header").with_cause(
            expected=f"the scheme {scheme} and the access token"
        )
    if not any(map(bytes.strip, headers)):
        raise CredentialsRequired(Reason.CREDENTIALS_SCHEME, "the Authorization header is empty").with_cause(
            expected=f"the scheme {scheme} and the access token"
        )
    if len(headers) == 1 and (given := _parts(headers[0])[0]) != scheme.lower():
        raise CredentialsRequired(Reason.CREDENTIALS_SCHEME, "another scheme in the Authorization header").with_cause(
            received=shorten_value(given) if _SCHEME.fullmatch(given) else "no scheme", expected=scheme
        )


def _parts(header: bytes) -> tuple[str, str]:
    given, _, rest = header.decode("latin-1").strip().partition(" ")
    return given.lower(), rest.strip()


def access_token(headers: Sequence[bytes], scheme: str) -> str:
    """The access token under this scheme, compared without case.

    Raises CredentialsRequired without a header or with another scheme, InvalidRequest with several headers,
    InvalidToken when what follows the scheme is no token. Source: RFC 9449 §7.1, Spec 7.4, D24
    """
    refuse_absent(headers, scheme)
    if len(headers) > 1:
        raise InvalidRequest(Reason.CREDENTIALS_REPEATED, "the request has more than one Authorization header")
    _, token = _parts(headers[0])
    if not _TOKEN.fullmatch(token):
        raise InvalidToken(Reason.ACCESS_TOKEN_MALFORMED, "the access token is missing or malformed")
    return token


_TYPES: Final = (ACCESS_TOKEN, "application/at+jwt")
LOSS: Final = "after_loss"
"""our claim in an access token that was issued shortly after data was lost (D67)"""


class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    """A verified access token.

    The deny entry of its jti and the live state are still to be looked at.
    """

    client_id: str
    subject: str
    user_id: str
    entity_id: str
    scopes: tuple[str, ...]
    jti: str
    issued_at: float
    jkt: str | None
    loss: str = ""
    """the mark of the loss of data after which it was issued; empty: its iat tells"""


def identifier(*, issuer: str, client_id: str, code: str, challenge: str) -> str:
    """The jti of a code's access token, derived from the code (D18)."""
    return base64url(hashlib.sha256(tuple_bytes("at", issuer, client_id, code, challenge)).digest())


def access_token_claims(
    grant: Grant,
    subject: Parties,
    mode: SubjectMode,
    *,
    issuer: str,
    audience: list[str],
    token_id: str,
    now: int,
    loss: str = "",
) -> dict[str, object]:
    """The claims of a new token.

    `loss` is the tag of a recent loss of data. Source: RFC 9068 §2.2, D20, D67
    """
    token: dict[str, object] = {
        "iss": issuer,
        "aud": audience,
        **party_claims(subject, mode, attributes=False),
        "client_id": grant.client_id,
        "scope": " ".join(grant.scopes),
        "iat": now,
        "exp": now + ACCESS_TOKEN_SECONDS,
        "jti": token_id,
        "auth_time": grant.auth_time,
        "acr": grant.acr,
    }
    if grant.jkt is not None:
        token["cnf"] = {"jkt": grant.jkt}
    if loss:
        token[LOSS] = loss
    return token


ReadParties: TypeAlias = "Callable[[Mapping[str, object]], tuple[str, str] | None]"
"""claims → user_id and entity_id; None: these are not the claims of such a token"""


def verify(
    text: str, ring: KeyRing, *, issuer: str, resource_url: str, now: float, parties: ReadParties = read
) -> AccessToken:
    """Verify one of our own tokens for this resource.

    `issuer` is that of the authorization server, `resource_url` the audience, `parties` reads for whom the token is.
    Raises InvalidToken (RFC 9068 §4, D20).
    """
    try:
        token = compact.parse(text)
        if token.header.get("typ") not in _TYPES or token.algorithm != "ES256":
            received = f"typ {shorten_value(token.header.get('typ'))}, alg {shorten_value(token.algorithm)}"
            raise BadClaim("not an access token of this provider", Reason.ACCESS_TOKEN_FOREIGN, received=received)
        ring.verify(token)
        return _read(token.claims, issuer=issuer, resource_url=resource_url, now=now, parties=parties)
    except MalformedToken as error:
        raise InvalidToken(Reason.ACCESS_TOKEN_MALFORMED, f"access token: {error}") from None
    except JoseError as error:
        raise InvalidToken(Reason.ACCESS_TOKEN_FOREIGN, f"access token: {error}") from None
    except BadClaim as error:
        reason = error.reason or Reason.ACCESS_TOKEN_MALFORMED
        raise InvalidToken(reason, f"access token: {error}").with_cause(received=error.received) from None


def _read(token: dict[str, object], *, issuer: str, resource_url: str, now: float, parties: ReadParties) -> AccessToken:
    if token.get("iss") != issuer:
        received = f"iss {without_query(token.get('iss'))} instead of {issuer}"
        raise BadClaim("issued by another provider", Reason.ACCESS_TOKEN_FOREIGN, received=received)
    audience = token.get("aud")
    if not isinstance(audience, list) or resource_url not in audience:
        received = f"aud {shorten_value(audience)} at {resource_url}"
        raise BadClaim("not for this resource", Reason.ACCESS_TOKEN_AUDIENCE, received=received)
    exp, iat, token_id = numeric_date(token, "exp"), numeric_date(token, "iat"), jti(token)
    if exp is None or iat is None or token_id is None:
        raise BadClaim("not an access token of this provider", Reason.ACCESS_TOKEN_FOREIGN)
    if exp <= now:
        raise BadClaim(f"expired {seconds(now - exp)} ago", Reason.ACCESS_TOKEN_EXPIRED)
    both, cnf = parties(token), token.get("cnf")
    if both is None:
        raise BadClaim("not an access token of this provider", Reason.ACCESS_TOKEN_FOREIGN)
    jkt = cnf.get("jkt") if isinstance(cnf, dict) else None
    return AccessToken(
        client_id=str(token.get("client_id")),
        subject=str(token["sub"]),
        user_id=both[0],
        entity_id=both[1],
        scopes=tuple(str(token.get("scope", "")).split()),
        jti=token_id,
        issued_at=iat,
        jkt=jkt if isinstance(jkt, str) else None,
        loss=str(token.get(LOSS, "")),
    )


def validate_scope(token: AccessToken, scopes: Collection[str]) -> None:
    """The token must carry one of these scopes.

    Raises InsufficientScope (RFC 6750 §3.1, D26).
    """
    if not set(scopes).intersection(token.scopes):
        raise InsufficientScope(
            Reason.ACCESS_TOKEN_SCOPE,
            "the access token has none of the scopes that this resource needs",
            scope=" ".join(scopes),
        ).with_cause(
            received=shorten_value(" ".join(token.scopes)), expected=f"one of {shorten_value(' '.join(scopes))}"
        )


def validate_binding(token: AccessToken, jkt: str | None) -> None:
    """Verify that the proof's key is the token's, or both absent.

    Raises InvalidToken. Source: RFC 9449 §7.1, §7.2, D6, D25
    """
    if jkt is None and token.jkt is not None:
        raise InvalidToken(
            Reason.ACCESS_TOKEN_IS_BOUND, "access token: bound to a DPoP key, so it is not accepted as a bearer token"
        )
    if token.jkt != jkt:
        raise InvalidToken(Reason.ACCESS_TOKEN_KEY, "access token: not bound to the key of the DPoP proof").with_cause(
            received=f"a proof by {abbreviate_hash(jkt)}", expected=abbreviate_hash(token.jkt)
        )


def registered_wrap(client: Client) -> str | None:
    """The JWE alg that a client registered for its ID tokens.

    None: the one of its encryption key (D21).
    """
    return None if client.id_token_encryption_alg == ALG_OF_KEY else client.id_token_encryption_alg


def at_hash(access_token: str) -> str:
    """Left half of the SHA-256 of an access token, base64url.

    Source: OpenID Connect Core §3.1.3.6
    """
    return base64url(hashlib.sha256(access_token.encode("ascii")).digest()[:16])


def id_token_claims(
    grant: Grant,
    subject: Parties,
    mode: SubjectMode,
    generation: Generation,
    *,
    issuer: str,
    access_token: str,
    now: int,
) -> dict[str, object]:
    """The claims of a new ID token.

    Nonce and sid only if given (Spec 2.4, D2).
    """
    token: dict[str, object] = {
        "iss": issuer,
        "aud": grant.client_id,
        "iat": now,
        "exp": now + ID_TOKEN_SECONDS,
        "at_hash": at_hash(access_token),
        "auth_time": grant.auth_time,
        "amr": list(grant.amr),
        **party_claims(subject, mode, attributes=True),
    }
    if generation.acr_in_id_token:
        token["acr"] = grant.acr
    if grant.nonce is not None:
        token["nonce"] = grant.nonce
    if grant.sid:
        token["sid"] = grant.sid
    return token


def userinfo_claims(
    token: AccessToken, client: Client, blocks: Mapping[str, dict[str, object]], *, issuer: str, now: int
) -> dict[str, object]:
    """aud, iss, sub, iat, exp and the blocks.

    The blocks are text for clients registered so. Source: Spec 2.5, D22
    """
    answer: dict[str, object] = {
        "iss": issuer,
        "aud": client.client_id,
        "sub": token.subject,
        "iat": now,
        "exp": now + USERINFO_SECONDS,
    }
    for name, block in blocks.items():
        answer[name] = msgspec.json.encode(block).decode() if client.stringified_blocks else block
    return answer
