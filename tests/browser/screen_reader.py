"""`make screen-reader`: the main pages as Orca reads them aloud in Chromium, from its own log, into build/screen-reader.txt.

Orca, a window manager and Chromium run in an X server without a screen, with a bus, a home and a speech synthesizer of their
own that makes no sound. It takes three minutes and is no test: what a screen reader says differs from one version of it to the next.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from playwright.sync_api import Page, sync_playwright

from tests.browser.gallery import served
from tests.browser.stage import CHROMIUM, FLAGS
from tests.house.source import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator


WRITTEN: Final = ROOT / "build" / "screen-reader.txt"
NEEDED: Final = ("orca", "speech-dispatcher", "openbox", "Xvfb", "xvfb-run", "dbus-run-session", "xdotool")
PACKAGES: Final = "orca speech-dispatcher at-spi2-core openbox xvfb xauth dbus xdotool chromium"
INSIDE: Final = "inside"
PAGES: Final[dict[str, tuple[str, ...]]] = {
    "sign-in": ("Tab", "Tab", "Tab", "space", "Tab"),
    "sign-in-refused": ("Tab", "Tab", "Tab"),
    "sign-in-warned": (),
    "code": ("Tab", "Tab"),
    "code-refused": ("Tab", "Tab"),
    "choose": ("Tab", "Down", "Tab"),
    "consent": ("Tab", "Tab"),
    "account": ("Tab", "Tab"),
}
"""the keys that are pressed on each page, once it has been read"""
SPEECH: Final = re.compile(r"([0-9:.]+) - SPEECH OUTPUT: '(.*?)'(?:\[?\{.*)?$")
SPEAKER: Final = 'LogLevel 3\nLogDir "default"\nAddModule "dummy" "sd_dummy" ""\nDefaultModule dummy\n'
WINDOW_SECONDS: Final = 6
PAGE_SECONDS: Final = 12
KEY_SECONDS: Final = 3


@contextmanager
def running(*command: str) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()  # nothing of theirs is kept, and Orca takes its time to end
        process.wait(10)


def read(page: Page, address: str) -> Iterator[tuple[str, str]]:
    """Open each page and press its keys; what was done, and the time of day at which it was, as Orca writes it."""
    for state, keys in PAGES.items():
        yield f"\n== {state}\n", f"{datetime.now():%T.%f}"  # noqa: DTZ005 - Orca's log is in local time
        page.goto(f"{address}/en/{state}")
        time.sleep(PAGE_SECONDS)
        for key in keys:
            yield f"[{key}] ", f"{datetime.now():%T.%f}"  # noqa: DTZ005
            subprocess.run(["xdotool", "key", key], check=True)
            time.sleep(KEY_SECONDS)
    # Orca writes its log a block at a time: another page pushes out the last words
    yield "\n== the end\n", f"{datetime.now():%T.%f}"  # noqa: DTZ005
    page.goto(f"{address}/en/consent")
    time.sleep(PAGE_SECONDS)


def heard(log: Path, done: list[tuple[str, str]]) -> Iterator[str]:
    """For each thing that was done but the last, what was said from then on."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    said = [(found[1], found[2].strip()) for line in lines if (found := SPEECH.match(line))]
    for (label, since), (_, until) in pairwise(done):
        words = [text for at, text in said if since <= at < until and text not in ("", "tab", "space")]
        yield label + " | ".join(words)


def inside(folder: Path) -> None:
    """Within the X server and the bus."""
    log = folder / "orca.log"
    home = folder / ".config" / "speech-dispatcher"
    home.mkdir(parents=True)
    (home / "speechd.conf").write_text(SPEAKER, encoding="utf-8")
    subprocess.run(["gsettings", "set", "org.gnome.desktop.interface", "toolkit-accessibility", "true"], check=True)
    with ExitStack() as stack:
        stack.enter_context(running("openbox"))
        stack.enter_context(running("/usr/libexec/at-spi-bus-launcher", "--launch-immediately"))
        stack.enter_context(running("speech-dispatcher", "-s", "-t", "0"))
        time.sleep(1)
        stack.enter_context(running("orca", "--replace", "--debug-file", str(log)))
        time.sleep(WINDOW_SECONDS)
        address = stack.enter_context(served())
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, headless=False, args=[*FLAGS, "--force-renderer-accessibility"]
        )
        version = subprocess.run(["orca", "--version"], check=True, capture_output=True, text=True).stdout.strip()
        lines = [f"Orca {version}, Chromium {browser.version}, {datetime.now(UTC):%Y-%m-%d}"]
        page = browser.new_page()
        page.goto(f"{address}/en/signed-out")
        time.sleep(WINDOW_SECONDS)
        # from the address bar into the page
        subprocess.run(["xdotool", "mousemove", "500", "500", "click", "1"], check=True)
        time.sleep(KEY_SECONDS)
        lines += heard(log, list(read(page, address)))
        browser.close()
    WRITTEN.parent.mkdir(exist_ok=True)
    WRITTEN.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    """Read the pages aloud."""
    if missing := [each for each in NEEDED if shutil.which(each) is None]:
        sys.stderr.write(f"missing: {', '.join(missing)}. Run: apt-get install --no-install-recommends {PACKAGES}\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        runtime = Path(folder) / "run"
        runtime.mkdir(mode=0o700)
        own = {"HOME": folder, "XDG_CONFIG_HOME": f"{folder}/.config", "XDG_RUNTIME_DIR": str(runtime)}
        command = ["xvfb-run", "-a", "dbus-run-session", "--", sys.executable, "-m", __spec__.name, INSIDE, folder]
        subprocess.run(command, check=True, env={**os.environ, **own}, stdout=subprocess.DEVNULL, timeout=900)
    sys.stdout.write(WRITTEN.read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == [INSIDE]:
        inside(Path(sys.argv[2]))
    else:
        sys.exit(main())
