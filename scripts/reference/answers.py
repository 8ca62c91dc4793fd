"""Declarations of every token and answer in each generation.

A test validates real answers against them, in both directions: nothing else is there, and everything occurs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpid.rules.directory.parties import ENTITY_MEMBERS, USER_MEMBERS
from corpid.rules.limits import ACCESS_TOKEN_SECONDS, ID_TOKEN_SECONDS, REQUEST_URI_SECONDS, USERINFO_SECONDS
from corpid.rules.oauth.discovery import discovery
from corpid.rules.oauth.generations import GENERATIONS, Generation, ProtectedResource
from scripts.reference.shapes import (
    COMPACT_JWE,
    COMPACT_JWS,
    DAY,
    MOMENT,
    TEXT,
    TRUTH,
    URL,
    WHOLE,
    Either,
    ListOf,
    Member,
    Record,
    Scalar,
    Shape,
    among,
    constant,
    document,
    text_of,
    typescript,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


MINUTES: Final = 60
IF_SUBJECT_USER: Final = "client registered with `subject: user` (default)"
IF_SUBJECT_ENTITY: Final = "client registered with `subject: entity`"
ACR_PREFIX: Final = "urn:idp:authentication:loa:"
EXAMPLE_URL: Final = "https://sso.example.org"

PARAMETER: Final = Record(
    name="RoleParameter",
    about="A parameter of a role.",
    members=(
        Member(name="name", shape=TEXT, meaning="Name of the parameter, as the service defines it."),
        Member(
            name="value",
            shape=TEXT,
            meaning="Its value. Empty if it is not set; `ERROR_MISSING_VALUE` if the service requires it and it is not set. "
            "A parameter with several values occurs once for each.",
        ),
    ),
)


def _row(name: str, about: str, sub_entity: str, whose: str) -> Record:
    return Record(
        name=name,
        about=about,
        members=(
            Member(
                name=sub_entity,
                shape=TEXT,
                meaning=f"Part of {whose} that the role is limited to, such as a branch. Empty: all of it, or the service has "
                "no such parts; `ERROR_MISSING_VALUE` if the service requires one and it is not set.",
            ),
            Member(name="CPRole", shape=TEXT, meaning="The role. Empty if the service has no roles."),
            Member(
                name="StartDate",
                shape=DAY,
                meaning="First day on which the role holds, in the provider's time zone. `0001-01-01`: no beginning.",
            ),
            Member(
                name="EndDate", shape=DAY, meaning="Last day on which the role holds, inclusive. `9999-12-31`: no end."
            ),
            Member(
                name="Parameter",
                shape=ListOf(PARAMETER),
                meaning="Parameters of the role, in the service's order; all that the service defines. May be an empty array.",
            ),
        ),
    )


def _rows(name: str, row: Record) -> Record:
    return Record(
        name=name,
        about="The rows of one service.",
        members=(
            Member(name="Row_Count", shape=WHOLE, meaning="Number of entries in `Row`."),
            Member(
                name="Row",
                shape=ListOf(row),
                meaning="The roles that hold today. Rows outside their dates are left out.",
            ),
        ),
    )


def _result_set(name: str, result: Record) -> Record:
    return Record(
        name=name,
        about="The services of the answer.",
        members=(
            Member(name="ESrvc_Row_Count", shape=WHOLE, meaning="Number of entries in `ESrvc_Result`. 0: nothing."),
            Member(
                name="ESrvc_Result",
                shape=ListOf(result),
                meaning="One entry for each entity service with a row, ordered by `CPESrvcID`. Only services that your client "
                "is registered for, and that are switched on.",
            ),
        ),
    )


_SERVICE_ID: Final = Member(name="CPESrvcID", shape=TEXT, meaning="Identifier of the entity service.")
AUTH_INFO: Final = Record(
    name="AuthInfo",
    about="What the person may do for the entity that they act for.",
    members=(
        Member(
            name="Result_Set",
            shape=_result_set(
                "AuthInfoResultSet",
                Record(
                    name="AuthInfoService",
                    about="One entity service.",
                    members=(
                        _SERVICE_ID,
                        Member(
                            name="Auth_Result_Set",
                            shape=_rows(
                                "AuthInfoRows",
                                _row(
                                    "AuthInfoRow", "One role of the person for the entity.", "CPEntID_SUB", "the entity"
                                ),
                            ),
                            meaning="The person's roles at this service.",
                        ),
                    ),
                ),
            ),
            meaning="The whole content. Always there, also with nothing in it.",
        ),
    ),
)
TP_AUTH: Final = Record(
    name="ThirdPartyAuthorization",
    about="What the person may do for one other entity, the client entity.",
    members=(
        Member(
            name="CP_Clnt_ID",
            shape=TEXT,
            meaning="Identifier of the client entity: the one on whose behalf the person's own entity acts.",
        ),
        Member(
            name="CP_ClntEnt_TYPE",
            shape=among("UEN", "NON-UEN", "GSTN"),
            meaning="Kind of that identifier.",
        ),
        Member(
            name="Auth_Result_Set",
            shape=_rows(
                "ThirdPartyRows",
                _row(
                    "ThirdPartyRow",
                    "One role of the person for the client entity.",
                    "CP_ClntEnt_SUB",
                    "the client entity",
                ),
            ),
            meaning="The person's roles for the client entity at this service. Dates are cut to those of the client entity's grant.",
        ),
    ),
)
TP_AUTH_INFO: Final = Record(
    name="TPAuthInfo",
    about="What the person may do for other entities, as a third party.",
    members=(
        Member(
            name="Result_Set",
            shape=_result_set(
                "TPAuthInfoResultSet",
                Record(
                    name="TPAuthInfoService",
                    about="One entity service that allows third parties.",
                    members=(
                        _SERVICE_ID,
                        Member(
                            name="Auth_Set",
                            shape=Record(
                                name="ThirdPartyAuthorizations",
                                about="The client entities of one service.",
                                members=(
                                    Member(
                                        name="ENT_ROW_COUNT", shape=WHOLE, meaning="Number of entries in `TP_Auth`."
                                    ),
                                    Member(
                                        name="TP_Auth",
                                        shape=ListOf(TP_AUTH),
                                        meaning="One entry for each client entity, ordered by `CP_Clnt_ID`.",
                                    ),
                                ),
                            ),
                            meaning="The client entities at this service.",
                        ),
                    ),
                ),
            ),
            meaning="The whole content. The block is absent if there is no row.",
        ),
    ),
)
BLOCKS: Final[Mapping[str, Record]] = {"authinfo": AUTH_INFO, "tpauthinfo": TP_AUTH_INFO}
"""scope → the block that it grants"""

_ATTRIBUTES: Final[Mapping[str, tuple[Shape, str]]] = {
    "entity_type": (among("UEN", "NON-UEN", "GSTN"), "Kind of the entity's identifier."),
    "entity_reg_number": (TEXT, "Registration number."),
    "entity_coi": (TEXT, "Country of registration, two letters."),
    "entity_name": (TEXT, "Registered name."),
    "entity_uen_status": (TEXT, "Registration status; only of type `UEN`."),
    "account_type": (TEXT, "Kind of account: `standard` or `foreign`."),
    "identity_number": (TEXT, "Identity number."),
    "identity_coi": (TEXT, "Country that issued it, two letters."),
    "name": (TEXT, "Name."),
}


def _attributes(name: str, about: str, members: Mapping[str, Mapping[str, str]]) -> Record:
    return Record(
        name=name,
        about=about,
        members=tuple(
            Member(
                name=attribute,
                shape=_ATTRIBUTES[attribute][0],
                meaning=_ATTRIBUTES[attribute][1],
                when=f"scope `{scope}`, if known",
            )
            for scope, attributes in members.items()
            for attribute in attributes
        ),
    )


PERSON_ATTRIBUTES: Final = _attributes("PersonAttributes", "Facts about the person, by scope.", USER_MEMBERS)
ENTITY_ATTRIBUTES: Final = _attributes("EntityAttributes", "Facts about the entity, by scope.", ENTITY_MEMBERS)
SUB_PERSON: Final = "Stable identifier of the person."
SUB_ENTITY: Final = "Identifier of the entity that the person acts for."


def _party(name: str, about: str, sub: str, kind: str, attributes: Record | None) -> Record:
    members = [
        Member(name="sub", shape=TEXT, meaning=sub),
        Member(name="sub_type", shape=constant(kind), meaning="Kind of the party."),
    ]
    if attributes:
        when = "a scope grants one that is known"
        members.append(Member(name="sub_attributes", shape=attributes, meaning=attributes.about, when=when))
    return Record(name=name, about=about, members=tuple(members))


def _parties(prefix: str, *, attributes: bool) -> tuple[Member, ...]:
    """sub, sub_type and the other party nested (D2)."""
    of_person, of_entity = (PERSON_ATTRIBUTES, ENTITY_ATTRIBUTES) if attributes else (None, None)
    own: tuple[Member, ...] = ()
    if attributes:
        either = Either(PERSON_ATTRIBUTES, ENTITY_ATTRIBUTES)
        own = (
            Member(
                name="sub_attributes",
                shape=either,
                meaning="Facts about the party that `sub` names.",
                when="a scope grants one that is known",
            ),
        )
    return (
        Member(
            name="sub",
            shape=TEXT,
            meaning="Stable identifier of the person; of the entity for a client registered with `subject: entity`.",
        ),
        Member(name="sub_type", shape=among("user", "entity"), meaning="Kind of the party that `sub` names."),
        *own,
        Member(
            name="entity",
            shape=_party(f"{prefix}Entity", "The entity that the person acts for.", SUB_ENTITY, "entity", of_entity),
            meaning="The entity that the person acts for.",
            when=IF_SUBJECT_USER,
        ),
        Member(
            name="act",
            shape=_party(f"{prefix}Actor", "The person who acts.", SUB_PERSON, "user", of_person),
            meaning="The person who acts.",
            when=IF_SUBJECT_ENTITY,
        ),
    )


PACKED_SUB: Final = Member(
    name="sub",
    shape=TEXT,
    meaning="The person's account for the entity: `s=` identity number, `uuid=` identifier of the person, `u=` account, `c=` country, "
    "separated by commas; values are percent-encoded.",
)
USER_INFO: Final = Record(
    name="UserInfo",
    about="Facts about the person; members that do not apply are empty.",
    members=(
        Member(
            name="CPAccType",
            shape=among("User", "Admin", "Sub-Admin"),
            meaning="Kind of account at the entity: administrators and owners are `Admin`.",
        ),
        Member(name="CPUID_FullName", shape=TEXT, meaning="Name of the person."),
        Member(
            name="ISSPHOLDER", shape=among("YES", "NO"), meaning="`YES` for a `standard` account, `NO` for `foreign`."
        ),
    ),
)
ENTITY_INFO: Final = Record(
    name="EntityInfo",
    about="Facts about the entity; members that do not apply are empty.",
    members=(
        Member(name="CPEntID", shape=TEXT, meaning=SUB_ENTITY),
        Member(name="CPEnt_TYPE", shape=among("UEN", "NON-UEN", "GSTN"), meaning="Kind of that identifier."),
        Member(name="CPEnt_Status", shape=TEXT, meaning="Registration status; empty for `NON-UEN`."),
        Member(name="CPNonUEN_Country", shape=TEXT, meaning="Country of registration; empty for `UEN`."),
        Member(name="CPNonUEN_RegNo", shape=TEXT, meaning="Registration number; empty for `UEN`."),
        Member(name="CPNonUEN_Name", shape=TEXT, meaning="Registered name; empty for `UEN`."),
    ),
)


def _times(seconds: int) -> tuple[Member, ...]:
    return (
        Member(name="iat", shape=MOMENT, meaning="Time of issue."),
        Member(name="exp", shape=MOMENT, meaning=f"Time of expiry: {seconds // MINUTES} minutes after `iat`."),
    )


ISS: Final = Member(name="iss", shape=URL, meaning="The issuer; equals `issuer` of the discovery document.")
AUD_CLIENT: Final = Member(name="aud", shape=TEXT, meaning="Your `client_id`.")
AUTH_TIME: Final = Member(name="auth_time", shape=MOMENT, meaning="Time at which the person authenticated.")
ACR: Final = Member(name="acr", shape=TEXT, meaning=f"Level that was reached, such as `{ACR_PREFIX}2` (two factors).")


def id_token(generation: Generation) -> Record:
    """The claims of the ID token."""
    always = "nonce" in generation.required_parameters
    more = [
        Member(name="at_hash", shape=TEXT, meaning="Left half of the SHA-256 of the access token, base64url."),
        AUTH_TIME,
        Member(
            name="amr",
            shape=ListOf(TEXT),
            meaning="Methods used: `pwd otp mfa`, `pop user mfa` (passkey), or `pwd pop user mfa` (RFC 8176).",
        ),
    ]
    if generation.acr_in_id_token:
        more.append(ACR)
    more.append(
        Member(
            name="nonce", shape=TEXT, meaning="Your `nonce`, unchanged.", when="" if always else "the request had one"
        )
    )
    if generation.sid_in_id_token:
        more.append(
            Member(name="sid", shape=TEXT, meaning="Identifier of the session.", when="the person stays signed in")
        )
    if generation.packed_subject:
        packed = (
            PACKED_SUB,
            Member(name="userInfo", shape=USER_INFO, meaning=USER_INFO.about),
            Member(name="entityInfo", shape=ENTITY_INFO, meaning=ENTITY_INFO.about),
        )
    parties = packed if generation.packed_subject else _parties("IDToken", attributes=True)
    return Record(
        name="IDTokenClaims",
        about="Claims of the ID token, after decryption and verification.",
        members=(ISS, AUD_CLIENT, *parties, *_times(ID_TOKEN_SECONDS), *more),
        one_of=() if generation.packed_subject else ("entity", "act"),
    )


def access_token(generation: Generation) -> Record:
    """The claims of the access token: for CorpID's resources, not for the RP."""
    if generation.packed_subject:
        entity = _party("AccessTokenEntity", "The entity that the person acts for.", SUB_ENTITY, "entity", None)
        parties: tuple[Member, ...] = (PACKED_SUB, Member(name="entity", shape=entity, meaning=entity.about))
    else:
        parties = _parties("AccessToken", attributes=False)
    key = Record(
        name="Confirmation",
        about="The key that the token is bound to (RFC 9449 §6.1).",
        members=(Member(name="jkt", shape=TEXT, meaning="SHA-256 thumbprint of your DPoP key."),),
    )
    bound = (Member(name="cnf", shape=key, meaning=key.about),) if generation.sender_constrained else ()
    return Record(
        name="AccessTokenClaims",
        about="Claims of the access token (RFC 9068). Your RP passes it on and need not read it.",
        members=(
            ISS,
            Member(name="aud", shape=ListOf(URL), meaning="URLs of the resources that accept it."),
            *parties,
            Member(name="client_id", shape=TEXT, meaning="Your `client_id`."),
            Member(name="scope", shape=TEXT, meaning="Granted scopes, separated by spaces."),
            *_times(ACCESS_TOKEN_SECONDS),
            Member(name="jti", shape=TEXT, meaning="Identifier of the token."),
            AUTH_TIME,
            ACR,
            *bound,
        ),
        one_of=() if generation.packed_subject else ("entity", "act"),
    )


