"""Setting up one's factors: by an invitation, after losing one, or in the account."""
