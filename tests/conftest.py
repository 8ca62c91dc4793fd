"""What holds for every test."""

from __future__ import annotations

import gc
import inspect
import os
import re
import shutil
import signal
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.mark.structures import get_unpacked_marks
from _pytest.runner import runtestprotocol
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

import corpid.rules.scim  # noqa: F401 - see below
from corpid import event_log
from tests import engines, quick_start
from tests.sign_in.world import World, new_world
from tests.world.session import anyio_backend, no_task_left, one_loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from _pytest.terminal import TerminalReporter


__all__ = ["anyio_backend", "no_task_left", "one_loop"]

TESTS = Path(__file__).parent
BROWSER_TESTS = TESTS / "browser"
BROWSER_MISSING = shutil.which("chromium") is None
LONG_FIRST = (
    # what takes longest, by turns what computes and what mostly waits, so that neither is left for the end
    *(
        "browser/test_access.py",
        "many/test_engine_faults.py",
        "browser/test_appearances.py",
        "many/test_client_clocks.py",
    ),
    *("bench/test_scale.py", "adapters/test_valkey_orderly_stop.py", "browser/test_heard.py", "many/test_failover.py"),
    *("bench/", "interop/test_library_matrix.py", "upgrades/test_side_by_side.py", "many/test_data_loss.py"),
    *(
        "interop/test_demo.py",
        "many/test_redis_cluster.py",
        "protocol/test_every_refusal.py",
        "many/test_orderly_stop.py",
    ),
    *("manage/test_levels.py", "adapters/test_valkey_cluster.py", "interop/test_new_rp.py", "many/"),
    *("interop/", "web/", "adapters/", "faults/", "upgrades/", "browser/", "cli/", "wheel/", "deploy/", "operate/"),
    *("house/", "fuzz/", "account/", "sign_in/", "enrolment/", "protocol/"),
)
"""what a test file's path in this folder begins with: the order in which files are begun"""
TOGETHER = re.compile(r"tests/(?:cli|house|manage|protocol|unit)/")
"""folders whose files share what is costly to make, such as worlds, compiled statements and parsed modules: one process
runs all of them"""
LONG_ALONE = re.compile(r"^pytestmark = \[?pytest\.mark\.(full|interop)\b", re.MULTILINE)
IN_CI = os.environ.get("CI") == "true"
WORTH_TELLING = 0.1
"""seconds that setting up or cleaning up takes, for a list of what is slow"""
IN_A_WORKER = "PYTEST_XDIST_WORKER" in os.environ

# Without it httpx looks through every folder of packages for this module, at each request to an application.
sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]


# Pydantic looks for the source of its models in each frame that leads to their import, and for each frame through every
# module: below the imports of a test file that takes seven times as long.


def _write_plainly(level: str, event: str, fields: dict[str, Any]) -> None:
    print(level, event, fields)


# What is logged in this process is laid out in colours for nobody, which would take a thirtieth of all tests.
event_log.log().write = _write_plainly

# How long an example takes depends on the machine, and no test asserts a duration. `make test-all` tries four times as many
# examples as `make test`.
settings.register_profile("corpid", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=25)


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all tests are collected, which stay
    settings.load_profile("quick" if _leaves_out_long(config) else "corpid")
    # A shell that starts the tests in the background lets them and their processes ignore Ctrl-C, which tests send.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if BROWSER_MISSING and IN_CI:
        msg = "Chromium is missing, and in CI tests/browser must run. `make test` as root installs it."
        raise pytest.UsageError(msg)


class _ByFileOrFolder(LoadFileScheduling):  # type: ignore[misc]
    """A scheduler by file, or by folder where files stay together."""

    def _split_scope(self, nodeid: str) -> str:
        together = TOGETHER.match(nodeid)
        return together[0] if together else str(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Keep folders together when all tests run; named folders are spread over the processes."""
    whole = config.args_source is config.ArgsSource.TESTPATHS
    return _ByFileOrFolder(config, log) if whole and config.getoption("dist") == "loadfile" else None


def _leaves_out_long(config: pytest.Config) -> bool:
    return "not full" in config.option.markexpr.replace("full or not full", "")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long first: what takes milliseconds fills the processors at the end."""
    items.sort(key=lambda item: _place(item.nodeid.partition("::")[0]))
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.function):
            item.fixturenames.insert(0, "no_task_left")


@cache
def _place(file: str) -> int:
    path = file.removeprefix("tests/")
    return next((place for place, each in enumerate(LONG_FIRST) if path.startswith(each)), len(LONG_FIRST))


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Item] | None:
    """Make nothing of a long test that is not run anyway: a table would become hundreds of them."""
    long = _leaves_out_long(collector.config) and collector.istestfunction(obj, name)
    if long and any(mark.name == "full" for mark in get_unpacked_marks(obj)):
        return []
    return None


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Drop the long rows of a table as well."""
    yield
    if _leaves_out_long(metafunc.config):
        rows = [row for row in metafunc._calls if all(mark.name != "full" for mark in row.marks)]
        metafunc._calls = rows or metafunc._calls


def pytest_collection_finish() -> None:
    """Thousands of tests are looked at by no further collection of garbage, and collections are few."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Tell the process that counts one thing of a test that passes: each report costs as much as most tests."""
    if not IN_A_WORKER:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.passed:
            if report.when != "call" and report.duration < WORTH_TELLING:
                continue
            # Nobody reads what it printed.
            report.sections.clear()
            report.keywords = {}
        item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what is not run anyway: a file of long tests alone is not even imported."""
    if BROWSER_MISSING and collection_path.is_relative_to(BROWSER_TESTS):
        return True
    if _leaves_out_long(config) and collection_path.suffix == ".py":
        return True if LONG_ALONE.search(collection_path.read_text(encoding="utf-8")) else None
    return None


@pytest.fixture(scope="module", params=engines.PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    """What speaks as Redis does, each in turn."""
    return str(request.param)


@pytest.fixture
async def made() -> AsyncIterator[World]:
    """A provider with client `rp1` and Alice, as it is when nothing has happened."""
    async with new_world() as made:
        yield made


def pytest_sessionfinish() -> None:
    engines.stop()
    quick_start.stop()


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    if BROWSER_MISSING:
        terminalreporter.write_line("tests/browser was left out: Chromium is missing (`make setup-test` says more)")
    for sentence in engines.missing():
        terminalreporter.write_line(sentence)
