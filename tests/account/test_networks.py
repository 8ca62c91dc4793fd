"""The account shows the networks of past sign-ins, if the operator supplies their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid import settings
from corpid.cli.doctor.local_checks import check_node
from corpid.engines import StartError
from corpid.outbound.network_names import FileOfNetworks, NetworksUnreadable
from tests.account.scene import at_account, go
from tests.networks import written
from tests.sign_in.world import World, new_world

if TYPE_CHECKING:
    from pathlib import Path


HARBOUR = {"autonomous_system_number": ("uint32", 64500), "autonomous_system_organization": "Harbour Fibre Pte. Ltd."}
NETWORKS = {
    "127.0.0.0/8": HARBOUR, "203.0.113.0/24": {"isp": "Island\u202eMobile"}, "2001:db8::/32": HARBOUR,
    "198.51.100.0/24": {"autonomous_system_organization": "x" * 200}, "192.0.2.0/24": "no map",
}  # fmt: skip


def test_a_network_is_named_where_its_address_is_in_the_file(tmp_path: Path) -> None:
    """Of the entry only the name, printable and short; anything else is no name."""
    networks = FileOfNetworks(written(tmp_path / "asn.mmdb", NETWORKS))
    assert networks.name("127.0.0.1") == networks.name("2001:db8::7") == "Harbour Fibre Pte. Ltd."
    assert networks.name("203.0.113.9") == r"Island\u202eMobile"
    assert networks.name("198.51.100.9") == "x" * 80
    for address in ("10.0.0.1", "192.0.2.1", "2001:db9::1", "", "unknown", "127.0.0.1:80", "\0"):
        assert networks.name(address) == ""


async def test_the_page_names_it_and_the_audit_keeps_no_more_than_before(tmp_path: Path) -> None:
    """D57: looked up when it is read, so it goes with the address."""
    async with new_world(network_database=written(tmp_path / "asn.mmdb", NETWORKS)) as made:
        browser = await at_account(made)
        await go(made, browser, "sign-ins")
        assert "Network: Harbour Fibre Pte. Ltd." in browser.page.text
        assert "Harbour Fibre" not in str(await made.provider.registry.audit.entries(limit=1000))


async def test_without_the_setting_nothing_is_said_of_networks(made: World) -> None:
    browser = await at_account(made)
    await go(made, browser, "sign-ins")
    assert "Network" not in browser.page.text


@pytest.mark.parametrize("content", [None, b"", b"no database", bytes(3000), b"\xab\xcd\xefMaxMind.com\xff"])
async def test_a_file_that_cannot_be_read_is_named_at_start_and_by_the_doctor(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "asn.mmdb"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(NetworksUnreadable, match=r"network_database .* cannot be read"):
        FileOfNetworks(path)

    with pytest.raises(StartError, match="network_database"):
        async with new_world(network_database=path) as _:
            """It does not come so far."""
    chosen = settings.load(developer_mode=True, data_dir=tmp_path, network_database=path)
    assert any("network_database" in str(found) for found in check_node(chosen))


def test_a_damaged_file_is_refused_or_names_nothing(tmp_path: Path) -> None:
    """One byte of it at a time: never another exception than the one that start and the doctor put into words."""
    whole = written(tmp_path / "asn.mmdb", {"127.0.0.0/8": HARBOUR}).read_bytes()
    damaged = tmp_path / "damaged.mmdb"
    # Of the tree's thousands of bytes those at its end, then the entry and the metadata.
    for place in range(len(whole) - 400, len(whole)):
        for byte in (0xE1, whole[place] ^ 1):
            damaged.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
            try:
                found = FileOfNetworks(damaged).name("127.0.0.1")
            except NetworksUnreadable:
                continue
            assert isinstance(found, str)
