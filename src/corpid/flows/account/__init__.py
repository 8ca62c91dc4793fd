"""A person's own account: signing in to it, its factors, sessions and language."""
