"""The program: `corpid`, or `python -m corpid`."""

from __future__ import annotations

import gc


def main() -> None:
    """Run a command.

    The garbage collector starts after the modules are loaded: they stay until the end.
    """
    gc.disable()
    from corpid.cli import main as run  # noqa: PLC0415 - see above

    run()


if __name__ == "__main__":
    main()
