"""nginx and HAProxy from Debian's packages, with the configurations under deploy/ and other ports and paths in them."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from tests.engines import IN_CI
from tests.house.source import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.operate.certificates import Certified

    Change = Callable[[str], str]

START_SECONDS: Final = 60.0
SHIPPED: Final = {
    "nginx": ROOT / "deploy" / "nginx" / "corpid.conf",
    "haproxy": ROOT / "deploy" / "haproxy" / "haproxy.cfg",
}
PROGRAMS: Final = {name: shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") for name in SHIPPED}
_AROUND: Final = """
daemon off; {user} pid {directory}/nginx.pid; error_log {directory}/error.log;
events {{ worker_connections 256; }}
http {{
    client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy; fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;
    include {directory}/corpid.conf;
}}
"""


def program(name: str) -> str:
    """Where the proxy is; in CI it must be there."""
    path = PROGRAMS[name]
    if path is None and IN_CI:
        pytest.fail(f"{name} is missing, and in CI its tests must run")
    if path is None:
        pytest.skip(f"tests with {name} were left out: it is missing (`make setup-test` says more)")
    return path


def adapted(name: str, certified: Certified, *, ports: tuple[int, int], nodes: Sequence[int], directory: Path) -> str:
    """The shipped configuration with what its reader has to change, changed; `ports` are those of https and http."""
    secure, plain = ports
    text = SHIPPED[name].read_text(encoding="utf-8")
    replaced = {
        "10.0.0.11:8080": f"127.0.0.1:{nodes[0]}",
        "10.0.0.12:8080": f"127.0.0.1:{nodes[1]}",
        "listen 443": f"listen 127.0.0.1:{secure}",
        "listen 80": f"listen 127.0.0.1:{plain}",
        "bind :443": f"bind 127.0.0.1:{secure}",
        "bind :80": f"bind 127.0.0.1:{plain}",
        "server_name login.example.org": "server_name localhost",
        "https://login.example.org": f"https://localhost:{secure}",
        "/etc/ssl/private/login.example.org.key": str(certified.key),
        "/etc/ssl/login.example.org.pem": str(certified.chain),
        "/etc/haproxy/login.example.org.pem": str(certified.both),
        "/etc/nginx/corpid-down.map": str(SHIPPED["nginx"].with_name("corpid-down.map")),
        "/etc/haproxy/corpid-down.map": str(SHIPPED["haproxy"].with_name("corpid-down.map")),
        "/var/log/nginx/corpid.log": str(directory / "access.log"),
        "    maxconn 20000\n": "    maxconn 200\n",
        "    log /dev/log local0\n": "    log stdout format raw local0\n",
    }
    for shipped, own in replaced.items():
        text = text.replace(shipped, own)
    if name == "haproxy":
        text = re.sub(r"^    (user|group) haproxy\n", "", text, flags=re.MULTILINE)
    return text


@contextmanager
def proxy(
    name: str,
    directory: Path,
    certified: Certified,
    *,
    ports: tuple[int, int],
    nodes: Sequence[int],
    change: Change = str,
) -> Iterator[Path]:
    """A running proxy and the file that it was told by; `change` breaks something in that file."""
    directory.mkdir()
    path = directory / ("corpid.conf" if name == "nginx" else "haproxy.cfg")
    given = adapted(name, certified, ports=ports, nodes=nodes, directory=directory)
    told = change(given)
    assert change is str or told != given, "nothing was changed"
    path.write_text(told, encoding="utf-8")
    with (
        (directory / "output").open("wb") as output,
        subprocess.Popen(_command(name, directory), stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        try:
            for port in ports:
                _until_open(process, port, directory / "output")
            yield path
        finally:
            process.terminate()
            process.wait(START_SECONDS)


def _command(name: str, directory: Path) -> list[str]:
    if name == "haproxy":
        return [program(name), "-db", "-f", str(directory / "haproxy.cfg")]
    main = directory / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    main.write_text(_AROUND.format(directory=directory, user=user), encoding="utf-8")
    return [program(name), "-e", str(directory / "error.log"), "-c", str(main)]


def _until_open(process: subprocess.Popen[bytes], port: int, output: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    pytest.fail(f"the proxy did not start:\n{output.read_text(errors='replace')}")
