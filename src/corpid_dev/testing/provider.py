"""A provider in a separate process, with methods for tests.

Nothing of it runs in the process of the tests: their logging, event loop, warnings, patched clock and patched HTTP
clients neither reach the provider nor are touched by it. Both processes speak JSON lines over pipes.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from corpid_dev.relying_party.verification import Callback

PATIENCE_SECONDS: Final = 90.0
"""for one answer, the start included; then the process is ended"""
ERROR_CHARACTERS: Final = 4000


class OperationError(Exception):
    """The provider cannot do what a test asked; the message says why."""


class Options(TypedDict, total=False):
    """The arguments of `running`."""

    directory: Mapping[str, Any] | str | os.PathLike[str] | None
    generations: Sequence[str]
    preset: str
    settings: Mapping[str, Any] | None
    tls: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person of the directory who can sign in."""

    user_name: str
    name: str
    password: str
    entities: tuple[str, ...]
    """identifiers of the entities they act for"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A registered relying party.

    The keys are private JWKs (RFC 7517), or None if the test brought its own.
    """

    client_id: str
    issuer: str
    redirect_uris: tuple[str, ...]
    signing_key: dict[str, Any] | None
    encryption_key: dict[str, Any] | None


class Provider:
    """A running provider in developer mode, with a directory of its own.

    Its methods may be called from any thread, one after the other.
    """

    def __init__(self, process: subprocess.Popen[str], errors: IO[str], arguments: Mapping[str, Any]) -> None:
        self._process = process
        self._errors = errors
        self._lock = threading.Lock()
        started = self._ask("start", **arguments)
        self.issuer: Final = str(started["issuer"])
        """the base URL; discovery is at /.well-known/openid-configuration under it"""
        self.ca_file: Final = Path(started["ca_file"]) if started["ca_file"] else None
        """with `tls`, the authority to trust (PEM); it is gone when the provider ends"""

    @property
    def people(self) -> dict[str, Person]:
        """User name → person, in the order of the directory."""
        listed = self._ask("people")
        return {each["user_name"]: Person(**{**each, "entities": tuple(each["entities"])}) for each in listed}

    def add_client(
        self,
        client_id: str,
        *,
        redirect_uris: Sequence[str],
        jwks: Mapping[str, Any] | None = None,
        jwks_uri: str | None = None,
        **members: Any,  # noqa: ANN401 - the keys of `clients` in docs/directory.md
    ) -> Client:
        """Register a relying party, or change one.

        Without `jwks` and `jwks_uri` keys are made for it. By default it may ask for every scope and reads the roles of
        every service; `members` are further keys of a client in docs/directory.md. Raises OperationError.
        """
        given = {"jwks": jwks, "jwks_uri": jwks_uri, "redirect_uris": list(redirect_uris), **members}
        keys = self._ask("add_client", client_id=client_id, members={k: v for k, v in given.items() if v is not None})
        return Client(client_id=client_id, issuer=self.issuer, redirect_uris=tuple(redirect_uris), **keys)

    def apply(self, directory: Mapping[str, Any] | str | os.PathLike[str]) -> None:
        """Change the directory as `corpid apply` does.

        Whoever is new without password or TOTP secret gets them. Raises OperationError.
        """
        self._ask("apply", **_document(directory))

    def sign_in(self, authorize_url: str, user: str, entity: str | None = None, *, agree: bool = True) -> Callback:
        """Sign a person in with a new browser; the callback.

        Nothing opens the callback. `authorize_url` is what the relying party would redirect a browser to. `entity` is
        the one to act for, by default the first that is offered. Without `agree` the person cancels if consent is
        asked. The callback is text; with `response_mode=form_post` its `form` has the posted fields. A third sign-in of
        one person in 30 seconds waits for a new code. Raises OperationError with what the page says.
        """
        return _callback(self._ask("sign_in", url=authorize_url, user=user, entity=entity, agree=agree))

    async def async_sign_in(
        self, authorize_url: str, user: str, entity: str | None = None, *, agree: bool = True
    ) -> Callback:
        """Do what `sign_in` does, without stopping the event loop."""
        return await asyncio.to_thread(self.sign_in, authorize_url, user, entity, agree=agree)

    def cancel(self, authorize_url: str) -> Callback:
        """Press Cancel on the first page; the callback with `access_denied`. Raises OperationError."""
        return _callback(self._ask("cancel", url=authorize_url))

    def code(self, user: str) -> str:
        """An unused code of a person's authenticator.

        For a browser of your own. Raises OperationError.
        """
        return str(self._ask("code", user=user))

    def advance(self, seconds: float) -> None:
        """Move the provider's clock forward; it never goes back.

        Only the provider's: the relying party's assertions and proofs are refused when both are too far apart.
        """
        self._ask("advance", seconds=seconds)

    @property
    def log(self) -> list[dict[str, Any]]:
        """The log so far, with the exact reason of each refusal."""
        return [json.loads(line) for line in self._ask("log")]

    def _ask(self, command: str, **arguments: Any) -> Any:  # noqa: ANN401 - as the command answers
        with self._lock:
            with suppress(OSError, ValueError):  # it has ended, which the answer shows
                if self._process.stdin:
                    self._process.stdin.write(json.dumps([command, arguments], default=str) + "\n")
                    self._process.stdin.flush()
            return self._answer()

    def _answer(self) -> Any:  # noqa: ANN401 - as the command answers
        late = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        late.start()
        try:
            line = self._process.stdout.readline() if self._process.stdout else ""
        except ValueError:  # the pipe is closed
            line = ""
        finally:
            late.cancel()
        if not line:
            raise OperationError(f"the provider is not running{self._complaint()}")
        answer = json.loads(line)
        if "problem" in answer:
            raise OperationError(answer["problem"])
        return answer["result"]

    def _complaint(self) -> str:
        with suppress(ValueError, OSError):
            self._errors.seek(0)
            text = self._errors.read()[-ERROR_CHARACTERS:].strip()
            return f":\n{text}" if text else ""
        return ""


