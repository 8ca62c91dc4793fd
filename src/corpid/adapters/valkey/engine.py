"""What a run of Redis or Valkey says of itself, and whether CorpID can use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from corpid.ports import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

_OLDEST: Final = 7
"""the version of Redis that brought PEXPIRE NX and SET NX GET; Valkey says 7.2.4 here, whatever its own"""
_NO_EVICTION: Final = "noeviction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One run of an engine, which CorpID can use."""

    run_id: str
    """differs after every start, and after a replica was promoted"""
    clustered: bool
    """it is a node of a cluster, and holds the slots that the cluster gave it"""
    said: Mapping[str, str]
    """everything in its answer to INFO"""


def usable(answer: bytes) -> Engine:
    """The engine of an answer to INFO. Raises StoreUnavailable with what to change, LookupError and ValueError."""
    lines = answer.decode("utf-8", errors="replace").splitlines()
    said = dict(line.split(":", 1) for line in lines if ":" in line)
    version = said.get("redis_version", "0")
    if int(version.partition(".")[0]) < _OLDEST:
        raise StoreUnavailable(f"is version {version}, and CorpID needs {_OLDEST}.0 or later")
    clustered = said.get("cluster_enabled") == "1"
    if said.get("role") != "master" and not clustered:
        raise StoreUnavailable("is a replica: transient_url must name the primary")
    policy = said.get("maxmemory_policy", _NO_EVICTION)
    if policy != _NO_EVICTION:
        raise StoreUnavailable(
            f"may forget what was spent before its time: set maxmemory-policy to {_NO_EVICTION} (it is {policy})"
        )
    return Engine(run_id=said["run_id"], clustered=clustered, said=said)
