"""New relying parties, made from the examples and registered at a demo.

Each has keys of its own, and its values as the defaults of the program. Source: D66
"""

from __future__ import annotations

import os
import re
import shlex
import socket
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final

from corpid.web.pages.snippets import EXAMPLES, Example
from corpid_dev.demo import example_files
from corpid_dev.developer_api import DeveloperApi, NotDone
from corpid_dev.hosting import FIRST_PORT, PROVIDER_HOST
from corpid_dev.relying_party.interfaces import CURRENT, INTERFACES
from corpid_dev.relying_party.jwt import RelyingPartyKeys
from corpid_dev.web.paths import CLIENTS_PATH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


HOST: Final = "127.0.0.1"
DEFAULT_ISSUER: Final = f"http://{PROVIDER_HOST}:{FIRST_PORT}"
KEYS: Final = "keys.json"
README: Final = "README.md"
FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "node": ("rp.mjs", "package.json", "package-lock.json", ".gitignore"),
    "python": ("rp.py", ".gitignore"),
    "go": ("main.go", "go.mod", "go.sum", ".gitignore"),
    "java": ("RelyingParty.java", "pom.xml", ".gitignore"),
}
"""language → files of its folder in `examples/`, the program first; pyproject.toml packs them"""
_AS_EXAMPLES_READ: Final[Mapping[str, object]] = {"userinfo_encryption_enc": "none", "stringified_blocks": False}
"""members of a client, whatever a preset gives new clients"""
_WHERE_OPTIONAL: Final[Mapping[str, object]] = {
    "id_token_encryption_alg": "ECDH-ES+A256KW",
    "userinfo_signing_alg": "ES256",
}
"""further members if a generation encrypts ID tokens, and signs userinfo, only as registered"""
_PLAIN_URL: Final = re.compile(r"https?://[A-Za-z0-9.:/_\[\]-]+")
"""what can stand in a source text of any language"""
_NAME_CHARACTERS: Final = 48
_LAST_PORT: Final = 65535


class FilesExist(Exception):
    """Files are in the way; nothing was written."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRp:
    """A relying party that was written and registered."""

    folder: Path
    example: Example
    issuer: str
    generation: str
    client_id: str
    port: int
    files: tuple[str, ...]
    authority: Path | None = None
    """the file of the authority that it must trust; None: the usual ones"""

    @property
    def language(self) -> str:
        """Its name in FILES."""
        return self.example.folder

    @property
    def program(self) -> str:
        """The file of the program."""
        return FILES[self.language][0]

    @property
    def spoken(self) -> str:
        """The value of GENERATION.

        What the examples do for `current` suits every generation but legacy.
        """
        return CURRENT.name if INTERFACES[self.generation].pushed else self.generation

    @property
    def home(self) -> str:
        """Its own address."""
        return f"http://{HOST}:{self.port}"

    @property
    def page(self) -> str:
        """The page of the client at the demo."""
        return f"{self.issuer}{CLIENTS_PATH}/client/{self.client_id}"

    @property
    def start(self) -> str:
        """The command that starts it, in its folder."""
        trusted = ""
        if self.authority and self.example.trusts:
            trusted = f"{self.example.trusts}={shlex.quote(str(self.authority.resolve()))} "
        return " && ".join(filter(None, [*self.example.prepare.splitlines(), trusted + self.example.run]))


async def create(
    api: DeveloperApi,
    folder: Path,
    *,
    language: str,
    client_id: str = "",
    port: int = 0,
    authority: Path | None = None,
) -> NewRp:
    """Write a relying party to a folder and register it.

    Without a client_id it is the folder's name, and without a port the example's; the next one if another client has
    it. `authority` is a file that it must trust, for a demo with --tls. If it cannot be registered, no file is left.
    Raises FilesExist, NotDone, OSError. Source: D66
    """
    served = await api.clients()
    made = _planned(api.issuer, served, folder, language=language, client_id=client_id, port=port)
    made = replace(made, authority=authority)
    with _written(made) as keys:
        own = {
            "client_id": made.client_id,
            "name": made.client_id,
            "redirect_uris": [f"{made.home}/callback"],
            "jwks": keys.public(),
        }
        optional = {} if INTERFACES[made.generation].id_token_enc else _WHERE_OPTIONAL
        await api.register({**served["new_client"], **_AS_EXAMPLES_READ, **optional, **own})
    return made


def _planned(
    issuer: str, served: Mapping[str, Any], folder: Path, *, language: str, client_id: str, port: int
) -> NewRp:
    """A relying party that is not written yet."""
    files = (*FILES[language], README, KEYS, f"{KEYS}.public")
    in_the_way = [each for each in files if os.path.lexists(folder / each)]
    if in_the_way:
        raise FilesExist(in_the_way)
    taken = {each["client_id"] for each in served["clients"]}
    if client_id in taken:
        raise NotDone(
            f"{issuer} has a client {client_id} already: choose another identifier with --client-id, or remove that "
            f"client at {issuer}{CLIENTS_PATH}/client/{client_id}"
        )
    if not _PLAIN_URL.fullmatch(served["issuer"]):
        raise NotDone(f"{issuer}: this is not a demo")
    example = next(each for each in EXAMPLES if each.folder == language)
    return NewRp(
        folder=folder,
        example=example,
        issuer=served["issuer"],
        generation=served["generations"][-1],
        client_id=client_id or _free_identifier(folder.resolve().name, language, taken),
        port=port or _free_port(example.port, served["clients"]),
        files=files,
    )


@contextmanager
def _written(made: NewRp) -> Iterator[RelyingPartyKeys]:
    """The new files; they are removed if what follows fails."""
    texts = {name: example_files.content(f"{made.language}/{name}").decode() for name in FILES[made.language]}
    texts[made.program] = _with_values(texts[made.program], made)
    texts[README] = _readme(made)
    keys_file = made.folder / KEYS
    written: list[Path] = []
    is_new = not made.folder.exists()
    made.folder.mkdir(parents=True, exist_ok=True)
    try:
        for name, text in texts.items():
            with (made.folder / name).open("x", encoding="utf-8") as file:
                written.append(made.folder / name)
                file.write(text)
        keys, public = RelyingPartyKeys.written_to(keys_file)
        written += (keys_file, public)
        yield keys
    except BaseException:
        for each in written:
            each.unlink(missing_ok=True)
        if is_new:
            with suppress(OSError):  # somebody else has put a file there
                made.folder.rmdir()
        raise


def _with_values(source: str, made: NewRp) -> str:
    """The program with this client's values as its defaults."""
    values = {
        "ISSUER": (DEFAULT_ISSUER, made.issuer),
        "CLIENT_ID": (f"{made.language}-rp", made.client_id),
        "PORT": (str(made.example.port), str(made.port)),
        "GENERATION": (CURRENT.name, made.spoken),
    }
    for name, (default, value) in values.items():
        source = re.sub(rf"(\b{name}\b.*?){re.escape(default)}", rf"\g<1>{value}", source, count=1)
    return source


