"""Start `corpid serve` for a benchmark: a fresh data directory with people, and the client that is handed in.

Reads PORT, and BENCH_CLIENT_FILE: JSON with issuer, client_id, redirect_uris, scope, jwks, and `generation` for a
client of `legacy`, which has to be named. The data
directory is made under BENCH_WORKDIR. BENCH_MANY_ENTITIES, such as 10,5000, adds a person for each number, with
so many entities; BENCH_SIGN_INS adds the people of whole sign-ins. Then this process becomes `corpid serve` with its
ordinary settings and those of the environment. BENCH_COUNTS is a file for counts of the embedded stores (counted.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import argon2
import people  # type: ignore[import-not-found]  # beside this script


def directory(client: dict[str, object], password_hash: str, many: list[int], *, kinds: bool) -> dict[str, object]:
    """What `corpid apply` is given; with the people of KINDS if `kinds`."""
    members = {people.user_name(index): [f"B{index:08}"] for index in range(people.COUNT)}
    members |= {people.many_entities(count): [people.entity_of_many(i) for i in range(count)] for count in many}
    mailed = set()
    for kind, (entities, mail) in people.KINDS.items() if kinds else ():
        names = [people.of_kind(kind, index) for index in range(people.COUNT_OF_KIND)]
        members |= {name: [people.entity_of_many(i) for i in range(entities)] for name in names}
        mailed |= set(names if mail else ())
    return {
        "services": {people.SERVICE: {"name": "Benchmark", "roles": ["Maker", "Checker"]}},
        "entities": {
            entity: {
                "name": f"Bench {int(entity[1:])} Pte. Ltd.",
                "type": "UEN",
                "registration_number": entity,
                "country": "SG",
                "status": "Registered",
            }
            for entity in sorted({entity for entities in members.values() for entity in entities})
        },
        "users": {
            name: {
                "name": f"Person {name}",
                "password_hash": password_hash,
                **({"email": people.address(name)} if name in mailed else {"totp_secret": people.totp_secret(name)}),
                "memberships": entities,
            }
            for name, entities in members.items()
        },
        "assignments": [
            {"user": name, "entity": entity, "service": people.SERVICE, "role": role}
            for name, entities in members.items()
            for entity in entities
            for role in ("Maker", "Checker")
        ],
        "clients": {
            str(client["client_id"]): {
                "name": "Benchmark",
                "redirect_uris": client["redirect_uris"],
                "jwks": client["jwks"],
                "scopes": str(client["scope"]).split(),
                "services": [people.SERVICE],
                **(
                    {"generations": ["legacy"], "legacy_until": "2099-12-31"}
                    if client.get("generation") == "legacy"
                    else {}
                ),
            }
        },
    }


def main() -> None:
    """Fill the directory and become the server."""
    client = json.loads(Path(os.environ["BENCH_CLIENT_FILE"]).read_text(encoding="utf-8"))
    work = Path(os.environ["BENCH_WORKDIR"]) / f"corpid-{os.getpid()}"
    work.mkdir(parents=True)
    os.environ |= {
        "CORPID_BASE_URL": client["issuer"],
        "CORPID_PORT": os.environ["PORT"],
        "CORPID_DATA_DIR": str(work / "data"),
        "CORPID_SESSION_SECONDS": "86400",
    }
    many = [int(count) for count in os.environ.get("BENCH_MANY_ENTITIES", "").split(",") if count]
    filled = directory(
        client, argon2.PasswordHasher().hash(people.PASSWORD), many, kinds="BENCH_SIGN_INS" in os.environ
    )
    file = work / "directory.yaml"
    file.write_text(json.dumps(filled), encoding="utf-8")  # JSON is YAML
    corpid = [sys.executable, "-m", "corpid"]
    subprocess.run([*corpid, "migrate"], check=True)
    subprocess.run([*corpid, "apply", str(file)], check=True)
    counted = [sys.executable, str(Path(__file__).with_name("counted.py"))]
    os.execv(sys.executable, [*(counted if "BENCH_COUNTS" in os.environ else corpid), "serve"])


if __name__ == "__main__":
    main()
