"""The records of the protocol: clients, authorization requests, grants.

Frozen structs without behaviour; msgspec writes them to the stores and reads them back. What lives for
minutes is written as an array, without names: a new member goes to the end and has a default.
Times are epoch seconds.
"""

from __future__ import annotations

from typing import Literal

import msgspec

SubjectMode = Literal["user", "entity"]
Sector = Literal["private", "government"]
ContextTypeRule = Literal["required", "optional", "refused"]
PkceMode = Literal["required", "optional"]


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """A relying party as it was registered (Spec 1, R-20)."""

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]
    jwks: str | None = None
    """a JSON Web Key Set as JSON text; exactly one of jwks and jwks_uri (D27)"""
    jwks_uri: str | None = None
    scopes: tuple[str, ...] = ("openid",)
    services: tuple[str, ...] = ()
    """identifiers of the entity services whose roles this client may read"""
    generations: tuple[str, ...] = ()
    """empty: the pushed generation that the deployment serves"""
    legacy_until: str | None = None
    """the last day (YYYY-MM-DD, in the deployment's time zone) of the generation that ends"""
    endpoint_audience_until: str | None = None
    """the last day on which an assertion may name the endpoint that it is sent to instead of the issuer (D8, D64)"""
    subject: SubjectMode = "user"
    id_token_encryption_alg: str | None = None
    """how content keys are wrapped; None or `key`: as the encryption key says, `key` in every generation (D21)"""
    id_token_encryption_enc: str = "A256CBC-HS512"
    userinfo_signing_alg: str | None = None
    """None: as the generation says"""
    userinfo_encryption_enc: str | None = None
    """nests the signed answer in a JWE (D22)"""
    userinfo_encryption_alg: str | None = None
    """how its content keys are wrapped; None: as the encryption key says, where that is enough (D22)"""
    stringified_blocks: bool = False
    context_types: tuple[str, ...] = ("APP_AUTHENTICATION_DEFAULT",)
    context_type_rule: ContextTypeRule = "required"
    """whether its requests must, may or must not name one of them, where the generation requires it (D63)"""
    assurance_level: int = 2
    sector: Sector = "private"
    enabled: bool = True
    pkce: PkceMode = "required"
    """optional: its requests may come without code_challenge, in the generations that allow it"""
    pkce_optional_until: str | None = None
    """the last day (YYYY-MM-DD) on which they may; None: as long as the generation is served"""


class AuthorizationRequest(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A validated authorization request (Spec 4.1)."""

    client_id: str
    generation: str
    redirect_uri: str
    scopes: tuple[str, ...]
    code_challenge: str
    """empty: the request had none"""
    state: str | None = None
    nonce: str | None = None
    acr: str
    """the level to be reached, as a URN"""
    context_type: str | None = None
    context_message: str | None = None
    jkt: str | None = None
    response_mode: str = "query"
    prompt: tuple[str, ...] = ()
    max_age: int | None = None
    ui_locales: tuple[str, ...] = ()
    """language tags, the best first"""
    habits: tuple[str, ...] = ()
    """what is counted of its push (`deprecated_usage`)"""


class RequestingClient(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and the languages that they ask for: what a page says also where their request cannot be answered."""

    client: Client
    ui_locales: tuple[str, ...] = ()


class PushedRequest(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What PAR stores; written once, judged by the 60 s inside it (D15)."""

    request: AuthorizationRequest
    pushed_at: float


class Grant(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What a code stands for (Spec 2.3)."""

    client_id: str
    generation: str
    redirect_uri: str
    scopes: tuple[str, ...]
    nonce: str | None
    jkt: str | None
    user_id: str
    entity_id: str
    auth_time: int
    amr: tuple[str, ...]
    acr: str
    habits: tuple[str, ...] = ()
    """what is counted of the request: the successor of its generation would refuse it, or an exception allowed it"""
    sid: str = ""
    """the session as the ID token names it to this client; empty: it names none"""
