"""The only layer that knows HTTP."""
