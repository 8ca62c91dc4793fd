"""A provider for the tests of a relying party.

    from corpid.testing import running

    with running() as provider:
        client = provider.add_client("my-rp", redirect_uris=["http://127.0.0.1:8000/callback"])
        callback = provider.sign_in(authorize_url, "rina")

`corpid.testing.fixtures` has it as a pytest fixture. docs/testing.md is the guide.
"""

from __future__ import annotations

from corpid.testing.provider import Client, Options, Person, Provider, SandboxError, running

__all__ = ["Client", "Options", "Person", "Provider", "SandboxError", "running"]
