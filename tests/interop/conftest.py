"""One provider for all tests of a stock client, and clients that have signed people in before."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.interop.examples import Example, example
from tests.interop.running import Provider, provider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with provider(tmp_path_factory.mktemp("provider")) as one:
        yield one


@pytest.fixture(scope="module")
def settled_client(running: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Example]]:
    """By the example's language: a client that holds the provider's metadata and keys already."""
    clients: dict[str, Example] = {}
    with ExitStack() as stack:

        def settled(language: str) -> Example:
            if language not in clients:
                keys = tmp_path_factory.mktemp(f"settled-{language}") / "keys.json"
                client = stack.enter_context(example(language, running.issuer, keys, f"settled-{language}"))
                running.register(client.client_id, client.redirect_uri, client.jwks)
                assert client.sign_in(running.newcomer()).status == 200
                running.wire.honest()
                clients[language] = client
            return clients[language]

        yield settled


@pytest.fixture
def honest(running: Provider) -> Iterator[None]:
    """Whatever a test made the provider say, the next one meets it honest."""
    yield
    running.wire.honest()
