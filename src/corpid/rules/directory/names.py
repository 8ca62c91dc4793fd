"""Names of people, entities and clients (D51), and country codes (ISO 3166-1 alpha-2).

To an entity a person is identified by what the entity cannot write: the user name of the account, or, of somebody
invited, the address that the invitation goes to. The name that the entity wrote stands beside it (D61, D68).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Final
from unicodedata import category

from corpid.rules.characters import JOINERS
from corpid.rules.readers import InvisibleCharacter
from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from precis_i18n.profile import Profile

USER_NAME_CHARACTERS: Final = 128

_ASCII: Final = re.compile(r"[!-~]+")
"""user names of which the profile changes nothing but case (RFC 8264 §9.11)"""
USER_ID: Final = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")
_MARKS: Final = str.maketrans({"\u200e": None, "\u200f": None, "\ufeff": None, "\t": " "})
_NO_JOINERS: Final = str.maketrans(dict.fromkeys(JOINERS))
_SMALL: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
_WRITTEN_TOGETHER: Final = tuple(
    frozenset(scripts)
    for scripts in (
        {"LATIN", "CJK", "HIRAGANA", "KATAKANA"},
        {"LATIN", "CJK", "HANGUL"},
        {"LATIN", "CJK", "BOPOMOFO"},
    )
)


_SCRIPTS: Final = frozenset(
    """
    LATIN GREEK CYRILLIC ARMENIAN HEBREW ARABIC THAANA DEVANAGARI BENGALI GURMUKHI GUJARATI ORIYA TAMIL TELUGU KANNADA
    MALAYALAM SINHALA THAI LAO TIBETAN MYANMAR GEORGIAN HANGUL ETHIOPIC KHMER HIRAGANA KATAKANA BOPOMOFO CJK
    """.split()
)
"""in wide use today (Unicode TS 31, table 5); others, such as Lisu and Coptic, are made of letters like Latin's"""
_SCRIPT_NAMES: Final = {"IDEOGRAPHIC": "CJK", "KATAKANA-HIRAGANA": "KATAKANA"}
"""the script of signs of repetition and length, such as in 佐々木 and カーター, by the first word of their names"""
_LIKE_LATIN: Final = frozenset("аеорсухіјѕһкԁԛԝӏѵѡүҽӕꙇꚙοανικρυγσϳաքյհոռսզգցօгбᴦყჿഠဝଠዐሀ一丨丶丿亅乙ノーㄧㄥㄒㄩ")
"""small letters of other scripts that look like one of Latin, like a digit, a dash or a bar

All of these scripts that Unicode's confusables.txt maps to one of ASCII (TS 39 §4), and some that most fonts draw so.
"""
_OF_LATIN: Final = frozenset("ßæøœđłþð")
"""ordinary letters of Latin that are no letter of ASCII with a mark"""
_BRACKETS: Final = {"Ps": "[", "Pe": "]"}
_WITHIN_VALUES: Final = frozenset(" .-_/'&+#@")
_OF_WORDS: Final = frozenset({"Lu", "Ll", "Lo", "Mn", "Mc"})
"""categories of letters and marks, without letters that are drawn like punctuation, such as U+02D0 and U+02CF"""
_LIKE_SEPARATORS: Final = frozenset("ㆍᆞ丶ㅤᅟᅠﾠ")
"""letters of scripts in wide use that look like a separator, or like nothing"""
_QUOTATION_MARKS: Final = re.compile(
    "[\"“”„‟«»\u2033\u2034\u2036\u2037\u2057\u02ba\u02dd\u02ee\u05f4\uff02\u301d-\u301f\u275d\u275e\u3003]|['\u2018\u2019\u02bc\u00b4`]{2,}"
)
"""and what looks like one, such as two apostrophes"""
_CHARACTERS: Final = 60
"""of a name next to an identity"""
COUNTRIES: Final = frozenset(
    """
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW
    BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI
    FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN
    IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME
    MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF
    PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV
    SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE
    YT ZA ZM ZW
    """.split()
)


@cache
def user_name_profile() -> Profile:
    """The profile of user names (RFC 8265 §3.3)."""
    import precis_i18n  # noqa: PLC0415 - most commands meet no such name

    return precis_i18n.get_profile("UsernameCaseMapped")


def user_name(text: str) -> str:
    """The canonical form of a user name, mapped from input.

    Raises ValueError, with the reason in words, for a text that is no user name.
    RFC 8265 §3.3, D51, D74.
    """
    if len(text) > USER_NAME_CHARACTERS:
        raise ValueError(f"a user name has at most {USER_NAME_CHARACTERS} characters")
    if _ASCII.fullmatch(text):
        return text.lower()
    joiner = next((each for each in text if each in JOINERS), "")
    if joiner:
        raise InvisibleCharacter(joiner, "a user name")
    try:
        return str(user_name_profile().enforce(text))
    except UnicodeEncodeError as error:
        raise ValueError(f"not a user name: {_why(error)}") from None


def _why(error: UnicodeEncodeError) -> str:
    if error.reason.endswith("/empty"):
        return "it is empty"
    if error.reason.endswith("/bidi_rule"):
        return "it mixes writing directions in a way that cannot be shown safely"
    character = str(error.object)[error.start : error.end][:1]
    return f"the character U+{ord(character):04X} is not allowed" if character else "it cannot be read"


