// Answers of CorpID, intermediate. Made by `make tables`.

/** Success of the PAR endpoint, status 201. */
export interface ParResponse {
  /** Reference to the pushed request, for the authorization URL. */
  request_uri: string;
  /** Its lifetime in seconds: 60. */
  expires_in: number;
}

/** An error of the PAR endpoint. */
export interface ParErrorResponse {
  /** Error code; see errors.md. */
  error: string;
  /** What was wrong and what was expected; ends with `(reference …)`. */
  error_description: string;
  /** The reason in the catalogue of errors (RFC 6749 §5.2). (the provider is in developer mode) */
  error_uri?: string;
  /** Your `state`, unchanged. (the request had one, well-formed) */
  state?: string;
}

/** Parameters of the callback to your redirect URI. */
export interface CallbackParameters {
  /** Authorization code: 60 seconds, one use. */
  code: string;
  /** Your `state`, unchanged; compare it. */
  state: string;
  /** The issuer; compare it (RFC 9207). (`authorization_response_iss_parameter_supported` is true, not the default here) */
  iss?: string;
}

/** Parameters of a callback with an error. */
export interface CallbackErrorParameters {
  /** Error code; see errors.md. */
  error: string;
  /** What was wrong and what was expected; ends with `(reference …)`. */
  error_description: string;
  /** The reason in the catalogue of errors (RFC 6749 §5.2). (the provider is in developer mode) */
  error_uri?: string;
  /** Your `state`, unchanged. (the request had one, well-formed) */
  state?: string;
  /** The issuer; compare it (RFC 9207). (`authorization_response_iss_parameter_supported` is true, not the default here) */
  iss?: string;
}

/** Success of the token endpoint, status 200. */
export interface TokenResponse {
  /** Access token. */
  access_token: string;
  /** JWE, encrypted to your key, with the signed JWT inside. */
  id_token: string;
  /** Scheme of the access token. */
  token_type: "DPoP";
  /** Lifetime of the access token in seconds: 600. */
  expires_in: number;
  /** Granted scopes, separated by spaces. */
  scope: string;
}

/** Facts about the person, by scope. */
export interface PersonAttributes {
  /** Kind of account: `standard` or `foreign`. (scope `user.identity`, if known) */
  account_type?: string;
  /** Identity number. (scope `user.identity`, if known) */
  identity_number?: string;
  /** Country that issued it, two letters. (scope `user.identity`, if known) */
  identity_coi?: string;
  /** Name. (scope `user.name`, if known) */
  name?: string;
}

/** Facts about the entity, by scope. */
export interface EntityAttributes {
  /** Kind of the entity's identifier. (scope `entity.identity`, if known) */
  entity_type?: "UEN" | "NON-UEN" | "GSTN";
  /** Registration number. (scope `entity.identity`, if known) */
  entity_reg_number?: string;
  /** Country of registration, two letters. (scope `entity.identity`, if known) */
  entity_coi?: string;
  /** Registered name. (scope `entity.basic_profile.name`, if known) */
  entity_name?: string;
  /** Registration status; only of type `UEN`. (scope `entity.basic_profile.uen_status`, if known) */
  entity_uen_status?: string;
}

/** The entity that the person acts for. */
export interface IDTokenEntity {
  /** Identifier of the entity that the person acts for. */
  sub: string;
  /** Kind of the party. */
  sub_type: "entity";
  /** Facts about the entity, by scope. (a scope grants one that is known) */
  sub_attributes?: EntityAttributes;
}

/** The person who acts. */
export interface IDTokenActor {
  /** Stable identifier of the person. */
  sub: string;
  /** Kind of the party. */
  sub_type: "user";
  /** Facts about the person, by scope. (a scope grants one that is known) */
  sub_attributes?: PersonAttributes;
}