RESOURCE_NAMES: Final[Mapping[str, str]] = {
    "userinfo": "UserinfoClaims", "entity-info": "EntityInfoClaims", "authorization-info": "AuthorizationInfoClaims",
}  # fmt: skip


def resource(generation: Generation, which: ProtectedResource) -> Record:
    """The claims of a protected resource."""
    blocks = tuple(
        Member(
            name=name,
            shape=Either(BLOCKS[scope], text_of(BLOCKS[scope])),
            meaning=f"{BLOCKS[scope].about} A string for a client registered with `stringified_blocks: true`.",
            when=" and ".join(_conditions(scope, scoped=which.scoped)),
        )
        for scope, name in which.claim_names.items()
    )
    entity = (
        (Member(name=which.entity_member, shape=ENTITY_ATTRIBUTES, meaning="Facts about the entity, by scope."),)
        if which.entity_member
        else ()
    )
    sub = PACKED_SUB if generation.packed_subject else Member(name="sub", shape=TEXT, meaning="The ID token's `sub`.")
    return Record(
        name=RESOURCE_NAMES[which.name],
        about=f"Claims of {which.name}'s response.",
        members=(ISS, AUD_CLIENT, sub, *_times(USERINFO_SECONDS), *blocks, *entity),
    )


def _conditions(scope: str, *, scoped: bool) -> list[str]:
    """The conditions of a block: of its scope if the resource looks at scopes, and a row (D23)."""
    return [*([f"scope `{scope}`"] if scoped else []), *(["there is a row"] if BLOCKS[scope] is TP_AUTH_INFO else [])]


