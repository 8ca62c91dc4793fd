"""The shipped proxy configurations, run: a whole flow goes through, and `corpid doctor` has nothing to say."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from corpid.rules.oauth import discovery
from tests.operate.nodes import Nodes, outside, two_nodes, whole_flow
from tests.operate.proxies import SHIPPED, proxy

if TYPE_CHECKING:
    from pathlib import Path


FROM_OUTSIDE = "4bf92f3577b34da6a3ce929d0e0e4736"
"""the id of a caller's trace"""

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_whole_flow_goes_through_the_shipped_proxy(tmp_path: Path, name: str) -> None:
    """docs/operate.md; PAR to userinfo on two nodes, RFC 9449 proofs at each step."""
    with (
        two_nodes(tmp_path) as nodes,
        proxy(name, tmp_path / "proxy", nodes.certified, ports=nodes.ports, nodes=nodes.node_ports) as told,
    ):
        userinfo = asyncio.run(whole_flow(nodes))
        asyncio.run(_traced(nodes))
        asyncio.run(_unread(nodes))
        status, found = nodes.doctor("--proxy", str(told))
    assert userinfo["iss"] == nodes.issuer
    # these tests call their machine localhost, at a port of its own, and nothing else is to be said
    amiss = {about: finding["seen"] for about, finding in found.items() if finding["verdict"] != "ok"}
    assert set(amiss) == {"base_url's host", "plain HTTP"}, amiss
    assert status == 0
    logs = "".join((tmp_path / f"node-{number}.log").read_text(encoding="utf-8") for number in range(2))
    assert FROM_OUTSIDE not in logs, "nobody outside decides what is traced (docs/observability.md)"
    assert discovery.DISCOVERY_PATH in logs


async def _traced(nodes: Nodes) -> None:
    """A request that would take part in a trace of its caller's."""
    async with outside(nodes) as (rp, _):
        traced = {"traceparent": f"00-{FROM_OUTSIDE}-00f067aa0ba902b7-01"}
        answer = await rp.http.get(nodes.issuer + discovery.DISCOVERY_PATH, headers=traced)
    assert answer.status_code == 200


async def _unread(nodes: Nodes) -> None:
    """Bodies that a node does not read, and other requests between them on the proxy's kept connections (Spec 4.4)."""
    async with outside(nodes) as (rp, _):
        for size in (1, 4_000, 70_000, 120_000) * 10:
            answer = await rp.http.post(f"{nodes.issuer}/userinfo", content=b"x" * size)
            assert (answer.status_code, answer.content) == (401, b""), size
            assert (await rp.http.get(nodes.issuer + discovery.DISCOVERY_PATH)).status_code == 200


async def _pushed(nodes: Nodes, done: asyncio.Event) -> int:
    """Pushes request after request, each with a new assertion and a new proof; how many. Fails with the first refusal."""
    count = 0
    async with outside(nodes) as (rp, _):
        while not done.is_set():
            rp.restart()
            await rp.begin()
            count += 1
    return count


async def test_nodes_behind_haproxy_are_restarted_in_turn_and_no_request_fails(tmp_path: Path) -> None:
    """docs/operate.md, "Restarts"."""
    with (
        two_nodes(tmp_path, drain_delay_seconds="5") as nodes,
        proxy("haproxy", tmp_path / "proxy", nodes.certified, ports=nodes.ports, nodes=nodes.node_ports),
    ):
        done = asyncio.Event()
        load = [asyncio.create_task(_pushed(nodes, done)) for _ in range(3)]
        for number in range(2):
            await asyncio.to_thread(nodes.stop, number)
            handled = nodes.requests(number)
            await asyncio.to_thread(nodes.start, number)
            while nodes.requests(number) == handled:  # noqa: ASYNC110 - the proxy notices by itself that it is back
                await asyncio.sleep(0.2)
        done.set()
        counts = await asyncio.gather(*load)
    assert min(counts) > 0
