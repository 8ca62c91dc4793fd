"""Rules of the directory: people, entities, roles and third parties.

`records` are what is stored. A file, page or API call asks for a `Change` of one; `flows.directory.write` makes of
it what the store writes, a `StoreChange`. `access` says who may do what (actors, and a table with its
conditions), `memberships` what an entity writes of its members and invites by, `approvals` which change another administrator approves, and `sources` which source may write a member.

A directory file is read by `yaml_file` or `nodes` into `document`, by the keys of its sections and the readers of
`values`; `plan` compares it with the directory, and `differences` words the result. `objects` are the records in JSON,
`tables` in CSV. `parties` and `roles` are what relying parties read.
"""
