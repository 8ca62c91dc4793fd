"""Pages on which people set up how they sign in: by an invitation, or after losing a factor."""
