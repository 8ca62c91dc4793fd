"""The provider as a pytest fixture: `pytest_plugins = ["corpid_dev.testing.fixtures"]`.

No entry point registers it: who does not name it has no fixture of it. pytest is the caller's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from corpid_dev.testing.provider import Options, Provider, running


@pytest.fixture(scope="session")
def corpid_options() -> Options:
    """The arguments of `running`; override it in your conftest.py."""
    return {}


@pytest.fixture(scope="session")
def corpid_provider(corpid_options: Options) -> Iterator[Provider]:
    """A running provider, one for all tests of the session."""
    with running(**corpid_options) as provider:
        yield provider
