"""Administration of people, entities, roles and clients.

Pages, API, SCIM, commands and files share one way: a module plans a change of records (`members`, `role_assignment`,
`grants`, `entities`, `objects`, `provisioning`, `apply` and others), and `write` authorises each change, validates it
and writes it with its audit event, in one transaction. For actors of an entity `approvals.submit` stands between: it
writes what needs no approval and requests the rest. `administrators` loads the facts on which the rules of access
decide.

Invitations: `invitations`, `acceptance`, `invitation_emails`, `invitation_limits`. Notices: `notices` finds what is
due, `notice_emails` sends it. Reading: `lists`, `object_lists`, `finding`, `person`, `entity_home`.
"""
