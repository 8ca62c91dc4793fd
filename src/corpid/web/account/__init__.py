"""The pages of the account and of an enrolment.

The account is a site of own pages (`web.sites`), as portal and console are: `endpoints` has its table, `factors` has
a section of its own, and `endpoints` everything else. Links from e-mails open in `links`, which leads on to `enrolment`.
"""
