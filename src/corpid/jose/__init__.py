"""Signing, verifying, encrypting: a narrow face with closed headers and explicit algorithms."""
