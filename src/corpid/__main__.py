"""The program: `corpid`, or `python -m corpid`."""

from __future__ import annotations

import gc


def main() -> None:
    """Run a command.

    Garbage is collected once its modules are loaded, which stay until the end.
    """
    gc.disable()
    from corpid.cli import main as run  # noqa: PLC0415 - see above

    run()


if __name__ == "__main__":
    main()
