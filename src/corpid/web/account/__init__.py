"""The pages of the account and of an enrolment.

The account is a site of own pages (`web.sites`), as portal and console are: its sections are in `endpoints`. Links from
e-mails open in `links` and `invitations`; both go on to the enrolment.
"""
