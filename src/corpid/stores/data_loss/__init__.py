"""Noticing that a store lost data, and refusing what was issued before (D49, D67)."""
