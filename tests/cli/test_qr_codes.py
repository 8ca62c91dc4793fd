"""A QR code on a terminal, which a camera has to read."""

from __future__ import annotations

import pytest
import segno

from corpid.cli import output

LINK = "https://192.0.2.2:8401/?key=r6vYdpaHWDygKZobMrSS-HahB1fcwTYZ0xsltCZTIOw"
LIGHT_FIRST = {"█": "00", "▀": "01", "▄": "10", " ": "11"}


@pytest.mark.parametrize("text", [LINK, "x", LINK * 2])
def test_every_module_is_there_with_its_quiet_zone(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """ISO/IEC 18004: four light modules around; two rows of modules are one line."""
    output.qr_code(text)
    lines = capsys.readouterr().out.splitlines()
    seen = ["".join(LIGHT_FIRST[each][half] for each in line) for line in lines for half in (0, 1)]
    wanted = ["".join(map(str, row)) for row in segno.make_qr(text, error="l").matrix_iter(border=4)]
    assert seen[: len(wanted)] == wanted
    assert set("".join(seen[len(wanted) :])) <= {"0"}


def test_colours_are_set_and_not_the_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Light on dark in a light terminal, too."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    output.qr_code(LINK)
    assert all(line.startswith("\x1b[97;40m") for line in capsys.readouterr().out.splitlines())


def test_a_narrow_terminal_gets_a_line_instead(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A code whose lines break cannot be read."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    output.qr_code(LINK)
    printed = capsys.readouterr().out
    assert "wider terminal" in printed
    assert "█" not in printed
