"""Flows of developer mode: sign-ins at once, inspector, sandbox (D66).

`people` has the state of developer mode. `sign_ins` signs test people in without their factors, `anybody` makes one for
a sign-in, and `clients` registers relying parties. `exchanges` keeps what they sent, and `inspection` explains it.
`orders` has the orders of the sandbox in force; `fault_injecting_cache`, `recording_keys` and `sandbox_keys` carry them
out inside the provider. `readiness_runs` runs the readiness check in the background.
"""
