"""Rules: what is decided, pure and synchronous; time and identifiers come in as arguments."""
