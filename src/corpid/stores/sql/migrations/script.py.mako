"""${message}."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None

# expand: adds, and the version before goes on serving. fill: rows, in batches; `fill = Fill(…)` instead of `upgrade`.
# contract: takes away what no version that still runs needs. docs/decisions/0009
phase = "expand"
locks = "which table, against whom, for how long"
# True for CREATE INDEX CONCURRENTLY (drop the index first, if it exists: an interrupted one stays, unusable)
concurrently = False


def upgrade() -> None:
    """${message}."""
    ${upgrades if upgrades else "pass"}
