"""Addresses of developer mode that commands take, with the key of a start (D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid_dev.developer_api import Address, NotDone, trusting
from corpid_dev.web.mode import KEY_COOKIE

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("url", "issuer", "headers"),
    [
        ("http://localhost:8400/developer", "http://localhost:8400", {}),
        ("http://localhost:8400/legacy/developer/", "http://localhost:8400/legacy", {}),
        ("http://localhost:8400", "http://localhost:8400", {}),
        (
            "https://192.0.2.1:8400/developer?key=k-1_2", "https://192.0.2.1:8400",
            {"Cookie": f"__Host-{KEY_COOKIE}=k-1_2"},
        ),
        ("http://localhost:8400/developer?key=k#x", "http://localhost:8400", {"Cookie": f"{KEY_COOKIE}=k"}),
    ],
)  # fmt: skip
def test_the_key_of_an_address_becomes_a_header(url: str, issuer: str, headers: dict[str, str]) -> None:
    """D66: the issuer has no key in it, so that no message and no report has one."""
    address = Address.parse(url)
    assert (address.issuer, address.headers) == (issuer, headers)


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    """docs/readiness.md: `--ca`."""
    file = tmp_path / "ca.crt"
    with pytest.raises(NotDone, match=r"--ca .*ca\.crt cannot be read"):
        trusting(file)
    file.write_text("no PEM")
    with pytest.raises(NotDone, match="cannot be read"):
        trusting(file)
    assert trusting(None) is None
