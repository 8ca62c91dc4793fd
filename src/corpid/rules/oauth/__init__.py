"""Rules of OAuth and OpenID Connect."""
