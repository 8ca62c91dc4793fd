"""What lives for minutes, on Redis. `transient.open_valkey` is the way in."""
