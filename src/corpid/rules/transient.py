"""Pipelined verbs of the transient store, and conditions of its engines."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec


class PipelinedVerb(NamedTuple):
    """A verb of a batch that runs in one pipeline with others."""

    verb: Literal["get", "take", "add"]
    kind: str
    key: bytes
    ttl: float = 0
    """of `add`, in seconds"""
    value: bytes = b""
    """of `add`"""


class EngineCondition(msgspec.Struct, frozen=True, kw_only=True):
    """The condition of an engine's node, for operators."""

    verdict: Literal["ok", "warning", "problem"]
    seen: str
    """a sentence"""
    change: str = ""
    """the remedy; empty if all is well, or if `seen` names it"""
