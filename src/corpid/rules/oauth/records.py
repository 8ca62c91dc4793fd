"""Records of the protocol: clients and their members, grants.

From a member's declaration follow the keys of a directory file, the options of `corpid client add` and `corpid client
update`, the values that can be registered, and the table in docs/directory.md.

Frozen structs; msgspec writes them to the stores and reads them back. What lives for minutes is written as an array,
without names: a new member goes to the end and has a default. Times are epoch seconds.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Protocol, TypeAlias, get_args

import msgspec

from corpid.jose.encryption import CONTENT_ENCRYPTIONS, ENCRYPTIONS
from corpid.jose.keys import WRAPS
from corpid.rules import readers
from corpid.rules.fields import SECRET, Disclosure, Field, KeyedRecord, documented_fields
from corpid.texts import phrase

SubjectMode = Literal["user", "entity"]
Sector = Literal["private", "government"]
ContextTypeRule = Literal["required", "optional", "refused"]
PkceMode = Literal["required", "optional"]
FIRST_ISSUER: Final = "first"
"""the id of the top-level issuer; the operator names further issuers (D62)"""
ALG_OF_KEY: Final = "key"
"""registered in the place of an alg: the ID token is always encrypted, with the alg of the client's key"""
ClientId: TypeAlias = Annotated[str, Field(read=readers.CLIENT_ID, identifies=True, searched=True)]


class FetchedKeySet(msgspec.Struct, frozen=True, kw_only=True):
    """The last good key set of a jwks_uri, stored for restarts (D27)."""

    jwks_uri: str
    jwks: Annotated[str, SECRET]
    fetched_at: int


class HasKeys(Protocol):
    """A relying party, or a client of the admin API."""

    @property
    def client_id(self) -> str: ...
    @property
    def jwks(self) -> str | None: ...
    @property
    def jwks_uri(self) -> str | None: ...


