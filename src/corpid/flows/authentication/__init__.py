"""Signing in: browser, session, factors, entity, completion."""
