"""Rules of OAuth and OpenID Connect.

`generations` has everything in which the four interfaces differ; all other modules read its fields. `records` are the
protocol's: client, request, grant. Requests are read by `parameters` (each name once) and validated by
`authorization_request` (with its callback) and `token_request`; JWTs of clients by
`client_assertion` and `dpop`, with `jwt_claims` for times and identifiers. `tokens` makes our claims, and verifies our
access tokens; `discovery` is the metadata. A refusal is an exception of `errors`, with its exact cause, and its reason
from the catalogue `refusals`. `client_registration` decides which clients can be registered.
"""
