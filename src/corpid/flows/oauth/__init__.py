"""The endpoints of OAuth: PAR, authorize, token, resources.

An endpoint is a module: `par`, `authorize`, `token`, `userinfo`; `token` has the token endpoint of the admin API, too.
PAR and token begin with `client_authentication`, which counts the request (`flows.rate_limits`), and go on with `dpop`;
both only verify. Proof and assertion are spent in one batch at the end (`dpop.spend_proof_and_assertion`), after
`client_clocks` has recorded the skew of the client's clock, which is needed only after a loss of data. `authorize`
proves the redirect URI, then completes the request or opens an interaction, for which `flows.authentication` is
responsible; what nobody pushed is first held by the browser (`flows.authentication.interactions`). `recently_issued`
explains refusals, and decides nothing. `client_keys` finds the key for what a client receives.
"""