/** Claims of the ID token, after decryption and verification. */
export interface IDTokenClaims {
  /** The issuer; equals `issuer` of the discovery document. */
  iss: string;
  /** Your `client_id`. */
  aud: string;
  /** Stable identifier of the person; of the entity for a client registered with `subject: entity`. */
  sub: string;
  /** Kind of the party that `sub` names. */
  sub_type: "user" | "entity";
  /** Facts about the party that `sub` names. (a scope grants one that is known) */
  sub_attributes?: PersonAttributes | EntityAttributes;
  /** The entity that the person acts for. (client registered with `subject: user` (default)) */
  entity?: IDTokenEntity;
  /** The person who acts. (client registered with `subject: entity`) */
  act?: IDTokenActor;
  /** Time of issue. */
  iat: number;
  /** Time of expiry: 10 minutes after `iat`. */
  exp: number;
  /** Left half of the SHA-256 of the access token, base64url. */
  at_hash: string;
  /** Time at which the person authenticated. */
  auth_time: number;
  /** Methods used: `pwd otp mfa`, `pop user mfa` (passkey), or `pwd pop user mfa` (RFC 8176). */
  amr: string[];
  /** Level that was reached, such as `urn:idp:authentication:loa:2` (two factors). */
  acr: string;
  /** Your `nonce`, unchanged. */
  nonce: string;
}

/** The entity that the person acts for. */
export interface AccessTokenEntity {
  /** Identifier of the entity that the person acts for. */
  sub: string;
  /** Kind of the party. */
  sub_type: "entity";
}

/** The person who acts. */
export interface AccessTokenActor {
  /** Stable identifier of the person. */
  sub: string;
  /** Kind of the party. */
  sub_type: "user";
}

/** The key that the token is bound to (RFC 9449 §6.1). */
export interface Confirmation {
  /** SHA-256 thumbprint of your DPoP key. */
  jkt: string;
}

/** Claims of the access token (RFC 9068). Your RP passes it on and need not read it. */
export interface AccessTokenClaims {
  /** The issuer; equals `issuer` of the discovery document. */
  iss: string;
  /** URLs of the resources that accept it. */
  aud: string[];
  /** Stable identifier of the person; of the entity for a client registered with `subject: entity`. */
  sub: string;
  /** Kind of the party that `sub` names. */
  sub_type: "user" | "entity";
  /** The entity that the person acts for. (client registered with `subject: user` (default)) */
  entity?: AccessTokenEntity;
  /** The person who acts. (client registered with `subject: entity`) */
  act?: AccessTokenActor;
  /** Your `client_id`. */
  client_id: string;
  /** Granted scopes, separated by spaces. */
  scope: string;
  /** Time of issue. */
  iat: number;
  /** Time of expiry: 10 minutes after `iat`. */
  exp: number;
  /** Identifier of the token. */
  jti: string;
  /** Time at which the person authenticated. */
  auth_time: number;
  /** Level that was reached, such as `urn:idp:authentication:loa:2` (two factors). */
  acr: string;
  /** The key that the token is bound to (RFC 9449 §6.1). */
  cnf: Confirmation;
}

/** A parameter of a role. */
export interface RoleParameter {
  /** Name of the parameter, as the service defines it. */
  name: string;
  /** Its value. Empty if it is not set; `ERROR_MISSING_VALUE` if the service requires it and it is not set. A parameter with several values occurs once for each. */
  value: string;
}

/** One role of the person for the entity. */
export interface AuthInfoRow {
  /** Part of the entity that the role is limited to, such as a branch. Empty: all of it, or the service has no such parts; `ERROR_MISSING_VALUE` if the service requires one and it is not set. */
  CPEntID_SUB: string;
  /** The role. Empty if the service has no roles. */
  CPRole: string;
  /** First day on which the role holds, in the provider's time zone. `0001-01-01`: no beginning. */
  StartDate: string;
  /** Last day on which the role holds, inclusive. `9999-12-31`: no end. */
  EndDate: string;
  /** Parameters of the role, in the service's order; all that the service defines. May be an empty array. */
  Parameter: RoleParameter[];
}

/** The rows of one service. */
export interface AuthInfoRows {
  /** Number of entries in `Row`. */
  Row_Count: number;
  /** The roles that hold today. Rows outside their dates are left out. */
  Row: AuthInfoRow[];
}

/** One entity service. */
export interface AuthInfoService {
  /** Identifier of the entity service. */
  CPESrvcID: string;
  /** The person's roles at this service. */
  Auth_Result_Set: AuthInfoRows;
}

