"""A provider as the tests of a relying party have it."""

from __future__ import annotations

from corpid_dev.testing.fixtures import corpid_options, corpid_provider

__all__ = ["corpid_options", "corpid_provider"]
