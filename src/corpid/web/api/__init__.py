"""The admin API (D59).

`operations` is one table: routes, scopes and the OpenAPI document follow from it. FastAPI serves it (`application`,
created on first use). `security` admits a request before any of its body is read. A client's token comes from the API's
own authorization server (`rules.oauth.api_server`, `flows.oauth.api_tokens`), which shares the verification of
assertions and proofs with the token endpoint of relying parties.
"""
