"""A person's own account: enrolment, recovery, factors, sessions, own data.

A *link* (`links`) has a purpose, from which its steps follow. Its button begins an *enrolment* (`enrolments`), which
one browser takes through the steps of `enrolment_steps`; nothing of the person changes before the last one. They
also send such a link to a person who forgot the password.

Portal, console and account sign in by `own_sessions`, which also keeps late forms and claims repeated ones.
`account_sessions` adds the time limits of the account, whose pages call `own_factors`, `own_email` and
`own_data`.
"""
