"""What the tests of this folder stand on."""

from tests.bench.command import servers

__all__ = ["servers"]
