"""Operation: signing keys, maintenance, readiness, reports."""
