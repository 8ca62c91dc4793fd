"""The layers (docs/architecture.md, "Layers"): imports point down only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.house.source import ROOT


def test_every_import_contract_holds() -> None:
    lint_imports = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run(
        [lint_imports, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
