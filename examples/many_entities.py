"""Prints examples/many-entities.yaml: a person of examples/directory.yaml who acts for 300 more entities.

python examples/many_entities.py > examples/many-entities.yaml
"""

from __future__ import annotations

TOWNS = ("Amber", "Birch", "Cedar", "Dune", "Elm", "Fern", "Garnet", "Heath", "Indigo", "Jade")
TRADES = ("Bakery", "Dental", "Fishery", "Glass", "Haulage", "Laundry", "Motors", "Paper", "Shipping", "Timber")
FORMS = ("Pte. Ltd.", "LLP", "Holdings")
LETTERS = "ABCDEFGHJK"


def entities() -> dict[str, str]:
    """Entity identifier → name."""
    numbered = enumerate(f"{town} {trade} {form}" for form in FORMS for town in TOWNS for trade in TRADES)
    return {f"2097{number:05d}{LETTERS[number % 10]}": name for number, name in numbered}


def main() -> None:
    """Write the file to standard output."""
    print("# One person, very many organisations; apply it after directory.yaml. Written by many_entities.py.\n")
    print("entities:")
    for entity_id, name in entities().items():
        print(
            f"  {entity_id}: {{type: UEN, registration_number: {entity_id}, country: SG, name: {name}, status: Registered}}"
        )
    print("\nusers:\n  nadia:\n    memberships:")
    for entity_id in entities():
        print(f"      - {entity_id}")


if __name__ == "__main__":
    main()
