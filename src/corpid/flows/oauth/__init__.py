"""The endpoints of OAuth: PAR, authorize, token, resources.

An endpoint is a module: `par`, `authorize`, `token`, `userinfo`; `api_tokens` is the token endpoint of the admin API.
PAR and token begin with `client_authentication`, which counts the request (`rate_limits`), and go on with `dpop`; both
only verify. Proof and assertion are spent in one batch at the end (`dpop.spend_proof_and_assertion`), after
`client_clocks` has recorded the skew of the client's clock, which is needed only after a loss of data. `authorize`
proves the redirect URI; `authorization` then completes the request or opens an interaction, for which `flows.authentication`
is responsible; `pending_requests` keeps those that nobody pushed in the browser. `recently_issued` explains refusals, and
decides nothing. `deprecated_usage` and `recent_refusals` are counts for operators.
"""
