"""The pages of the account and of an enrolment."""
