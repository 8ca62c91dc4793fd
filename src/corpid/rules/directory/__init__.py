"""Rules of the directory: people, entities, roles and third parties."""
