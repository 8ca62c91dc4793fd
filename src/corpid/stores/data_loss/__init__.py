"""Detection of lost data, and the rejection of what was issued before.

One-time things (codes, proofs, assertions, an authenticator's codes) are safe only while the store that notes what
was spent remembers it. A store that lost notes would take a spent value as new. So this is the rule for every engine:
*a process that finds that a store may have lost data refuses all that was issued before it was whole again.*

What is noticed, and how:

- `machine_restarts`: SQLite's machine was restarted, so the last transactions before a power cut may be lost. The
  deployment table holds the boot id of the kernel; another one was found at opening.
- `restores`: the database was restored from a backup. `corpid restore` and `corpid maintenance after-restore` write
  the moment. Another engine that holds what lives for minutes has lost nothing, but knows what belongs to the time
  before: its entries get other names from then on (SinceRestore).
- `takeovers`: a PostgreSQL standby was promoted, and may lack the last commits. Its timeline is higher than the one
  in the deployment table; every new connection is looked at before it is used.
- `changed_stores`: `transient_url` names another store than before, or the store was emptied while no process looked
  on. The deployment table holds the lineage that was used last; a process that starts compares it.
- stores.valkey.epochs and stores.valkey.keyspace: Redis or Valkey lost data while processes watch: it restarted,
  was emptied, went back to a snapshot, or a slot moved. Markers in every part name the run of the engine and the
  epoch; one that does not fit begins a new epoch for all parts, in the same lineage. They are with their engine,
  since commands travel with a look at the marker; an engine without such markers needs only a lineage.

What follows, the same in each case:

- What may be incomplete ends: entries of the transient store from before are deleted, or no longer found by their names.
  So codes and pushed requests from before do not exist. After a restore or a takeover sessions end too, and the codes
  of authenticators for the present minute count as used (`restores.forget`).
- ports.TransientStore.reject_issued_before becomes the moment of the loss, epoch seconds; if several nodes write
  their own time, the seconds are added by which their clocks may differ. Flows compare it with `iat`: of proofs
  (flows.oauth.dpop), of assertions (flows.oauth.client_authentication) and of access tokens (flows.oauth.userinfo).
- The moment is stored with the notice of the loss: in the deployment table, or in the name of the epoch. Of several
  processes that notice at once one writes it, in the transaction that ends what is incomplete; the others read it.
- A first start has lost nothing: a note made before the first keys distinguishes it from a deployment without notes.
Source: D49, D67
"""
