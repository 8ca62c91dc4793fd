"""A person's own account: enrolment, recovery, factors, notifications."""