def _error(name: str, about: str, *more: Member) -> Record:
    return Record(
        name=name,
        about=about,
        members=(
            Member(name="error", shape=TEXT, meaning="Error code; see errors.md."),
            Member(
                name="error_description",
                shape=TEXT,
                meaning="What was wrong and what was expected; ends with `(reference …)`.",
            ),
            Member(
                name="error_uri",
                shape=TEXT,
                meaning="The reason in the catalogue of errors (RFC 6749 §5.2).",
                when="the provider is in developer mode",
            ),
            *more,
        ),
    )


STATE: Final = Member(
    name="state", shape=TEXT, meaning="Your `state`, unchanged.", when="the request had one, well-formed"
)
ERROR: Final = _error("ErrorResponse", "An error as JSON.")
PAR_ERROR: Final = _error("ParErrorResponse", "An error of the PAR endpoint.", STATE)
PAR: Final = Record(
    name="ParResponse",
    about="Success of the PAR endpoint, status 201.",
    members=(
        Member(
            name="request_uri",
            shape=Scalar(
                {"type": "string", "pattern": "^urn:ietf:params:oauth:request_uri:"},
                "string",
                "`urn:ietf:params:oauth:request_uri:…`",
            ),
            meaning="Reference to the pushed request, for the authorization URL.",
        ),
        Member(name="expires_in", shape=WHOLE, meaning=f"Its lifetime in seconds: {REQUEST_URI_SECONDS}."),
    ),
)