class Client(KeyedRecord, frozen=True, kw_only=True):
    """A relying party as it was registered (Spec 1, R-20).

    What is declared beside a type is all that files, commands and documents know of a member; its default is one
    that stored records may lack. The order is that of `client add --help` and of an export.
    """

    client_id: ClientId
    name: Annotated[
        str,
        Field(
            read=readers.name(100),
            label=phrase("Name"), hint=phrase("People see it when they sign in."),
            help="The name that people see when they sign in.",
            doc="text 100, shown when people sign in",
            needed=True, searched=True, example="RP",
        ),
    ]  # fmt: skip
    redirect_uris: Annotated[
        tuple[str, ...],
        Field(
            read=readers.ListReader(readers.URI, 1),
            label=phrase("Redirect URIs"),
            hint=phrase("Where people return after signing in, exactly as the client sends it. One per line."),
            help="A redirect URI; repeat for several.",
            default_help="Required, except with --api.",
            doc="exact https URLs; http for localhost and loopback addresses in developer mode",
            needed=True, example=("https://rp.example/cb", "https://rp.example/other"),
        ),
    ]  # fmt: skip
    jwks: Annotated[
        str | None,
        Field(
            read=readers.key_set, disclosure=Disclosure.SECRET,
            label=phrase("Or the key set itself"),
            hint=phrase(
                "Two public keys, one below the other: first the one that signs, then the one that encrypts, as PEM text or "
                "certificates. Or a JSON key set. Fill in this or the address, not both."
            ),
            help="A file with the client's public JSON Web Key Set.",
            doc="JSON Web Key Set, as YAML, as JSON or as one text; private members are dropped, and a private key "
            "inside another member is refused; a `kid` is printable "
            "ASCII, 256 characters at most",
            example=None,
        ),
    ] = None  # fmt: skip
    """a JSON Web Key Set as JSON text; exactly one of jwks and jwks_uri (D27)"""
    jwks_uri: Annotated[
        str | None,
        Field(
            read=readers.URI,
            label=phrase("Address of its key set"),
            hint=phrase("Begins with https://. The client can then change its keys without asking you."),
            help="Or the https URL where the client publishes its key set.",
            doc="https URL on port 443, under a public name and not under `localhost`; a key there whose `kid` is "
                "not as above is ignored; exactly one of `jwks` and `jwks_uri` is required, and setting one removes the "
                "other",
            example="https://rp.example/j",
        ),
    ] = None  # fmt: skip
    scopes: Annotated[
        tuple[str, ...],
        Field(
            read=readers.ListReader(readers.identifier(64), 1),
            label=phrase("Scopes"), hint=phrase("openid is always needed. Each line says what the client receives, in the words of the consent page."),
            help="A scope that it can request; repeat for several.", default_help="Default: all of them; with --api, name each.",
            doc="list: `openid`, `authinfo`, `tpauthinfo`, `entity.identity`, `entity.basic_profile.name`, "
            "`entity.basic_profile.uen_status`, `user.identity`, `user.name`",
            example=("openid", "authinfo"),
        ),
    ] = ("openid",)  # fmt: skip
    services: Annotated[
        tuple[str, ...],
        Field(
            read=readers.ListReader(readers.identifier(25)),
            label=phrase("Services whose roles it reads"),
            hint=phrase(
                "They decide which organisations people can choose; without any, people can choose each of theirs."
            ),
            help="An entity service that it can read; repeat for several.",
            doc="list of services whose roles it reads; also decides which entities people can choose",
            default_doc="none: people can choose every entity",
            example=(),
        ),
    ] = ()  # fmt: skip
    """identifiers of the entity services whose roles this client may read"""
    generations: Annotated[
        tuple[str, ...],
        Field(
            read=readers.ListReader(readers.identifier(32)),
            label=phrase("Generations"),
            hint=phrase("Choose none for the default."),
            help="A generation of the interface that it can use; repeat for several.",
            default_help="Default: the one with pushed requests.",
            doc="list: `current`, `intermediate`, `fapi2`, `legacy`",
            default_doc="the served generation with pushed requests",
            example=(),
        ),
    ] = ()  # fmt: skip
    """empty: the pushed generation that its issuer serves"""
    issuers: Annotated[
        tuple[str, ...],
        Field(
            read=readers.ListReader(readers.identifier(32)),
            label=phrase("Issuers"), hint=phrase("Choose none for the first one."),
            help="An issuer of this deployment at which it is known; repeat for several.",
            default_help="Default: the first.",
            doc="list of issuers at which it is known: `first`, and the `id` of each of `[[issuers]]` ([operate.md]"
            "(operate.md#several-issuers)); each issuer serves those of the client's generations that it has",
            default_doc="`first`",
            example=("first",),
        ),
    ] = ()  # fmt: skip
    """the issuers that know it; empty: the first (D62)"""
    legacy_until: Annotated[
        str | None,
        Field(
            read=readers.day,
            label=phrase("Last day with legacy"),
            hint=phrase("Legacy needs it. Without legacy, leave it empty."),
            help="Its last day with legacy, YYYY-MM-DD.",
            doc="last day of `legacy` for this relying party (required for `legacy`), or `none`",
            clearable=True, concerns="ends", example="2027-03-31",
        ),
    ] = None  # fmt: skip
    """the last day (YYYY-MM-DD, in the deployment's time zone) of the generation that ends"""
    endpoint_audience_until: Annotated[
        str | None,
        Field(
            read=readers.day,
            label=phrase("Last day with the endpoint as audience"),
            hint=phrase("Until then, aud in its assertions may be the URL of the endpoint. Not with fapi2."),
            help="Last day on which its assertions can use the endpoint's URL as aud, YYYY-MM-DD; not with "
            "fapi2.",
            doc="last day on which assertions can use the URL of the endpoint that they are sent to as `aud` (PAR, "
                "token), or `none`; not for clients of `fapi2`. The older name token_endpoint_audience_until still "
                "works",
            clearable=True, concerns="endpoint_audience", former="token_endpoint_audience_until",
            example="2026-12-31",
        ),
    ] = None  # fmt: skip
    """the last day on which an assertion may name the endpoint that it is sent to instead of the issuer (D8, D64)"""
    pkce: Annotated[
        PkceMode,
        Field(
            read=readers.one_of(*get_args(PkceMode)),
            label=phrase("PKCE with legacy"), hint=phrase("optional: requests may leave out code_challenge."),
            help="PKCE in its requests at legacy: required (default) or optional.",
            doc="`required`, or `optional`: its requests at `legacy` can omit `code_challenge` "
            "([legacy.md](legacy.md))",
            concerns="pkce_optional", example="optional",
        ),
    ] = "required"  # fmt: skip
    """optional: its requests may come without code_challenge, in the generations that allow it"""
    pkce_optional_until: Annotated[
        str | None,
        Field(
            read=readers.day,
            label=phrase("Last day of optional PKCE"),
            hint=phrase("Empty: as long as it may use legacy."),
            help="Last day on which PKCE is optional, YYYY-MM-DD.", default_help="Default: no end.",
            doc="last day on which they can, or `none`: as long as it may use `legacy`",
            clearable=True, concerns="pkce_optional", example="2027-01-31",
        ),
    ] = None  # fmt: skip
    """the last day (YYYY-MM-DD) on which they may; None: as long as the generation is served"""
    subject: Annotated[
        SubjectMode,
        Field(
            read=readers.one_of(*get_args(SubjectMode)),
            label=phrase("Party in sub"),
            hint=phrase("user: the person. entity: the organisation that the person acts for."),
            help="The party in sub: user (default) or entity.",
            doc="`user` or `entity`: the party in `sub`",
            example="entity",
        ),
    ] = "user"  # fmt: skip
    id_token_encryption_alg: Annotated[
        str | None,
        Field(
            read=readers.one_of(*WRAPS, ALG_OF_KEY),
            label=phrase("Key wrapping of ID tokens"),
            hint=phrase("Not set: as its encryption key says. key: the same, and with fapi2, too."),
            help="How keys of ID tokens are wrapped, such as ECDH-ES+A256KW; key: from its key, also with fapi2.",
            default_help="Default: from its key.",
            doc="`ECDH-ES+A128KW`, `ECDH-ES+A192KW`, `ECDH-ES+A256KW`, `key` or `none` (both: from its encryption "
                "key); with `fapi2`, ID tokens are encrypted unless this is `none`",
            clearable=True, example="ECDH-ES+A128KW",
        ),
    ] = None  # fmt: skip
    """how content keys are wrapped; None or `key`: as the encryption key says, `key` in every generation (D21)"""
    id_token_encryption_enc: Annotated[
        str,
        Field(
            read=readers.one_of(*CONTENT_ENCRYPTIONS),
            label=phrase("Encryption of ID tokens"),
            help="How ID tokens are encrypted: A256CBC-HS512 (default) or A256GCM.",
            doc="`A256CBC-HS512` or `A256GCM`",
            example="A256GCM",
        ),
    ] = "A256CBC-HS512"  # fmt: skip
    userinfo_signing_alg: Annotated[
        str | None,
        Field(
            read=readers.one_of("ES256"),
            label=phrase("Signature of userinfo"), hint=phrase("Not set: the default of its generation."),
            help="How userinfo is signed if signing is optional: ES256.",
            doc="`ES256` or `none` (the default of the generation: JSON with `fapi2`, otherwise signed)",
            clearable=True, example="ES256",
        ),
    ] = None  # fmt: skip
    """None: as the generation says (D22)"""
    userinfo_encryption_alg: Annotated[
        str | None,
        Field(
            read=readers.identifier(32, r"[A-Za-z0-9+-]", "letters, digits, + -"),
            label=phrase("Key wrapping of userinfo"),
            hint=phrase(
                "Empty: as its encryption key says. legacy encrypts only with ECDH-ES, RSA-OAEP or RSA-OAEP-256."
            ),
            help="How keys of userinfo are wrapped. Legacy encrypts only if this is ECDH-ES, RSA-OAEP or RSA-OAEP-256.",
            default_help="Default: from its key.",
            doc="`ECDH-ES+A128KW`, `ECDH-ES+A192KW`, `ECDH-ES+A256KW` or `none` (from its encryption key). `legacy` "
            "encrypts only if this is `ECDH-ES`, `RSA-OAEP` or `RSA-OAEP-256`: see "
            "[legacy.md](legacy.md#encrypted-authorization-info)",
            clearable=True, example="RSA-OAEP",
        ),
    ] = None  # fmt: skip
    """how its content keys are wrapped; None: as the encryption key names, if that is enough (D22)"""
    userinfo_encryption_enc: Annotated[
        str | None,
        Field(
            read=readers.one_of(*ENCRYPTIONS),
            label=phrase("Encryption of userinfo"),
            hint=phrase("Not set: userinfo is not encrypted. A128GCM and A128CBC-HS256 are for legacy only."),
            help="Encrypt userinfo too: A256GCM or A256CBC-HS512; at legacy also A128GCM or A128CBC-HS256.",
            doc="nests userinfo in a JWE: `A256GCM`, `A256CBC-HS512` or `none`; with `legacy` alone also `A128GCM` or "
            "`A128CBC-HS256`",
            clearable=True, example="A256GCM",
        ),
    ] = None  # fmt: skip
    """nests the signed answer in a JWE (D22)"""
    jwe_header_claims: Annotated[
        bool | None,
        Field(
            read=readers.yes_or_no,
            label=phrase("Headers of encrypted tokens repeat iss and aud"),
            hint=phrase("Some libraries need it, others refuse it. Not set: the setting jwe_header_claims decides."),
            help="The headers of its encrypted tokens repeat iss and aud: true or false.",
            default_help="Default: the setting jwe_header_claims.",
            doc="`true` or `false`: whether the headers of its encrypted tokens repeat `iss` and `aud`, which some libraries "
            "need and others refuse; `none`: as the setting `jwe_header_claims` says",
            clearable=True, example=True,
        ),
    ] = None  # fmt: skip
    """whether headers of a JWE repeat iss and aud; None: as the deployment says (D21, D71)"""
    stringified_blocks: Annotated[
        bool,
        Field(
            read=readers.yes_or_no,
            label=phrase("Blocks of userinfo as strings"),
            hint=phrase("Each block is a string that contains JSON, as older clients expect."),
            help="Blocks of userinfo are strings that contain JSON.",
            doc="`true`: userinfo blocks are strings that contain JSON",
            example=True,
        ),
    ] = False  # fmt: skip
    context_types: Annotated[
        tuple[str, ...],
        Field(
            read=readers.ListReader(readers.identifier(64), 1),
            label=phrase("Context types"),
            hint=phrase("Values of authentication_context_type that it may send, one per line."),
            help="An authentication_context_type that it can send; repeat for several.",
            doc="list of values of `authentication_context_type` that it can send",
            example=("APP_PAYMENT_DEFAULT",),
        ),
    ] = ("APP_AUTHENTICATION_DEFAULT",)  # fmt: skip
    context_type_rule: Annotated[
        ContextTypeRule,
        Field(
            read=readers.one_of(*get_args(ContextTypeRule)),
            label=phrase("Whether requests name a context type"),
            hint=phrase("refused: for a client that only reads data."),
            help="Whether authentication_context_type is required (default), optional or refused.",
            doc="whether its pushed requests must have `authentication_context_type`: `required`, `optional`, or "
            "`refused` (for a client that only reads data); `fapi2` never requires it",
            example="optional",
        ),
    ] = "required"  # fmt: skip
    """whether its requests must, may or must not name one of them, if the generation requires it (D63)"""
    assurance_level: Annotated[
        int,
        Field(
            read=readers.whole_number,
            label=phrase("Assurance level"),
            hint=phrase("The one of requests that name none: 2."),
            help="The assurance level if it requests none: 2.",
            doc="`2`",
            example=2,
        ),
    ] = 2
    sector: Annotated[
        Sector,
        Field(
            read=readers.one_of(*get_args(Sector)),
            label=phrase("Sector"),
            hint=phrase("private: people are asked for consent before it receives their details."),
            help="private (default; people are asked for consent) or government.",
            doc="`private` (people are asked for consent to share data about themselves and entities) or `government`",
            example="government",
        ),
    ] = "private"  # fmt: skip
    enabled: Annotated[bool, Field(read=readers.yes_or_no, doc="`true` or `false`", example=False)] = True
    """by command: `client disable` and `client enable`"""


CLIENT_MEMBERS: Final = {name: each for name, each in documented_fields(Client).items() if not each.identifies}
"""member of a client → its declaration"""


class RequestingClient(msgspec.Struct, frozen=True, kw_only=True):
    """The requesting client and its ui_locales, for pages without an answer too."""

    client: Client
    ui_locales: tuple[str, ...] = ()


class Grant(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The grant behind a code (Spec 2.3)."""

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
    deprecated_uses: tuple[str, ...] = ()
    """what is counted of the request: the successor of its generation would refuse it, or an exception allowed it"""
    sid: str = ""
    """the session as the ID token names it to this client; empty: it names none"""
