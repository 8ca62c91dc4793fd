"""Rules of OAuth and OpenID Connect.

`generations` has everything in which the four interfaces differ; all other modules read its fields. `records` are the
protocol's: client, request, grant. Requests are read by `parameters` (each name once) and validated by
`authorization_request` and `token_request`; JWTs of clients by `client_assertion` and `dpop`, with `jwt_claims` for
times and identifiers. `tokens` makes our claims, and verifies our access tokens; `authorization_response` is the
callback, `discovery` the metadata. A refusal is an exception of `errors`, with its reason from the catalogue `refusals`
and its exact cause in `explanations`. `client_members` and `client_registration` decide which clients can be
registered.
"""
