"""Commands of the developer kit, found by the entry point `corpid.commands`."""

from __future__ import annotations

from typing import Final

from corpid.cli import CommandEntry

COMMANDS: Final = {
    "demo": CommandEntry("corpid_dev.cli.demo", "demo", "Run a provider and a demo relying party, with example data."),
    "sandbox": CommandEntry(
        "corpid_dev.cli.sandbox", "app", "Faults that a running demo shows on request: orders, order, list, withdraw."
    ),
    "rp-new": CommandEntry(
        "corpid_dev.cli.rp_new",
        "rp_new",
        "Create a small complete relying party, registered at a running `corpid demo`.",
    ),
    "rp-check": CommandEntry(
        "corpid_dev.cli.rp_check", "rp_check", "Check how a relying party behaves when something is wrong."
    ),
    "testing": CommandEntry(
        "corpid_dev.cli.testing", "provider_for_tests", "Run a provider for the tests of a relying party."
    ),
}
