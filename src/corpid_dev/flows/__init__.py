"""Developer mode: sign-ins of test people without their factors (D66)."""
