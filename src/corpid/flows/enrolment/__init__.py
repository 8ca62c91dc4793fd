"""Setting up one's factors with a link: by an invitation, or after losing one."""
