"""Administration of people, entities, roles and clients."""
