"""docs/reference/endpoints.md: parameters, headers, answers and errors, held against a running provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from corpid.flows.oauth.authorize import AUTHORIZATION_PARAMETERS
from corpid.rules.oauth.authorization_request import PARAMETERS, PUSHED_PARAMETERS, REQUEST_PARAMETERS
from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.refusals import Reason
from corpid.rules.oauth.token_request import TOKEN_PARAMETERS
from corpid.web.http.addresses import HEALTH_PATHS
from corpid.web.routes import table
from corpid_dev.relying_party.interfaces import INTERFACES
from scripts.reference.endpoints import Endpoint, Parameter, endpoints
from tests.reference import recording
from tests.tiers import first_or_full

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.relying_party import RelyingParty
    from tests.reference.recording import Recorder

PUSHED = [name for name, each in GENERATIONS.items() if each.pushed]
QUERY = [name for name, each in GENERATIONS.items() if not each.pushed]


def of(generation: str, name: str) -> Endpoint:
    return next(each for each in endpoints(GENERATIONS[generation]) if each.name == name)


def declared(endpoint: Endpoint, answer: httpx.Response, recorder: Recorder) -> str:
    """The reason of a refusal, which must be one of the endpoint's, with its error and status."""
    log = recorder.logged[-1]
    code = answer.json()["error"] if answer.content else log["error"]
    assert code == log["error"] and Reason[log["reason"].upper()] in endpoint.errors()[code], log
    assert answer.status_code == endpoint.status(code), log
    return str(log["reason"])


def wrong(parameter: Parameter) -> dict[str, Any]:
    """What makes a request wrong at this parameter: it is missing, or it is there."""
    return {parameter.name: "https://rp.example/request" if parameter.refused else None}


@pytest.mark.parametrize("name", GENERATIONS)
def test_the_declared_parameters_are_those_that_the_code_knows(name: str) -> None:
    """D14: every other one is ignored."""
    known = {each.name: {one.name for one in each.parameters} for each in endpoints(GENERATIONS[name])}
    assert known["token"] == TOKEN_PARAMETERS
    assert known["authorize"] == (AUTHORIZATION_PARAMETERS if GENERATIONS[name].pushed else REQUEST_PARAMETERS)
    assert known.get("par", PUSHED_PARAMETERS) == PUSHED_PARAMETERS


@pytest.mark.parametrize("name", GENERATIONS)
def test_the_declared_endpoints_are_those_that_are_served(name: str) -> None:
    """Spec 2.1, D32."""
    generation = GENERATIONS[name]
    served = {route.path: route.methods for route in table((generation,))}
    for each in endpoints(generation):
        assert each.path in HEALTH_PATHS or served[each.path] == each.methods
    protocol = {path for path in served if path.startswith(("/mga", "/request", "/userinfo")) or path.endswith("-info")}
    assert protocol <= {each.path for each in endpoints(generation)}


@pytest.mark.parametrize("name", first_or_full(PUSHED, first="current"))
async def test_par_refuses_what_the_reference_says_and_takes_the_rest(name: str) -> None:
    """Spec 4.1, 7.1."""
    endpoint = of(name, "par")

    async with recording.recorder(
        INTERFACES[name],
    ) as recorder:
        party = recorder.party()
        for parameter in endpoint.parameters:
            answer = await party.push(wrong(parameter))
            if parameter.required or parameter.refused:
                assert declared(endpoint, answer, recorder)
            else:
                assert answer.status_code == endpoint.success.status, parameter.name
            twice = await party.push({parameter.name: ["a", "b"]})
            assert declared(endpoint, twice, recorder) == "parameter_repeated"
        for header in endpoint.headers:
            answer = await party.push(headers={header.name: None})
            assert (declared(endpoint, answer, recorder) != "") if header.required else answer.status_code == 201
        answer = await party.push({"unknown": ["a", "b"]})
        assert answer.status_code == endpoint.success.status
        assert endpoint.success.headers.items() <= dict(answer.headers).items()
        assert answer.headers["content-type"] == endpoint.success.content_type


@pytest.mark.parametrize("name", first_or_full(PUSHED, first="current"))
async def test_par_has_the_limits_of_the_reference(name: str) -> None:
    """Spec 8, D12, D13."""
    endpoint = of(name, "par")
    fits = {each.name: "e" * each.limit for each in PARAMETERS if each.limit} | {"max_age": "9" * 9}

    async with recording.recorder(
        INTERFACES[name],
    ) as recorder:
        party = recorder.party()
        for parameter, value in fits.items():
            length = str(len(value))
            assert length in next(each.value for each in endpoint.parameters if each.name == parameter)
            assert (await party.push({parameter: value})).status_code == 201, parameter
            assert declared(endpoint, await party.push({parameter: value + value[0]}), recorder)