@contextmanager
def running(
    directory: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    generations: Sequence[str] = ("current",),
    preset: str = "",
    settings: Mapping[str, Any] | None = None,
    tls: bool = False,
) -> Iterator[Provider]:
    """Run a provider until the context ends.

    It listens on a free port of this machine. `directory` is plain data or the path of a file, both in the form of
    docs/directory.md, by default that of the demo. `generations`, `preset` and further `settings` are those of
    docs/settings.md. With `tls` the issuer is https, and `ca_file` of the provider is what to trust. Raises
    OperationError.
    """
    arguments = {
        **_document(directory),
        "generations": list(generations),
        "preset": preset,
        "settings": dict(settings or {}),
        "tls": tls,
    }
    # settings of this shell or folder are not the test's
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CORPID_")}
    command = [sys.executable, "-P", "-m", "corpid_dev.testing.server"]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(  # noqa: S603 - this program itself
            command,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            text=True, encoding="utf-8", env=environment, cwd="/", start_new_session=True,
        ) as process,
    ):  # fmt: skip
        try:
            yield Provider(process, errors, arguments)
        finally:
            if process.stdin:
                with suppress(OSError):
                    process.stdin.close()  # at which it ends by itself
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _document(directory: Mapping[str, Any] | str | os.PathLike[str] | None) -> dict[str, str | None]:
    if directory is None:
        return {"name": None, "content": None}
    if isinstance(directory, str | os.PathLike):
        try:
            return {"name": os.fspath(directory), "content": Path(directory).read_text(encoding="utf-8")}
        except OSError as error:
            raise OperationError(f"the directory {os.fspath(directory)} cannot be read: {error.strerror}") from error
    return {"name": "directory", "content": json.dumps(directory, default=str, indent=1)}


def _callback(answer: Mapping[str, Any]) -> Callback:
    # It needs a cryptographic library, which not every test does.
    from corpid_dev.relying_party.verification import Callback  # noqa: PLC0415

    form = answer["form"]
    return Callback(answer["url"], None if form is None else [(name, value) for name, value in form])
