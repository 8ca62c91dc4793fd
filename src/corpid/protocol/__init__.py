"""The law of OAuth and OpenID Connect: pure and synchronous; time and identifiers come in as arguments."""
