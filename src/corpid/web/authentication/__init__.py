"""The pages of the sign-in."""
