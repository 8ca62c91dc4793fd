"""Start `corpid serve` for a benchmark: a fresh data directory with people, and the client that is handed in.

Reads PORT, and BENCH_CLIENT_FILE: JSON with issuer, client_id, redirect_uris, scope and jwks. The data
directory is made under BENCH_WORKDIR. Then this process becomes `corpid serve` with its ordinary settings.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import argon2
import people
import yaml


def directory(client: dict[str, object], password_hash: str) -> dict[str, object]:
    """What `corpid apply` is given."""
    entities = {
        f"B{index:08}": {
            "name": f"Bench {index} Pte. Ltd.",
            "type": "UEN",
            "registration_number": f"B{index:08}",
            "country": "SG",
            "status": "Registered",
        }
        for index in range(people.COUNT)
    }
    users = {
        people.user_name(index): {
            "name": f"Person {index}",
            "password_hash": password_hash,
            "totp_secret": people.totp_secret(index),
            "memberships": [f"B{index:08}"],
        }
        for index in range(people.COUNT)
    }
    assignments = [
        {"user": people.user_name(index), "entity": f"B{index:08}", "service": people.SERVICE, "role": role}
        for index in range(people.COUNT)
        for role in ("Maker", "Checker")
    ]
    return {
        "services": {people.SERVICE: {"name": "Benchmark", "roles": ["Maker", "Checker"]}},
        "entities": entities,
        "users": users,
        "assignments": assignments,
        "clients": {
            str(client["client_id"]): {
                "name": "Benchmark",
                "redirect_uris": client["redirect_uris"],
                "jwks": client["jwks"],
                "scopes": str(client["scope"]).split(),
                "services": [people.SERVICE],
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
    file = work / "directory.yaml"
    file.write_text(yaml.safe_dump(directory(client, argon2.PasswordHasher().hash(people.PASSWORD))), encoding="utf-8")
    corpid = [sys.executable, "-m", "corpid"]
    subprocess.run([*corpid, "apply", str(file)], check=True)  # noqa: S603 - our own command
    os.execv(sys.executable, [*corpid, "serve"])  # noqa: S606 - our own command


main()