def token(generation: Generation) -> Record:
    """Success of the token endpoint (Spec 2.4)."""
    shape = COMPACT_JWE if generation.id_token_encrypted else Either(COMPACT_JWS, COMPACT_JWE)
    how = (
        "JWE, encrypted to your key, with the signed JWT inside."
        if generation.id_token_encrypted
        else "Signed JWT; nested in a JWE if the client registered `id_token_encryption_alg`."
    )
    return Record(
        name="TokenResponse",
        about="Success of the token endpoint, status 200.",
        members=(
            Member(name="access_token", shape=COMPACT_JWS, meaning="Access token."),
            Member(name="id_token", shape=shape, meaning=how),
            Member(name="token_type", shape=constant(generation.scheme), meaning="Scheme of the access token."),
            Member(
                name="expires_in",
                shape=WHOLE,
                meaning=f"Lifetime of the access token in seconds: {ACCESS_TOKEN_SECONDS}.",
            ),
            Member(name="scope", shape=TEXT, meaning="Granted scopes, separated by spaces."),
        ),
    )


def _iss(generation: Generation) -> tuple[Member, ...]:
    usual = "the default here" if generation.returns_iss else "not the default here"
    when = f"`authorization_response_iss_parameter_supported` is true, {usual}"
    return (Member(name="iss", shape=URL, meaning="The issuer; compare it (RFC 9207).", when=when),)


