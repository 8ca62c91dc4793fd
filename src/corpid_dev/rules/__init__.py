"""Rules of developer mode; nothing loads them outside it (D66)."""
