"""A relying party that checks the provider, and a scripted browser."""
