"""`corpid serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from corpid import serving
from corpid.cli import output


def serve(
    *,
    workers: Annotated[
        int | None,
        typer.Option(help="Number of worker processes, on the same port. Default: the setting workers.", min=1),
    ] = None,
) -> None:
    """Run the provider until SIGTERM or Ctrl-C.

    Settings come from CORPID_* and corpid.toml: see docs/settings.md. If the setting issuers names further issuers,
    this process serves all of them, distinguished by host and path: see docs/operate.md.
    """
    raise typer.Exit(serving.serve(output.complain, workers=workers))
