"""The admin API (D59).

`operations` is one table: routes, scopes and the OpenAPI document (`openapi`) follow from it. `application` finds the
operation of a request, and admits the request before any of its body is read; `objects`, `members`, `approvals`,
`people` and `deployment` answer. A client's token comes from the API's own authorization server
(`rules.oauth.api_client`, `flows.oauth.token`), which shares the verification of assertions and proofs with the
token endpoint of relying parties.
"""
