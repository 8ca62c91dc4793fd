"""What lives for minutes, on Redis or Valkey. `transient.open_valkey` is the way in."""
