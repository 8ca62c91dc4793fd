"""Rules: pure, synchronous decisions; time and identifiers are arguments."""
