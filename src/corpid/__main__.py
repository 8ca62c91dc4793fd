"""The program: `corpid`, or `python -m corpid`."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType


def main() -> None:
    """Run a command.

    The garbage collector starts after the modules are loaded: they stay until the end. `corpid serve` without options
    needs no command line, which takes longer to load than to read (docs/decisions/0036).
    """
    gc.disable()
    if sys.argv[1:] == ["serve"]:
        sys.exit(_serve())
    from corpid.cli import main as run  # noqa: PLC0415 - see above

    run()


def _serve() -> int:
    """Serve as the command line does; return the exit status."""
    sys.excepthook = _report_unforeseen
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from corpid import serving  # noqa: PLC0415 - see above

    gc.freeze()
    gc.enable()
    try:
        return serving.serve(_complain)
    except KeyboardInterrupt:
        return 130


def _complain(sentence: str) -> None:
    from corpid.cli import output  # noqa: PLC0415 - see above

    output.complain(sentence)


def _report_unforeseen(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    from corpid.cli import report_unforeseen  # noqa: PLC0415 - see above

    report_unforeseen(kind, error, trace)


if __name__ == "__main__":
    main()
