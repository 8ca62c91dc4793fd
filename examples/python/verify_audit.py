"""Verify an export of CorpID's audit (`corpid audit export`) offline: docs/audit.md says what its seals cover.

    pip install cryptography && python verify_audit.py audit.jsonl [DIGEST [keys.json]]

DIGEST is that of a seal, from a server's log: with it an end that was cut off is found. keys.json is an audit key set that
you kept (the first line of an earlier export); without it the export's own keys are believed.
"""

import json
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicNumbers
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

DAYS = {"sign_in": "sign_in_days", "other": "audit_days"}  # kind of entry → what tells for how long it is kept


def lines(file: str) -> Iterator[dict]:
    with Path(file).open(encoding="utf-8") as opened:
        yield from map(json.loads, opened)


def digest(text: str) -> str:
    return urlsafe_b64encode(sha256(text.encode()).digest()).decode().rstrip("=")


def claims_of(seal: str, keys: dict) -> dict:
    header, payload, raw = (urlsafe_b64decode(part + "==") for part in seal.split("."))
    said = json.loads(header)
    if (said["typ"], said["alg"], len(raw)) != ("audit-seal+jwt", "ES256", 64):
        raise ValueError("not a seal")
    x, y = (int.from_bytes(urlsafe_b64decode(keys[said["kid"]][name] + "==")) for name in "xy")
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    public = EllipticCurvePublicNumbers(x, y, SECP256R1()).public_key()
    public.verify(der, seal.rpartition(".")[0].encode(), ECDSA(SHA256()))
    return {**json.loads(payload), "digest": sha256(payload).hexdigest()}


def prunes(file: str) -> list[tuple[str, int, int]]:
    made = next(lines(file))["at"]  # what tells of a removal after that explains none
    told = [row for line in lines(file) if (row := line.get("entry", {})).get("action") == "audit.prune"]
    days = [(kind, row, int(json.loads(row["detail"]).get(DAYS[kind], 0))) for row in told for kind in DAYS]
    return [(kind, row["number"], row["at"] - of * 86400) for kind, row, of in days if of and row["at"] <= made + 30]


def in_range(claims: dict, lists: dict[str, str], rows: dict[int, str], pruned: list) -> Iterator[str]:
    def by_age(kind: str, number: int, at: int) -> bool:
        return any(of == kind and number < last and at < before for of, last, before in pruned)

    sealed = {}
    for kind, listed in claims["lists"].items():
        if kind in lists and digest(lists[kind]) == listed["digest"]:
            sealed |= {number: (kind, at, of) for number, at, of in json.loads(lists[kind])}
        elif kind in lists or not by_age(kind, claims["first"], listed["latest"]):
            yield f"seal {claims['seal']}: the digests of its entries ({kind}) are not those that were sealed"
    for number in sorted(rows.keys() - sealed.keys()):
        yield f"entry {number} was inserted, or its digest is gone"
    for number, (kind, at, of) in sorted(sealed.items()):
        if number in rows and rows[number] != of:
            yield f"entry {number} was changed, or has what another one had"
        elif number not in rows and not by_age(kind, number, at):
            yield f"entry {number} was removed"


def problems(file: str, expected: str = "", kept: str = "") -> Iterator[str]:
    keys = {key["kid"]: key for key in (json.loads(Path(kept).read_text()) if kept else next(lines(file)))["keys"]}
    pruned, seen, rows, before = prunes(file), {""}, {}, {"seal": 0, "last": 0, "digest": ""}
    for line in lines(file):
        if row := line.get("entry"):
            if row["number"] in rows:
                yield f"entry {row['number']} is there twice"
            told = {name: row[name] for name in sorted(row) if row[name] and name != "number"}
            rows[row["number"]] = digest(json.dumps(told, ensure_ascii=False, separators=(",", ":")))
            text = "audit-detail:{salt}:{detail}".format(**line["details"]) if "details" in line else ""
            if text and sha256(text.encode()).hexdigest() != row["digest"]:
                yield f"the details of entry {row['number']} were changed"
        elif "seal" in line:
            try:
                claims = claims_of(line["seal"], keys)
            except (InvalidSignature, KeyError, ValueError) as error:
                yield f"the seal after seal {before['seal']} was changed, or its key is unknown ({error!r})"
                return
            if (claims["seal"] - 1, claims["first"] - 1, claims["previous"]) != tuple(before.values()):
                yield f"seal {claims['seal']} does not follow seal {before['seal']}: one is missing, or was exchanged"
            yield from in_range(claims, line["digests"], rows, pruned)
            before, rows = {name: claims[name] for name in before}, {}
            seen.add(claims["digest"])
    if "end" not in line or expected not in seen or (keys and not before["seal"]):  # a key is made with the first seal
        yield "the end was cut off, or seals were replaced"
    print(f"{before['seal']} seals, up to entry {before['last']}; {len(rows)} entries are not sealed yet.")


if __name__ == "__main__":
    sys.exit("\n".join(problems(*sys.argv[1:4])) or print("Nothing is wrong."))
