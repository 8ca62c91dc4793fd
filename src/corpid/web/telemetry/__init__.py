"""Access log, metrics and traces."""
