"""The pages of the account and of an enrolment.

The account is a site of own pages (`web.sites`), as portal and console are: `endpoints` has its table, `factors` and
`access_pages` have sections of their own. Links from e-mails open in `links`, which leads on to `enrolment`.
"""
