"""Pages and endpoints of developer mode; nothing loads them outside it (D66).

`demo_extension` is what a demo passes to `app.create`. `mode` decides who sees it, and `routes` declares its routes.
`observer` records the exchanges of each issuer for the inspector (`traffic`, `exchanges`), and `fault_injection`
carries out the orders of the sandbox. `index`, `clients`, `orders`, `readiness` and `documents` are pages;
`endpoints`, `orders` and `exchanges` are for programs. `documents` is the extension without test people. The store of a
demo is marked, and other servers refuse it.
"""
