"""The audit's actions: a closed list, each with when it is written.

An event takes its action from here; docs/audit.md is made from it (`make tables`). The table stores the value, so a
value never changes, and entries with an action that is no longer written are still read.
"""

from __future__ import annotations

import re
from enum import StrEnum, unique
from typing import Final, Self

INVITED_PERSON: Final = "invited_person"
"""the detail of an event about somebody invited: the address of the invitation, and the name beside it (D68)"""
PERSONAL_DETAILS: Final = ("address", "device", "context_message", "reason_given", INVITED_PERSON)
"""details of an event that are about a person, and so can be erased (D57)"""


_KINDS: Final = {
    **dict.fromkeys(("session", "link", "enrolment", "factors"), "user"),
    **dict.fromkeys(("code", "assertion", "proof", "consent"), "client"),
    **dict.fromkeys(("maintenance", "audit"), "deployment"),
    "directory": "file",
}
"""nouns of actions that are done to something of another name"""


@unique
class AuditAction(StrEnum):
    """An audited action, as noun.verb; `when` is a sentence for people."""

    when: str

    @property
    def summary(self) -> str:
        """The start of `when`, in a few words."""
        return re.split(r"[,;:]", self.when, maxsplit=1)[0]

    @property
    def object_kind(self) -> str:
        """The kind of record that `object` is the key of."""
        noun = self.value.partition(".")[0]
        return _KINDS.get(noun, noun)

    def __new__(cls, value: str, when: str = "") -> Self:
        """Make a member from the stored value and its sentence.

        The sentence is for docs/audit.md.
        """
        member = str.__new__(cls, value)
        member._value_ = value
        member.when = when
        return member

    # fmt: off
    # a sign-in
    SIGN_IN_COMPLETE = "sign_in.complete", (
        "A sign-in was completed, also for the account (then without `client_id`); "
        "`way` says which code was used with a password: `app`, `email`, `recovery`; `simulated`: see `sign_in.simulate`")
    SIGN_IN_PASSWORD = "sign_in.password", "A password was entered, right (`ok`) or wrong; a right password alone is not a sign-in"
    SIGN_IN_SECOND_FACTOR = "sign_in.second_factor", (
        "A second factor was checked; `way` says which. Without a `way`: the person had none")
    SIGN_IN_MAIL_CODE = "sign_in.mail_code", "A code was sent by e-mail"
    SIGN_IN_PAUSE_CODES = "sign_in.pause_codes", (
        "Wrong codes started a pause: after how many `guesses`, for `pause_seconds`, for which `browser`: `new` (all "
        "unknown ones), `known` (this one)")
    SIGN_IN_PASSKEY = "sign_in.passkey", "A passkey was used without a password"
    SIGN_IN_SIMULATE = "sign_in.simulate", (
        "A test person's factors were simulated, in developer mode; `amr` says which were claimed")
    SIGN_IN_REFUSE = "sign_in.refuse", (
        "A sign-in was cancelled or refused, with the `reason`. The actor is `anonymous` if nobody had signed in "
        "yet: another browser can then still complete the request")
    SIGN_IN_REPEAT = "sign_in.repeat", (
        "A form came with an old cookie value, within a minute after the sign-in that replaced it; `object` is the "
        "person who signed in there. Once: perhaps a second tab. Three times (later ones are not checked): somebody "
        "has that value and is guessing")
    SESSION_END = "session.end", "A person signed out of one browser; without single sign-on also at the end of a sign-in"
    SESSION_NAME = "session.name", "A person gave a browser a name, or removed it"
    SESSION_END_ALL = "session.end_all", "A person signed out everywhere else"

    # links, and setting factors with them
    LINK_INVITATION = "link.invitation", "An invitation was created"
    LINK_MEMBERSHIP = "link.membership", "An entity's invitation was sent, or is about to be sent; only the e-mail has the link"
    LINK_PASSWORD = "link.password", (
        "A link for a new password was created, by an operator, at the person's request or at that of their entity's "
        "administrator (`requested_by`, and if none was created `refused` with the `reason`)")
    LINK_SECOND_FACTOR = "link.second_factor", (
        "A link for a second factor was created, by an operator or, as with `link.password`, at the request of an entity's administrator")
    ENROLMENT_PASSWORD = "enrolment.password", "A password was entered at a link"
    ENROLMENT_SECOND_FACTOR = "enrolment.second_factor", "A code was entered at a link"
    ENROLMENT_PASSKEY = "enrolment.passkey", "A passkey was used at a link"
    ENROLMENT_MAIL_CODE = "enrolment.mail_code", "An enrolment's code was sent by e-mail"
    ENROLMENT_PAUSE_CODES = "enrolment.pause_codes", "A pause started at a link, after wrong codes (`browser`: `link`)"
    FACTORS_INVITATION = "factors.invitation", "Factors were set by an invitation; `set` says which"
    FACTORS_MEMBERSHIP = "factors.membership", "An invited person set factors, accepting without an account; `set` says which"
    FACTORS_PASSWORD = "factors.password", "A password was changed, in the account or by a link"
    FACTORS_SECOND_FACTOR = "factors.second_factor", "A second factor was set by a link; `set` says which"

    # the account
    FACTORS_APP = "factors.app", "An app was set"
    FACTORS_REMOVE_APP = "factors.remove_app", "The app was removed"
    FACTORS_ADD_PASSKEY = "factors.add_passkey", "A passkey was added"
    FACTORS_RENAME_PASSKEY = "factors.rename_passkey", "A passkey was renamed"
    FACTORS_REMOVE_PASSKEY = "factors.remove_passkey", "A passkey was removed"
    FACTORS_RECOVERY_CODES = "factors.recovery_codes", "New recovery codes were created"
    FACTORS_REMOVE_RECOVERY_CODES = "factors.remove_recovery_codes", "The recovery codes were removed"
    USER_LANGUAGE = "user.language", "A person chose another language"
    USER_MAIL_CODE = "user.mail_code", "A code was sent to a new e-mail address, which a person wants to use"
    USER_PROVE_EMAIL = "user.prove_email", (
        "A person proved a new e-mail address, which takes effect at `effective_at`; their other sessions ended")
    USER_CHANGE_EMAIL = "user.change_email", (
        "A proven e-mail address took effect; `refused` if the person or the address had changed meanwhile")
    USER_UNDO_EMAIL = "user.undo_email", (
        "A change of an e-mail address was undone, in which `way`: `link` (every session ended), `account`")
    CONSENT_GIVE = "consent.give", (
        "A person agreed to share data: `scopes` says which, `expires_at` how long CorpID remembers it")
    CONSENT_WITHDRAW = "consent.withdraw", "A person withdrew their consent, for one client and entity"

    # replays, by a client that has authenticated
    CODE_REPLAY = "code.replay", "A code was sent that is not stored: already used, or another client's; its tokens are revoked"
    ASSERTION_REPLAY = "assertion.replay", "A client assertion was sent again"
    PROOF_REPLAY = "proof.replay", "A DPoP proof was sent again"

    # records of the directory, each change with an event of its own
    DIRECTORY_APPLY = "directory.apply", (
        "A file was applied: its `sha256`, and how many records it added, changed and removed; each record has its "
        "own earlier event. `by` says who ran the command")
    CLIENT_ADD = "client.add", "A client was registered"
    CLIENT_UPDATE = "client.update", "A client was changed; `members` names the members"
    CLIENT_REMOVE = "client.remove", "A client was removed"
    CLIENT_ENABLE = "client.enable", "A client was enabled"
    CLIENT_DISABLE = "client.disable", "A client was disabled"
    CLIENT_DROP_KEYS = "client.drop_keys", "A client's keys were dropped: those fetched from its `jwks_uri`"
    PROVISIONING_TOKEN_ADD = "provisioning_token.add", "A provisioning token was created, for one entity, until `expires_at`"
    PROVISIONING_TOKEN_REMOVE = "provisioning_token.remove", "A provisioning token was removed, and no longer works"
    API_CLIENT_ADD = "api_client.add", "A client of the admin API was registered"
    API_CLIENT_UPDATE = "api_client.update", "A client of the admin API was changed; `members` names the members"
    API_CLIENT_REMOVE = "api_client.remove", "A client of the admin API was removed"
    API_CLIENT_ENABLE = "api_client.enable", "A client of the admin API was enabled"
    API_CLIENT_DISABLE = "api_client.disable", "A client of the admin API was disabled; its tokens no longer work"
    SERVICE_ADD = "service.add", "A service was added"
    SERVICE_UPDATE = "service.update", "A service was changed; `members` names the members"
    SERVICE_REMOVE = "service.remove", "A service was removed"
    ENTITY_ADD = "entity.add", "An entity was added"
    ENTITY_UPDATE = "entity.update", "An entity was changed; `members` names the members"
    ENTITY_REMOVE = "entity.remove", "An entity was removed, with its memberships and roles"
    ENTITY_ENABLE = "entity.enable", "An entity was enabled"
    ENTITY_DISABLE = "entity.disable", "An entity was disabled; nobody can act for it"
    USER_ADD = "user.add", "A person was added"
    USER_UPDATE = "user.update", "A person was changed; `members` names the members"
    USER_REMOVE = "user.remove", "A person was removed, with their memberships, factors and sessions"
    USER_ENABLE = "user.enable", "A person was enabled"
    USER_DISABLE = "user.disable", "A person was disabled; their sessions and links ended"
    USER_RESET_PASSWORD = "user.reset_password", "An operator gave a new password; the person's sessions ended"
    USER_RESET_FACTORS = "user.reset_factors", "An operator replaced the second factor; the person's sessions ended"
    USER_REMOVE_FACTORS = "user.remove_factors", "An operator removed every factor, to invite the person again"
    USER_DOWNLOAD = "user.download", "A person downloaded their data: everything that is kept about them"
    USER_REQUEST_DELETION = "user.request_deletion", "A person asked to be deleted"
    USER_WITHDRAW_DELETION = "user.withdraw_deletion", "A request for deletion was withdrawn, by the person"
    USER_UNLOCK = "user.unlock", (
        "Pauses and delays were ended, after wrong passwords and codes: by an operator or, as with `link.password`, at the "
        "request of an entity's administrator")
    CREDENTIALS_ADD = "credentials.add", "A person got a password or an app, by a file or command"
    CREDENTIALS_UPDATE = "credentials.update", "A file changed a password or an app; the person's sessions ended"
    CREDENTIALS_REMOVE = "credentials.remove", "A person's password and app were removed"
    MEMBERSHIP_ADD = "membership.add", "A person can act for an entity"
    MEMBERSHIP_INVITE = "membership.invite", "An entity invited a person, who becomes a member by accepting"
    MEMBERSHIP_UPDATE = "membership.update", "A membership was changed; `members` names the members"
    MEMBERSHIP_REMOVE = "membership.remove", "A person can no longer act for an entity"
    MEMBERSHIP_ACCEPT = "membership.accept", "An invited person accepted; the membership is now effective"
    MEMBERSHIP_RESEND = "membership.resend", "An invitation is to be sent again"
    MEMBERSHIP_DECLINE = "membership.decline", "An invitation was declined, by its link; the membership ended"
    MEMBERSHIP_SEND_PASSWORD_LINK = "membership.send_password_link", (
        "A link for a new password was asked for, by an administrator for a member; `link.password` says whether it was sent; the "
        "entity does not read it")
    MEMBERSHIP_SEND_SECOND_FACTOR_LINK = "membership.send_second_factor_link", (
        "A link for a second factor was asked for, by an administrator for a member; `link.second_factor` says whether it was sent; "
        "the entity does not read it")
    MEMBERSHIP_UNLOCK = "membership.unlock", (
        "An unlocking was asked for, by an administrator for a member; `user.unlock` says whether they ended; the entity "
        "does not read it")
    ADMINISTRATOR_ADD = "administrator.add", "A person can administer an entity"
    ADMINISTRATOR_UPDATE = "administrator.update", (
        "An administrator was changed: the level, or the services of a sub-administrator; `members` names the members")
    ADMINISTRATOR_REMOVE = "administrator.remove", "A person no longer administers an entity"
    OPERATOR_ADD = "operator.add", "A person became an operator"
    OPERATOR_UPDATE = "operator.update", "The level of an operator was changed"
    OPERATOR_REMOVE = "operator.remove", "A person is no longer an operator"
    ASSIGNMENT_ADD = "assignment.add", "A person got a role"
    ASSIGNMENT_UPDATE = "assignment.update", "A role was changed; `members` names the members"
    ASSIGNMENT_REMOVE = "assignment.remove", "A person lost a role"
    GRANT_OFFER = "grant.offer", "A grant was offered to a third party, or other terms of a grant"
    GRANT_ACCEPT = "grant.accept", "A third party accepted an offer; the grant is now effective"
    GRANT_DECLINE = "grant.decline", "A third party declined an offer"
    GRANT_WITHDRAW = "grant.withdraw", "An offer to a third party was withdrawn"
    GRANT_END = "grant.end", "A third party's grant was ended, by one of the two sides; the roles under it have their own events"
    GRANT_ADD = "grant.add", "A third party was authorised, by an operator for both sides"
    GRANT_UPDATE = "grant.update", (
        "A third party's grant was changed, by an operator or to narrower terms; `members` names the members")
    GRANT_REMOVE = "grant.remove", "A third party's grant was removed, by an operator"
    THIRD_PARTY_ASSIGNMENT_ADD = "third_party_assignment.add", "A third party's person got a role"
    THIRD_PARTY_ASSIGNMENT_UPDATE = "third_party_assignment.update", (
        "A third party's role was changed, of one of its people; `members` names the members")
    THIRD_PARTY_ASSIGNMENT_REMOVE = "third_party_assignment.remove", "A third party's person lost a role"

    # change requests; what is approved has events of its own, with the `approval` and who gave it
    APPROVAL_REQUEST = "approval.request", "A change was requested, which needs another administrator's approval"
    APPROVAL_APPROVE = "approval.approve", "A request was approved, and its change was made"
    APPROVAL_DECLINE = "approval.decline", "A request was declined"
    APPROVAL_WITHDRAW = "approval.withdraw", "A request was withdrawn by its requester"
    APPROVAL_EXPIRE = "approval.expire", "A request expired, after 14 days without a decision"

    # the yearly access review of an entity; ending somebody's access in it has events of its own
    ACCESS_REVIEW_BEGIN = "access_review.begin", "An access review began, with its first decision"
    ACCESS_REVIEW_KEEP = "access_review.keep", "A person's access was kept in a review; `seen` names what was shown"
    ACCESS_REVIEW_SIGN_OFF = "access_review.sign_off", (
        "An access review was signed off; `kept` and `ended` say of how many people")

    # the deployment
    KEY_PUBLISH = "key.publish", "A standby signing key was created"
    KEY_ROTATE = "key.rotate", "A signing key was set to sign, the one that was published; with `use` `audit`, the next key for the audit's seals"
    KEY_RETIRE = "key.retire", "A signing key was set to retire, when the next key takes over"
    KEY_REVOKE = "key.revoke", "A signing key was revoked"
    KEY_KEEP = "key.keep", "A retiring key is kept, until another key signs"
    KEY_CERTIFY = "key.certify", "A key's certificate was changed: stored, or removed (no `fingerprint`)"
    KEY_REWRAP = "key.rewrap", "Secrets were encrypted again, with the current key"
    MAINTENANCE_ON = "maintenance.on", "Maintenance began"
    MAINTENANCE_OFF = "maintenance.off", "Maintenance ended"
    JOB_START = "job.start", "A job started; `kind` says which"
    JOB_END = "job.end", (
        "A job ended; `kind` says which, and `event` how: `finish`, `fail` (an error), `stop` (its server was stopped) or "
        "`lose` (its server died, as another one found: the actor is `system`)")
    STORE_CLOSE = "store.close", "Redis or Valkey was closed, for a restart"
    STORE_OPEN = "store.open", "Redis or Valkey was opened again, without a restart"
    DEPLOYMENT_RESTORE = "deployment.restore", "A backup was restored"
    AUDIT_PRUNE = "audit.prune", (
        "Old audit entries were removed, and old details: `removed` and `erased` say how many. It is written before the removal")
    AUDIT_ERASE = "audit.erase", "Audit details were erased, of a removed person; `erased` says how many"
    AUDIT_EXPORT = "audit.export", "Audit entries were exported; `filters` says which"
    AUDIT_STREAM = "audit.stream", "The audit's stream was moved: it goes on after the entry `to`; before, it was at `from`"
    # fmt: on
