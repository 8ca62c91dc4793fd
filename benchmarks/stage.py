"""Everything that has to stand before something can be measured: provider, relying party, signed-in browsers."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import provider, steps
from benchmarks.driver_hook import Walk, people, sign_in, signed_in
from benchmarks.generations import CURRENT, Generation
from benchmarks.http_client import Client, Jar
from benchmarks.load import Load
from benchmarks.relying_party import Endpoints, Flow, Keys, Maker, generate_key, registration
from benchmarks.verification import Verifier
from benchmarks.workshop import Workshop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from benchmarks.provider import Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpus:
    """Which CPUs serve and load; None: not pinned, since there is only one."""

    every: frozenset[int]
    server: int | None
    load: int | None

    @classmethod
    def of_this_machine(cls) -> Cpus:
        every = sorted(os.sched_getaffinity(0))
        server, load = every[:2] if len(every) > 1 else (None, None)
        return cls(every=frozenset(every), server=server, load=load)

    def serving(self, workers: int) -> frozenset[int]:
        """Where so many processes serve: one on a CPU of its own, several wherever there is room."""
        return self.every if self.server is None or workers > 1 else frozenset({self.server})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Provider, relying party and load of a run."""

    provider: Provider
    load: Load
    maker: Maker
    workshop: Workshop
    verifier: Verifier

    async def browser(self, name: str) -> Walk:
        """A new browser in which this person showed both factors, at the page after them."""
        client = self.load.client
        (flow,) = await self.workshop.flows(1)
        await self.push(flow)
        walk = Walk(client.fetch, Jar(), steps.authorization_url(self.maker, flow))
        await sign_in(walk, name)
        return walk

    async def sign_in(self, count: int) -> list[str]:
        """The Cookie headers of so many signed-in browsers, each of another person with one entity."""
        return [signed_in(await self.browser(people.user_name(index))) for index in range(count)]

    async def leave(self, walk: Walk, flow: Flow) -> None:
        """From the last page back to the relying party. Raises steps.Wrong."""
        walk.url = walk.url.removesuffix("return") + "leave"
        await walk.get()
        steps.called_back(flow, walk.answer)

    async def finish(self, flow: Flow) -> None:
        """Token and userinfo, after `leave`. Raises steps.Wrong."""
        for step in steps.back_channel(self.maker):
            step.accept(flow, await self.load.client.send(step.request(flow)))

    async def push(self, flow: Flow) -> None:
        """A pushed request that is not measured; nothing if requests are not pushed. Raises steps.Wrong."""
        if not self.maker.endpoints.generation.pushed:
            return
        step = steps.of_a_flow(self.maker)[0]
        step.accept(flow, await self.load.client.send(step.request(flow)))

    def check(self, flows: Sequence[Flow], sample: int) -> int:
        """Verify about so many of these flows, and that all differ; how many were verified. Raises load.Hopeless."""
        finished = [flow for flow in flows if not flow.failed]
        chosen = finished[:: max(1, len(finished) // max(1, sample))]
        for flow in chosen:
            try:
                self.verifier.verify(flow)
            except steps.Wrong as wrong:
                self.load.note(wrong)
        return len(chosen)


@asynccontextmanager
async def opened(
    cpus: Cpus,
    *,
    connections: int,
    many: tuple[int, ...] = (),
    settings: Mapping[str, str] = {},
    workers: int = 1,
    generation: Generation = CURRENT,
    python: str = sys.executable,
    host: str = "127.0.0.1",
    place: frozenset[int] | None = None,
) -> AsyncIterator[Stage]:
    """A fresh provider with a registered relying party; see provider.running. Raises provider.NotStarted.

    `place` are its CPUs; None: as `Cpus.serving` says.
    """
    keys = Keys(signing=generate_key(), encryption=generate_key())
    with tempfile.TemporaryDirectory(prefix="corpid-bench-") as directory:
        work, port = Path(directory), provider.free_port()
        issuer = f"http://{host}:{port}"
        client_file = work / "client.json"
        client_file.write_text(json.dumps(registration(keys, issuer, generation)), encoding="utf-8")
        chosen = {**settings, "CORPID_WORKERS": str(workers), "CORPID_GENERATIONS": generation.name}
        with provider.running(
            work, port, client_file, cpus=place or cpus.serving(workers), many=many, settings=chosen, python=python
        ) as running:
            load = Load(running, issuer, connections)
            metadata = await _document(load.client, f"{issuer}/.well-known/openid-configuration")
            endpoints = Endpoints.read(metadata, generation)
            published = await _document(load.client, endpoints.jwks)
            with Workshop(keys, endpoints, set(cpus.every)) as workshop:
                yield Stage(
                    provider=running,
                    load=load,
                    maker=Maker(keys, endpoints),
                    workshop=workshop,
                    verifier=Verifier(keys, endpoints, published),
                )
            load.close()


async def _document(client: Client, url: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((await client.fetch(url)).body)
    return document
