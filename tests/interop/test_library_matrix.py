"""Each library of docs/libraries.md, in each generation that it can speak; the page is generated from this run."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from corpid_dev.relying_party.browser import DeadEndError
from corpid_dev.relying_party.interfaces import INTERFACES, NOTHING
from tests.interop.dishonest import forged_payload, member, other_key
from tests.interop.libraries import FAR_AWAY, ROLES, entity_of, roles
from tests.interop.library_matrix.declarations import LIBRARIES, REDIRECT_URI, RESULTS, registration
from tests.interop.library_matrix.program import (
    EndedEarlyError,
    RefusedByProgramError,
    begun,
    built,
    takes_long_to_build,
)
from tests.interop.stock_clients import public_keys, write_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.interop.running import Provider

    Serving = Callable[..., Provider]

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]


def in_matrix(*cases: tuple[str, str]) -> pytest.MarkDecorator:
    """Runs once for each of these libraries and generations; a program that builds for long has a mark."""
    marked = [
        pytest.param(*case, marks=pytest.mark.long_build if takes_long_to_build(LIBRARIES[case[0]]) else [])
        for case in cases
    ]
    return pytest.mark.parametrize(("library", "generation"), marked)


each_library = in_matrix(*((name, each.speaks[0]) for name, each in LIBRARIES.items()))


ENCRYPTED_AND_SIGNED = {"id_token_encrypted": True, "userinfo_signed": True}
"""what the preset registers a new client for, in every generation (docs/legacy.md)"""


def parsed(userinfo: dict[str, Any]) -> dict[str, Any]:
    """Blocks as objects: with the preset they are text that contains JSON."""
    return {
        name: json.loads(value) if isinstance(value, str) and value.startswith("{") else value
        for name, value in userinfo.items()
    }


@pytest.fixture(scope="module")
def results() -> Iterator[dict[str, dict[str, Any]]]:
    """What signed somebody in, and when; CI leaves the file alone."""
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    yield found
    if os.environ.get("CI") != "true":
        ordered = {
            library: {name: found[library][name] for name in each.speaks if name in found.get(library, {})}
            for library, each in LIBRARIES.items()
        }
        RESULTS.write_text(json.dumps(ordered, indent=2) + "\n", encoding="utf-8")


def signed_in(
    running: Provider,
    folder: Path,
    library: str,
    generation: str,
    *,
    change: Callable[[str], str] = str,
    told: Mapping[str, bool] = NOTHING,
) -> dict[str, Any]:
    """Claims and userinfo of a newcomer's sign-in at the library's program; `told` is what it is told otherwise."""
    interface = INTERFACES[generation]
    keys = write_keys(folder / "keys.json")
    members = {**LIBRARIES[library].members, **({"legacy_until": FAR_AWAY} if interface.ends else {})}
    running.register(folder.name, REDIRECT_URI, public_keys(keys), generations=[generation], **members)
    known = registration(running.issuer, folder.name, json.loads(keys.read_text()), interface)
    with begun(LIBRARIES[library], {**known, **told}, folder) as program:
        callback = running.visited(program.address, running.newcomer())
        return program.finish(change(str(callback)))


@in_matrix(*((name, generation) for name, each in LIBRARIES.items() for generation in each.speaks))
def test_a_person_signs_in_and_their_roles_are_read(
    serving: Serving, tmp_path: Path, results: dict[str, dict[str, Any]], library: str, generation: str
) -> None:
    """docs/libraries.md: the whole program, unchanged, with the preset of the public service and without."""
    interface = INTERFACES[generation]
    built(LIBRARIES[library])  # a result stays if the toolchain is missing
    results.setdefault(library, {}).pop(generation, None)
    with_preset = signed_in(
        serving(interface, preset="public-service"), tmp_path, library, generation, told=ENCRYPTED_AND_SIGNED
    )
    assert with_preset["userinfo"]["sub"] == with_preset["claims"]["sub"]
    assert roles(parsed(with_preset["userinfo"]), interface) == ROLES
    assert "stringified_blocks" in LIBRARIES[library].members or with_preset["userinfo"] != parsed(
        with_preset["userinfo"]
    )
    found = signed_in(serving(interface), tmp_path, library, generation)
    assert entity_of(found["claims"]) == "209900042K"
    assert found["userinfo"]["sub"] == found["claims"]["sub"]
    assert roles(found["userinfo"], interface) == ROLES
    today = datetime.now(UTC).date().isoformat()
    results[library][generation] = {"date": today, **LIBRARIES[library].run()}


@in_matrix(*((name, generation) for name, each in LIBRARIES.items() for generation in each.impossible))
def test_a_generation_that_a_library_cannot_speak_is_refused(
    serving: Serving, tmp_path: Path, library: str, generation: str
) -> None:
    """docs/libraries.md: what the page calls impossible ends before the code; some programs say so at once."""
    running = serving(INTERFACES[generation])
    with pytest.raises((EndedEarlyError, RefusedByProgramError, DeadEndError)):
        signed_in(running, tmp_path, library, generation)
    assert "token" not in [name for name, _ in running.wire.exchanges]


@each_library
def test_userinfo_that_was_not_signed_like_this_is_refused(
    serving: Serving, tmp_path: Path, library: str, generation: str
) -> None:
    """OpenID Connect Core §5.3.4: what the page shows verifies the signature, or its row says that it does not."""
    running = serving(INTERFACES[generation])
    running.wire.responses |= {"userinfo": forged_payload, "authorization-info": forged_payload}
    with pytest.raises(RefusedByProgramError):
        signed_in(running, tmp_path, library, generation)
    assert (INTERFACES[generation].userinfo.name, 200) in running.wire.exchanges


@each_library
def test_an_id_token_of_another_key_is_refused(serving: Serving, tmp_path: Path, library: str, generation: str) -> None:
    """OpenID Connect Core §3.1.3.7: its signature is compared with the published keys."""
    running = serving(INTERFACES[generation])
    running.wire.responses |= {"keys": member("keys", other_key)}
    with pytest.raises(RefusedByProgramError):
        signed_in(running, tmp_path, library, generation)
    assert [status for name, status in running.wire.exchanges if name == "token"] == [200]


@each_library
def test_a_callback_of_another_sign_in_is_refused(
    serving: Serving, tmp_path: Path, library: str, generation: str
) -> None:
    """RFC 6749 §10.12: `state` is compared before the code is redeemed."""
    running = serving(INTERFACES[generation])
    with pytest.raises(RefusedByProgramError):
        signed_in(running, tmp_path, library, generation, change=lambda callback: callback.replace("state=", "state=x"))
    names = [name for name, _ in running.wire.exchanges]
    assert "authorize" in names
    assert "token" not in names


@in_matrix(*((name, "current") for name, each in LIBRARIES.items() if "current" in each.speaks))
def test_a_server_nonce_is_taken_up_by_the_pieces_that_say_so(
    serving: Serving, tmp_path: Path, library: str, generation: str
) -> None:
    """RFC 9449 §8: with `dpop_nonces` the first request of a sign-in is refused."""
    running = serving(INTERFACES[generation], dpop_nonces=True)
    if LIBRARIES[library].repeats_with_nonce:
        assert entity_of(signed_in(running, tmp_path, library, generation)["claims"]) == "209900042K"
    else:
        with pytest.raises(EndedEarlyError):
            signed_in(running, tmp_path, library, generation)
    assert ("request", 400) in running.wire.exchanges