def _free_identifier(wanted: str, language: str, taken: Collection[str]) -> str:
    """An identifier like the folder's name, which no client has."""
    base = re.sub("[^A-Za-z0-9._-]+", "-", wanted).strip("-.")[:_NAME_CHARACTERS] or f"{language}-rp"
    return next(each for each in chain((base,), (f"{base}-{number}" for number in count(2))) if each not in taken)


def _free_port(first: int, clients: Iterable[Mapping[str, Any]]) -> int:
    """The first unused port from this one on.

    Nothing listens on it, and no client has it in a redirect URI.
    """
    uris = " ".join(chain.from_iterable(each["redirect_uris"] for each in clients))
    taken = {int(port) for port in re.findall(r"//(?:127\.0\.0\.1|localhost|\[::1\]):([0-9]{1,5})\b", uris)}
    return next(port for port in range(first, _LAST_PORT) if port not in taken and _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _readme(made: NewRp) -> str:
    return f"""# {made.client_id}

A relying party of CorpID, in `{made.program}`. Start it here, while `corpid demo` runs:

```sh
{made.start}
```

Open {made.home}/login. Below the form of the sign-in page, one click signs a test person in. The page that follows says
*Signed in*, with the claims of the ID token and of userinfo.

| Variable | Value here | |
|---|---|---|
| `ISSUER` | `{made.issuer}` | CorpID |
| `CLIENT_ID` | `{made.client_id}` | registered: {made.page} |
| `PORT` | `{made.port}` | the redirect URI `{made.home}/callback` is registered with it |
| `GENERATION` | `{made.spoken}` | `legacy` for that generation, `current` for every other |
| `KEYS` | `{KEYS}` | the private keys: keep the file as you keep a password. `{KEYS}.public` is registered |

The values are defaults in the program; the environment changes them. A demo that was started with `--fresh` no longer knows this
client: register it again at {made.issuer}{CLIENTS_PATH} with `{KEYS}.public`.

Next: `corpid rp-check{"" if made.issuer == DEFAULT_ISSUER else f" --developer {made.issuer}"} {made.home}/login` tries what can go wrong.
"""
