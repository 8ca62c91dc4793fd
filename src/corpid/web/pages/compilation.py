"""Compiled templates, kept where Python keeps the compiled modules of this package.

Compiling them takes longer than loading every module of a server. Whoever can write to that folder, or to a file in it,
can change the program: a file is taken only if nobody else can. docs/decisions/0036
"""

from __future__ import annotations

import marshal
import os
import stat
import sys
import tempfile
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import resources
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import babel
import jinja2
from jinja2.bccache import Bucket, BytecodeCache

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.resources.abc import Traversable
    from types import CodeType


_DIGEST_BYTES: Final = 32
_ALL: Final = "all"
"""the file that says that there is one for each template"""
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_IN_MEMORY: Final[dict[bytes, CodeType]] = {}
"""for this process's next renderer"""


class CompiledTemplates(BytecodeCache):
    """The compiled templates of one language, in memory and in files.

    `tag` names the language, and with it the catalogues of `packages`, whose texts stand in them; empty if none do.
    """

    def __init__(self, tag: str, packages: tuple[str, ...] = ("corpid",)) -> None:
        further = (each for each in packages[1:] if _catalogue(each, tag).is_file())
        self._name = "-".join((tag, *further))
        """of the files: servers with and without a further catalogue keep their own"""
        self._basis = _basis(tag, packages)

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take what was compiled from the same sources by the same programs."""
        sources = self._sources(bucket)
        code = _IN_MEMORY.get(sources) or _read(_path(self._name, bucket.key), sources)
        if code is not None:
            _IN_MEMORY[sources] = bucket.code = code

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled.

        Only in memory if Python writes no compiled modules, or others could write to the folder.
        """
        sources, code = self._sources(bucket), cast("CodeType", bucket.code)
        _IN_MEMORY[sources] = code
        if not sys.dont_write_bytecode:
            with suppress(OSError):  # no right to write there, or a read-only disk
                _write(_path(self._name, bucket.key), sources, code)

    def _sources(self, bucket: Bucket) -> bytes:
        return sha256(self._basis + f"{bucket.key} {bucket.checksum}".encode()).digest()

    def are_complete(self) -> bool:
        """Return whether every template is in a file."""
        return _read(_path(self._name, _ALL), self._every_source()) is not None

    def note_complete(self) -> None:
        """Note that every template was compiled."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                _write(_path(self._name, _ALL), self._every_source(), compile("", _ALL, "exec"))

    def _every_source(self) -> bytes:
        templates = Path(str(resources.files("corpid"))) / "web" / "templates"
        found = sha256(self._basis)
        for path in sorted(templates.rglob("*.html")):
            content = path.read_bytes()
            found.update(f"{path.relative_to(templates)} {len(content)} ".encode() + content)
        return found.digest()


def _path(name: str, key: str) -> Path:
    return folder() / Path(cache_from_source(f"{name}-{key}.py")).name


def _catalogue(package: str, tag: str) -> Traversable:
    return resources.files(package).joinpath("locales", f"{tag}.po")


def folder() -> Path:
    """The folder of compiled templates, which need not exist."""
    return Path(cache_from_source(__file__)).parent / "templates"


@cache
def _basis(tag: str, packages: tuple[str, ...]) -> bytes:
    """A hash of what is compiled with a template.

    Constants go through filters and translations when a template is compiled, so their code belongs to it.
    """
    package = resources.files("corpid")
    found = sha256(MAGIC_NUMBER + f"{jinja2.__version__} {babel.__version__} {tag}".encode())
    pages = sorted(package.joinpath("web", "pages").iterdir(), key=lambda each: each.name)
    catalogues = [_catalogue(each, tag) for each in packages]
    programs = (package.joinpath("texts.py"), *(each for each in pages if each.name.endswith(".py")))
    for file in (*programs, *(each for each in catalogues if each.is_file())):
        content = file.read_bytes()
        found.update(f"{file.name} {len(content)} ".encode() + content)
    return found.digest()


def _read(path: Path, sources: bytes) -> CodeType | None:
    """A compiled template.

    None if there is none of these sources, or others could have written it.
    """
    try:
        if not _is_own(path.parent.lstat(), stat.S_ISDIR):
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
            if not _is_own(os.fstat(descriptor), stat.S_ISREG):
                return None
            digest, compiled = file.read(_DIGEST_BYTES), file.read()
    except OSError:
        return None
    if digest != sha256(sources + compiled).digest():
        return None
    return cast("CodeType", marshal.loads(compiled))  # noqa: S302 - of this package's folder, and nobody else's


def _write(path: Path, sources: bytes, code: CodeType) -> None:
    """Write a file whole, as other processes do at the same time."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    if not _is_own(path.parent.lstat(), stat.S_ISDIR):
        return
    compiled = marshal.dumps(code)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
        temporary = Path(file.name)
        try:
            file.write(sha256(sources + compiled).digest() + compiled)
            temporary.chmod(0o644)
            file.flush()
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def _is_own(found: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    """Return whether nobody else can write to it.

    Nobody except those who can change the program anyway: its owner, this user and root.
    """
    owners = (0, os.geteuid(), Path(__file__).stat().st_uid)
    return is_kind(found.st_mode) and found.st_uid in owners and not found.st_mode & _WRITABLE_BY_OTHERS
