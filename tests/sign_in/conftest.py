"""The sign-in tests whose page meets the protocol run once in each generation that they name."""

from __future__ import annotations

from tests.world.generations import pytest_configure, pytest_generate_tests, speaking

__all__ = ["pytest_configure", "pytest_generate_tests", "speaking"]
