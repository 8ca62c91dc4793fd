"""The audit's actions, its entries, and queries of these (D57).

The actions are a closed list, each with when it is written. An event takes its action from here; docs/audit.md is made
from it (`make tables`). The table stores the value, so a value never changes, and entries with an action that is no
longer written are still read.
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final, Literal, Self

import msgspec

from corpid.texts import Phrase, phrase

BYPASSED: Final = "bypassed"
"""the detail `approval` of a change that needed one, and was made without"""
INVITED_PERSON: Final = "invited_person"
"""the detail of an event about somebody invited: the address of the invitation, and the name beside it (D68)"""
COMMENT: Final = "comment"
"""the detail of an event about a comment on a request: its number, from 1"""
INVITATION: Final = "invitation"
"""the detail of an acceptance: as INVITED_PERSON, whom the invitation was for"""
ACTING_FOR: Final = "acting_for"
"""the detail of an administrator's decision on a third party: the entity acted for (D56)"""
ROLE_PARTS: Final = ("role", "sub_entity", "ref")
"""the details of an event about a role or authorisation with a slash in one of these: its object does not tell them apart"""
OF_ENTITY: Final = frozenset({INVITED_PERSON, INVITATION})
"""personal details that the entity of an event wrote (D61)"""
PERSONAL_DETAILS: Final = ("address", "device", "context_message", "reason_given", *sorted(OF_ENTITY))
"""details of an event that are about a person, and so can be erased (D57)"""


_KINDS: Final = {
    **dict.fromkeys(("session", "link", "enrolment", "factors"), "user"),
    **dict.fromkeys(("code", "assertion", "proof", "consent"), "client"),
    **dict.fromkeys(("maintenance", "audit"), "deployment"),
    "directory": "file",
}
"""nouns of actions that are done to something of another name"""


_NO_TEXT: Final = Phrase("", "", {})
"""of the calls that look a member up"""


