"""`python -m corpid` is `corpid`."""

from __future__ import annotations

from corpid.cli import main

main()
