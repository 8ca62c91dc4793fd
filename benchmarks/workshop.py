"""Processes that make flows before the clock starts, so that their signatures take time from nobody in it."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, Self

from benchmarks.relying_party import Endpoints, Flow, Keys, Maker, open_key

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

SHARE = 50
"""flows that a process is given at a time"""


class Workshop:
    """One process for each of these CPUs."""

    def __init__(self, keys: Keys, endpoints: Endpoints, cpus: set[int]) -> None:
        self._keys, self._endpoints = keys, endpoints
        self._pool = ProcessPoolExecutor(
            len(cpus), get_context("spawn"), initializer=partial(os.sched_setaffinity, 0, cpus)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    async def flows(self, count: int) -> list[Flow]:
        """New flows; their assertions are good for two minutes, their proofs too."""
        shares = [min(SHARE, count - start) for start in range(0, count, SHARE)]
        loop = asyncio.get_running_loop()
        make = partial(_flows, self._keys, self._endpoints)
        made = await asyncio.gather(*(loop.run_in_executor(self._pool, make, share) for share in shares))
        return [flow for share in made for flow in share]

    async def prepare_resources(self, flows: Sequence[Flow]) -> None:
        """Make the requests to resources of flows that have an access token."""
        loop = asyncio.get_running_loop()
        make = partial(_resource_requests, self._keys, self._endpoints)
        asked = [(flow.proof_key, flow.proof_jwk, flow.access_token) for flow in flows]
        shares = [asked[start : start + SHARE] for start in range(0, len(asked), SHARE)]
        made = await asyncio.gather(*(loop.run_in_executor(self._pool, make, share) for share in shares))
        requests = [request for share in made for request in share]
        for flow, request in zip(flows, requests, strict=True):
            flow.resource_requests = request


@cache
def _maker(keys: Keys, endpoints: Endpoints) -> Maker:
    return Maker(keys, endpoints)


def _flows(keys: Keys, endpoints: Endpoints, count: int) -> list[Flow]:
    maker = _maker(keys, endpoints)
    return [maker.flow() for _ in range(count)]


def _resource_requests(
    keys: Keys, endpoints: Endpoints, asked: Sequence[tuple[bytes, dict[str, str], str]]
) -> list[tuple[bytes, ...]]:
    maker, numbers = _maker(keys, endpoints), range(len(endpoints.resources))
    return [
        tuple(maker.resource_request(number, open_key(der), jwk, token) for number in numbers)
        for der, jwk, token in asked
    ]
