"""Rules of developer mode; nothing loads them outside it (D66).

`checks` lists the checks of each endpoint for the inspector. `orders` declares and reads the orders of the sandbox,
and `wrong_claims` makes what they ask for. `pasted_keys` reads the keys
of a client that is registered.
"""
