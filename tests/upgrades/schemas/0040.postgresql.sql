SET check_function_bodies = false;
CREATE FUNCTION api_clients_refuse_taken_identifier() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(1131375625, hashtext(NEW.client_id));
  IF EXISTS (SELECT 1 FROM clients WHERE client_id = NEW.client_id) THEN
    RAISE unique_violation USING MESSAGE = 'a client of another kind has this identifier';
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION audit_announces() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN PERFORM pg_advisory_xact_lock_shared(74145940392261); RETURN NULL; END $$;
CREATE FUNCTION audit_refuses() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN RAISE EXCEPTION 'the audit table is append-only' USING ERRCODE = 'restrict_violation'; END $$;
CREATE FUNCTION clients_refuse_taken_identifier() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(1131375625, hashtext(NEW.client_id));
  IF EXISTS (SELECT 1 FROM api_clients WHERE client_id = NEW.client_id) THEN
    RAISE unique_violation USING MESSAGE = 'a client of another kind has this identifier';
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION memberships_copy_person() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_OP = 'INSERT' AND EXISTS (
    SELECT 1 FROM memberships WHERE user_id = NEW.user_id AND entity_id = NEW.entity_id
  ) THEN
    SELECT user_name_key, email INTO NEW.person_name_key, NEW.person_email FROM users WHERE user_id = NEW.user_id;
  ELSE
    SELECT user_name_key, email INTO NEW.person_name_key, NEW.person_email
    FROM users WHERE user_id = NEW.user_id FOR SHARE;
  END IF;
  NEW.person_name_key := coalesce(NEW.person_name_key, '');
  NEW.person_email := coalesce(NEW.person_email, '');
  RETURN NEW;
END $$;
CREATE FUNCTION memberships_end_placeholder() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  DELETE FROM users WHERE user_id = OLD.user_id AND placeholder;
  RETURN NULL;
END $$;
CREATE FUNCTION memberships_identify() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  NEW.membership_id := gen_random_uuid()::text;
  RETURN NEW;
END $$;
CREATE FUNCTION users_person_of_members() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  UPDATE memberships SET person_name_key = NEW.user_name_key, person_email = NEW.email WHERE user_id = NEW.user_id;
  RETURN NULL;
