"""Rules of SCIM: resources, filters and changes (D60)."""