@unique
class AuditAction(StrEnum):
    """An audited action, as noun.verb; `when` is a sentence."""

    summary: Phrase
    when: str

    @property
    def object_kind(self) -> str:
        """The kind of record that `object` is the key of."""
        noun = self.value.partition(".")[0]
        return _KINDS.get(noun, noun)

    def __new__(cls, value: str, summary: Phrase = _NO_TEXT, rest: str = "") -> Self:
        """Make a member from the stored value and its sentence.

        Pages show the summary; docs/audit.md has the rest of the sentence, too.
        """
        member = str.__new__(cls, value)
        member._value_ = value
        member.summary, member.when = summary, summary + rest
        return member

    # fmt: off
    # a sign-in
    SIGN_IN_COMPLETE = "sign_in.complete", phrase("A sign-in was completed"), (
        ", also for the account (then without `client_id`); `way` says which code was used with a password: `app`,"
        " `email`, `recovery`; `simulated`: see `sign_in.simulate`")
    SIGN_IN_PASSWORD = "sign_in.password", phrase("A password was entered"), (
        ", right (`ok`) or wrong; a right password alone is not a sign-in")
    SIGN_IN_SECOND_FACTOR = "sign_in.second_factor", phrase("A second step was checked"), (
        "; `way` says which. Without a `way`: the person had none")
    SIGN_IN_MAIL_CODE = "sign_in.mail_code", phrase("A code was sent by e-mail")
    SIGN_IN_PAUSE_CODES = "sign_in.pause_codes", phrase("Wrong codes started a pause"), (
        ": after how many `guesses`, for `pause_seconds`, for which `browser`: `new` (all unknown ones), `known` "
        "(this one)")
    SIGN_IN_PASSKEY = "sign_in.passkey", phrase("A passkey was used without a password")
    SIGN_IN_SIMULATE = "sign_in.simulate", phrase("A test person's factors were simulated"), (
        ", in developer mode; `amr` says which were claimed")
    SIGN_IN_REFUSE = "sign_in.refuse", phrase("A sign-in was cancelled or refused"), (
        ", with the `reason`. The actor is `anonymous` if nobody had signed in yet: another browser can then still"
        " complete the request")
    SIGN_IN_REPEAT = "sign_in.repeat", phrase("A form came with an old cookie value"), (
        ", within a minute after the sign-in that replaced it; `object` is the person who signed in there. Once: "
        "perhaps a second tab. Three times (later ones are not checked): somebody has that value and is guessing")
    SESSION_END = "session.end", phrase("A person signed out of one browser"), "; without single sign-on also at the end of a sign-in"
    SESSION_NAME = "session.name", phrase("A person gave a browser a name"), ", or removed it"
    SESSION_END_ALL = "session.end_all", phrase("A person signed out everywhere else")

    # links, and setting factors with them
    LINK_INVITATION = "link.invitation", phrase("An invitation was created")
    LINK_MEMBERSHIP = "link.membership", phrase("An organisation's invitation was sent"), ", or is about to be sent; only the e-mail has the link"
    LINK_PASSWORD = "link.password", phrase("A link for a new password was created"), (
        ", by an operator, at the person's request or at that of their entity's administrator (`requested_by`, and"
        " if none was created `refused` with the `reason`)")
    LINK_SECOND_FACTOR = "link.second_factor", phrase("A link for a second step was created"), (
        ", by an operator or, as with `link.password`, at the request of an entity's administrator")
    ENROLMENT_PASSWORD = "enrolment.password", phrase("A password was entered at a link")
    ENROLMENT_SECOND_FACTOR = "enrolment.second_factor", phrase("A code was entered at a link")
    ENROLMENT_PASSKEY = "enrolment.passkey", phrase("A passkey was used at a link")
    ENROLMENT_MAIL_CODE = "enrolment.mail_code", phrase("An enrolment's code was sent by e-mail")
    ENROLMENT_PAUSE_CODES = "enrolment.pause_codes", phrase("A pause started at a link"), ", after wrong codes (`browser`: `link`)"
    FACTORS_INVITATION = "factors.invitation", phrase("Factors were set by an invitation"), "; `set` says which"
    FACTORS_MEMBERSHIP = "factors.membership", phrase("An invited person set factors"), ", accepting without an account; `set` says which"
    FACTORS_PASSWORD = "factors.password", phrase("A password was changed"), ", in the account or by a link"
    FACTORS_SECOND_FACTOR = "factors.second_factor", phrase("A second step was set by a link"), "; `set` says which"

    # the account
    FACTORS_APP = "factors.app", phrase("An app was set")
    FACTORS_REMOVE_APP = "factors.remove_app", phrase("The app was removed")
    FACTORS_ADD_PASSKEY = "factors.add_passkey", phrase("A passkey was added")
    FACTORS_RENAME_PASSKEY = "factors.rename_passkey", phrase("A passkey was renamed")
    FACTORS_REMOVE_PASSKEY = "factors.remove_passkey", phrase("A passkey was removed")
    FACTORS_RECOVERY_CODES = "factors.recovery_codes", phrase("New recovery codes were created")
    FACTORS_REMOVE_RECOVERY_CODES = "factors.remove_recovery_codes", phrase("The recovery codes were removed")
    USER_LANGUAGE = "user.language", phrase("A person chose another language")
    USER_MAIL_CODE = "user.mail_code", phrase("A code was sent to a new e-mail address"), ", which a person wants to use"
    USER_PROVE_EMAIL = "user.prove_email", phrase("A person proved a new e-mail address"), (
        ", which takes effect at `effective_at`; their other sessions ended")
    USER_CHANGE_EMAIL = "user.change_email", phrase("A proven e-mail address took effect"), (
        "; `refused` if the person or the address had changed meanwhile")
    USER_UNDO_EMAIL = "user.undo_email", phrase("A change of an e-mail address was undone"), (
        ", in which `way`: `link` (every session ended), `account`")
    CONSENT_GIVE = "consent.give", phrase("A person agreed to share data"), (
        ": `scopes` says which, `expires_at` how long CorpID remembers it")
    CONSENT_WITHDRAW = "consent.withdraw", phrase("A person withdrew their consent"), ", for one client and entity"

    # replays, by a client that has authenticated
    CODE_REPLAY = "code.replay", phrase("A code was sent that is not stored"), ": already used, or another client's; its tokens are revoked"
    ASSERTION_REPLAY = "assertion.replay", phrase("A client assertion was sent again")
    PROOF_REPLAY = "proof.replay", phrase("A DPoP proof was sent again")

    # records of the directory, each change with an event of its own
    DIRECTORY_APPLY = "directory.apply", phrase("A file was applied"), (
        ": its `sha256`, and how many records it added, changed and removed; each record has its own earlier "
        "event. `by` says who ran the command")
    CLIENT_ADD = "client.add", phrase("A client was registered")
    CLIENT_UPDATE = "client.update", phrase("A client was changed"), "; `members` names the members"
    CLIENT_REMOVE = "client.remove", phrase("A client was removed")
    CLIENT_ENABLE = "client.enable", phrase("A client was enabled")
    CLIENT_DISABLE = "client.disable", phrase("A client was disabled")
    CLIENT_DROP_KEYS = "client.drop_keys", phrase("A client's keys were dropped"), ": those fetched from its `jwks_uri`"
    PROVISIONING_TOKEN_ADD = "provisioning_token.add", phrase("A provisioning token was created"), ", for one entity, until `expires_at`"
    PROVISIONING_TOKEN_REMOVE = "provisioning_token.remove", phrase("A provisioning token was removed"), ", and no longer works"
    API_CLIENT_ADD = "api_client.add", phrase("A client of the admin API was registered")
    API_CLIENT_UPDATE = "api_client.update", phrase("A client of the admin API was changed"), "; `members` names the members"
    API_CLIENT_REMOVE = "api_client.remove", phrase("A client of the admin API was removed")
    API_CLIENT_ENABLE = "api_client.enable", phrase("A client of the admin API was enabled")
    API_CLIENT_DISABLE = "api_client.disable", phrase("A client of the admin API was disabled"), "; its tokens no longer work"
    SERVICE_ADD = "service.add", phrase("A service was added")
    SERVICE_UPDATE = "service.update", phrase("A service was changed"), "; `members` names the members"
    SERVICE_REMOVE = "service.remove", phrase("A service was removed")
    ENTITY_ADD = "entity.add", phrase("An organisation was added")
    ENTITY_UPDATE = "entity.update", phrase("An organisation was changed"), "; `members` names the members"
    ENTITY_REMOVE = "entity.remove", phrase("An organisation was removed"), ", with its memberships and roles"
    ENTITY_ENABLE = "entity.enable", phrase("An organisation was enabled")
    ENTITY_DISABLE = "entity.disable", phrase("An organisation was disabled"), "; nobody can act for it"
    USER_ADD = "user.add", phrase("A person was added")
    USER_UPDATE = "user.update", phrase("A person was changed"), "; `members` names the members"
    USER_REMOVE = "user.remove", phrase("A person was removed"), ", with their memberships, factors and sessions"
    USER_ENABLE = "user.enable", phrase("A person was enabled")
    USER_DISABLE = "user.disable", phrase("A person was disabled"), "; their sessions and links ended"
    USER_RESET_PASSWORD = "user.reset_password", phrase("An operator gave a new password"), "; the person's sessions ended"
    USER_RESET_FACTORS = "user.reset_factors", phrase("An operator replaced the second step"), "; the person's sessions ended"
    USER_REMOVE_FACTORS = "user.remove_factors", phrase("An operator removed every factor"), ", to invite the person again"
    USER_DOWNLOAD = "user.download", phrase("A person downloaded their data"), ": everything that is kept about them"
    USER_REQUEST_DELETION = "user.request_deletion", phrase("A person asked to be deleted")
    USER_WITHDRAW_DELETION = "user.withdraw_deletion", phrase("A request for deletion was withdrawn"), ", by the person"
    USER_UNLOCK = "user.unlock", phrase("Pauses and delays were ended"), (
        ", after wrong passwords and codes: by an operator or, as with `link.password`, at the request of an "
        "entity's administrator")
    CREDENTIALS_ADD = "credentials.add", phrase("A person got a password or an app"), ", by a file or command"
    CREDENTIALS_UPDATE = "credentials.update", phrase("A file changed a password or an app"), "; the person's sessions ended"
    CREDENTIALS_REMOVE = "credentials.remove", phrase("A person's password and app were removed")
    MEMBERSHIP_ADD = "membership.add", phrase("A person can act for an organisation")
    MEMBERSHIP_INVITE = "membership.invite", phrase("An organisation invited a person"), ", who becomes a member by accepting"
    MEMBERSHIP_UPDATE = "membership.update", phrase("A membership was changed"), "; `members` names the members"
    MEMBERSHIP_REMOVE = "membership.remove", phrase("A membership was ended")
    MEMBERSHIP_ACCEPT = "membership.accept", phrase("An invited person accepted"), "; the membership is now effective"
    MEMBERSHIP_RESEND = "membership.resend", phrase("An invitation is to be sent again")
    MEMBERSHIP_DECLINE = "membership.decline", phrase("An invitation was declined"), ", by its link; the membership ended"
    MEMBERSHIP_SEND_PASSWORD_LINK = "membership.send_password_link", phrase("A link for a new password was asked for"), (
        ", by an administrator for a member; `link.password` says whether it was sent; the entity does not read it")
    MEMBERSHIP_SEND_SECOND_FACTOR_LINK = "membership.send_second_factor_link", phrase("A link for a second step was asked for"), (
        ", by an administrator for a member; `link.second_factor` says whether it was sent; the entity does not "
        "read it")
    MEMBERSHIP_UNLOCK = "membership.unlock", phrase("An unlocking was asked for"), (
        ", by an administrator for a member; `user.unlock` says whether they ended; the entity does not read it")
    ADMINISTRATOR_ADD = "administrator.add", phrase("A person can administer an organisation")
    ADMINISTRATOR_UPDATE = "administrator.update", phrase("An administrator was changed"), (
        ": the level, or the services of a sub-administrator; `members` names the members")
    ADMINISTRATOR_REMOVE = "administrator.remove", phrase("An administrator was removed")
    OPERATOR_ADD = "operator.add", phrase("A person became an operator")
    OPERATOR_UPDATE = "operator.update", phrase("The level of an operator was changed")
    OPERATOR_REMOVE = "operator.remove", phrase("A person is no longer an operator")
    ASSIGNMENT_ADD = "assignment.add", phrase("A person got a role")
    ASSIGNMENT_UPDATE = "assignment.update", phrase("A role was changed"), "; `members` names the members"
    ASSIGNMENT_REMOVE = "assignment.remove", phrase("A person lost a role")
    GRANT_OFFER = "grant.offer", phrase("A grant was offered to a third party"), ", or other terms of a grant"
    GRANT_ACCEPT = "grant.accept", phrase("A third party accepted an offer"), "; the grant is now effective"
    GRANT_DECLINE = "grant.decline", phrase("A third party declined an offer")
    GRANT_WITHDRAW = "grant.withdraw", phrase("An offer to a third party was withdrawn")
    GRANT_END = "grant.end", phrase("A third party's grant was ended"), (
        ", by one of the two sides; the roles under it have their own events")
    GRANT_ADD = "grant.add", phrase("A third party was authorised"), ", by an operator for both sides"
    GRANT_UPDATE = "grant.update", phrase("A third party's grant was changed"), (
        ", by an operator or to narrower terms; `members` names the members")
    GRANT_REMOVE = "grant.remove", phrase("A third party's grant was removed"), ", by an operator"
    THIRD_PARTY_ASSIGNMENT_ADD = "third_party_assignment.add", phrase("A third party's person got a role")
    THIRD_PARTY_ASSIGNMENT_UPDATE = "third_party_assignment.update", phrase("A third party's role was changed"), (
        ", of one of its people; `members` names the members")
    THIRD_PARTY_ASSIGNMENT_REMOVE = "third_party_assignment.remove", phrase("A third party's person lost a role")

    # change requests; what is approved has events of its own, with the `approval` and who gave it
    APPROVAL_REQUEST = "approval.request", phrase("A change was requested"), ", which needs another administrator's approval"
    APPROVAL_APPROVE = "approval.approve", phrase("A request was approved"), ", and its change was made"
    APPROVAL_DECLINE = "approval.decline", phrase("A request was declined")
    APPROVAL_WITHDRAW = "approval.withdraw", phrase("A request was withdrawn by its requester")
    APPROVAL_COMMENT = "approval.comment", phrase("A comment was added to a request"), (
        "; `comment` says which one, by number. The text is kept with the request")
    APPROVAL_EXPIRE = "approval.expire", phrase("A request expired"), ", after 14 days without a decision"

    # the yearly access review of an entity; ending somebody's access in it has events of its own
    ACCESS_REVIEW_BEGIN = "access_review.begin", phrase("An access review began"), ", with its first decision"
    ACCESS_REVIEW_KEEP = "access_review.keep", phrase("A person's access was kept in a review"), "; `seen` names what was shown"
    ACCESS_REVIEW_SIGN_OFF = "access_review.sign_off", phrase("An access review was signed off"), (
        "; `kept` and `ended` say of how many people")

    # the deployment
    KEY_PUBLISH = "key.publish", phrase("A standby signing key was created")
    KEY_ROTATE = "key.rotate", phrase("A signing key was set to sign"), (
        ", the one that was published; with `use` `audit`, the next key for the audit's seals")
    KEY_RETIRE = "key.retire", phrase("A signing key was set to retire"), ", when the next key takes over"
    KEY_REVOKE = "key.revoke", phrase("A signing key was revoked")
    KEY_KEEP = "key.keep", phrase("A retiring key is kept"), ", until another key signs"
    KEY_CERTIFY = "key.certify", phrase("A key's certificate was changed"), ": stored, or removed (no `fingerprint`)"
    KEY_REWRAP = "key.rewrap", phrase("Secrets were encrypted again"), ", with the current key"
    MAINTENANCE_ON = "maintenance.on", phrase("Maintenance began")
    MAINTENANCE_OFF = "maintenance.off", phrase("Maintenance ended")
    JOB_START = "job.start", phrase("A job started"), "; `kind` says which"
    JOB_END = "job.end", phrase("A job ended"), (
        "; `kind` says which, and `event` how: `finish`, `fail` (an error), `stop` (its server was stopped) or `lose` "
        "(its server died, as another one found: the actor is `system`)")
    STORE_CLOSE = "store.close", phrase("Redis or Valkey was closed"), ", for a restart"
    STORE_OPEN = "store.open", phrase("Redis or Valkey was opened again"), ", without a restart"
    DEPLOYMENT_RESTORE = "deployment.restore", phrase("A backup was restored")
    AUDIT_PRUNE = "audit.prune", phrase("Old audit entries were removed"), (
        ", and old details: `removed` and `erased` say how many. It is written before the removal")
    AUDIT_ERASE = "audit.erase", phrase("Audit details were erased"), ", of a removed person; `erased` says how many"
    AUDIT_EXPORT = "audit.export", phrase("Audit entries were exported"), "; `filters` says which"
    AUDIT_STREAM = "audit.stream", phrase("The audit's stream was moved"), ": it goes on after the entry `to`; before, it was at `from`"
    # fmt: on


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A security event, written in the transaction of its change.

    The store adds members before and after: it is what sees the record that is replaced. Source: D57
    """

    actor: str
    """a kind of `access.ACTOR_KINDS`, and a name after a colon if it has one, e.g. `user:{user_id}`"""
    action: str
    """noun.verb, e.g. `client.disable`, `sign_in.complete`, `key.rotate`"""
    object: str = ""
    client_id: str = ""
    entity_id: str = ""
    other_entity_id: str = ""
    """the other entity of an event about two: an authorisation of a third party, and roles under it (D56)"""
    outcome: Literal["ok", "refused"] = "ok"
    request_id: str = ""
    detail: dict[str, str] = msgspec.field(default_factory=dict)


class AuditEntry(AuditEvent, frozen=True, kw_only=True):
    """An event as it was written."""

    number: int
    at: int
    before: dict[str, object] = msgspec.field(default_factory=dict)
    """members of the changed record, as they may be shown; empty if it was added"""
    after: dict[str, object] = msgspec.field(default_factory=dict)
    erased: bool = False
    """whether the entry had details that were erased: addresses, personal members"""

    @property
    def approval(self) -> str:
        """The request that approved it; empty: none, or it was bypassed."""
        found = self.detail.get("approval", "")
        return "" if found == BYPASSED else found


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions on entries; those that are not set fit every one."""

    actor: str = ""
    user_id: str = ""
    """the actor or the object"""
    entity_id: str = ""
    client_id: str = ""
    actions: tuple[str, ...] = ()
    """any of these; empty: every action"""
    object: str = ""
    since: int = 0
    """epoch seconds"""
    before: int = 0
    """entries of lower numbers; 0: of any"""


class AuditPart(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the entries that fit, the latest first."""

    entries: list[AuditEntry]
    before: int
    """the number before which to go on; 0: there is no more"""


class StoredEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as it is stored, with its details."""

    row: dict[str, str | int]
    """column → value"""
    salt: str | None
    """None, as `detail`: it has no details, or they were erased"""
    detail: str | None
