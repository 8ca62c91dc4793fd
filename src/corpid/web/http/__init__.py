"""The HTTP server: sockets, connections, limits, TLS, middleware.

`server` accepts connections within the limits and shares of `connections`. A `connection` reads requests by its table
of states, and makes an `exchange` of each: a call of the ASGI application and its response. The application begins with
`middleware`, which finds the caller by `addresses` and, of several, the issuer; `web.routes` is below it. Endpoints
read a request by `requests`. Source: docs/decisions/0039
"""