def callback(generation: Generation) -> Record:
    """The parameters of a callback with a code (Spec 4.2)."""
    sent = "" if "state" in generation.required_parameters else "the request had one"
    return Record(
        name="CallbackParameters",
        about="Parameters of the callback to your redirect URI.",
        members=(
            Member(name="code", shape=TEXT, meaning="Authorization code: 60 seconds, one use."),
            Member(name="state", shape=TEXT, meaning="Your `state`, unchanged; compare it.", when=sent),
            *_iss(generation),
        ),
    )


def callback_error(generation: Generation) -> Record:
    """The parameters of a callback with an error (Spec 4.2, 7.2)."""
    return _error("CallbackErrorParameters", "Parameters of a callback with an error.", STATE, *_iss(generation))


METADATA: Final[Mapping[str, str]] = {
    "issuer": "The issuer: `iss` of tokens, and `aud` of client assertions.",
    "authorization_endpoint": "URL of the authorization endpoint.",
    "token_endpoint": "URL of the token endpoint.",
    "pushed_authorization_request_endpoint": "URL of the PAR endpoint.",
    "jwks_uri": "URL of the signing keys.",
    "userinfo_endpoint": "URL of userinfo, or of authorization-info.",
    "authorization-info_endpoint": "URL of authorization-info.",
    "entityinfo_endpoint": "URL of entity-info.",
    "name": "Name of the provider, as people see it.",
    "response_types_supported": "Values of `response_type`.",
    "response_modes_supported": "Values of `response_mode`.",
    "scopes_supported": "Known scopes; yours are those that your client is registered for.",
    "subject_types_supported": "Kinds of `sub`.",
    "claims_supported": "Names of claims.",
    "claim_types_supported": "Kinds of claims.",
    "grant_types_supported": "Values of `grant_type`.",
    "code_challenge_methods_supported": "PKCE methods.",
    "token_endpoint_auth_methods_supported": "Methods of client authentication.",
    "token_endpoint_auth_signing_alg_values_supported": "Algorithms of client assertions.",
    "dpop_signing_alg_values_supported": "Algorithms of DPoP proofs.",
    "acr_values_supported": "Values of `acr_values`.",
    "require_pushed_authorization_requests": "Whether every request must be pushed.",
    "ui_locales_supported": "Languages of the pages.",
    "id_token_signing_alg_values_supported": "Signature algorithms of ID tokens.",
    "id_token_encryption_alg_values_supported": "Key agreement of ID tokens.",
    "id_token_encryption_enc_values_supported": "Content encryption of ID tokens.",
    "userinfo_signing_alg_values_supported": "Signature algorithms of userinfo.",
    "userinfo_encryption_alg_values_supported": "Key agreement of an encrypted userinfo.",
    "userinfo_encryption_enc_values_supported": "Content encryption of an encrypted userinfo.",
    "entityinfo_signing_alg_values_supported": "Signature algorithms of entity-info.",
    "entityinfo_encryption_alg_values_supported": "Key agreement of an encrypted entity-info.",
    "entityinfo_encryption_enc_values_supported": "Content encryption of an encrypted entity-info.",
    "claims_parameter_supported": "Whether the parameter `claims` is read.",
    "request_parameter_supported": "Whether the parameter `request` is read.",
    "request_uri_parameter_supported": "Whether a `request_uri` other than PAR's is read.",
    "authorization_response_iss_parameter_supported": "Whether the callback has `iss`.",
}


