"""Pages of the sign-in."""
