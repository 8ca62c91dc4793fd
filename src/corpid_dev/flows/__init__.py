"""Flows of developer mode: sign-ins at once, inspector, sandbox (D66).

`people` has the state of developer mode. `sign_ins` signs test people in without their factors, or makes one
for a sign-in, and `clients` registers relying parties. `exchanges` keeps what they sent, and `inspection` explains it.
`orders` has the orders of the sandbox in force, with their keys; `recording_keys` carries them out inside the provider. `readiness_runs` runs the readiness check in the background.
"""
