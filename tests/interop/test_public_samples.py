"""docs/coming-from-a-mock.md, step by step: its demo, its settings, its registrations, and a program in place of each sample.

The programs are written from what is known of the public samples; the npm helper is the helper itself. What each sends is
read from the demo's inspector.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import ssl
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest
from joserfc.jwk import ECKey

from corpid_dev.relying_party import jwt
from tests import quick_start
from tests.interop.examples import EXAMPLES, OFFLINE, Example, installed, started
from tests.interop.node_process import NODE
from tests.interop.public_samples.one_thread import one_thread
from tests.interop.running import PATIENCE
from tests.machine import free_port
from tests.tiers import first_or_full

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


DOCS: Final = EXAMPLES.parent / "docs"
CORPID: Final = Path(sys.executable).with_name("corpid")
PROGRAMS: Final = Path(__file__).with_name("public_samples")
HELPER: Final = EXAMPLES / "libraries" / "legacy_helper" / "node_modules"
DATA: Final = "~/.local/share/corpid/demo"
"""where the page has the demo's data"""
MOST_STEPS: Final = 12
pytestmark = [pytest.mark.full, pytest.mark.timeout(180)]


@dataclass(frozen=True)
class Part:
    """A part of the page, with its blocks of code."""

    text: str

    @classmethod
    def of(cls, heading: str) -> Part:
        page = (DOCS / "coming-from-a-mock.md").read_text(encoding="utf-8")
        return cls(re.split(r"^##+ ", page.partition(f"### {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0])

    def blocks(self, language: str) -> list[str]:
        found = re.findall(r"^```(\w*)\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)
        return [block for named, block in found if named == language]

    @property
    def commands(self) -> list[str]:
        """One a line, except that of the registration, which is a block."""
        return [each for block in self.blocks("sh") for each in ([block] if "curl" in block else block.splitlines())]

    @property
    def settings(self) -> dict[str, str]:
        """The members that are to be changed."""
        return {name: value for block in self.blocks("json") for name, value in json.loads(block).items()}

    @property
    def registration(self) -> str:
        [command] = [each for each in self.commands if each.startswith("curl ")]
        return command

    @property
    def client_id(self) -> str:
        return str(json.loads(shlex.split(self.registration)[-1])["client_id"])


NODE_SAMPLE, JAVA_SAMPLE, NPM_HELPER = map(Part.of, ("The sample for Node", "The sample for Java", "The npm helper"))


@dataclass(frozen=True)
class RunningDemo:
    """A demo as the page starts it, on ports and in a folder of its own."""

    issuers: dict[str, str]
    data: Path

    @property
    def issuer(self) -> str:
        return next(iter(self.issuers.values()))

    @property
    def trust(self) -> ssl.SSLContext | bool:
        authority = self.data / "tls" / "localhost" / "ca.crt"
        return ssl.create_default_context(cafile=authority) if authority.exists() else True

    def ask(self, method: str, url: str, **options: Any) -> httpx.Response:
        with httpx.Client(verify=self.trust, trust_env=False, timeout=PATIENCE) as http:
            return http.request(method, url, **options)

    def here(self, text: str, port: int) -> str:
        """What the page says, with the addresses of this demo and of this relying party."""
        own = self.issuer.rpartition(":")[2]
        return text.replace(DATA, str(self.data)).replace("8400", own).replace("3080", str(port))

    def sign_in(self, home: str, generation: str = "current") -> Any:
        """Log in at the relying party, choose Rina, agree; what it shows at the end."""
        begun = self.ask("GET", f"{home}/login")
        assert begun.status_code == 302, begun.text
        order = {"authorize_url": begun.headers["location"], "user": "rina"}
        answer = self.ask("POST", f"{self.issuers[generation]}/developer/sign-ins", json=order)
        assert answer.status_code == 200, answer.text
        shown = self.ask("GET", answer.json()["callback_url"], follow_redirects=True)
        assert shown.status_code == 200, shown.text
        return shown.json()

    def sent(self, client_id: str) -> dict[str, Any]:
        """The last request at each endpoint, as the inspector has it."""
        answer = self.ask("GET", f"{self.issuer}/developer/exchanges", params={"client_id": client_id}).json()
        return {
            each["endpoint"]: {
                **each, "headers": dict(each["headers"]), "parameters": dict(each["parameters"]),
            }
            for each in answer["exchanges"]
        }  # fmt: skip


@pytest.fixture(scope="module")
def starting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Part], RunningDemo]]:
    """The demo that a part of the page starts; the same one for the same command."""
    running: dict[str, RunningDemo] = {}
    with ExitStack() as stack:

        def demo(part: Part) -> RunningDemo:
            [command] = [each for each in part.commands if each.startswith("corpid demo ")]
            if command not in running:
                data = tmp_path_factory.mktemp("demo") / "demo"
                running[command] = stack.enter_context(_demo(shlex.split(command), data))
            return running[command]

        yield demo


@contextmanager
def _demo(command: Sequence[str], data: Path) -> Iterator[RunningDemo]:
    words = (str(CORPID), *command[1:], "--port", str(free_port()), "--data-dir", str(data))
    with quick_start.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = list(takewhile(lambda line: not line.startswith("Stop"), process.stdout))
        found = [re.fullmatch(r"Issuer .* generation (\w+): (\S+)\n", line) for line in said]
        yield RunningDemo({each[1]: each[2] for each in found if each}, data)
        process.terminate()


def registered(demo: RunningDemo, part: Part, port: int) -> Any:
    """Send the request of the page as a shell does."""
    environment = {**os.environ, "no_proxy": "*"}
    command = ("sh", "-c", demo.here(part.registration, port))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return json.loads(done.stdout)


def key_set_was_fetched(answer: Any) -> bool:
    """Its advice has the two remarks that the page tells of, and no third one."""
    return [each["member"] for each in answer["advice"]] == ["redirect_uris", "jwks_uri"]


def config(folder: Path, demo: RunningDemo, part: Part, port: int) -> Path:
    """The samples' file of settings, changed as the page says, with keys of its own in place of theirs."""
    keys: dict[str, Any] = {}
    for name, use, alg in (("SIG", "sig", "ES256"), ("ENC", "enc", "ECDH-ES+A256KW")):
        key = ECKey.generate_key("P-256", {"alg": alg, "kid": f"own-{use}"})
        keys[f"PRIVATE_{name}_KEY"] = key.as_dict(private=True)
        keys[f"PUBLIC_{name}_KEY"] = {**key.as_dict(private=False), "use": use}
    content = {
        "SERVER_PORT": port,
        "CLIENT_ID": part.client_id,
        "ISSUER_URL": "https://provider.example",
        "REDIRECT_URI": f"http://localhost:{port}/callback",
        "SCOPES": "openid name",
        "KEYS": keys,
    }
    assert part.settings.keys() <= content.keys()
    path = folder / "config.json"
    path.write_text(json.dumps({**content, **json.loads(demo.here(json.dumps(part.settings), port))}))
    return path


@contextmanager
def node_sample(demo: RunningDemo, folder: Path, port: int) -> Iterator[Example]:
    """It has in its environment what stands before `npm start`."""
    [start] = [each for each in NODE_SAMPLE.commands if each.endswith(" npm start")]
    trusted = dict(word.split("=", 1) for word in shlex.split(demo.here(start, port)) if "=" in word)
    settings = config(folder, demo, NODE_SAMPLE, port)
    command = (str(NODE), str(PROGRAMS / "node_sample.mjs"), str(settings))
    environment = {**os.environ, **trusted, "no_proxy": "*"}
    with started(command, demo.issuer, settings, "", str(port), environment) as running:
        yield running


@contextmanager
def java_sample(demo: RunningDemo, folder: Path, port: int, *arguments: str) -> Iterator[Example]:
    installed("java", "java", "mvn", probe=("java", "--version"))
    settings = config(folder, demo, JAVA_SAMPLE, port)
    library, program = f"{EXAMPLES}/java/lib/*", str(PROGRAMS / "JavaSample.java")
    command = ("java", "-cp", library, program, str(settings), *arguments)
    with started(command, demo.issuer, settings, "", str(port), dict(OFFLINE)) as running:
        yield running


@contextmanager
def python_in_place_of_java(demo: RunningDemo, folder: Path, port: int) -> Iterator[str]:
    settings = json.loads(config(folder, demo, JAVA_SAMPLE, port).read_text())
    with one_thread(port, settings["ISSUER_URL"], settings["CLIENT_ID"], settings["SCOPES"]) as home:
        yield home


def assertion(exchange: Any) -> tuple[Any, Any]:
    return jwt.peek(exchange["parameters"]["client_assertion"])


@pytest.mark.parametrize("part", [NODE_SAMPLE, JAVA_SAMPLE, NPM_HELPER], ids=["Node", "Java", "npm helper"])
def test_each_part_has_few_steps_and_says_how_many(part: Part) -> None:
    """Each command, each changed member and each file is one; the last step is in the browser."""
    steps = len(part.commands) + len(part.settings) + len(part.blocks("js"))
    assert steps == 8 <= MOST_STEPS
    assert "Eight commands and edits." in part.text


def test_the_sample_for_node_signs_in_by_the_steps_of_the_page(
    starting: Callable[[Part], RunningDemo], tmp_path: Path
) -> None:
    """D27, D52, D63: https, its own key set, the issuer as audience, no context type."""
    demo, port = starting(NODE_SAMPLE), free_port()
    with node_sample(demo, tmp_path, port) as running:
        assert key_set_was_fetched(registered(demo, NODE_SAMPLE, port))
        shown = demo.sign_in(f"http://localhost:{port}")
        [printed] = NODE_SAMPLE.blocks("")
        for each in re.findall(r"\w+: '[^'…]+", printed):
            running.wait_for(each)
    assert (shown["iss"], shown["sub_type"], shown["sub"]) == (demo.issuer, "entity", "209900042K")
    assert shown["act"]["sub_attributes"]["name"] == "Rina Example"
    assert shown["acr"].startswith(documented("Setting")["acr_prefix"])
    assert json.loads(shown["auth_info"])["Result_Set"]["ESrvc_Result"][0]["CPESrvcID"] == "HARBOUR-PERMIT"
    sent = demo.sent(NODE_SAMPLE.client_id)
    for endpoint in ("par", "token"):
        header, claims = assertion(sent[endpoint])
        assert header.keys() == {"alg", "kid"}
        assert claims["aud"] == demo.issuer
        assert "dpop" in sent[endpoint]["headers"]
    assert "authentication_context_type" not in sent["par"]["parameters"]
    assert sent["userinfo"]["headers"]["authorization"].startswith("DPoP ")


def sends_what_the_sample_for_java_sends(demo: RunningDemo) -> dict[str, Any]:
    sent = demo.sent(JAVA_SAMPLE.client_id)
    for endpoint in ("par", "token"):
        header, claims = assertion(sent[endpoint])
        assert header.keys() == {"alg", "kid"}
        assert claims["aud"] == demo.issuer + sent[endpoint]["path"]
        _, proof = jwt.peek(sent[endpoint]["headers"]["dpop"])
        assert proof is not None
        assert proof["exp"] > proof["iat"]
    assert "authentication_context_type" not in sent["par"]["parameters"]
    assert "client_id" not in sent["token"]["parameters"]
    assert sent["userinfo"]["headers"]["authorization"].startswith("DPoP ")
    return sent


def test_a_relying_party_of_one_thread_signs_in_by_the_steps_of_the_page(
    starting: Callable[[Part], RunningDemo], tmp_path: Path
) -> None:
    """D27, D63, D64: it pushes while its key set cannot be fetched."""
    demo, port = starting(JAVA_SAMPLE), free_port()
    with python_in_place_of_java(demo, tmp_path, port) as home:
        assert key_set_was_fetched(registered(demo, JAVA_SAMPLE, port))
        assert demo.sign_in(home)["act"]["sub_attributes"]["name"] == "Rina Example"
    sends_what_the_sample_for_java_sends(demo)


def test_a_relying_party_that_was_registered_before_it_ran_is_registered_again(
    starting: Callable[[Part], RunningDemo], tmp_path: Path
) -> None:
    """D27, D28: what the page says that is seen, and what to do."""
    demo, port = starting(JAVA_SAMPLE), free_port()
    early = registered(demo, JAVA_SAMPLE, port)
    assert early["advice"][-1]["reason"].startswith("no key set was fetched")
    with python_in_place_of_java(demo, tmp_path, port) as home:
        refused = demo.ask("GET", f"{home}/login")
        assert "localhost gave no complete answer within 3 s" in refused.text
        assert key_set_was_fetched(registered(demo, JAVA_SAMPLE, port))
        assert demo.sign_in(home)["sub"] == "209900042K"


@pytest.mark.interop
def test_the_sample_for_java_signs_in_by_the_steps_of_the_page(
    starting: Callable[[Part], RunningDemo], tmp_path: Path
) -> None:
    """D27, D63, D64: on Nimbus' SDK, which sends by HttpURLConnection."""
    demo, port = starting(JAVA_SAMPLE), free_port()
    with java_sample(demo, tmp_path, port):
        assert key_set_was_fetched(registered(demo, JAVA_SAMPLE, port))
        shown = demo.sign_in(f"http://localhost:{port}")
    assert (shown["iss"], shown["sub"]) == (demo.issuer, "209900042K")
    assert sends_what_the_sample_for_java_sends(demo)["par"]["headers"]["user-agent"].startswith("Java/")


@pytest.mark.interop
def test_javas_own_http_client_registers_pushes_and_redeems(
    starting: Callable[[Part], RunningDemo], tmp_path: Path
) -> None:
    """RFC 9110 §7.8: it offers h2c with every request, also with a body in chunks; at a page for developers, too."""
    demo, port = starting(JAVA_SAMPLE), free_port()
    *_, members = shlex.split(demo.here(JAVA_SAMPLE.registration, port))
    with java_sample(demo, tmp_path, port, f"{demo.issuer}/developer/clients", members) as running:
        running.wait_for("Registered: ")
        shown = demo.sign_in(f"http://localhost:{port}")
        [answer] = [line for line in running.printed if line.startswith("Registered: ")]
    assert key_set_was_fetched(json.loads(answer.removeprefix("Registered: ")))
    assert (shown["iss"], shown["sub"]) == (demo.issuer, "209900042K")
    sent = sends_what_the_sample_for_java_sends(demo)
    for endpoint in ("par", "token"):
        headers = sent[endpoint]["headers"]
        assert (headers["upgrade"], headers["transfer-encoding"]) == ("h2c", "chunked")
        assert headers["user-agent"].startswith("Java-http-client/")
        assert sent[endpoint]["status"] in {200, 201}
    assert sent["userinfo"]["headers"]["upgrade"] == "h2c"


def test_the_npm_helper_signs_in_by_the_steps_of_the_page(
    starting: Callable[[Part], RunningDemo], tmp_path: Path
) -> None:
    """R-12.2, Spec "LEGACY without PKCE": the program of the page on the helper itself, unchanged."""
    demo, port = starting(NPM_HELPER), free_port()
    [keys] = [each for each in NPM_HELPER.commands if each.startswith("corpid client keys ")]
    quick_start.run((CORPID, *shlex.split(keys)[1:]), cwd=tmp_path, timeout=PATIENCE, check=True)
    (tmp_path / "node_modules").symlink_to(HELPER)
    [program] = NPM_HELPER.blocks("js")
    (tmp_path / "rp.mjs").write_text(demo.here(program, port))
    command, environment = (str(NODE), "rp.mjs"), {**os.environ, "no_proxy": "*"}
    assert "node rp.mjs" in NPM_HELPER.commands
    with started(command, demo.issuer, tmp_path / "keys.json", "", str(port), environment) as running:
        answer = registered(demo, NPM_HELPER, port)
        assert key_set_was_fetched(answer)
        assert answer["issuer"] == demo.issuers["legacy"]
        shown = demo.sign_in(f"http://localhost:{port}", "legacy")
        [printed] = NPM_HELPER.blocks("")
        running.wait_for(printed.strip())
    assert shown["person"]["nric"] == "S0000001X"
    assert shown["entity"]["CPEntID"] == "209900042K"
    assert {row["CPRole"] for row in shown["active"]["HARBOUR-PERMIT"]} == {"Checker", "Applicant"}
    sent = demo.sent(NPM_HELPER.client_id)
    asked = sent["callback"]["parameters"]
    assert asked["scope"] == "openid"
    assert not asked.keys() & {"code_challenge", "request_uri", "authentication_context_type"}
    _, claims = assertion(sent["token"])
    assert claims["aud"] == demo.issuers["legacy"]
    assert "dpop" not in sent["token"]["headers"]
    assert sent["authorization-info"]["headers"]["authorization"].startswith("Bearer ")


def documented(heading: str) -> dict[str, str]:
    """A table of the preset in docs/settings.md."""
    text = (DOCS / "settings.md").read_text(encoding="utf-8").partition("## The preset `public-service`")[2]
    table = text.partition(f"| {heading} | Value |")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| `(\w+)` \| `([^`]*)` \|$", table, re.MULTILINE))


@pytest.mark.parametrize("part", first_or_full([NODE_SAMPLE, JAVA_SAMPLE]), ids=["https", "http"])
def test_the_demo_of_the_preset_serves_what_its_document_says(
    starting: Callable[[Part], RunningDemo], part: Part
) -> None:
    """D62: each generation at an issuer of its own, by one command; docs/settings.md has the two tables."""
    demo, settings, members = starting(part), documented("Setting"), documented("Key of a client")
    assert ", ".join(demo.issuers) == settings["generations"]
    assert [each.removeprefix(demo.issuer) for each in demo.issuers.values()] == ["", "/legacy"]
    for generation, issuer in demo.issuers.items():
        metadata = demo.ask("GET", f"{issuer}/.well-known/openid-configuration").json()
        assert metadata["issuer"] == issuer
        assert ("pushed_authorization_request_endpoint" in metadata) == (generation == "current")
        assert str(metadata["authorization_response_iss_parameter_supported"]).lower() == settings["return_iss"]
        told = demo.ask("GET", f"{issuer}/developer/clients").json()
        assert told["generations"] == [generation]
        new = {name: _as_documented(value) for name, value in told["new_client"].items() if name in members}
        if generation == "legacy":  # it has fewer scopes
            scopes = [each for each in members["scopes"].split(", ") if not each.startswith(("entity.", "user."))]
            assert new.pop("scopes") == ", ".join(scopes)
        assert new == {name: value for name, value in members.items() if name in new}
        assert new.keys() | {"scopes"} == members.keys()


def _as_documented(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value).lower() if value is True else str(value)
