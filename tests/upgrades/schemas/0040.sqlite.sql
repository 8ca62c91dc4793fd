BEGIN TRANSACTION;
CREATE TABLE access_review_decisions (
	entity_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	decision TEXT NOT NULL,
	seen TEXT NOT NULL,
	decided_at BIGINT NOT NULL,
	decided_by TEXT NOT NULL,
	CONSTRAINT pk_access_review_decisions PRIMARY KEY (entity_id, user_id),
	CONSTRAINT fk_access_review_decisions_entity_id FOREIGN KEY(entity_id) REFERENCES access_reviews (entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_access_review_decisions_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE access_reviews (
	entity_id TEXT NOT NULL,
	due_at BIGINT NOT NULL,
	remind_at BIGINT NOT NULL,
	began_at BIGINT NOT NULL,
	began_by TEXT NOT NULL,
	signed_off_at BIGINT NOT NULL,
	signed_off_by TEXT NOT NULL,
	kept BIGINT NOT NULL,
	ended BIGINT NOT NULL,
	CONSTRAINT pk_access_reviews PRIMARY KEY (entity_id),
	CONSTRAINT fk_access_reviews_entity_id FOREIGN KEY(entity_id) REFERENCES entities (entity_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE administrators (
	user_id TEXT NOT NULL,
	entity_id TEXT NOT NULL,
	level TEXT NOT NULL,
	services TEXT NOT NULL, source TEXT DEFAULT '' NOT NULL,
	CONSTRAINT pk_administrators PRIMARY KEY (user_id, entity_id),
	CONSTRAINT fk_administrators_user_id_entity_id FOREIGN KEY(user_id, entity_id) REFERENCES memberships (user_id, entity_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0040');
CREATE TABLE api_answers (
	client_id TEXT NOT NULL,
	"key" TEXT NOT NULL,
	answer TEXT NOT NULL,
	expires_at BIGINT NOT NULL,
	CONSTRAINT pk_api_answers PRIMARY KEY (client_id, "key")
)
 WITHOUT ROWID

;
CREATE TABLE api_client_key_sets (
	client_id TEXT NOT NULL,
	jwks_uri TEXT NOT NULL,
	jwks TEXT NOT NULL,
	fetched_at BIGINT NOT NULL,
	CONSTRAINT pk_api_client_key_sets PRIMARY KEY (client_id),
	CONSTRAINT fk_api_client_key_sets_client_id FOREIGN KEY(client_id) REFERENCES api_clients (client_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE api_clients (
	client_id TEXT NOT NULL,
	name TEXT NOT NULL,
	enabled BOOLEAN NOT NULL,
	record TEXT NOT NULL,
	CONSTRAINT pk_api_clients PRIMARY KEY (client_id)
)
 WITHOUT ROWID

;
CREATE TABLE assignments (
	user_id TEXT NOT NULL,
	entity_id TEXT NOT NULL,
	service_id TEXT NOT NULL,
	role TEXT NOT NULL,
	sub_entity TEXT NOT NULL,
	ref TEXT NOT NULL,
	start_date TEXT NOT NULL,
	end_date TEXT NOT NULL,
	parameters TEXT NOT NULL, source TEXT DEFAULT '' NOT NULL,
	CONSTRAINT pk_assignments PRIMARY KEY (user_id, entity_id, service_id, role, sub_entity, ref),
	CONSTRAINT fk_assignments_service_id FOREIGN KEY(service_id) REFERENCES services (service_id) ON DELETE CASCADE,
	CONSTRAINT fk_assignments_user_id_entity_id FOREIGN KEY(user_id, entity_id) REFERENCES memberships (user_id, entity_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE audit (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	at BIGINT NOT NULL,
	actor TEXT NOT NULL,
	action TEXT NOT NULL,
	object TEXT NOT NULL,
	client_id TEXT NOT NULL,
	entity_id TEXT NOT NULL,
	outcome TEXT NOT NULL,
	request_id TEXT NOT NULL,
	detail TEXT NOT NULL
, other_entity_id TEXT DEFAULT '' NOT NULL, members TEXT DEFAULT '' NOT NULL, digest TEXT DEFAULT '' NOT NULL);
CREATE TABLE audit_details (
	number INTEGER NOT NULL,
	salt TEXT NOT NULL,
	detail TEXT NOT NULL,
	CONSTRAINT pk_audit_details PRIMARY KEY (number)
);
CREATE TABLE audit_digests (
	seal BIGINT NOT NULL,
	retention TEXT NOT NULL,
	latest BIGINT NOT NULL,
	digests TEXT NOT NULL,
	CONSTRAINT pk_audit_digests PRIMARY KEY (seal, retention)
);
CREATE TABLE audit_seals (
	number BIGINT NOT NULL,
	at BIGINT NOT NULL,
	last BIGINT NOT NULL,
	digest TEXT NOT NULL,
	seal TEXT NOT NULL,
	CONSTRAINT pk_audit_seals PRIMARY KEY (number),
	CONSTRAINT uq_audit_seals_last UNIQUE (last)
)
 WITHOUT ROWID

;
CREATE TABLE browser_names (
	user_id TEXT NOT NULL,
	browser_key TEXT NOT NULL,
	name TEXT NOT NULL,
	named_at BIGINT NOT NULL,
	CONSTRAINT pk_browser_names PRIMARY KEY (user_id, browser_key),
	CONSTRAINT fk_browser_names_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE change_requests (
	request_id TEXT NOT NULL,
	entity_id TEXT NOT NULL,
	requester TEXT NOT NULL,
	bound_to TEXT NOT NULL,
	changes TEXT NOT NULL,
	reason TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	state TEXT NOT NULL,
	decided_by TEXT NOT NULL,
	decided_reason TEXT NOT NULL,
	decided_at BIGINT NOT NULL, people TEXT DEFAULT '[]' NOT NULL,
	CONSTRAINT pk_change_requests PRIMARY KEY (request_id),
	CONSTRAINT fk_change_requests_entity_id FOREIGN KEY(entity_id) REFERENCES entities (entity_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE client_clocks (
	client_id TEXT NOT NULL,
	since DOUBLE NOT NULL,
	period BIGINT NOT NULL,
	lead BIGINT NOT NULL,
	lead_before BIGINT NOT NULL,
	CONSTRAINT pk_client_clocks PRIMARY KEY (client_id),
	CONSTRAINT fk_client_clocks_client_id FOREIGN KEY(client_id) REFERENCES clients (client_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE client_refusals (
	client_id TEXT NOT NULL,
	claimed BOOLEAN NOT NULL,
	at DOUBLE NOT NULL,
	request_id TEXT NOT NULL,
	method TEXT NOT NULL,
	path TEXT NOT NULL,
	reason TEXT NOT NULL,
	detail TEXT NOT NULL,
	CONSTRAINT pk_client_refusals PRIMARY KEY (client_id, claimed, at, request_id),
	CONSTRAINT fk_client_refusals_client_id FOREIGN KEY(client_id) REFERENCES clients (client_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE clients (
	client_id TEXT NOT NULL,
	name TEXT NOT NULL,
	enabled BOOLEAN NOT NULL,
	record TEXT NOT NULL, source TEXT DEFAULT '' NOT NULL,
	CONSTRAINT pk_clients PRIMARY KEY (client_id)
)
 WITHOUT ROWID

;
CREATE TABLE code_guesses (
	user_id TEXT NOT NULL,
	browser TEXT NOT NULL,
	factors TEXT NOT NULL,
	guesses BIGINT NOT NULL,
	paused_until BIGINT NOT NULL,
	told_at BIGINT NOT NULL,
	CONSTRAINT pk_code_guesses PRIMARY KEY (user_id, browser),
	CONSTRAINT fk_code_guesses_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE consents (
	user_id TEXT NOT NULL,
	entity_id TEXT NOT NULL,
	client_id TEXT NOT NULL,
	issuer_id TEXT NOT NULL,
	scopes TEXT NOT NULL,
	given_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	CONSTRAINT pk_consents PRIMARY KEY (user_id, entity_id, client_id, issuer_id, scopes),
	CONSTRAINT fk_consents_user_id_entity_id FOREIGN KEY(user_id, entity_id) REFERENCES memberships (user_id, entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_consents_client_id FOREIGN KEY(client_id) REFERENCES clients (client_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE credentials (
	user_id TEXT NOT NULL,
	password_hash TEXT,
	password_set_by TEXT NOT NULL,
	password_source TEXT NOT NULL,
	totp_secret TEXT,
	totp_set_by TEXT NOT NULL,
	totp_last_step BIGINT NOT NULL,
	CONSTRAINT pk_credentials PRIMARY KEY (user_id),
	CONSTRAINT fk_credentials_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE deletion_requests (
	user_id TEXT NOT NULL,
	requested_at BIGINT NOT NULL,
	CONSTRAINT pk_deletion_requests PRIMARY KEY (user_id),
	CONSTRAINT fk_deletion_requests_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE deployment (
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	CONSTRAINT pk_deployment PRIMARY KEY (name)
)
 WITHOUT ROWID

;
INSERT INTO "deployment" VALUES('schema_serves_since','0001');
CREATE TABLE email_changes (
	user_id TEXT NOT NULL,
	link_hash TEXT NOT NULL,
	old_email TEXT NOT NULL,
	new_email TEXT NOT NULL,
	proved_at BIGINT NOT NULL,
	effective_at BIGINT NOT NULL,
	CONSTRAINT pk_email_changes PRIMARY KEY (user_id),
	CONSTRAINT fk_email_changes_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE entities (
	entity_id TEXT NOT NULL,
	type TEXT NOT NULL,
	registration_number TEXT NOT NULL,
	country TEXT NOT NULL,
	name TEXT NOT NULL,
	status TEXT NOT NULL,
	enabled BOOLEAN NOT NULL,
	search_text TEXT NOT NULL, approvals TEXT DEFAULT 'none' NOT NULL, source TEXT DEFAULT '' NOT NULL,
	CONSTRAINT pk_entities PRIMARY KEY (entity_id)
)
 WITHOUT ROWID

;
CREATE TABLE fetched_key_sets (
	client_id TEXT NOT NULL,
	jwks_uri TEXT NOT NULL,
	jwks TEXT NOT NULL,
	fetched_at BIGINT NOT NULL,
	CONSTRAINT pk_fetched_key_sets PRIMARY KEY (client_id),
	CONSTRAINT fk_fetched_key_sets_client_id FOREIGN KEY(client_id) REFERENCES clients (client_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE generation_use (
	client_id TEXT NOT NULL,
	generation TEXT NOT NULL,
	habit TEXT NOT NULL,
	count BIGINT NOT NULL,
	last_at BIGINT NOT NULL,
	CONSTRAINT pk_generation_use PRIMARY KEY (client_id, generation, habit),
	CONSTRAINT fk_generation_use_client_id FOREIGN KEY(client_id) REFERENCES clients (client_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE hourly_counts (
	hour BIGINT NOT NULL,
	client_id TEXT NOT NULL,
	reason TEXT NOT NULL,
	count BIGINT NOT NULL,
	CONSTRAINT pk_hourly_counts PRIMARY KEY (hour, client_id, reason)
)
 WITHOUT ROWID

;
CREATE TABLE keys (
	kid TEXT NOT NULL,
	use TEXT NOT NULL,
	secret TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	active_from BIGINT NOT NULL,
	retired_at BIGINT,
	revoked_at BIGINT, certificate_chain TEXT,
	CONSTRAINT pk_keys PRIMARY KEY (kid)
)
 WITHOUT ROWID

;
CREATE TABLE links (
	link_hash TEXT NOT NULL,
	purpose TEXT NOT NULL,
	user_id TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	factors TEXT NOT NULL,
	CONSTRAINT pk_links PRIMARY KEY (link_hash),
	CONSTRAINT fk_links_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE memberships (
	user_id TEXT NOT NULL,
	entity_id TEXT NOT NULL,
	enabled BOOLEAN NOT NULL, source TEXT DEFAULT '' NOT NULL, membership_id TEXT DEFAULT '' NOT NULL, user_name TEXT DEFAULT '' NOT NULL, user_name_key TEXT DEFAULT '' NOT NULL, external_id TEXT DEFAULT '' NOT NULL, name TEXT DEFAULT '' NOT NULL, given_name TEXT DEFAULT '' NOT NULL, family_name TEXT DEFAULT '' NOT NULL, email TEXT DEFAULT '' NOT NULL, created_at BIGINT DEFAULT '0' NOT NULL, changed_at BIGINT DEFAULT '0' NOT NULL, invitation_sent_at BIGINT DEFAULT '0' NOT NULL, invited BOOLEAN DEFAULT 0 NOT NULL, person_name_key TEXT DEFAULT '' NOT NULL, person_email TEXT DEFAULT '' NOT NULL, department TEXT DEFAULT '' NOT NULL, job_title TEXT DEFAULT '' NOT NULL,
	CONSTRAINT pk_memberships PRIMARY KEY (user_id, entity_id),
	CONSTRAINT fk_memberships_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE,
	CONSTRAINT fk_memberships_entity_id FOREIGN KEY(entity_id) REFERENCES entities (entity_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE notices (
	user_id TEXT NOT NULL,
	kind TEXT NOT NULL,
	entity_id TEXT NOT NULL,
	subject TEXT NOT NULL,
	facts TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	due_at BIGINT NOT NULL,
	taken_by TEXT NOT NULL,
	taken_until BIGINT NOT NULL,
	sent_at BIGINT NOT NULL,
	CONSTRAINT pk_notices PRIMARY KEY (user_id, kind, entity_id, subject),
	CONSTRAINT fk_notices_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE,
	CONSTRAINT fk_notices_entity_id FOREIGN KEY(entity_id) REFERENCES entities (entity_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE operators (
	user_id TEXT NOT NULL,
	level TEXT NOT NULL, source TEXT DEFAULT '' NOT NULL,
	CONSTRAINT pk_operators PRIMARY KEY (user_id),
	CONSTRAINT fk_operators_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE passkey_offers (
	user_id TEXT NOT NULL,
	declined_at BIGINT NOT NULL,
	CONSTRAINT pk_passkey_offers PRIMARY KEY (user_id),
	CONSTRAINT fk_passkey_offers_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE passkeys (
	credential_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	public_key TEXT NOT NULL,
	sign_count BIGINT NOT NULL,
	name TEXT NOT NULL,
	aaguid TEXT NOT NULL,
	synced BOOLEAN NOT NULL,
	transports TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	used_at BIGINT NOT NULL,
	CONSTRAINT pk_passkeys PRIMARY KEY (credential_id),
	CONSTRAINT fk_passkeys_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE provisioning_tokens (
	token_id TEXT NOT NULL,
	entity_id TEXT NOT NULL,
	name TEXT NOT NULL,
	token_hash TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	created_by TEXT NOT NULL,
	last_used_at BIGINT NOT NULL,
	CONSTRAINT pk_provisioning_tokens PRIMARY KEY (token_id),
	CONSTRAINT fk_provisioning_tokens_entity_id FOREIGN KEY(entity_id) REFERENCES entities (entity_id) ON DELETE CASCADE,
	CONSTRAINT uq_provisioning_tokens_token_hash UNIQUE (token_hash)
)
 WITHOUT ROWID

;
CREATE TABLE recovery_codes (
	user_id TEXT NOT NULL,
	code_hash TEXT NOT NULL,
	CONSTRAINT pk_recovery_codes PRIMARY KEY (user_id, code_hash),
	CONSTRAINT fk_recovery_codes_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE server_processes (
	process_id TEXT NOT NULL,
	host TEXT NOT NULL,
	number BIGINT NOT NULL,
	address TEXT NOT NULL,
	version TEXT NOT NULL,
	started_at BIGINT NOT NULL,
	seen_at BIGINT NOT NULL,
	settings TEXT NOT NULL,
	CONSTRAINT pk_server_processes PRIMARY KEY (process_id)
)
 WITHOUT ROWID

;
CREATE TABLE services (
	service_id TEXT NOT NULL,
	name TEXT NOT NULL,
	roles TEXT NOT NULL,
	parameters TEXT NOT NULL,
	third_parties BOOLEAN NOT NULL,
	sub_entity TEXT NOT NULL,
	entity_types TEXT NOT NULL,
	entity_statuses TEXT NOT NULL,
	enabled BOOLEAN NOT NULL, approval_required BOOLEAN DEFAULT 0 NOT NULL, source TEXT DEFAULT '' NOT NULL, description TEXT DEFAULT '' NOT NULL, role_descriptions TEXT DEFAULT '[]' NOT NULL,
	CONSTRAINT pk_services PRIMARY KEY (service_id)
)
 WITHOUT ROWID

;
CREATE TABLE sessions (
	session_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	browser_id TEXT NOT NULL,
	auth_time BIGINT NOT NULL,
	amr TEXT NOT NULL,
	level BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	entity_id TEXT NOT NULL, purpose TEXT DEFAULT 'sign_in' NOT NULL, device TEXT DEFAULT '' NOT NULL, seen_at BIGINT DEFAULT '0' NOT NULL, browser_key TEXT DEFAULT '' NOT NULL,
	CONSTRAINT pk_sessions PRIMARY KEY (session_id),
	CONSTRAINT fk_sessions_user_id FOREIGN KEY(user_id) REFERENCES users (user_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE third_party_assignments (
	user_id TEXT NOT NULL,
	entity_id TEXT NOT NULL,
	client_entity_id TEXT NOT NULL,
	service_id TEXT NOT NULL,
	role TEXT NOT NULL,
	sub_entity TEXT NOT NULL,
	ref TEXT NOT NULL,
	start_date TEXT NOT NULL,
	end_date TEXT NOT NULL,
	parameters TEXT NOT NULL, source TEXT DEFAULT '' NOT NULL,
	CONSTRAINT pk_third_party_assignments PRIMARY KEY (user_id, entity_id, client_entity_id, service_id, role, sub_entity, ref),
	CONSTRAINT fk_third_party_assignments_client_entity_id FOREIGN KEY(client_entity_id) REFERENCES entities (entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_third_party_assignments_service_id FOREIGN KEY(service_id) REFERENCES services (service_id) ON DELETE CASCADE,
	CONSTRAINT fk_third_party_assignments_user_id_entity_id FOREIGN KEY(user_id, entity_id) REFERENCES memberships (user_id, entity_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE third_party_grants (
	client_entity_id TEXT NOT NULL,
	entity_id TEXT NOT NULL,
	service_id TEXT NOT NULL,
	role TEXT NOT NULL,
	sub_entity TEXT NOT NULL,
	ref TEXT NOT NULL,
	start_date TEXT NOT NULL,
	end_date TEXT NOT NULL,
	parameters TEXT NOT NULL, state TEXT DEFAULT 'accepted' NOT NULL, source TEXT DEFAULT '' NOT NULL,
	CONSTRAINT pk_third_party_grants PRIMARY KEY (client_entity_id, entity_id, service_id, role, sub_entity, ref),
	CONSTRAINT fk_third_party_grants_client_entity_id FOREIGN KEY(client_entity_id) REFERENCES entities (entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_third_party_grants_entity_id FOREIGN KEY(entity_id) REFERENCES entities (entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_third_party_grants_service_id FOREIGN KEY(service_id) REFERENCES services (service_id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE transient (
	kind TEXT NOT NULL,
	"key" BLOB NOT NULL,
	value BLOB NOT NULL,
	count BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	CONSTRAINT pk_transient PRIMARY KEY (kind, "key")
);
CREATE TABLE users (
	user_id TEXT NOT NULL,
	user_name TEXT NOT NULL,
	user_name_key TEXT NOT NULL,
	name TEXT NOT NULL,
	email TEXT NOT NULL,
	language TEXT NOT NULL,
	identity_number TEXT NOT NULL,
	identity_country TEXT NOT NULL,
	account_type TEXT NOT NULL,
	enabled BOOLEAN NOT NULL, source TEXT DEFAULT '' NOT NULL, member_sources TEXT DEFAULT '{}' NOT NULL, placeholder BOOLEAN DEFAULT 0 NOT NULL,
	CONSTRAINT pk_users PRIMARY KEY (user_id),
	CONSTRAINT uq_users_user_name_key UNIQUE (user_name_key)
)
 WITHOUT ROWID

;
CREATE INDEX ix_memberships_entity_id ON memberships (entity_id);
CREATE INDEX ix_third_party_grants_entity_id ON third_party_grants (entity_id);
CREATE INDEX ix_third_party_grants_service_id ON third_party_grants (service_id);
CREATE INDEX ix_sessions_expires_at ON sessions (expires_at);
CREATE INDEX ix_sessions_user_id ON sessions (user_id);
CREATE TRIGGER audit_refuses_UPDATE BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END;
CREATE TRIGGER audit_refuses_DELETE BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END;
CREATE INDEX ix_passkeys_user_id ON passkeys (user_id);
CREATE INDEX ix_links_user_id ON links (user_id);
CREATE INDEX ix_audit_sign_ins ON audit (actor, number) WHERE action = 'sign_in.complete';
CREATE INDEX ix_administrators_entity_id ON administrators (entity_id);
CREATE INDEX ix_operators_level ON operators (level);
CREATE TRIGGER audit_details_refuses_UPDATE BEFORE UPDATE ON audit_details
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END;
CREATE TRIGGER audit_details_refuses_DELETE BEFORE DELETE ON audit_details
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END;
CREATE INDEX ix_audit_entity_id ON audit (entity_id, number) WHERE entity_id <> '';
CREATE INDEX ix_audit_other_entity_id ON audit (other_entity_id, number) WHERE other_entity_id <> '';
CREATE INDEX ix_audit_client_id ON audit (client_id, number) WHERE client_id <> '';
CREATE INDEX ix_audit_object ON audit (object, number) WHERE substr(action, 1, 8) <> 'sign_in.';
CREATE TRIGGER clients_refuses_taken_identifier BEFORE INSERT ON clients
WHEN EXISTS (SELECT 1 FROM api_clients WHERE client_id = NEW.client_id)
BEGIN SELECT RAISE(ABORT, 'a client of another kind has this identifier'); END;
CREATE TRIGGER api_clients_refuses_taken_identifier BEFORE INSERT ON api_clients
WHEN EXISTS (SELECT 1 FROM clients WHERE client_id = NEW.client_id)
BEGIN SELECT RAISE(ABORT, 'a client of another kind has this identifier'); END;
CREATE INDEX ix_api_answers_expires_at ON api_answers (expires_at);
CREATE INDEX ix_change_requests_entity_id_state_request_id ON change_requests (entity_id, state, request_id);
CREATE INDEX ix_change_requests_state_request_id ON change_requests (state, request_id);
CREATE TRIGGER audit_seals_refuses_UPDATE BEFORE UPDATE ON audit_seals
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END;
CREATE TRIGGER audit_seals_refuses_DELETE BEFORE DELETE ON audit_seals
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END;
CREATE TRIGGER audit_digests_refuses_UPDATE BEFORE UPDATE ON audit_digests
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END;
CREATE TRIGGER audit_digests_refuses_DELETE BEFORE DELETE ON audit_digests
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END;
CREATE INDEX ix_entities_name ON entities (substr(search_text, 1, 100), entity_id);
CREATE INDEX ix_provisioning_tokens_entity_id ON provisioning_tokens (entity_id);
CREATE TRIGGER memberships_identified_after_INSERT AFTER INSERT ON memberships
WHEN NEW.membership_id = ''
BEGIN
  UPDATE memberships SET membership_id =
lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
|| substr('89ab', 1 + abs(random() % 4), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))

  WHERE user_id = NEW.user_id AND entity_id = NEW.entity_id;
END;
CREATE TRIGGER memberships_identified_after_UPDATE AFTER UPDATE ON memberships
WHEN NEW.membership_id = ''
BEGIN
  UPDATE memberships SET membership_id =
lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
|| substr('89ab', 1 + abs(random() % 4), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))

  WHERE user_id = NEW.user_id AND entity_id = NEW.entity_id;
END;
CREATE TRIGGER memberships_end_placeholder AFTER DELETE ON memberships WHEN OLD.invited
BEGIN DELETE FROM users WHERE user_id = OLD.user_id AND placeholder; END;
CREATE UNIQUE INDEX ix_memberships_membership_id ON memberships (membership_id) WHERE membership_id <> '';
CREATE UNIQUE INDEX ix_memberships_user_name ON memberships (entity_id, user_name_key) WHERE user_name_key <> '';
CREATE UNIQUE INDEX ix_memberships_external_id ON memberships (entity_id, external_id) WHERE external_id <> '';
CREATE INDEX ix_memberships_entity_id_membership_id ON memberships (entity_id, membership_id);
CREATE INDEX ix_memberships_due ON memberships (invitation_sent_at, membership_id) WHERE invited AND (invitation_sent_at = 0 OR invitation_sent_at < -2);
CREATE INDEX ix_users_name ON users (lower(substr(name, 1, 100)), user_id);
CREATE TRIGGER memberships_person_after_INSERT AFTER INSERT ON memberships
WHEN NEW.person_name_key = ''
BEGIN
  UPDATE memberships
  SET person_name_key = coalesce((SELECT user_name_key FROM users WHERE user_id = NEW.user_id), ''),
      person_email = coalesce((SELECT email FROM users WHERE user_id = NEW.user_id), '')
  WHERE user_id = NEW.user_id AND entity_id = NEW.entity_id;
END;
CREATE TRIGGER memberships_person_after_UPDATE AFTER UPDATE ON memberships
WHEN NEW.person_name_key = ''
BEGIN
  UPDATE memberships
  SET person_name_key = coalesce((SELECT user_name_key FROM users WHERE user_id = NEW.user_id), ''),
      person_email = coalesce((SELECT email FROM users WHERE user_id = NEW.user_id), '')
  WHERE user_id = NEW.user_id AND entity_id = NEW.entity_id;
END;
CREATE TRIGGER users_person_of_members AFTER UPDATE OF user_name_key, email ON users
WHEN OLD.user_name_key <> NEW.user_name_key OR OLD.email <> NEW.email
BEGIN
  UPDATE memberships SET person_name_key = NEW.user_name_key, person_email = NEW.email WHERE user_id = NEW.user_id;
END;
CREATE INDEX ix_memberships_person ON memberships (entity_id, person_name_key);
CREATE INDEX ix_memberships_shown_name ON memberships (entity_id, coalesce(nullif(user_name_key, ''), person_name_key), membership_id);
CREATE INDEX ix_memberships_shown_email ON memberships (entity_id, lower(coalesce(nullif(email, ''), person_email)), membership_id);
CREATE INDEX ix_memberships_invited ON memberships (entity_id, membership_id) WHERE invited;
CREATE INDEX ix_audit_actor_others ON audit (actor, number) WHERE action <> 'sign_in.complete';
CREATE INDEX ix_audit_action_others ON audit (action, number) WHERE action <> 'sign_in.complete';
CREATE INDEX ix_assignments_entity_id_user_id ON assignments (entity_id, user_id);
CREATE INDEX ix_assignments_service_id_user_id ON assignments (service_id, user_id);
CREATE INDEX ix_third_party_assignments_entity_id_user_id ON third_party_assignments (entity_id, user_id);
CREATE INDEX ix_third_party_assignments_client_entity_id_user_id ON third_party_assignments (client_entity_id, user_id);
CREATE INDEX ix_third_party_assignments_service_id_user_id ON third_party_assignments (service_id, user_id);
CREATE INDEX ix_consents_expires_at ON consents (expires_at);
CREATE INDEX ix_consents_client_id ON consents (client_id);
CREATE INDEX ix_email_changes_link_hash ON email_changes (link_hash);
CREATE INDEX ix_email_changes_effective_at ON email_changes (effective_at);
CREATE INDEX ix_notices_sent_at_due_at ON notices (sent_at, due_at);
CREATE INDEX ix_notices_entity_id ON notices (entity_id);
CREATE INDEX ix_provisioning_tokens_expires_at ON provisioning_tokens (expires_at);
CREATE INDEX ix_assignments_end_date ON assignments (end_date, entity_id) WHERE end_date <> '9999-12-31';
CREATE INDEX ix_third_party_assignments_end_date ON third_party_assignments (end_date, entity_id) WHERE end_date <> '9999-12-31';
CREATE INDEX ix_access_reviews_remind_at ON access_reviews (remind_at);
CREATE INDEX ix_access_review_decisions_user_id ON access_review_decisions (user_id);
CREATE INDEX ix_entities_number ON entities (registration_number, entity_id);
CREATE INDEX ix_users_email ON users (lower(substr(email, 1, 100)), user_id);
CREATE INDEX ix_assignments_entity_id_end_date ON assignments (entity_id, end_date, user_id, service_id, role, sub_entity, ref) WHERE end_date <> '9999-12-31';
DELETE FROM "sqlite_sequence";
COMMIT;
