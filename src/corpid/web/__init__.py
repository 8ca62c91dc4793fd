"""The only floor that knows HTTP."""
