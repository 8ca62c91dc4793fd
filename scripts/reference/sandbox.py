"""The tables of docs/sandbox.md: orders, their members and faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid_dev.rules.orders import COMMON, ERRORS, KINDS, OrderKind, OrderMember

if TYPE_CHECKING:
    from collections.abc import Iterable


def tables() -> str:
    """A section for each order, the errors, and what every order may have."""
    return "".join((*map(_section, KINDS), _errors(), "### Members of every order\n\n", _members(COMMON)))


def _section(kind: OrderKind) -> str:
    parts = [f"### {kind.name}\n\n{kind.help}\n\nA correct relying party: {kind.right}\n\n"]
    if kind.members:
        parts.append(_members(kind.members))
    if kind.faults:
        parts.append(
            _table("Fault", *(["Of"] if kind.faults[0].tokens else []), "What is wrong", "A correct relying party")
        )
        for fault in kind.faults:
            of = [", ".join(f"`{each}`" for each in fault.tokens)] if fault.tokens else []
            parts.append(_line(f"`{fault.name}`", *of, fault.help, fault.right))
        parts.append("\n")
    return "".join(parts)


def _members(members: Iterable[OrderMember]) -> str:
    rows = (_line(f"`{each.name}`{'' if each.required else ' (optional)'}", _type(each), each.help) for each in members)
    return _table("Member", "Type", "Meaning") + "".join(rows) + "\n"


def _type(member: OrderMember) -> str:
    if len(member.choices) > 10:
        return "see the table below"
    default = (
        ""
        if member.default is None
        else f"; default `{str(member.default).lower() if member.flag else member.default}`"
    )
    return (f"one of {', '.join(f'`{each}`' for each in member.choices)}" if member.choices else member.type) + default


def _errors() -> str:
    rows = (
        _line(
            f"`{endpoint}`",
            ", ".join(f"`{code}`" if status == 302 else f"`{code}` ({status})" for code, status in codes.items()),
        )
        for endpoint, codes in ERRORS.items()
    )
    return (
        "### Errors of each endpoint\n\n" + _table("Endpoint", "Errors, with their usual status") + "".join(rows) + "\n"
    )


def _table(*headings: str) -> str:
    return _line(*headings) + f"|{'---|' * len(headings)}\n"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"
