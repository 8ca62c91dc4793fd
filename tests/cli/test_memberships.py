"""`corpid membership`: for whom a person acts (D50, D53, D60)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from corpid.engines import at_command_line
from tests.cli.directories import fill, last_event

if TYPE_CHECKING:
    import pytest

    from tests.cli.conftest import Terminal

BY = f"{at_command_line().by} on the command line"


def entities_of(terminal: Terminal, user: str) -> dict[str, bool]:
    held = json.loads(terminal.done("entity", "list", "--user", user, "--json"))["entities"]
    return {each["entity"]["entity_id"]: each["membership_enabled"] for each in held}


def test_a_membership_is_given_once(terminal: Terminal) -> None:
    fill(terminal)
    assert (
        terminal.done("membership", "add", "Mei", "C3", "--dry-run")
        == "+ membership: mei acts for C3\nWould be: 1 added.\n"
    )
    assert entities_of(terminal, "mei") == {}
    assert terminal.done("membership", "add", "mei", "C3") == "+ membership: mei acts for C3\nDone: 1 added.\n"
    assert terminal.done("membership", "add", "mei", "C3") == "Nothing to change.\n"
    assert terminal.look(last_event)[:2] == ("membership.add", "C3")
    assert f"Acts for C3 (Gamma) (given by {BY})." in terminal.done("user", "show", "mei")


def test_a_suspended_membership_keeps_its_roles_and_comes_back(terminal: Terminal) -> None:
    fill(terminal)
    result = terminal.run("membership", "disable", "rina", "209900042K")
    assert "enabled: true → false" in result.stdout
    assert "the entity 209900042K will have no owner who can act" in result.stderr
    assert entities_of(terminal, "rina")["209900042K"] is False
    assert "Cannot act as Approver at PERMITS" in terminal.done("user", "show", "rina")
    terminal.done("membership", "enable", "rina", "209900042K")
    assert entities_of(terminal, "rina")["209900042K"] is True
    assert "May act as Approver at PERMITS" in terminal.done("user", "show", "rina")


def test_a_membership_ends_with_its_level_and_roles_each_with_its_event(terminal: Terminal) -> None:
    """D53: a new one starts empty."""
    fill(terminal)
    shown = json.loads(terminal.done("membership", "remove", "rina", "209900042K", "--dry-run", "--json"))
    assert [change["sign"] for change in shown["changes"]] == ["-"] * 6
    assert shown["written"] is False
    result = terminal.run("membership", "remove", "rina", "209900042K")
    assert result.stdout.endswith("Done: 6 removed.\n")
    assert "the entity 209900042K will have no owner who can act" in result.stderr
    assert entities_of(terminal, "rina") == {"B2": True}
    ended = terminal.done("audit", "list", "--user", "rina", "--action", "membership.", "--last", "1")
    assert "209900042K" in ended
    terminal.done("membership", "add", "rina", "209900042K")
    assert "Approver" not in terminal.done("user", "show", "rina")


def test_whoever_does_not_act_for_the_entity_is_said(terminal: Terminal) -> None:
    fill(terminal)
    for verb in ("remove", "disable", "enable"):
        assert "mei does not act for C3: `corpid entity list --user mei`" in terminal.refused(
            "membership", verb, "mei", "C3"
        )
    assert "there is no entity '20990042K'; did you mean '209900042K'?" in terminal.refused(
        "membership", "add", "mei", "20990042K"
    )


INVITE = ("membership", "invite", "--entity", "C3", "--name", "Tan", "--email")


def members(terminal: Terminal, *options: str) -> list[dict[str, str]]:
    shown = json.loads(terminal.done("membership", "list", "--entity", "C3", "--json", *options))
    return list(shown["members"])


def test_somebody_is_invited_and_listed_as_such(terminal: Terminal) -> None:
    """D60: whether or not the address is an account's; lists say that nobody has accepted."""
    fill(terminal)
    told = terminal.done(*INVITE, "tan@gamma.example", "--external-id", "7")
    assert "+ membership: tan@gamma.example acts for C3\n" in told
    assert "invited: true" in told
    assert terminal.look(last_event)[:2] == ("membership.invite", "C3")
    [tan] = members(terminal)
    assert (tan["user_name"], tan["name"], tan["external_id"], tan["state"]) == (
        "tan@gamma.example", "Tan", "7", "invited",
    )  # fmt: skip
    assert " invited " in terminal.done("membership", "list", "--entity", "C3")
    assert "invited" in terminal.done("user", "list", "--entity", "C3")
    shown = terminal.done("user", "show", tan["user"])
    assert "invited" in shown
    assert "the invitation has not been accepted" in shown
    assert "external_id: another member of this entity has it" in terminal.refused(
        *INVITE, "other@gamma.example", "--external-id", "7"
    )
    assert "user_name: another member" in terminal.refused(
        *INVITE, "TAN@gamma.example", "--user-name", "Tan@gamma.example"
    )
    assert "email: 'nowhere' is not a usable e-mail address" in terminal.refused(*INVITE, "nowhere")