/** The services of the answer. */
export interface AuthInfoResultSet {
  /** Number of entries in `ESrvc_Result`. 0: nothing. */
  ESrvc_Row_Count: number;
  /** One entry for each entity service with a row, ordered by `CPESrvcID`. Only services that your client is registered for, and that are switched on. */
  ESrvc_Result: AuthInfoService[];
}

/** What the person may do for the entity that they act for. */
export interface AuthInfo {
  /** The whole content. Always there, also with nothing in it. */
  Result_Set: AuthInfoResultSet;
}

/** One role of the person for the client entity. */
export interface ThirdPartyRow {
  /** Part of the client entity that the role is limited to, such as a branch. Empty: all of it, or the service has no such parts; `ERROR_MISSING_VALUE` if the service requires one and it is not set. */
  CP_ClntEnt_SUB: string;
  /** The role. Empty if the service has no roles. */
  CPRole: string;
  /** First day on which the role holds, in the provider's time zone. `0001-01-01`: no beginning. */
  StartDate: string;
  /** Last day on which the role holds, inclusive. `9999-12-31`: no end. */
  EndDate: string;
  /** Parameters of the role, in the service's order; all that the service defines. May be an empty array. */
  Parameter: RoleParameter[];
}

/** The rows of one service. */
export interface ThirdPartyRows {
  /** Number of entries in `Row`. */
  Row_Count: number;
  /** The roles that hold today. Rows outside their dates are left out. */
  Row: ThirdPartyRow[];
}

/** What the person may do for one other entity, the client entity. */
export interface ThirdPartyAuthorization {
  /** Identifier of the client entity: the one on whose behalf the person's own entity acts. */
  CP_Clnt_ID: string;
  /** Kind of that identifier. */
  CP_ClntEnt_TYPE: "UEN" | "NON-UEN" | "GSTN";
  /** The person's roles for the client entity at this service. Dates are cut to those of the client entity's grant. */
  Auth_Result_Set: ThirdPartyRows;
}

/** The client entities of one service. */
export interface ThirdPartyAuthorizations {
  /** Number of entries in `TP_Auth`. */
  ENT_ROW_COUNT: number;
  /** One entry for each client entity, ordered by `CP_Clnt_ID`. */
  TP_Auth: ThirdPartyAuthorization[];
}

/** One entity service that allows third parties. */
export interface TPAuthInfoService {
  /** Identifier of the entity service. */
  CPESrvcID: string;
  /** The client entities at this service. */
  Auth_Set: ThirdPartyAuthorizations;
}

/** The services of the answer. */
export interface TPAuthInfoResultSet {
  /** Number of entries in `ESrvc_Result`. 0: nothing. */
  ESrvc_Row_Count: number;
  /** One entry for each entity service with a row, ordered by `CPESrvcID`. Only services that your client is registered for, and that are switched on. */
  ESrvc_Result: TPAuthInfoService[];
}

/** What the person may do for other entities, as a third party. */
export interface TPAuthInfo {
  /** The whole content. The block is absent if there is no row. */
  Result_Set: TPAuthInfoResultSet;
}

/** Claims of userinfo's response. */
export interface UserinfoClaims {
  /** The issuer; equals `issuer` of the discovery document. */
  iss: string;
  /** Your `client_id`. */
  aud: string;
  /** The ID token's `sub`. */
  sub: string;
  /** Time of issue. */
  iat: number;
  /** Time of expiry: 10 minutes after `iat`. */
  exp: number;
  /** What the person may do for the entity that they act for. A string for a client registered with `stringified_blocks: true`. (scope `authinfo`) */
  auth_info?: AuthInfo | string;
  /** What the person may do for other entities, as a third party. A string for a client registered with `stringified_blocks: true`. (scope `tpauthinfo` and there is a row) */
  tp_auth_info?: TPAuthInfo | string;
}

/** Claims of entity-info's response. */
export interface EntityInfoClaims {
  /** The issuer; equals `issuer` of the discovery document. */
  iss: string;
  /** Your `client_id`. */
  aud: string;
  /** The ID token's `sub`. */
  sub: string;
  /** Time of issue. */
  iat: number;
  /** Time of expiry: 10 minutes after `iat`. */
  exp: number;
  /** Facts about the entity, by scope. */
  entity_info: EntityAttributes;
}

