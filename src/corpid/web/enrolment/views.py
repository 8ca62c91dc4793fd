"""What the pages of an enrolment show; the rules are those of `web.views`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from corpid.texts import Phrase, phrase
from corpid.web.frame import FormView

if TYPE_CHECKING:
    from corpid.web.factors.fields import Asked, AskPasskey


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeLinkCode(FormView):
    """The code of a link, which a script takes out of the fragment. Fields: code; followed, which the script sets."""

    template: ClassVar[str] = "enrolment/type_link_code.html"
    heading: ClassVar[Phrase] = phrase("Enter your code")

    typed: str = ""
    """kept after an error"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin(FormView):
    """What a link is for, and for whom. The one button spends nothing yet."""

    template: ClassVar[str] = "enrolment/begin.html"

    heading: Phrase
    told: Phrase
    user_name: str
    steps: int
    fewer: bool = False
    """whether they may be fewer, with a passkey"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeMailedCode(FormView):
    """The code that was sent by e-mail, so that others will arrive. Field: code; of the other form: decision."""

    template: ClassVar[str] = "enrolment/type_mailed_code.html"

    heading: Phrase
    asked: Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvePassword(FormView):
    """The password that the person has. Fields: user_name (for password managers), password."""

    template: ClassVar[str] = "enrolment/prove_password.html"
    heading: ClassVar[Phrase] = phrase("Enter your password")

    user_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProveSecondFactor(FormView):
    """The second factor that the person has. Fields: code; of the other form: passkey."""

    template: ClassVar[str] = "enrolment/prove_second_factor.html"
    heading: ClassVar[Phrase] = phrase("Show that it is you")

    takes_codes: bool
    passkey: AskPasskey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Save(FormView):
    """Every step was done, but what they brought could not be written at that moment."""

    template: ClassVar[str] = "enrolment/save.html"
    heading: ClassVar[Phrase] = phrase("One last click")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenPassword(FormView):
    """Asks whose password was forgotten. Field: user_name."""

    template: ClassVar[str] = "enrolment/forgotten_password.html"
    heading: ClassVar[Phrase] = phrase("Choose a new password")
