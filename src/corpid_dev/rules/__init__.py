"""Rules of developer mode; nothing loads them outside it (D66).

`checks` lists the checks of each endpoint for the inspector. `orders` declares the orders of the sandbox,
`order_documents` reads them, and `wrong_claims` and `wrong_tokens` make what they ask for. `pasted_keys` reads the keys
of a client that is registered.
"""
