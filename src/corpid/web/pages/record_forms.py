"""Forms of records: controls, typed values and errors, by declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.directory import values
from corpid.rules.fields import Field, fields_of
from corpid.rules.readers import InvalidValue, Scalar
from corpid.texts import Phrase, phrase
from corpid.web.pages import components

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.web.pages.components import FieldError

_FLAGS: Final = ("false", "true")


class RecordForm(msgspec.Struct, frozen=True):
    """The fields of a record in a form, by their names there."""

    fields: dict[str, Field]

    def read(self, form: Mapping[str, str]) -> dict[str, str]:
        """Read what was typed, by member, as a directory file has it."""
        return {
            each.name: _FLAGS[bool(form.get(name))] if each.type is bool else form.get(name, "").strip()
            for name, each in self.fields.items()
        }

    def find_errors(self, typed: Mapping[str, str], *, required: bool = False) -> list[FieldError]:
        """The errors of typed values, by the readers that a file has.

        With `required`, no field may be empty, though the record's may. Source: D74
        """
        found = []
        for name, each in self.fields.items():
            try:
                each.value(Scalar(0, typed[each.name], plain=False))
            except InvalidValue as error:
                found.append((name, advise(each, error.reason, error.remedy)))
            else:
                if required and not typed[each.name]:
                    found.append((name, advise(each)))
        return found

    def show(
        self, held: Mapping[str, object], hints: Mapping[str, Phrase] | None = None
    ) -> tuple[components.Field, ...]:
        """The controls; values and the hints of the page are by member."""
        return tuple(
            _control(name, each, held.get(each.name, ""), (hints or {}).get(each.name, each.hint))
            for name, each in self.fields.items()
        )


def form_of(record: type[msgspec.Struct], *members: str) -> RecordForm:
    """The form of members of a record."""
    declared = fields_of(record)
    return RecordForm({each: declared[each] for each in members})


def advise(field: Field, reason: str = "", remedy: Phrase | None = None) -> Phrase:
    """The instruction about a fault: its own, the field's, or the reason."""
    return remedy or field.remedy or phrase("This text cannot be used: {reason}.", reason=reason.rstrip("."))


def _control(name: str, field: Field, value: object, hint: Phrase | None) -> components.Field:
    kind = "words" if field.choices else "flag" if field.type is bool else "text"
    return components.Field(
        name=name,
        label=field.form_label or field.label or name,
        hint=hint,
        kind="email" if field.read in {values.email, values.MEMBER_EMAIL} else kind,
        value=("yes" if value in {True, _FLAGS[True]} else "") if kind == "flag" else str(value),
        words=tuple(field.choices.items()),
        most=field.most,
    )
