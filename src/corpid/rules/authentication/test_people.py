"""Test people, whom a page of developer mode offers by name (D66)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTestPerson:
    """A test person, as pages list them."""

    user_name: str
    name: str
    entities: tuple[str, ...] = ()
    """identifiers of the entities that they act for"""
