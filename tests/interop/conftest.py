"""Providers for the tests of stock clients, and clients that have signed people in before."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.examples import Example, example
from tests.interop.running import Provider, provider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from corpid_dev.relying_party.interfaces import Interface


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


@pytest.fixture(scope="module")
def _providers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[dict[str, Any]], Provider]]:
    running: dict[str, Provider] = {}
    with ExitStack() as stack:

        def running_with(chosen: dict[str, Any]) -> Provider:
            name = repr(chosen)
            if name not in running:
                running[name] = stack.enter_context(provider(tmp_path_factory.mktemp("provider"), **chosen))
            running[name].wire.honest()
            return running[name]

        yield running_with


@pytest.fixture
def serving(_providers: Callable[[dict[str, Any]], Provider]) -> Callable[..., Provider]:
    """A provider of these generations with these settings; the same one each time, honest again."""

    def served(*interfaces: Interface, **chosen: Any) -> Provider:
        generations = {"generations": tuple(interface.name for interface in interfaces)} if interfaces else {}
        return _providers({**generations, **chosen})

    return served


@pytest.fixture
def honest(running: Provider) -> Iterator[None]:
    """Whatever a test made the provider say, the next one meets it honest."""
    yield
    running.wire.honest()