END $$;
CREATE TABLE access_review_decisions (
    entity_id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    decision text NOT NULL COLLATE pg_catalog."C",
    seen text NOT NULL COLLATE pg_catalog."C",
    decided_at bigint NOT NULL,
    decided_by text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE access_reviews (
    entity_id text NOT NULL COLLATE pg_catalog."C",
    due_at bigint NOT NULL,
    remind_at bigint NOT NULL,
    began_at bigint NOT NULL,
    began_by text NOT NULL COLLATE pg_catalog."C",
    signed_off_at bigint NOT NULL,
    signed_off_by text NOT NULL COLLATE pg_catalog."C",
    kept bigint NOT NULL,
    ended bigint NOT NULL
);
CREATE TABLE administrators (
    user_id text NOT NULL COLLATE pg_catalog."C",
    entity_id text NOT NULL COLLATE pg_catalog."C",
    level text NOT NULL COLLATE pg_catalog."C",
    services text NOT NULL COLLATE pg_catalog."C",
    source text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE api_answers (
    client_id text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    answer text NOT NULL COLLATE pg_catalog."C",
    expires_at bigint NOT NULL
);
CREATE TABLE api_client_key_sets (
    client_id text NOT NULL COLLATE pg_catalog."C",
    jwks_uri text NOT NULL COLLATE pg_catalog."C",
    jwks text NOT NULL COLLATE pg_catalog."C",
    fetched_at bigint NOT NULL
);
CREATE TABLE api_clients (
    client_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    record text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE assignments (
    user_id text NOT NULL COLLATE pg_catalog."C",
    entity_id text NOT NULL COLLATE pg_catalog."C",
    service_id text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    sub_entity text NOT NULL COLLATE pg_catalog."C",
    ref text NOT NULL COLLATE pg_catalog."C",
    start_date text NOT NULL COLLATE pg_catalog."C",
    end_date text NOT NULL COLLATE pg_catalog."C",
    parameters text NOT NULL COLLATE pg_catalog."C",
    source text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE audit (
    number bigint NOT NULL,
    at bigint NOT NULL,
    actor text NOT NULL COLLATE pg_catalog."C",
    action text NOT NULL COLLATE pg_catalog."C",
    object text NOT NULL COLLATE pg_catalog."C",
    client_id text NOT NULL COLLATE pg_catalog."C",
    entity_id text NOT NULL COLLATE pg_catalog."C",
    outcome text NOT NULL COLLATE pg_catalog."C",
    request_id text NOT NULL COLLATE pg_catalog."C",
    detail text NOT NULL COLLATE pg_catalog."C",
    other_entity_id text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    members text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    digest text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE audit_details (
    number bigint NOT NULL,
    salt text NOT NULL COLLATE pg_catalog."C",
    detail text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE audit_digests (
    seal bigint NOT NULL,
    retention text NOT NULL COLLATE pg_catalog."C",
    latest bigint NOT NULL,
    digests text NOT NULL COLLATE pg_catalog."C"
);
CREATE SEQUENCE audit_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE audit_number_seq OWNED BY audit.number;
CREATE TABLE audit_seals (
    number bigint NOT NULL,
    at bigint NOT NULL,
    last bigint NOT NULL,
    digest text NOT NULL COLLATE pg_catalog."C",
    seal text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE browser_names (
    user_id text NOT NULL COLLATE pg_catalog."C",
    browser_key text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    named_at bigint NOT NULL
);
CREATE TABLE change_requests (
    request_id text NOT NULL COLLATE pg_catalog."C",
    entity_id text NOT NULL COLLATE pg_catalog."C",
    requester text NOT NULL COLLATE pg_catalog."C",
    bound_to text NOT NULL COLLATE pg_catalog."C",
    changes text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    decided_by text NOT NULL COLLATE pg_catalog."C",
    decided_reason text NOT NULL COLLATE pg_catalog."C",
    decided_at bigint NOT NULL,
    people text DEFAULT '[]'::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE client_clocks (
    client_id text NOT NULL COLLATE pg_catalog."C",
    since double precision NOT NULL,
    period bigint NOT NULL,
    lead bigint NOT NULL,
    lead_before bigint NOT NULL
);
CREATE TABLE client_refusals (
    client_id text NOT NULL COLLATE pg_catalog."C",
    claimed boolean NOT NULL,
    at double precision NOT NULL,
    request_id text NOT NULL COLLATE pg_catalog."C",
    method text NOT NULL COLLATE pg_catalog."C",
    path text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL COLLATE pg_catalog."C",
    detail text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE clients (
    client_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    record text NOT NULL COLLATE pg_catalog."C",
    source text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE code_guesses (
    user_id text NOT NULL COLLATE pg_catalog."C",
    browser text NOT NULL COLLATE pg_catalog."C",
    factors text NOT NULL COLLATE pg_catalog."C",
    guesses bigint NOT NULL,
    paused_until bigint NOT NULL,
    told_at bigint NOT NULL
);
CREATE TABLE consents (
    user_id text NOT NULL COLLATE pg_catalog."C",
    entity_id text NOT NULL COLLATE pg_catalog."C",
    client_id text NOT NULL COLLATE pg_catalog."C",
    issuer_id text NOT NULL COLLATE pg_catalog."C",
    scopes text NOT NULL COLLATE pg_catalog."C",
    given_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE credentials (
    user_id text NOT NULL COLLATE pg_catalog."C",
    password_hash text COLLATE pg_catalog."C",
    password_set_by text NOT NULL COLLATE pg_catalog."C",
    password_source text NOT NULL COLLATE pg_catalog."C",
    totp_secret text COLLATE pg_catalog."C",
    totp_set_by text NOT NULL COLLATE pg_catalog."C",
    totp_last_step bigint NOT NULL
);
CREATE TABLE deletion_requests (
    user_id text NOT NULL COLLATE pg_catalog."C",
    requested_at bigint NOT NULL
);
CREATE TABLE deployment (
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE email_changes (
    user_id text NOT NULL COLLATE pg_catalog."C",
    link_hash text NOT NULL COLLATE pg_catalog."C",
    old_email text NOT NULL COLLATE pg_catalog."C",
    new_email text NOT NULL COLLATE pg_catalog."C",
    proved_at bigint NOT NULL,
    effective_at bigint NOT NULL
);
CREATE TABLE entities (
    entity_id text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    registration_number text NOT NULL COLLATE pg_catalog."C",
    country text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    search_text text NOT NULL COLLATE pg_catalog."C",
    approvals text DEFAULT 'none'::text NOT NULL COLLATE pg_catalog."C",
    source text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE fetched_key_sets (
    client_id text NOT NULL COLLATE pg_catalog."C",
    jwks_uri text NOT NULL COLLATE pg_catalog."C",
    jwks text NOT NULL COLLATE pg_catalog."C",
    fetched_at bigint NOT NULL
);
CREATE TABLE generation_use (
    client_id text NOT NULL COLLATE pg_catalog."C",
    generation text NOT NULL COLLATE pg_catalog."C",
    habit text NOT NULL COLLATE pg_catalog."C",
    count bigint NOT NULL,
    last_at bigint NOT NULL
);
CREATE TABLE hourly_counts (
    hour bigint NOT NULL,
    client_id text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL COLLATE pg_catalog."C",
    count bigint NOT NULL
);
CREATE TABLE keys (
    kid text NOT NULL COLLATE pg_catalog."C",
    use text NOT NULL COLLATE pg_catalog."C",
    secret text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    active_from bigint NOT NULL,
    retired_at bigint,
    revoked_at bigint,
    certificate_chain text COLLATE pg_catalog."C"
);
CREATE TABLE links (
    link_hash text NOT NULL COLLATE pg_catalog."C",
    purpose text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    factors text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE memberships (
    user_id text NOT NULL COLLATE pg_catalog."C",
    entity_id text NOT NULL COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    source text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    membership_id text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    user_name text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    user_name_key text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    external_id text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    name text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    given_name text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    family_name text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    email text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    created_at bigint DEFAULT '0'::bigint NOT NULL,
    changed_at bigint DEFAULT '0'::bigint NOT NULL,
    invitation_sent_at bigint DEFAULT '0'::bigint NOT NULL,
    invited boolean DEFAULT false NOT NULL,
    person_name_key text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    person_email text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    department text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    job_title text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE notices (
    user_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    entity_id text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    facts text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    due_at bigint NOT NULL,
    taken_by text NOT NULL COLLATE pg_catalog."C",
    taken_until bigint NOT NULL,
    sent_at bigint NOT NULL
);
CREATE TABLE operators (
    user_id text NOT NULL COLLATE pg_catalog."C",
    level text NOT NULL COLLATE pg_catalog."C",
    source text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE passkey_offers (
    user_id text NOT NULL COLLATE pg_catalog."C",
    declined_at bigint NOT NULL
);
CREATE TABLE passkeys (
    credential_id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    public_key text NOT NULL COLLATE pg_catalog."C",
    sign_count bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    aaguid text NOT NULL COLLATE pg_catalog."C",
    synced boolean NOT NULL,
    transports text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    used_at bigint NOT NULL
);
CREATE TABLE provisioning_tokens (
    token_id text NOT NULL COLLATE pg_catalog."C",
    entity_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    token_hash text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    created_by text NOT NULL COLLATE pg_catalog."C",
    last_used_at bigint NOT NULL
);
CREATE TABLE recovery_codes (
    user_id text NOT NULL COLLATE pg_catalog."C",
    code_hash text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE server_processes (
    process_id text NOT NULL COLLATE pg_catalog."C",
    host text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    address text NOT NULL COLLATE pg_catalog."C",
    version text NOT NULL COLLATE pg_catalog."C",
    started_at bigint NOT NULL,
    seen_at bigint NOT NULL,
    settings text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE services (
    service_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    roles text NOT NULL COLLATE pg_catalog."C",
    parameters text NOT NULL COLLATE pg_catalog."C",
    third_parties boolean NOT NULL,
    sub_entity text NOT NULL COLLATE pg_catalog."C",
    entity_types text NOT NULL COLLATE pg_catalog."C",
    entity_statuses text NOT NULL COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    approval_required boolean DEFAULT false NOT NULL,
    source text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    description text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    role_descriptions text DEFAULT '[]'::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE sessions (
    session_id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    browser_id text NOT NULL COLLATE pg_catalog."C",
    auth_time bigint NOT NULL,
    amr text NOT NULL COLLATE pg_catalog."C",
    level bigint NOT NULL,
    expires_at bigint NOT NULL,
    entity_id text NOT NULL COLLATE pg_catalog."C",
    purpose text DEFAULT 'sign_in'::text NOT NULL COLLATE pg_catalog."C",
    device text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    seen_at bigint DEFAULT '0'::bigint NOT NULL,
    browser_key text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE third_party_assignments (
    user_id text NOT NULL COLLATE pg_catalog."C",
    entity_id text NOT NULL COLLATE pg_catalog."C",
    client_entity_id text NOT NULL COLLATE pg_catalog."C",
    service_id text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    sub_entity text NOT NULL COLLATE pg_catalog."C",
    ref text NOT NULL COLLATE pg_catalog."C",
    start_date text NOT NULL COLLATE pg_catalog."C",
    end_date text NOT NULL COLLATE pg_catalog."C",
    parameters text NOT NULL COLLATE pg_catalog."C",
    source text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE third_party_grants (
    client_entity_id text NOT NULL COLLATE pg_catalog."C",
    entity_id text NOT NULL COLLATE pg_catalog."C",
    service_id text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    sub_entity text NOT NULL COLLATE pg_catalog."C",
    ref text NOT NULL COLLATE pg_catalog."C",
    start_date text NOT NULL COLLATE pg_catalog."C",
    end_date text NOT NULL COLLATE pg_catalog."C",
    parameters text NOT NULL COLLATE pg_catalog."C",
    state text DEFAULT 'accepted'::text NOT NULL COLLATE pg_catalog."C",
    source text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE transient (
    kind text NOT NULL COLLATE pg_catalog."C",
    key bytea NOT NULL,
    value bytea NOT NULL,
    count bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE users (
    user_id text NOT NULL COLLATE pg_catalog."C",
    user_name text NOT NULL COLLATE pg_catalog."C",
    user_name_key text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    email text NOT NULL COLLATE pg_catalog."C",
    language text NOT NULL COLLATE pg_catalog."C",
    identity_number text NOT NULL COLLATE pg_catalog."C",
    identity_country text NOT NULL COLLATE pg_catalog."C",
    account_type text NOT NULL COLLATE pg_catalog."C",
    enabled boolean NOT NULL,
    source text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    member_sources text DEFAULT '{}'::text NOT NULL COLLATE pg_catalog."C",
    placeholder boolean DEFAULT false NOT NULL
);
ALTER TABLE ONLY audit ALTER COLUMN number SET DEFAULT nextval('audit_number_seq'::regclass);
INSERT INTO alembic_version VALUES ('0040');
INSERT INTO deployment VALUES ('schema_serves_since', '0001');
SELECT pg_catalog.setval('audit_number_seq', 1, false);
ALTER TABLE ONLY alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY access_review_decisions
    ADD CONSTRAINT pk_access_review_decisions PRIMARY KEY (entity_id, user_id);
ALTER TABLE ONLY access_reviews
    ADD CONSTRAINT pk_access_reviews PRIMARY KEY (entity_id);
ALTER TABLE ONLY administrators
    ADD CONSTRAINT pk_administrators PRIMARY KEY (user_id, entity_id);
ALTER TABLE ONLY api_answers
    ADD CONSTRAINT pk_api_answers PRIMARY KEY (client_id, key);
ALTER TABLE ONLY api_client_key_sets
    ADD CONSTRAINT pk_api_client_key_sets PRIMARY KEY (client_id);
ALTER TABLE ONLY api_clients
    ADD CONSTRAINT pk_api_clients PRIMARY KEY (client_id);
ALTER TABLE ONLY assignments
    ADD CONSTRAINT pk_assignments PRIMARY KEY (user_id, entity_id, service_id, role, sub_entity, ref);
ALTER TABLE ONLY audit
    ADD CONSTRAINT pk_audit PRIMARY KEY (number);
ALTER TABLE ONLY audit_details
    ADD CONSTRAINT pk_audit_details PRIMARY KEY (number);
ALTER TABLE ONLY audit_digests
    ADD CONSTRAINT pk_audit_digests PRIMARY KEY (seal, retention);
ALTER TABLE ONLY audit_seals
    ADD CONSTRAINT pk_audit_seals PRIMARY KEY (number);
ALTER TABLE ONLY browser_names
    ADD CONSTRAINT pk_browser_names PRIMARY KEY (user_id, browser_key);
ALTER TABLE ONLY change_requests
    ADD CONSTRAINT pk_change_requests PRIMARY KEY (request_id);
ALTER TABLE ONLY client_clocks
    ADD CONSTRAINT pk_client_clocks PRIMARY KEY (client_id);
ALTER TABLE ONLY client_refusals
    ADD CONSTRAINT pk_client_refusals PRIMARY KEY (client_id, claimed, at, request_id);
ALTER TABLE ONLY clients
    ADD CONSTRAINT pk_clients PRIMARY KEY (client_id);
ALTER TABLE ONLY code_guesses
    ADD CONSTRAINT pk_code_guesses PRIMARY KEY (user_id, browser);
ALTER TABLE ONLY consents
    ADD CONSTRAINT pk_consents PRIMARY KEY (user_id, entity_id, client_id, issuer_id, scopes);
ALTER TABLE ONLY credentials
    ADD CONSTRAINT pk_credentials PRIMARY KEY (user_id);
ALTER TABLE ONLY deletion_requests
    ADD CONSTRAINT pk_deletion_requests PRIMARY KEY (user_id);
ALTER TABLE ONLY deployment
    ADD CONSTRAINT pk_deployment PRIMARY KEY (name);
ALTER TABLE ONLY email_changes
    ADD CONSTRAINT pk_email_changes PRIMARY KEY (user_id);
ALTER TABLE ONLY entities
    ADD CONSTRAINT pk_entities PRIMARY KEY (entity_id);
ALTER TABLE ONLY fetched_key_sets
    ADD CONSTRAINT pk_fetched_key_sets PRIMARY KEY (client_id);
ALTER TABLE ONLY generation_use
    ADD CONSTRAINT pk_generation_use PRIMARY KEY (client_id, generation, habit);
ALTER TABLE ONLY hourly_counts
    ADD CONSTRAINT pk_hourly_counts PRIMARY KEY (hour, client_id, reason);
ALTER TABLE ONLY keys
    ADD CONSTRAINT pk_keys PRIMARY KEY (kid);
ALTER TABLE ONLY links
    ADD CONSTRAINT pk_links PRIMARY KEY (link_hash);
ALTER TABLE ONLY memberships
    ADD CONSTRAINT pk_memberships PRIMARY KEY (user_id, entity_id);
ALTER TABLE ONLY notices
    ADD CONSTRAINT pk_notices PRIMARY KEY (user_id, kind, entity_id, subject);
ALTER TABLE ONLY operators
    ADD CONSTRAINT pk_operators PRIMARY KEY (user_id);
ALTER TABLE ONLY passkey_offers
    ADD CONSTRAINT pk_passkey_offers PRIMARY KEY (user_id);
ALTER TABLE ONLY passkeys
    ADD CONSTRAINT pk_passkeys PRIMARY KEY (credential_id);
ALTER TABLE ONLY provisioning_tokens
    ADD CONSTRAINT pk_provisioning_tokens PRIMARY KEY (token_id);
ALTER TABLE ONLY recovery_codes
    ADD CONSTRAINT pk_recovery_codes PRIMARY KEY (user_id, code_hash);
ALTER TABLE ONLY server_processes
    ADD CONSTRAINT pk_server_processes PRIMARY KEY (process_id);
ALTER TABLE ONLY services
    ADD CONSTRAINT pk_services PRIMARY KEY (service_id);
ALTER TABLE ONLY sessions
    ADD CONSTRAINT pk_sessions PRIMARY KEY (session_id);
ALTER TABLE ONLY third_party_assignments
    ADD CONSTRAINT pk_third_party_assignments PRIMARY KEY (user_id, entity_id, client_entity_id, service_id, role, sub_entity, ref);
ALTER TABLE ONLY third_party_grants
    ADD CONSTRAINT pk_third_party_grants PRIMARY KEY (client_entity_id, entity_id, service_id, role, sub_entity, ref);
ALTER TABLE ONLY transient
    ADD CONSTRAINT pk_transient PRIMARY KEY (kind, key);
ALTER TABLE ONLY users
    ADD CONSTRAINT pk_users PRIMARY KEY (user_id);
ALTER TABLE ONLY audit_seals
    ADD CONSTRAINT uq_audit_seals_last UNIQUE (last);
ALTER TABLE ONLY provisioning_tokens
    ADD CONSTRAINT uq_provisioning_tokens_token_hash UNIQUE (token_hash);
ALTER TABLE ONLY users
    ADD CONSTRAINT uq_users_user_name_key UNIQUE (user_name_key);
CREATE INDEX ix_access_review_decisions_user_id ON access_review_decisions USING btree (user_id);
CREATE INDEX ix_access_reviews_remind_at ON access_reviews USING btree (remind_at);
CREATE INDEX ix_administrators_entity_id ON administrators USING btree (entity_id);
CREATE INDEX ix_api_answers_expires_at ON api_answers USING btree (expires_at);
CREATE INDEX ix_assignments_end_date ON assignments USING btree (end_date, entity_id) WHERE (end_date <> '9999-12-31'::text);
CREATE INDEX ix_assignments_entity_id_end_date ON assignments USING btree (entity_id, end_date, user_id, service_id, role, sub_entity, ref) WHERE (end_date <> '9999-12-31'::text);
CREATE INDEX ix_assignments_entity_id_user_id ON assignments USING btree (entity_id, user_id);
CREATE INDEX ix_assignments_service_id_user_id ON assignments USING btree (service_id, user_id);
CREATE INDEX ix_audit_action_others ON audit USING btree (action, number) WHERE (action <> 'sign_in.complete'::text);
CREATE INDEX ix_audit_actor_others ON audit USING btree (actor, number) WHERE (action <> 'sign_in.complete'::text);
CREATE INDEX ix_audit_client_id ON audit USING btree (client_id, number) WHERE (client_id <> ''::text);
CREATE INDEX ix_audit_entity_id ON audit USING btree (entity_id, number) WHERE (entity_id <> ''::text);
CREATE INDEX ix_audit_object ON audit USING btree (object, number) WHERE (substr(action, 1, 8) <> 'sign_in.'::text);
CREATE INDEX ix_audit_other_entity_id ON audit USING btree (other_entity_id, number) WHERE (other_entity_id <> ''::text);
CREATE INDEX ix_audit_sign_ins ON audit USING btree (actor, number) WHERE (action = 'sign_in.complete'::text);
CREATE INDEX ix_change_requests_entity_id_state_request_id ON change_requests USING btree (entity_id, state, request_id);
CREATE INDEX ix_change_requests_state_request_id ON change_requests USING btree (state, request_id);
CREATE INDEX ix_consents_client_id ON consents USING btree (client_id);
CREATE INDEX ix_consents_expires_at ON consents USING btree (expires_at);
CREATE INDEX ix_email_changes_effective_at ON email_changes USING btree (effective_at);
CREATE INDEX ix_email_changes_link_hash ON email_changes USING btree (link_hash);
CREATE INDEX ix_entities_name ON entities USING btree (substr(search_text, 1, 100), entity_id);
CREATE INDEX ix_entities_number ON entities USING btree (registration_number, entity_id);
CREATE INDEX ix_links_user_id ON links USING btree (user_id);
CREATE INDEX ix_memberships_due ON memberships USING btree (invitation_sent_at, membership_id) WHERE (invited AND ((invitation_sent_at = 0) OR (invitation_sent_at < '-2'::integer)));
CREATE INDEX ix_memberships_entity_id ON memberships USING btree (entity_id);
CREATE INDEX ix_memberships_entity_id_membership_id ON memberships USING btree (entity_id, membership_id);
CREATE UNIQUE INDEX ix_memberships_external_id ON memberships USING btree (entity_id, external_id) WHERE (external_id <> ''::text);
CREATE INDEX ix_memberships_invited ON memberships USING btree (entity_id, membership_id) WHERE invited;
CREATE UNIQUE INDEX ix_memberships_membership_id ON memberships USING btree (membership_id) WHERE (membership_id <> ''::text);
CREATE INDEX ix_memberships_person ON memberships USING btree (entity_id, person_name_key);
CREATE INDEX ix_memberships_shown_email ON memberships USING btree (entity_id, lower(COALESCE(NULLIF(email, ''::text), person_email)), membership_id);
CREATE INDEX ix_memberships_shown_name ON memberships USING btree (entity_id, COALESCE(NULLIF(user_name_key, ''::text), person_name_key), membership_id);
CREATE UNIQUE INDEX ix_memberships_user_name ON memberships USING btree (entity_id, user_name_key) WHERE (user_name_key <> ''::text);
CREATE INDEX ix_notices_entity_id ON notices USING btree (entity_id);
CREATE INDEX ix_notices_sent_at_due_at ON notices USING btree (sent_at, due_at);
CREATE INDEX ix_operators_level ON operators USING btree (level);
CREATE INDEX ix_passkeys_user_id ON passkeys USING btree (user_id);
CREATE INDEX ix_provisioning_tokens_entity_id ON provisioning_tokens USING btree (entity_id);
CREATE INDEX ix_provisioning_tokens_expires_at ON provisioning_tokens USING btree (expires_at);
CREATE INDEX ix_sessions_expires_at ON sessions USING btree (expires_at);
CREATE INDEX ix_sessions_user_id ON sessions USING btree (user_id);
CREATE INDEX ix_third_party_assignments_client_entity_id_user_id ON third_party_assignments USING btree (client_entity_id, user_id);
CREATE INDEX ix_third_party_assignments_end_date ON third_party_assignments USING btree (end_date, entity_id) WHERE (end_date <> '9999-12-31'::text);
CREATE INDEX ix_third_party_assignments_entity_id_user_id ON third_party_assignments USING btree (entity_id, user_id);
CREATE INDEX ix_third_party_assignments_service_id_user_id ON third_party_assignments USING btree (service_id, user_id);
CREATE INDEX ix_third_party_grants_entity_id ON third_party_grants USING btree (entity_id);
CREATE INDEX ix_third_party_grants_service_id ON third_party_grants USING btree (service_id);
CREATE INDEX ix_users_email ON users USING btree (lower(substr(email, 1, 100)), user_id);
CREATE INDEX ix_users_name ON users USING btree (lower(substr(name, 1, 100)), user_id);
CREATE TRIGGER api_clients_refuses_taken_identifier BEFORE INSERT ON api_clients FOR EACH ROW EXECUTE FUNCTION api_clients_refuse_taken_identifier();
CREATE TRIGGER audit_announces BEFORE INSERT ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_announces();
CREATE TRIGGER audit_details_refuses BEFORE DELETE OR UPDATE OR TRUNCATE ON audit_details FOR EACH STATEMENT EXECUTE FUNCTION audit_refuses();
CREATE TRIGGER audit_digests_refuses BEFORE DELETE OR UPDATE OR TRUNCATE ON audit_digests FOR EACH STATEMENT EXECUTE FUNCTION audit_refuses();
CREATE TRIGGER audit_refuses BEFORE DELETE OR UPDATE OR TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_refuses();
CREATE TRIGGER audit_seals_refuses BEFORE DELETE OR UPDATE OR TRUNCATE ON audit_seals FOR EACH STATEMENT EXECUTE FUNCTION audit_refuses();
CREATE TRIGGER clients_refuses_taken_identifier BEFORE INSERT ON clients FOR EACH ROW EXECUTE FUNCTION clients_refuse_taken_identifier();
CREATE TRIGGER memberships_end_placeholder AFTER DELETE ON memberships FOR EACH ROW WHEN (old.invited) EXECUTE FUNCTION memberships_end_placeholder();
CREATE TRIGGER memberships_identified BEFORE INSERT OR UPDATE ON memberships FOR EACH ROW WHEN ((new.membership_id = ''::text)) EXECUTE FUNCTION memberships_identify();
CREATE TRIGGER memberships_person BEFORE INSERT OR UPDATE ON memberships FOR EACH ROW WHEN ((new.person_name_key = ''::text)) EXECUTE FUNCTION memberships_copy_person();
CREATE TRIGGER users_person_of_members AFTER UPDATE OF user_name_key, email ON users FOR EACH ROW WHEN (((old.user_name_key <> new.user_name_key) OR (old.email <> new.email))) EXECUTE FUNCTION users_person_of_members();
ALTER TABLE ONLY access_review_decisions
    ADD CONSTRAINT fk_access_review_decisions_entity_id FOREIGN KEY (entity_id) REFERENCES access_reviews(entity_id) ON DELETE CASCADE;
ALTER TABLE ONLY access_review_decisions
    ADD CONSTRAINT fk_access_review_decisions_user_id FOREIGN KEY (user_id) REFERENCES users(user_id) ON DELETE CASCADE;
ALTER TABLE ONLY access_reviews
    ADD CONSTRAINT fk_access_reviews_entity_id FOREIGN KEY (entity_id) REFERENCES entities(entity_id) ON DELETE CASCADE;
ALTER TABLE ONLY administrators
    ADD CONSTRAINT fk_administrators_user_id_entity_id FOREIGN KEY (user_id, entity_id) REFERENCES memberships(user_id, entity_id) ON DELETE CASCADE;
ALTER TABLE ONLY api_client_key_sets
    ADD CONSTRAINT fk_api_client_key_sets_client_id FOREIGN KEY (client_id) REFERENCES api_clients(client_id) ON DELETE CASCADE;
ALTER TABLE ONLY assignments
    ADD CONSTRAINT fk_assignments_service_id FOREIGN KEY (service_id) REFERENCES services(service_id) ON DELETE CASCADE;
ALTER TABLE ONLY assignments
    ADD CONSTRAINT fk_assignments_user_id_entity_id FOREIGN KEY (user_id, entity_id) REFERENCES memberships(user_id, entity_id) ON DELETE CASCADE;
ALTER TABLE ONLY browser_names
    ADD CONSTRAINT fk_browser_names_user_id FOREIGN KEY (user_id) REFERENCES users(user_id) ON DELETE CASCADE;
ALTER TABLE ONLY change_requests
    ADD CONSTRAINT fk_change_requests_entity_id FOREIGN KEY (entity_id) REFERENCES entities(entity_id) ON DELETE CASCADE;
ALTER TABLE ONLY client_clocks
    ADD CONSTRAINT fk_client_clocks_client_id FOREIGN KEY (client_id) REFERENCES clients(client_id) ON DELETE CASCADE;
ALTER TABLE ONLY client_refusals
    ADD CONSTRAINT fk_client_refusals_client_id FOREIGN KEY (client_id) REFERENCES clients(client_id) ON DELETE CASCADE;
ALTER TABLE ONLY code_guesses
    ADD CONSTRAINT fk_code_guesses_user_id FOREIGN KEY (user_id) REFERENCES users(user_id) ON DELETE CASCADE;
ALTER TABLE ONLY consents
    ADD CONSTRAINT fk_consents_client_id FOREIGN KEY (client_id) REFERENCES clients(client_id) ON DELETE CASCADE;
ALTER TABLE ONLY consents
    ADD CONSTRAINT fk_consents_user_id_entity_id FOREIGN KEY (user_id, entity_id) REFERENCES memberships(user_id, entity_id) ON DELETE CASCADE;
ALTER TABLE ONLY credentials
    ADD CONSTRAINT fk_credentials_user_id FOREIGN KEY (user_id) REFERENCES users(user_id) ON DELETE CASCADE;
ALTER TABLE ONLY deletion_requests
    ADD CONSTRAINT fk_deletion_requests_user_id FOREIGN KEY (user_id) REFERENCES users(user_id) ON DELETE CASCADE;
ALTER TABLE ONLY email_changes
    ADD CONSTRAINT fk_email_changes_user_id FOREIGN KEY (user_id) REFERENCES users(user_id) ON DELETE CASCADE;
ALTER TABLE ONLY fetched_key_sets
    ADD CONSTRAINT fk_fetched_key_sets_client_id FOREIGN KEY (client_id) REFERENCES clients(client_id) ON DELETE CASCADE;
ALTER TABLE ONLY generation_use
    ADD CONSTRAINT fk_generation_use_client_id FOREIGN KEY (client_id) REFERENCES clients(client_id) ON DELETE CASCADE;
ALTER TABLE ONLY links
    ADD CONSTRAINT fk_links_user_id FOREIGN KEY (user_id) REFERENCES users(user_id) ON DELETE CASCADE;
ALTER TABLE ONLY memberships
    ADD CONSTRAINT fk_memberships_entity_id FOREIGN KEY (entity_id) REFERENCES entities(entity_id) ON DELETE CASCADE;
ALTER TABLE ONLY memberships
    ADD CONSTRAINT fk_memberships_user_id FOREIGN KEY (user_id) REFERENCES users(user_id) ON DELETE CASCADE;
ALTER TABLE ONLY notices
    ADD CONSTRAINT fk_notices_entity_id FOREIGN KEY (entity_id) REFERENCES entities(entity_id) ON DELETE CASCADE;
ALTER TABLE ONLY notices
    ADD CONSTRAINT fk_notices_user_id FOREIGN KEY (user_id) REFERENCES users(user_id) ON DELETE CASCADE;
ALTER TABLE ONLY operators
    ADD CONSTRAINT fk_operators_user_id FOREIGN KEY (user_id) REFERENCES users(user_id) ON DELETE CASCADE;
ALTER TABLE ONLY passkey_offers
    ADD CONSTRAINT fk_passkey_offers_user_id FOREIGN KEY (user_id) REFERENCES users(user_id) ON DELETE CASCADE;
ALTER TABLE ONLY passkeys
    ADD CONSTRAINT fk_passkeys_user_id FOREIGN KEY (user_id) REFERENCES users(user_id) ON DELETE CASCADE;
ALTER TABLE ONLY provisioning_tokens
    ADD CONSTRAINT fk_provisioning_tokens_entity_id FOREIGN KEY (entity_id) REFERENCES entities(entity_id) ON DELETE CASCADE;
ALTER TABLE ONLY recovery_codes
    ADD CONSTRAINT fk_recovery_codes_user_id FOREIGN KEY (user_id) REFERENCES users(user_id) ON DELETE CASCADE;
ALTER TABLE ONLY sessions
    ADD CONSTRAINT fk_sessions_user_id FOREIGN KEY (user_id) REFERENCES users(user_id) ON DELETE CASCADE;
ALTER TABLE ONLY third_party_assignments
    ADD CONSTRAINT fk_third_party_assignments_client_entity_id FOREIGN KEY (client_entity_id) REFERENCES entities(entity_id) ON DELETE CASCADE;
ALTER TABLE ONLY third_party_assignments
    ADD CONSTRAINT fk_third_party_assignments_service_id FOREIGN KEY (service_id) REFERENCES services(service_id) ON DELETE CASCADE;
ALTER TABLE ONLY third_party_assignments
    ADD CONSTRAINT fk_third_party_assignments_user_id_entity_id FOREIGN KEY (user_id, entity_id) REFERENCES memberships(user_id, entity_id) ON DELETE CASCADE;
ALTER TABLE ONLY third_party_grants
    ADD CONSTRAINT fk_third_party_grants_client_entity_id FOREIGN KEY (client_entity_id) REFERENCES entities(entity_id) ON DELETE CASCADE;
ALTER TABLE ONLY third_party_grants
    ADD CONSTRAINT fk_third_party_grants_entity_id FOREIGN KEY (entity_id) REFERENCES entities(entity_id) ON DELETE CASCADE;
ALTER TABLE ONLY third_party_grants
    ADD CONSTRAINT fk_third_party_grants_service_id FOREIGN KEY (service_id) REFERENCES services(service_id) ON DELETE CASCADE;
