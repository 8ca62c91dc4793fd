"""Signing, verifying, encrypting: a narrow interface with closed headers and explicit algorithms."""