@pytest.mark.parametrize("name", first_or_full(GENERATIONS, first="current"))
async def test_token_and_resources_refuse_what_the_reference_says_and_take_the_rest(name: str) -> None:
    """Spec 4.3, 4.4, 4.5, 7.3, 7.4."""
    endpoint = of(name, "token")

    async with recording.recorder(
        INTERFACES[name],
    ) as recorder:
        party = await recorder.arrived()
        for parameter in endpoint.parameters:
            if parameter.required or parameter.refused or parameter.condition:
                answer = await party.token(party.sign_in.code, wrong(parameter))
                assert declared(endpoint, answer, recorder)
            twice = await party.token(party.sign_in.code, {parameter.name: ["a", "b"]})
            assert declared(endpoint, twice, recorder) == "parameter_repeated"
        for header in endpoint.headers:
            assert declared(endpoint, await party.token(party.sign_in.code, headers={header.name: None}), recorder)
        optional = {each.name: None for each in endpoint.parameters if not (each.required or each.condition)}
        answer = await party.token(party.sign_in.code, optional)
        assert endpoint.success.headers.items() <= dict(answer.headers).items()
        await party.believe(answer)
        await resources(recorder, party, name)


async def resources(recorder: Recorder, party: RelyingParty, name: str) -> None:
    for reading, which in zip(party.interface.readings, GENERATIONS[name].resources, strict=True):
        endpoint = of(name, which.name)
        for method in endpoint.methods:
            answer = await party.resource(method, endpoint=reading.endpoint)
            assert answer.status_code == endpoint.success.status
            assert endpoint.success.headers.items() <= dict(answer.headers).items()
            assert answer.headers["content-type"] == endpoint.success.content_type
        for header in endpoint.headers:
            refused = await party.resource(headers={header.name: None}, endpoint=reading.endpoint)
            assert declared(endpoint, refused, recorder)
        scheme = party.interface.scheme
        refused = await party.resource(headers={"Authorization": f"{scheme} a.b.c"}, endpoint=reading.endpoint)
        assert declared(endpoint, refused, recorder).startswith("access_token")


@pytest.mark.parametrize("name", first_or_full(PUSHED, first="current"))
async def test_authorize_shows_a_page_without_its_parameters(name: str) -> None:
    """Spec 4.2, D16."""
    endpoint = of(name, "authorize")

    async with recording.recorder(
        INTERFACES[name],
    ) as recorder:
        party = recorder.party()
        url = await party.begin()
        for parameter in endpoint.parameters:
            answer = await party.http.get(without(url, parameter.name))
            log = recorder.logged[-1]
            assert answer.status_code == 400 and Reason[log["reason"].upper()] in endpoint.errors()[log["error"]]
        answer = await party.http.get(url)
        assert answer.status_code == 303
        assert endpoint.success.headers.items() <= dict(answer.headers).items()


def without(url: str, name: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}?{urlencode([each for each in parse_qsl(parts.query) if each[0] != name])}"


@pytest.mark.parametrize("name", QUERY)
async def test_a_request_in_the_query_is_refused_as_the_reference_says(name: str) -> None:
    """R-10.2, D14, D16."""
    endpoint = of(name, "authorize")

    async with recording.recorder(
        INTERFACES[name],
    ) as recorder:
        party = recorder.party()
        await party.begin()
        for parameter in endpoint.parameters:
            answer = await party.http.get(party.authorization_url(**wrong(parameter)))
            log = recorder.logged[-1]
            if not (parameter.required or parameter.refused or parameter.condition):
                assert answer.status_code == 303, parameter.name
                continue
            assert Reason[log["reason"].upper()] in endpoint.errors()[log["error"]], parameter.name
            if answer.status_code == 302:
                assert dict(parse_qsl(urlsplit(answer.headers["location"]).query))["error"] == log["error"]
            else:
                assert parameter.name in {"client_id", "redirect_uri"} and answer.status_code == 400


@pytest.mark.parametrize("name", first_or_full(GENERATIONS, first="current"))
async def test_public_documents_have_the_declared_headers(name: str) -> None:
    """Spec 4.6, 4.7, D31, D39."""
    async with recording.recorder(
        INTERFACES[name],
    ) as recorder:
        party = recorder.party()
        for endpoint in endpoints(GENERATIONS[name]):
            if endpoint.authentication == "none":
                answer = await party.http.get(party.issuer + endpoint.path)
                assert answer.status_code == endpoint.success.status
                assert endpoint.success.headers.items() <= dict(answer.headers).items()
                assert answer.headers["content-type"] == endpoint.success.content_type