/** An error as JSON. */
export interface ErrorResponse {
  /** Error code; see errors.md. */
  error: string;
  /** What was wrong and what was expected; ends with `(reference …)`. */
  error_description: string;
  /** The reason in the catalogue of errors (RFC 6749 §5.2). (the provider is in developer mode) */
  error_uri?: string;
}

/** The discovery document. */
export interface Discovery {
  /** The issuer: `iss` of tokens, and `aud` of client assertions. */
  issuer: string;
  /** URL of the authorization endpoint. */
  authorization_endpoint: string;
  /** URL of the token endpoint. */
  token_endpoint: string;
  /** URL of the signing keys. */
  jwks_uri: string;
  /** Name of the provider, as people see it. */
  name: string;
  /** Known scopes; yours are those that your client is registered for. */
  scopes_supported: string[];
  /** Values of `response_type`. */
  response_types_supported: string[];
  /** Values of `response_mode`. */
  response_modes_supported: string[];
  /** Kinds of `sub`. */
  subject_types_supported: string[];
  /** Names of claims. */
  claims_supported: string[];
  /** Kinds of claims. */
  claim_types_supported: string[];
  /** Values of `grant_type`. */
  grant_types_supported: string[];
  /** PKCE methods. */
  code_challenge_methods_supported: string[];
  /** Methods of client authentication. */
  token_endpoint_auth_methods_supported: string[];
  /** Signature algorithms of ID tokens. */
  id_token_signing_alg_values_supported: string[];
  /** Key agreement of ID tokens. */
  id_token_encryption_alg_values_supported: string[];
  /** Content encryption of ID tokens. */
  id_token_encryption_enc_values_supported: string[];
  /** Signature algorithms of userinfo. */
  userinfo_signing_alg_values_supported: string[];
  /** Key agreement of an encrypted userinfo. */
  userinfo_encryption_alg_values_supported: string[];
  /** Content encryption of an encrypted userinfo. */
  userinfo_encryption_enc_values_supported: string[];
  /** Whether the parameter `claims` is read. */
  claims_parameter_supported: boolean;
  /** Whether the parameter `request` is read. */
  request_parameter_supported: boolean;
  /** Whether a `request_uri` other than PAR's is read. */
  request_uri_parameter_supported: boolean;
  /** Signature algorithms of entity-info. */
  entityinfo_signing_alg_values_supported: string[];
  /** Key agreement of an encrypted entity-info. */
  entityinfo_encryption_alg_values_supported: string[];
  /** Content encryption of an encrypted entity-info. */
  entityinfo_encryption_enc_values_supported: string[];
  /** Algorithms of client assertions. */
  token_endpoint_auth_signing_alg_values_supported: string[];
  /** Whether the callback has `iss`. */
  authorization_response_iss_parameter_supported: boolean;
  /** URL of the PAR endpoint. */
  pushed_authorization_request_endpoint: string;
  /** Algorithms of DPoP proofs. */
  dpop_signing_alg_values_supported: string[];
  /** Values of `acr_values`. */
  acr_values_supported: string[];
  /** Whether every request must be pushed. */
  require_pushed_authorization_requests: boolean;
  /** Languages of the pages. */
  ui_locales_supported: string[];
  /** URL of userinfo, or of authorization-info. */
  userinfo_endpoint: string;
  /** URL of entity-info. */
  entityinfo_endpoint: string;
}

/** A public key of the provider. */
export interface SigningKey {
  /** Key type. */
  kty: "EC";
  /** For signatures. */
  use: "sig";
  /** Identifier: find the key by the `kid` of a JWT's header. */
  kid: string;
  /** Algorithm. */
  alg: "ES256";
  /** Curve. */
  crv: "P-256";
  /** Coordinate, base64url. */
  x: string;
  /** Coordinate, base64url. */
  y: string;
}

/** The provider's public keys. */
export interface KeySet {
  /** Every key that is in use, or soon will be. */
  keys: SigningKey[];
}

/** State of the process that answered. */
export interface Health {
  /** `alive` at /healthz; the others at /readyz, 503 unless `ready`. */
  status: "alive" | "ready" | "not ready" | "stopping";
  /** What does not answer. (`not ready`) */
  part?: string;
}
