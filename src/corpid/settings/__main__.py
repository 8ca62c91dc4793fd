"""`python -m corpid.settings` prints docs/settings.md."""

from __future__ import annotations

import sys

from corpid.settings import documentation

sys.stdout.write(documentation())
