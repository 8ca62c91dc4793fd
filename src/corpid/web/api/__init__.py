"""The admin API (D59)."""
