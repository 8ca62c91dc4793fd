"""Two nodes for every test of a file that leaves them as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.operate.nodes import Nodes, two_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with two_nodes(tmp_path_factory.mktemp("nodes")) as running:
        yield running
