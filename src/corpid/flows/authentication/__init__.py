"""Signing in: browser, session, factors, entity, completion.

A *browser* is a cookie (`browsers`). Its unfinished sign-in is an *interaction* (`interactions`), which
`interaction_context` loads for one request, with all that a step needs. A *session* (`sessions`) remembers a person who
has signed in. To *claim* is to write an entry first: a browser claims a pushed request by its first factor and then
*owns* it; a request of HTTP claims the next step of its interaction. A browser is *known* for a person who signed in
there before. A request that no client pushed is *held* by its browser before it is stored.

`sign_in` has the pages and steps, by the state machine of `rules.authentication.sign_in`. Passwords and codes
go through `factors`; `throttle` limits guesses at both; passkeys go through `passkeys`. A
session starts after the last factor; `consents` has the choices, `completion` the end: one code
or one refusal for each request.
"""
