"""A provider for the tests of a relying party.

    from corpid_dev.testing import running

    with running() as provider:
        client = provider.add_client("my-rp", redirect_uris=["http://127.0.0.1:8000/callback"])
        callback = provider.sign_in(authorize_url, "rina")

`corpid_dev.testing.fixtures` has it as a pytest fixture. docs/testing.md is the guide.
"""

from __future__ import annotations

from corpid_dev.testing.provider import Client, OperationError, Options, Person, Provider, running

__all__ = ["Client", "OperationError", "Options", "Person", "Provider", "running"]
