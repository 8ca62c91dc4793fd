"""Operation: signing keys, maintenance, readiness, audit, reports, console.

`signing_keys` has the keys of a moment and their calendar. `readiness` says if this process can answer, and switches
maintenance. The audit is read and exported by `audit`, sealed by `audit_seals`, sent to other systems by
`audit_stream`, and shown to entities by `history`; `erasure` removes a person. `buffers` collects what a process
counts, and `process_reports` registers the process and logs what it notices; `overview` and `migration_report` read
what they wrote. `idempotency` lets a request of the API take effect once. `console` loads what its pages show.
"""