def remedy_of(error: ValueError, otherwise: Phrase) -> Phrase:
    """The instruction for an invisible character, else another.

    Source: D74
    """
    return error.remedy if isinstance(error, InvisibleCharacter) else otherwise


def fold_text(text: str) -> str:
    """A text in its form for comparison: capital and small letters alike.

    Without joiners. Source: Unicode 3.13 (toNFKC_Casefold), RFC 7643 §4.1.1, D74
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_NO_JOINERS)


def fold_ascii(text: str) -> str:
    """A text with the capital letters of ASCII made small.

    Both engines fold these, and no others. Source: D83
    """
    return text.translate(_SMALL)


def without_marks(text: str) -> str:
    """A text without U+200E, U+200F and U+FEFF, which programs add.

    A tab becomes a space. Source: D74
    """
    return text if text.isascii() and "\t" not in text else text.translate(_MARKS)


def mixed_scripts(name: str) -> frozenset[str]:
    """The scripts of a name that mixes scripts as no language does.

    Empty for ordinary names.

    A mixture is how one name is made to look like another; it is a warning, never an error.
    D51, Unicode TS 39 §5.2 (highly restrictive).
    """
    scripts = frozenset(_script(character) for character in name if character.isalpha())
    ordinary = len(scripts) < 2 or any(scripts <= together for together in _WRITTEN_TOGETHER)
    return frozenset() if ordinary else scripts


def _script(character: str) -> str:
    name = unicodedata.name(character, "UNKNOWN").removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ").split()[0]
    return _SCRIPT_NAMES.get(name, name)


def is_distinct(name: str) -> bool:
    """Return whether a name looks like no name in other letters.

    Of one script in wide use, with its own marks only; of Latin its ordinary letters, and none beside another script:
    丨 is read as l there, and ё as ë. `name` is in small letters. Source: D51, D68, Unicode TS 39 §4, §5.2
    """
    other = {character for character in name if not character.isascii()}
    letters = {each: unicodedata.normalize("NFD", each)[0] for each in other if each.isalpha()}
    scripts = {_script(each) for each in name if each.isalpha()}
    marks = (category(each).startswith("M") and _script(each) in scripts for each in other - letters.keys())
    ordinary = (_script(each) != "LATIN" or each in _OF_LATIN or base.isascii() for each, base in letters.items())
    like_latin = bool(letters) and _LIKE_LATIN.issuperset(letters.values())
    mixed = ("LATIN" in scripts and len(scripts) > 1) or mixed_scripts(name)
    return scripts <= _SCRIPTS and not mixed and not like_latin and all(marks) and all(ordinary)


def is_user_id(text: str) -> bool:
    """Return whether a text has the form of a person's identifier.

    Source: R-12.4
    """
    return USER_ID.fullmatch(text) is not None


def is_storable(text: str) -> bool:
    """Return whether a database can be asked for a text.

    A terminal can send bytes that are no text. Source: RFC 3629 §3
    """
    return "\0" not in text and not any("\ud800" <= each <= "\udfff" for each in text)


def canonical(name: str) -> str:
    """A user name as it is compared (D51), for people to read."""
    try:
        return user_name(name)
    except ValueError:
        return name


def label_identity(identity: str, name: str = "", *, invited: bool = False) -> str:
    """An identity with a name beside it: `siti (Siti Contoh)`.

    The identity comes first and contains no space: whatever the name says, it cannot take its place. Brackets, symbols
    and length of the name are such that it ends where it seems to. That of somebody invited is an address, which is
    marked. Source: D68
    """
    label = identity
    if name and fold_text(name) != fold_text(identity):
        label = f"{identity} ({bound_name(name)})" if identity else bound_name(name)
    return label_invited(label) if invited and label else label


def label_invited(person: str) -> Phrase:
    """Say before an address that somebody is invited.

    An account can be called like it. Nobody chooses a user name with a bracket, and the entity writes nothing that stands before it. Source: D68
    """
    return phrase("(invited) {person}", person=person)


def bound_name(name: str) -> str:
    """A short name without brackets and symbols, which writes no sentence.

    Symbols beyond ASCII, such as arrows, can look like brackets, or like nothing. Source: D68
    """
    shown = "".join(_BRACKETS.get(category(each)) or ("-" if _is_symbol(each) else each) for each in name)
    return shown if len(shown) <= _CHARACTERS else f"{shown[: _CHARACTERS - 1]}…"


def quoted(text: str) -> str:
    """A name that somebody typed, without quotation marks of its own.

    It can read like a date, or the rest of the sentence. Source: D68
    """
    return _QUOTATION_MARKS.sub("'", bound_name(text))


def set_apart(value: str) -> str:
    """A value in a line of several.

    In quotation marks if a character of it could separate two of them, or looks so. Source: D68, Unicode TS 39 §4
    """
    ordinary = all(
        (each.isalnum() and each.isascii()) or each in _WITHIN_VALUES or category(each) in _OF_WORDS for each in value
    )
    if ordinary and not _LIKE_SEPARATORS.intersection(value) and (value.isascii() or is_distinct(value.lower())):
        return value
    plain = _QUOTATION_MARKS.sub("'", value)
    return f"“{plain}”"


def _is_symbol(character: str) -> bool:
    """True for a symbol, and for a mark that encloses other characters."""
    return not character.isascii() and (category(character).startswith("S") or category(character) == "Me")
