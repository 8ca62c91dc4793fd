"""The endpoints of OAuth: PAR, authorize, token, resources."""
