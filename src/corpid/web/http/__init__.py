"""The HTTP server: sockets, connections, limits, TLS, middleware."""
