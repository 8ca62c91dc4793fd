"""The demo: a provider and a relying party with example data."""
