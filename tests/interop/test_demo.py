"""`corpid demo`: one command gives a provider and a relying party that work together.

The check runs as its own process, as a person would start it, over real sockets on free ports.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from corpid_dev.cli import demo as cli_demo
from corpid_dev.demo import check as checking
from corpid_dev.demo import demo as demonstration
from corpid_dev.demo import demo_administration, example_directory
from corpid_dev.demo.check import Inspector, Outcome
from corpid_dev.demo.demo import DemoError, next_free, running
from corpid_dev.demo.example_directory import ExampleDirectory
from corpid_dev.relying_party.browser import Browser
from corpid_dev.relying_party.interfaces import CURRENT, INTERFACES, LEGACY, Interface
from corpid_dev.relying_party.people import answer_page
from tests import quick_start

SECONDS = 120
COMMAND = (str(Path(sys.executable).with_name("corpid")), "demo")
OFTEN = {"current"}
"""what `make test` shows by itself, LEGACY as one issuer of several; the others are in `make test-full`"""
SIGN_INS = ["one entity, every claim", "one of several entities", "third party"]
OF_LEGACY = [
    "response mode fragment", "response mode form_post", "a proof with a code",
]  # fmt: skip


@pytest.fixture(
    scope="module",
    params=[each if each in OFTEN else pytest.param(each, marks=pytest.mark.full) for each in INTERFACES],
)
def interface(request: pytest.FixtureRequest) -> Interface:
    return INTERFACES[request.param]


@pytest.fixture(scope="module")
def report(interface: Interface, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("home")
    environment = {**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home / "share")}
    chosen = () if interface is CURRENT else ("--generation", interface.name)
    finished = quick_start.run(
        (*COMMAND, "--check", "--json", *chosen),
        capture_output=True, text=True, timeout=SECONDS, env=environment, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert not any(home.iterdir()), "a check keeps nothing in the person's home"
    parsed: dict[str, Any] = json.loads(finished.stdout)
    return parsed


def scenario(report: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in report["scenarios"] if one["name"] == name)


def names(scenario: dict[str, Any]) -> set[str]:
    return {check["name"] for check in scenario["checks"]}


@pytest.mark.full
def test_every_scenario_checks_out(interface: Interface, report: dict[str, Any]) -> None:
    assert report["ok"] is True
    assert report["generation"] == interface.name
    legacy = interface is LEGACY
    assert [one["name"] for one in report["scenarios"]] == [
        "the discovery document",
        *SIGN_INS,
        *(OF_LEGACY if legacy else []),
        "cancel",
        *(["cancel, response mode fragment", "cancel, response mode form_post"] if legacy else []),
        "the demo RP's own pages",
    ]
    assert all(one["ok"] and not one["problem"] for one in report["scenarios"])
    assert all(check["passed"] for one in report["scenarios"] for check in one["checks"])


def test_the_provider_is_on_localhost_and_each_person_is_used_once(report: dict[str, Any]) -> None:
    """D34: the provider on a host name of its own, since ports do not separate cookies."""
    assert report["issuer"].startswith("http://localhost:")
    persons = [one["person"] for one in report["scenarios"] if one["person"]]
    assert len(persons) == len(set(persons)) == sum(bool(one["person"]) for one in report["scenarios"]) >= 4


@pytest.mark.parametrize("name", SIGN_INS)
def test_a_sign_in_is_verified_from_the_request_to_the_roles(
    interface: Interface, report: dict[str, Any], name: str
) -> None:
    """Every signature, decryption, nonce, at_hash and claim (Spec 2.4, 2.5, 2.6; D2, D20-D23, D26, R-12.2)."""
    reading = interface.userinfo
    assert names(scenario(report, name)) >= {
        "callback: state",
        "ID token: signature",
        "ID token: nonce",
        "ID token: at_hash",
        "ID token: aud",
        "access token: signature",
        "access token: typ",
        "access token: cnf.jkt" if interface.bound else "access token: bound to no key",
        f"{reading.name}: sub as in the ID token",
        "directory: the person's attributes",
        "directory: the entity's attributes",
        f"directory: roles in {reading.blocks['authinfo']}",
        f"directory: roles in {reading.blocks['tpauthinfo']}",
        *(["ID token: decryption"] if interface.id_token_enc else []),
        *([f"{reading.name}: signature"] if reading.signed else []),
        *(["directory: the entity's attributes in entity-info"] if interface.entity_info else []),
        *(["directory: the person in sub"] if interface.packed_subject else []),
    }


def test_the_discovery_document_says_what_the_generation_promises(interface: Interface, report: dict[str, Any]) -> None:
    """Spec 2.8, 2.9, D41."""
    assert names(scenario(report, "the discovery document")) >= {
        *(f"discovery: {member}" for member in interface.alone),
        "discovery: userinfo_endpoint",
        "provider keys: certificates only where they belong",
    }


def test_the_scheme_of_another_generation_gets_a_bare_challenge(interface: Interface, report: dict[str, Any]) -> None:
    """Spec 7.4, D24."""
    other = "Bearer" if interface.bound else "DPoP"
    assert names(scenario(report, SIGN_INS[0])) >= {
        f"scheme {other}: status", f"scheme {other}: no body", f"scheme {other}: bare challenge",
    }  # fmt: skip


def test_a_code_used_twice_is_refused_and_kills_its_token(report: dict[str, Any]) -> None:
    """D18."""
    assert names(scenario(report, "one entity, every claim")) >= {
        "code used again: refused", "code used again: its token is dead",
    }  # fmt: skip


def test_cancel_leads_back_with_access_denied(report: dict[str, Any]) -> None:
    """D17: in every response mode."""
    for one in report["scenarios"]:
        if one["name"].startswith("cancel"):
            seen = {check["name"]: check["seen"] for check in one["checks"]}
            assert seen["cancel: error"] == "access_denied"


def test_a_generation_that_does_not_exist_is_named_with_those_that_do() -> None:
    finished = quick_start.run(
        (*COMMAND, "--check", "--generation", "modern"), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert finished.returncode == 2
    assert all(name in finished.stderr for name in INTERFACES)


def test_demos_that_start_at_once_get_ports_of_their_own() -> None:
    """A port that is bound is taken, also before anybody answers on it."""
    first, held = next_free("127.0.0.1", 18500)
    second, too = next_free("127.0.0.1", first)
    for one in (*held, *too):
        one.close()
    assert second != first


def test_only_one_demo_uses_a_data_directory(tmp_path: Path) -> None:
    with (
        demonstration.locked(tmp_path / "demo", fresh=False),
        pytest.raises(DemoError, match="a demo is running"),
        demonstration.locked(tmp_path / "demo", fresh=True),
    ):
        pass


def test_fresh_empties_a_demos_directory_and_nothing_else(tmp_path: Path) -> None:
    own = tmp_path / "demo"
    with demonstration.locked(own, fresh=False):
        (own / "provider").mkdir()
        (own / "provider" / "corpid.sqlite").write_text("old")
        (own / "outside").symlink_to(tmp_path)
    with demonstration.locked(own, fresh=True):
        assert [entry.name for entry in own.iterdir()] == [demonstration.MARK]
    assert tmp_path.is_dir()
    foreign = tmp_path / "letters"
    foreign.mkdir()
    (foreign / "dear.txt").write_text("keep me")
    with pytest.raises(DemoError, match="not a demo's data directory"), demonstration.locked(foreign, fresh=True):
        pass
    assert (foreign / "dear.txt").read_text() == "keep me"


def test_the_data_directory_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert demonstration.default_directory() == tmp_path / "corpid" / "demo"
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert demonstration.default_directory() == tmp_path / "home" / ".local" / "share" / "corpid" / "demo"


@pytest.mark.full
async def test_a_provider_that_says_anything_but_the_directory_fails_the_check(
    interface: Interface, tmp_path: Path
) -> None:
    """The check compares with another directory than the applied one: each scenario says what differs."""

    async def outcomes() -> dict[str, Any]:
        async with running(tmp_path, first_port=0, interface=interface) as demo:
            sections: dict[str, Any] = copy.deepcopy(dict(demo.directory.sections))
            for row in (*sections["assignments"], *sections["third_party"]["assignments"]):
                row["end_date"] = "9998-12-31"
            for entity in sections["entities"].values():
                entity["name"] += " (another)"
            for user in sections["users"].values():
                user["name"] += " (another)"
            other = dataclasses.replace(demo, directory=ExampleDirectory(sections))
            return checking.report(other, await checking.run(other))

    report = await outcomes()
    assert report["ok"] is False
    failed = {one["name"]: one["problem"] for one in report["scenarios"] if not one["ok"]}
    assert set(failed) >= set(SIGN_INS)
    assert "the discovery document" not in failed
    assert all(problem.startswith("directory: the person's attributes: expected") for problem in failed.values())


@pytest.mark.full
async def test_a_provider_that_publishes_anything_but_its_generation_fails_the_check(tmp_path: Path) -> None:
    """The check expects what another generation promises: the document differs, and so does all the rest."""

    async def outcomes() -> dict[str, Any]:
        async with running(tmp_path, first_port=0) as demo:
            expected = dataclasses.replace(CURRENT, alone={**CURRENT.alone, "response_modes_supported": ("form_post",)})
            other = dataclasses.replace(demo, registration=dataclasses.replace(demo.registration, interface=expected))
            return checking.report(other, await checking.run(other))

    report = await outcomes()
    failed = {one["name"]: one["problem"] for one in report["scenarios"] if not one["ok"]}
    assert list(failed) == ["the discovery document"]
    assert "response_modes_supported" in failed["the discovery document"]


@pytest.mark.parametrize(
    ("generations", "options"),
    [
        (("current", "legacy"), ()),
        (("legacy", "current", "fapi2", "intermediate"), ()),
        (("current", "legacy", "intermediate", "fapi2"), ("--preset", "public-service")),
    ],
)
@pytest.mark.full
def test_issuers_of_several_generations_check_out_on_one_provider(
    generations: tuple[str, ...], options: tuple[str, ...], tmp_path: Path
) -> None:
    """D62: FAPI2 and LEGACY among them; one client on common people, each issuer with its own document."""
    finished = quick_start.run(
        (*COMMAND, "--check", "--json", "--issuers", ",".join(generations), *options, "--data-dir", str(tmp_path / "data")),
        capture_output=True, text=True, timeout=2 * SECONDS, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr
    report = json.loads(finished.stdout)
    assert [one["generation"] for one in report["issuers"]] == list(generations)
    assert all(one["ok"] for one in (report, *report["issuers"]))
    first, *further = [one["issuer"] for one in report["issuers"]]
    assert further == [f"{first}/{name}" for name in generations[1:]]


@pytest.mark.full
@pytest.mark.parametrize("named", ["current,current", "current,curent", "current,"])
def test_issuers_that_cannot_be_are_refused(named: str) -> None:
    refused = quick_start.run(
        (*COMMAND, "--check", "--issuers", named), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert refused.returncode == 2
    assert "choose from" in refused.stderr


def test_one_generation_and_issuers_together_are_refused() -> None:
    refused = quick_start.run(
        (*COMMAND, "--check", "--generation", "legacy", "--issuers", "current,legacy"),
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "it names every generation itself: leave --generation out" in " ".join(
        refused.stderr.replace("│", " ").split()
    )


@pytest.mark.parametrize(
    ("chosen", "spoken"),
    [
        (("", "", ""), ["current"]),
        (("", "", "public-service"), ["current", "legacy"]),
        (("legacy", "", "public-service"), ["legacy"]),
        (("", "current,fapi2", "public-service"), ["current", "fapi2"]),
    ],
)
def test_a_preset_brings_its_generations_unless_others_are_named(
    chosen: tuple[str, str, str], spoken: list[str]
) -> None:
    """docs/settings.md: each at an issuer of its own (D62)."""
    assert [each.name for each in cli_demo._spoken(*chosen)] == spoken


async def test_the_demo_has_people_for_portal_and_console_and_work_that_waits(tmp_path: Path) -> None:
    """D53, D55, D56: an owner with a request and an offer, a second approver, and an operator who needs no passkey here."""

    async def headings() -> tuple[str, str, str, str]:
        async with running(tmp_path, first_port=0) as demo, httpx.AsyncClient(trust_env=False) as http:
            people = {each.user_name: each for each in demo.registration.persons}
            owner, operator = Browser(http), Browser(httpx.AsyncClient(trust_env=False))
            await owner.open(demo.portal_url)
            await operator.open(demo.console_url)
            for browser, name in ((owner, demo_administration.OWNER), (operator, demo_administration.OPERATOR)):
                for _ in ("password", "code"):
                    await answer_page(browser, people[name])
            console = operator.page.heading
            assert demo_administration.ADMINISTRATOR == demo_administration.OPERATOR
            await operator.open(demo.portal_url)
            if operator.page.form_with("password"):
                for _ in ("password", "code"):
                    await answer_page(operator, people[demo_administration.ADMINISTRATOR])
            await operator.fill_and_submit(entity="209777001M")
            approver = operator.page.text
            await operator.http.aclose()
            return owner.page.heading, owner.page.text, console, approver

    portal, text, console, approver = await headings()
    assert "1 request needs your decision." in approver
    assert portal == "Home"
    assert "1 request needs your decision." in text
    assert "1 offer to act for another organisation needs your answer." in text
    assert console == "Overview"


def test_every_organisation_of_the_demo_has_an_owner_with_a_sign_in() -> None:
    """D53: whatever is requested, somebody can approve it; the command prints who."""
    directory = demo_administration.administered(ExampleDirectory.read(example_directory.content()))
    document = json.loads(demo_administration.content(directory))
    people = {each.user_name for each in directory.persons()}
    held = {(each["entity"], each["user"]) for each in document["administrators"] if each["level"] == "owner"}
    assert {entity for entity, _ in held} == set(directory.sections["entities"])
    assert {user for _, user in held} <= people
    approving = [each["user"] for each in document["administrators"] if each["entity"] == "209777001M"]
    assert set(approving) == {"marcus", "nadia", "siti"}
    assert ("wei.ling", "Lantern Accounting LLP", "owner") in demo_administration.duties(directory)


@pytest.mark.full
def test_the_demo_names_each_issuer_and_where_to_open_it(tmp_path: Path) -> None:
    """D62: by the id that log lines, metrics and client records have."""
    with subprocess.Popen(
        (*COMMAND, "--issuers", "current,legacy", "--data-dir", str(tmp_path / "data"), "--port", "18600"),
        stdout=subprocess.PIPE, text=True,
    ) as demo:  # fmt: skip
        assert demo.stdout is not None
        said = list(itertools.takewhile(lambda line: not line.startswith("Stop"), demo.stdout))
        demo.terminate()
    shown = [line.split() for line in said if line.startswith(("Issuer", "Open"))]
    ports = [int(words[-1].rpartition(":")[2]) for words in shown[1::2]]
    base = shown[0][-1]
    assert shown == [
        ["Issuer", "first,", "generation", "current:", base], ["Open", f"http://127.0.0.1:{ports[0]}"],
        ["Issuer", "legacy,", "generation", "legacy:", f"{base}/legacy"], ["Open", f"http://127.0.0.1:{ports[1]}"],
    ]  # fmt: skip


@pytest.mark.full
async def test_a_demo_in_another_generation_takes_over_the_data_of_the_last(tmp_path: Path) -> None:
    """The client is registered anew: what was said of LEGACY alone is taken away."""
    for chosen in (LEGACY, CURRENT):
        async with running(tmp_path, first_port=0, interface=chosen) as demo, httpx.AsyncClient() as http:
            await checking.cancelled(Inspector(demo, http), Outcome(chosen.name))