def metadata(generation: Generation) -> Record:
    """The discovery document of a generation that is served alone."""
    published = discovery(
        (generation,), base_url=EXAMPLE_URL, name="CorpID", acr_prefix=ACR_PREFIX,
        returns_iss=generation.returns_iss, languages=("en",),
    )  # fmt: skip
    return Record(
        name="Discovery",
        about="The discovery document.",
        members=tuple(
            Member(name=name, shape=_published(name, value), meaning=METADATA[name])
            for name, value in published.items()
        ),
    )


def _published(name: str, value: object) -> Shape:
    if isinstance(value, bool):
        return TRUTH
    if isinstance(value, list):
        return ListOf(TEXT)
    return TEXT if name == "name" else URL


def keys(generation: Generation) -> Record:
    """The published signing keys (Spec 2.9)."""
    certificate = (
        Member(name="x5c", shape=ListOf(TEXT), meaning="Certificate chain, base64."),
        Member(name="x5t", shape=TEXT, meaning="SHA-1 thumbprint of the certificate."),
        Member(name="x5t#S256", shape=TEXT, meaning="SHA-256 thumbprint of the certificate."),
    )
    key = Record(
        name="SigningKey",
        about="A public key of the provider.",
        members=(
            Member(name="kty", shape=constant("EC"), meaning="Key type."),
            Member(name="use", shape=constant("sig"), meaning="For signatures."),
            Member(name="kid", shape=TEXT, meaning="Identifier: find the key by the `kid` of a JWT's header."),
            Member(name="alg", shape=constant("ES256"), meaning="Algorithm."),
            Member(name="crv", shape=constant("P-256"), meaning="Curve."),
            Member(name="x", shape=TEXT, meaning="Coordinate, base64url."),
            Member(name="y", shape=TEXT, meaning="Coordinate, base64url."),
            *(certificate if generation.certificates else ()),
        ),
    )
    return Record(
        name="KeySet",
        about="The provider's public keys.",
        members=(Member(name="keys", shape=ListOf(key), meaning="Every key that is in use, or soon will be."),),
    )


HEALTH: Final = Record(
    name="Health",
    about="State of the process that answered.",
    members=(
        Member(
            name="status",
            shape=among("alive", "ready", "not ready", "stopping"),
            meaning="`alive` at /healthz; the others at /readyz, 503 unless `ready`.",
        ),
        Member(name="part", shape=TEXT, meaning="What does not answer.", when="`not ready`"),
    ),
)


def answers(generation: Generation) -> tuple[Record, ...]:
    """Every token and answer of a generation."""
    pushed = (PAR, PAR_ERROR) if generation.pushed else ()
    return (
        *pushed,
        callback(generation),
        callback_error(generation),
        token(generation),
        id_token(generation),
        access_token(generation),
        *(resource(generation, each) for each in generation.resources),
        ERROR,
        metadata(generation),
        keys(generation),
        HEALTH,
    )


def schemas() -> dict[str, dict[str, Any]]:
    """Generation → the JSON Schema document of its answers."""
    return {name: document(name, f"Answers of CorpID, {name}", answers(each)) for name, each in GENERATIONS.items()}


def types() -> dict[str, str]:
    """Generation → TypeScript declarations of its answers."""
    return {name: typescript(f"Answers of CorpID, {name}.", answers(each)) for name, each in GENERATIONS.items()}
