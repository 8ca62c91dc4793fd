"""Files with what people own: of their owner alone, whole or not there (D57, docs/directory.md)."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from corpid.stores import private_files


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def open_umask() -> object:
    """As the most careless shell would have it."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_a_file_that_others_could_read_is_replaced_by_one_of_its_owner_alone(tmp_path: Path) -> None:
    """Who has the old one open goes on reading the old one."""
    file = tmp_path / "export.yaml"
    file.write_bytes(b"old")
    file.chmod(0o666)
    with file.open("rb") as opened:
        private_files.replace(file, b"new")
        assert opened.read() == b"old"
    assert (file.read_bytes(), mode(file)) == (b"new", 0o600)
    assert [each.name for each in tmp_path.iterdir()] == ["export.yaml"]


def test_the_target_of_a_link_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "today.yaml").write_bytes(b"old")
    link = tmp_path / "current.yaml"
    link.symlink_to("today.yaml")
    private_files.replace(link, b"new")
    assert link.is_symlink()
    assert ((tmp_path / "today.yaml").read_bytes(), mode(tmp_path / "today.yaml")) == (b"new", 0o600)


def test_a_pipe_is_written_itself(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    private_files.replace(pipe, b"new")
    reader.join(10)
    assert read == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_the_name_of_a_pipe_that_is_open_is_written_through() -> None:
    """As in `corpid export /dev/fd/3`: such a name links to what is no path."""
    read, write = os.pipe()
    private_files.replace(Path(f"/dev/fd/{write}"), b"new")
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"new"


@pytest.mark.parametrize("before", [b"", b"earlier "])
def test_standard_output_is_continued_wherever_it_leads(tmp_path: Path, before: bytes) -> None:
    """As in `corpid export /dev/stdout >> FILE`, and `| COMMAND`."""
    run = "from pathlib import Path; from corpid.stores import private_files as p; p.replace(Path('/dev/stdout'), b'new'); print()"
    file = tmp_path / "all.yaml"
    file.write_bytes(before)
    with file.open("ab") as output:
        subprocess.run([sys.executable, "-c", run], stdout=output, check=True)
    assert file.read_bytes() == before + b"new\n"
    assert subprocess.check_output([sys.executable, "-c", run]) == b"new\n"


def test_a_new_file_takes_its_name_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    with private_files.new_file(file) as opened:
        opened.write(b"whole")
        assert not file.exists()
        [draft] = tmp_path.iterdir()
        assert mode(draft) == 0o600
    assert (file.read_bytes(), mode(file), [*tmp_path.iterdir()]) == (b"whole", 0o600, [file])


def test_a_new_file_replaces_nothing_and_leaves_nothing_when_it_fails(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    with pytest.raises(ZeroDivisionError), private_files.new_file(file) as opened:
        opened.write(bytes(1 // len(b"")))
    assert [*tmp_path.iterdir()] == []
    file.write_bytes(b"old")
    with pytest.raises(FileExistsError), private_files.new_file(file):
        raise AssertionError
    file.unlink()
    with pytest.raises(FileExistsError), private_files.new_file(file) as opened:
        file.write_bytes(b"somebody else's")
    assert [(each, each.read_bytes()) for each in tmp_path.iterdir()] == [(file, b"somebody else's")]
