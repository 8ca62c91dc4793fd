"""Administration of people, entities, roles and clients.

Pages, API, SCIM, commands and files share one way: a module plans changes of records (`role_assignment`,
`appointments`, `members`, `grants`, `entities`, `objects` and others; `apply` under the rules of a directory
file), and `write.write_changes` authorises each change with the facts that it looks up, checks the record that would
result, and writes it with its audit event, in one transaction. For actors of an entity it writes what needs no approval
and requests the rest, which `approvals` decides. `actors` loads who acts, as they may now.

A role that an owner gives: `web/directory/access.py` reads the form, and `write.write_changes` does all else.

Invitations: `members` plans them, `invitations` limits them, `acceptance` takes the answer. Notices: `notices`
finds what is due. `queued_emails` sends the e-mails of both. Reading: `lists`, `members`, `people`,
`portal`, `own_access`.
"""
