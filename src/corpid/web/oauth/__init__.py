"""The OAuth endpoints: discovery, PAR, authorize, token, resources."""
