"""The test people of the demo: those whom its directory marks (D66)."""

from __future__ import annotations

from corpid.rules.directory.records import ListedTestPerson
from corpid_dev.demo import example_directory
from corpid_dev.demo.example_directory import ExampleDirectory
from corpid_dev.flows.people import Developer

UNMARKED = b"""
users:
  rina: {name: Rina, password: harbour lights, totp_secret: JBSWY3DPEHPK3PXP, test: true}
  omar: {name: Omar, password: harbour lights, totp_secret: JBSWY3DPEHPK3PXP}
  dana: {name: Dana, password: harbour lights, totp_secret: JBSWY3DPEHPK3PXP, test: false}
"""


def test_a_person_without_the_mark_is_no_test_person() -> None:
    assert [person.user_name for person in ExampleDirectory.read(UNMARKED).test_people()] == ["rina"]


def test_the_demos_directory_marks_the_people_whom_its_page_shows() -> None:
    directory = ExampleDirectory.read(example_directory.content())
    assert directory.test_people() == directory.persons() != []


def test_a_user_name_is_known_in_each_of_its_spellings() -> None:
    """D51."""
    developer = Developer(key="k")
    developer.add([ListedTestPerson(user_name="rina", name="Rina")])
    assert developer.is_test_person("Rina")
    assert not developer.is_test_person("rina2")
    assert not developer.is_test_person("")
