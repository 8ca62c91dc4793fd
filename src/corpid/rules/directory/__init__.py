"""Rules of the directory: people, entities, roles and third parties.

`records` are what is stored. A file, page or API call asks for a `plan.Change` of one; `flows.directory.write` makes of
it what the store writes, one of `changes`. `access` says who may do what (a table, with its conditions; `actors` has
the actors), `approvals` which change another administrator approves, and `sources` which source may write a member.

A directory file is read by `yaml_file` or `nodes` into `document`, by the keys of `sections` and the readers of
`values`; `plan` compares it with the directory, and `differences` words the result. `objects` are the records in JSON,
`tables` in CSV. `parties` and `roles` are what relying parties read.
"""