def test_who_invites_somebody_without_an_address_is_told_that_nobody_can_accept(terminal: Terminal) -> None:
    """D60, D68."""
    fill(terminal)
    told = terminal.run("membership", "invite", "--entity", "C3", "--name", "Bob", "--user-name", "bob").stderr
    assert "bob: there is no e-mail address, so nobody can accept the invitation" in told
    reached = terminal.run(
        "membership", "invite", "--entity", "C3", "--name", "Anna", "--email", "anna@m\u00fcnchen.example"
    )
    assert "nobody can accept" not in reached.stderr
    assert "anna@xn--mnchen-3ya.example" in {each["email"] for each in members(terminal)}


def test_who_invites_is_told_that_no_mail_server_is_set(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """D60: e-mails do not wait silently."""
    fill(terminal)
    told = "no mail server is set (mail_url)"
    assert told in terminal.run(*INVITE, "tan@gamma.example").stderr
    assert told not in terminal.run(*INVITE, "lim@gamma.example", "--no-invite").stderr
    [lim] = [each for each in members(terminal) if each["email"] == "lim@gamma.example"]
    assert told in terminal.run("membership", "resend", lim["membership_id"]).stderr
    monkeypatch.setenv("CORPID_MAIL_URL", "smtp://127.0.0.1:25")
    monkeypatch.setenv("CORPID_MAIL_FROM", "corpid@gamma.example")
    assert told not in terminal.run(*INVITE, "mei@gamma.example").stderr


def test_an_invitation_is_sent_again(terminal: Terminal) -> None:
    """D53, D60: to the address that it has, as soon as some server sends."""
    fill(terminal)
    terminal.done("membership", "add", "mei", "C3")
    terminal.done(*INVITE, "tan@gamma.example", "--no-invite")
    mei, tan = members(terminal)
    told = terminal.done("membership", "resend", tan["membership_id"])
    assert told == "The invitation to act for C3 goes to tan@gamma.example again.\n"
    assert terminal.look(last_event)[:2] == ("membership.resend", "C3")
    assert "was accepted: there is nothing to send" in terminal.refused("membership", "resend", mei["membership_id"])
    for unknown in ("nobody", "no\ud800body"):
        assert "there is no membership" in terminal.refused("membership", "resend", unknown)


def test_nobody_gives_factors_to_who_has_not_accepted(terminal: Terminal) -> None:
    """D60: not an operator either; the membership ends, and the placeholder with it."""
    fill(terminal)
    terminal.done(*INVITE, "tan@gamma.example", "--no-invite")
    [tan] = members(terminal)
    for command in (("invite",), ("invite", "--anew"), ("link", "--for", "password"), ("enable",)):
        verb, *options = command
        assert "has not accepted an invitation yet" in terminal.refused("user", verb, tan["user"], *options)
    terminal.done("membership", "remove", tan["user"], "C3")
    assert members(terminal) == []
    assert "there is no user" in terminal.refused("user", "show", tan["user"])


def test_the_members_of_an_entity_are_listed_in_parts(terminal: Terminal) -> None:
    """RFC 7644 names them alike: what the entity wrote, else what is the person's."""
    fill(terminal)
    terminal.done("membership", "add", "mei", "C3")
    terminal.done(*INVITE, "tan@gamma.example")
    assert [each["user_name"] for each in members(terminal)] == ["mei", "tan@gamma.example"]
    first = json.loads(terminal.done("membership", "list", "--entity", "C3", "--limit", "1", "--json"))
    assert [each["user_name"] for each in first["members"]] == ["mei"]
    assert [each["user_name"] for each in members(terminal, "--after", first["after"])] == ["tan@gamma.example"]
    assert "corpid membership list" in terminal.done("membership", "list", "--entity", "C3", "--limit", "1")
    assert "--after is not a place" in terminal.refused("membership", "list", "--entity", "C3", "--after", "x")
    assert "there is no entity" in terminal.refused("membership", "list", "--entity", "C4")
