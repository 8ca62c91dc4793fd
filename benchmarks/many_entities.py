"""What it costs when a person may act for thousands of entities, beside one who acts for ten; and what pages weigh."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from benchmarks import steps
from benchmarks.driver_hook import FORM_HEADERS, Walk, fill, people
from benchmarks.driver_hook import signed_in as cookie_of
from benchmarks.http_client import Answer, encode
from benchmarks.stage import Cpus, Stage, opened
from benchmarks.steps import Step, require

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.relying_party import Flow

FEW = 10
ARRIVE, PAGE, SEARCH, CHOOSE, LEAVE = "authorize", "page of entities", "search", "choose", "leave"
ASSETS = re.compile(r'(?:href|src)="([^"]*/static/[^"]*)"')


async def measure(entities: int, arrivals: int, cpus: Cpus, say: Callable[[str], None]) -> dict[str, Any]:
    """The steps of so many arrivals one at a time, with a session, for a person with few and one with many entities.

    Raises provider.NotStarted, load.Hopeless.
    """
    say(f"starting the provider with {entities} entities")
    persons, weights = {}, {}
    async with opened(cpus, connections=1, many=(FEW, entities)) as stage:
        for count in (FEW, entities):
            say(f"a person with {count} entities")
            chosen = people.entity_of_many(count // 2)
            walk, weight, figures = await person(stage, people.many_entities(count), chosen, arrivals)
            persons[count], weights[f"choice among {count:,} entities"] = figures, weight
        return {
            "valid": not stage.load.problems,
            "problems": dict(stage.load.problems),
            "persons": [{"entities": count, "steps": figures} for count, figures in persons.items()],
            "page_bytes": {**await _first_pages(stage, walk), **weights},
        }


async def person(stage: Stage, name: str, chosen: str, arrivals: int) -> tuple[Walk, int, dict[str, dict[str, float]]]:
    """Sign this person in, let them choose this entity so many times: the walk at its return page, how many bytes
    the choice has, and what each step cost. Raises load.Hopeless."""
    walk = await stage.browser(name)
    weight = len(walk.page.encode())
    await walk.submit(entity=chosen)
    cookie = cookie_of(walk)
    await _arrivals(stage, 10, cookie, chosen)  # warm
    return walk, weight, await _arrivals(stage, arrivals, cookie, chosen)


async def _arrivals(stage: Stage, count: int, cookie: str, chosen: str) -> dict[str, dict[str, float]]:
    flows = await stage.workshop.flows(count)
    for flow in flows:
        flow.cookie = cookie
    figures = {}
    for step in _steps(stage, chosen):
        cost, _ = await stage.load.run(flows, (step,))
        figures[step.name] = cost.figures()
    stage.check(flows, 5)
    return figures


def _steps(stage: Stage, chosen: str) -> tuple[Step, ...]:
    """PAR, the browser's way over the choice, token, userinfo."""
    issuer = stage.maker.endpoints.issuer

    def to(flow: Flow) -> bytes:
        return encode("GET", flow.page_url, f"Cookie: {flow.cookie}\r\n")

    def search(flow: Flow) -> bytes:
        return encode("GET", f"{flow.page_url}?query={chosen[-4:]}", f"Cookie: {flow.cookie}\r\n")

    def choose(flow: Flow) -> bytes:
        url, body = fill(flow.page, flow.page_url, {"entity": chosen})
        return encode("POST", url, f"{FORM_HEADERS}Cookie: {flow.cookie}\r\n", body)

    def moved(step: str) -> Callable[[Flow, Answer], None]:
        def accept(flow: Flow, answer: Answer) -> None:
            require(step, answer.status == 303, f"status {answer.status}")
            flow.page_url = urljoin(issuer, answer.get(b"location"))

        return accept

    push, *_ = steps.of_a_flow(stage.maker)
    return (
        push,
        Step(name=ARRIVE, request=steps.authorization(stage.maker), accept=moved(ARRIVE)),
        Step(name=PAGE, request=to, accept=_shown),
        Step(name=SEARCH, request=search, accept=_found(chosen)),
        Step(name=CHOOSE, request=choose, accept=moved(CHOOSE)),
        Step(
            name=LEAVE,
            request=lambda flow: encode(
                "GET", flow.page_url.removesuffix("return") + "leave", f"Cookie: {flow.cookie}\r\n"
            ),
            accept=steps.called_back,
        ),
        *steps.back_channel(stage.maker),
    )


def _shown(flow: Flow, answer: Answer) -> None:
    flow.page = answer.body.decode()
    require(PAGE, answer.status == 200, f"status {answer.status}")
    require(PAGE, 'name="entity"' in flow.page, "offers no entity")


def _found(chosen: str) -> Callable[[Flow, Answer], None]:
    def accept(_: Flow, answer: Answer) -> None:
        require(SEARCH, answer.status == 200, f"status {answer.status}")
        require(SEARCH, f'value="{chosen}"' in answer.body.decode(), "did not find the entity")

    return accept


async def _first_pages(stage: Stage, last: Walk) -> dict[str, int]:
    """The weight of what every sign-in loads; `last` is a walk that stands at its return page."""
    client = stage.load.client
    (flow,) = await stage.workshop.flows(1)
    await stage.push(flow)
    arrived = await client.fetch(steps.authorization_url(stage.maker, flow))
    cookie = arrived.get(b"set-cookie").partition(";")[0]
    url = urljoin(stage.maker.endpoints.issuer, arrived.get(b"location"))
    page = (await client.fetch(url, head=f"Cookie: {cookie}\r\n")).body
    assets = {address: urljoin(url, address) for address in ASSETS.findall(page.decode())}
    weights = {"user name and password": len(page), "return to the relying party": len(last.page.encode())}
    for address, asset in sorted(assets.items()):
        weights[urlsplit(address).path] = len((await client.fetch(asset)).body)
    return weights
