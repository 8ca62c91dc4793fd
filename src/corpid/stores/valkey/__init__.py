"""The transient store on Redis or Valkey; `transient.open_valkey` opens it."""
