"""Rendering of views as pages, and the static files of pages.

A static file's name carries a hash of its content, so that a browser may keep it for a year (D31).
Everything comes out of the package and is read once, at start.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from functools import lru_cache, partial
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template, nodes
from jinja2.compiler import CodeGenerator
from jinja2.compiler import Frame as TemplateFrame
from jinja2.ext import InternationalizationExtension
from markupsafe import Markup, escape

from corpid.flows.authentication.own_pages import ACCOUNT_PATH, SIGN_OUT_PATH
from corpid.texts import Phrase, capitalise, has_full_stop, phrase
from corpid.web.pages.charts import draw_chart
from corpid.web.pages.compilation import CompiledTemplates
from corpid.web.pages.compiled_pages import CONTENT, CachedView, CompiledPage, FrameView, Slot, separate_slots
from corpid.web.pages.components import (
    BoldName,
    Cell,
    Code,
    Details,
    English,
    ForeignText,
    Frame,
    Label,
    Link,
    LinkedName,
    TimeLimit,
    Value,
    View,
    never_asks,
    run_by,
)
from corpid.web.pages.theme import NO_THEME, Theme
from corpid.web.pages.translations import ENGLISH, LANGUAGES, OWN, PSEUDO, Language, Translator, translator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


STATIC_PATH: Final = "/static/"
LANGUAGE_PATH: Final = "/language/"
_PIECES: Final = ("head", "masthead", "foot", "illustration", "time_left")
_PAGES: Final = 512
"""cached with gaps, of 10 kB each: a few for each client and language"""
_BACK: Final = "\0"
"""stands in the links to languages for the address of the page"""
MEDIA_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
}


def hashed_name(name: str, content: bytes) -> str:
    """A file name with its content's hash: `style.css` → `style.0123456789abcdef.css`.

    Source: D31
    """
    stem, _, suffix = name.rpartition(".")
    return f"{stem}.{sha256(content).hexdigest()[:16]}.{suffix}"


def packaged_static_files(package: str = "corpid") -> dict[str, bytes]:
    directory = files(package).joinpath("web", "static")
    return {file.name: file.read_bytes() for file in directory.iterdir() if _suffix(file.name) in MEDIA_TYPES}


class StaticFiles:
    """Static files by hashed name.

    `prefix` is the URL path they are served under.
    """

    def __init__(self, contents: dict[str, bytes], *, prefix: str = STATIC_PATH) -> None:
        self._prefix = prefix
        self._names = {name: hashed_name(name, content) for name, content in contents.items()}
        self._files = {self._names[name]: (content, MEDIA_TYPES[_suffix(name)]) for name, content in contents.items()}

    def url(self, name: str) -> str:
        """The URL path of a file by its plain name, e.g. `style.css`.

        Raises KeyError if there is none.
        """
        return self._prefix + self._names[name]

    def file(self, name: str) -> tuple[bytes, str]:
        """Content and media type by hashed name.

        Raises KeyError if there is none, or no longer (D31).
        """
        return self._files[name]


def page_environment(loader: BaseLoader, static: StaticFiles) -> Environment:
    """A template environment that escapes everything and refuses undefined names.

    Templates call `static(name)` for the URL of a static file. `name | stop` is the full stop after a name.
    """
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        cache_size=-1,
    )
    environment.code_generator_class = _PageCode
    environment.globals["static"] = static.url
    environment.filters["stop"] = _stop
    environment.filters["capitalised"] = capitalise
    return environment


class Renderer:
    """The renderer of views.

    `name` is the provider's name, `base_path` the path of base_url without a trailing slash (D32). In developer mode
    every page carries a banner, and the pseudo-language is spoken, too; `on_network` if other machines reach it.
    `theme` is the operator's own look. `account_base` stands before the account's path: empty for base_path.
    `catalogue_path` is that of the page of reasons, under base_url; `added` is a package with further templates, static
    files and texts (`Extension`).
    """

    def __init__(
        self,
        *,
        name: str = "CorpID",
        base_path: str = "",
        account_base: str = "",
        developer_mode: bool = False,
        on_network: bool = False,
        catalogue_path: str = "",
        added: str = "",
        theme: Theme = NO_THEME,
    ) -> None:
        self._packages = (*OWN, added) if added else OWN
        packaged = {
            name: each
            for package in reversed(self._packages)  # ours are preferred, as templates and texts are
            for name, each in packaged_static_files(package).items()
        }
        self.static = StaticFiles({**packaged, **theme.files}, prefix=base_path + STATIC_PATH)
        self.languages = (*LANGUAGES, PSEUDO) if developer_mode else LANGUAGES
        self._globals: dict[str, object] = {
            "provider_name": name,
            "developer_mode": developer_mode,
            "on_network": on_network,
            "catalogue_path": catalogue_path and base_path + catalogue_path,
            "languages": LANGUAGES,
            "language_path": base_path + LANGUAGE_PATH,
            "account_path": (account_base or base_path) + ACCOUNT_PATH,
            "sign_out_path": (account_base or base_path) + SIGN_OUT_PATH,
            "theme": theme,
            "never_asks": never_asks,
            "run_by": run_by,
            "time_left": TimeLimit.left,
            "continue_in": _continue_in,
            "hidden": _hidden,
        }
        self._environments: dict[str, Environment] = {}
        self._templates: dict[tuple[str, str], Template] = {}
        self._page = lru_cache(maxsize=_PAGES)(self._prepared)
        self._environment(ENGLISH)
        if not developer_mode and not CompiledTemplates(ENGLISH.tag).are_complete():
            self.compile(ENGLISH)

    def compile(self, language: Language) -> None:
        """Compile every template of a language, unless it was compiled before."""
        environment = self._environments.get(language.tag) or self._environment(language)
        for template in environment.list_templates():
            self._template(language, template)
        CompiledTemplates(language.tag, self._packages).note_complete()

    def _environment(self, language: Language) -> Environment:
        loaders = [PackageLoader(package, "web/templates") for package in self._packages]
        environment = page_environment(ChoiceLoader(loaders), self.static)
        speak(environment, translator(language, self._packages))
        environment.globals.update(self._globals)
        made = {name: environment.get_template(f"_{name}.html").render() for name in _PIECES}
        environment.globals["pieces"] = {name: Markup(piece) for name, piece in made.items()}  # noqa: S704 - made here
        environment.globals["language_links"] = _language_links(environment)
        # Here, since each import in a template compares all of the globals' names.
        environment.globals["parts"] = environment.get_template("_parts.html").module
        environment.globals["lists"] = environment.get_template("_lists.html").module
        self._environments[language.tag] = environment
        return environment

    def _template(self, language: Language, name: str) -> Template:
        """The compiled template of a language.

        It is read from a file when a page is first shown in it. If files cannot be kept, English ones are compiled at
        start, except in developer mode, since a developer waits for the start (docs/decisions/0036).
        """
        environment = self._environments.get(language.tag) or self._environment(language)
        template = self._templates[language.tag, name] = environment.get_template(name)
        return template

    def render(self, view: View, language: Language = ENGLISH, *, offered: Language | None = None) -> bytes:
        """The page as UTF-8 HTML, in one of `languages`.

        `offered` is another one, to which a link leads.
        """
        template = self._templates.get((language.tag, view.template)) or self._template(language, view.template)
        found = separate_slots(view, template.environment.filters["time"])
        if found is None:
            return template.render(_values(view, offered)).encode()
        cached, filling = found
        if isinstance(cached, FrameView):
            content = template.blocks["content"](template.new_context(_values(view, offered)))
            filling[CONTENT] = "".join(content)
        return self._page(cached, language, offered).filled(filling).encode()

    def _prepared(self, cached: CachedView, language: Language, offered: Language | None) -> CompiledPage:
        """The page of a view with gaps."""
        template = self._template(language, cached.template)
        context = template.new_context(_values(cached, offered))
        if isinstance(cached, FrameView):
            context.blocks["content"] = [lambda _: iter((CONTENT,))]
        return CompiledPage("".join(template.root_render_func(context)))

    def static_file(self, name: str) -> tuple[bytes, str]:
        """Content and media type of a static file by hashed name.

        Raises KeyError if there is none (D31).
        """
        return self.static.file(name)


def _values(view: View | CachedView, offered: Language | None) -> dict[str, object]:
    return {"view": view, "frame": view.frame, "errors": view.errors, "offered": offered}


def _hidden(frame: Frame) -> Markup:
    """The hidden fields of a form."""
    names = f'<input type="hidden" name="names" value="{escape(frame.names)}">\n' if frame.names else ""
    entered = f'<input type="hidden" name="entered" value="{escape(frame.entered)}">\n' if frame.entered else ""
    return Markup(  # noqa: S704 - escaped here
        f'<input type="hidden" name="form_token" value="{escape(frame.form_token)}">\n'
        f'<input type="hidden" name="step" value="{escape(frame.step_name)}">\n'
        f"{names}{entered}"
    )


def _language_links(environment: Environment) -> Callable[[str], Markup]:
    """A function that makes the links to languages at a page's foot.

    It takes the address of the page, or an empty text.
    """
    made = environment.get_template("_languages.html").render(back=_BACK)

    def links(here: str) -> Markup:
        return Markup(made.replace(_BACK, f"?page={quote(here)}" if here else ""))  # noqa: S704 - quoted here

    return links


def _continue_in(language: Language) -> str:
    """The text of a link to a language, in that language."""
    return translator(language).say(phrase("Continue in {language}", language=language.name))


def _stop(value: object) -> str:
    """The full stop after a value, unless the value ends with one."""
    return "" if has_full_stop(value) else "."


def _suffix(name: str) -> str:
    return name.rpartition(".")[2]


_MARKUP: Final = frozenset({"shown", "moment", "time"})
"""filters that return Markup"""


class _PageCode(CodeGenerator):
    """A generator that leaves Markup alone: it calls no `finalize`."""

    def _output_child_pre(self, node: nodes.Expr, frame: TemplateFrame, finalize: CodeGenerator._FinalizeInfo) -> None:
        super()._output_child_pre(node, frame, _finalized(node, finalize))

    def _output_child_post(self, node: nodes.Expr, frame: TemplateFrame, finalize: CodeGenerator._FinalizeInfo) -> None:
        super()._output_child_post(node, frame, _finalized(node, finalize))


def _finalized(node: nodes.Expr, finalize: CodeGenerator._FinalizeInfo) -> CodeGenerator._FinalizeInfo:
    return finalize._replace(src=None) if isinstance(node, nodes.Filter) and node.name in _MARKUP else finalize


_PLACEHOLDER: Final = re.compile(r"%\((\w+)\)s(?:((?:</\w+>)*)\.(?!\w))?|%%")
"""a variable, with the full stop after it if there is one, or a percent sign"""


class TranslatedBlocks(InternationalizationExtension):
    """`{% trans %}` as constant text, with its variables between.

    The number in a plural decides at run time.
    """

    def _make_node(
        self,
        singular: str,
        plural: str | None,
        context: str | None,
        variables: dict[str, nodes.Expr],
        plural_expr: nodes.Expr | None,
        vars_referenced: bool,
        num_called_num: bool,
    ) -> nodes.Output:
        if plural is not None:
            return super()._make_node(
                singular, plural, context, variables, plural_expr, vars_referenced, num_called_num
            )
        wording: str = self.environment.voice.gettext(singular)  # type: ignore[attr-defined]
        parts: list[nodes.Expr] = []
        at = 0
        for match in _PLACEHOLDER.finditer(wording):
            parts.append(nodes.TemplateData(wording[at : match.start()]))
            parts.append(variables[match[1]] if match[1] else nodes.TemplateData("%"))
            if match[2] is not None:
                stop = nodes.Filter(variables[match[1]], "stop", [], [], None, None)
                parts += (nodes.TemplateData(match[2]), stop)
            at = match.end()
        return nodes.Output([*parts, nodes.TemplateData(wording[at:])])


def _instant(kind: str, written: Callable[[datetime], str]) -> Callable[[datetime], Markup]:
    """A filter that marks up instants, for page.js to convert."""

    @lru_cache(maxsize=256)
    def marked_up(moment: datetime, _: str | None) -> Markup:
        at = moment.isoformat(timespec="seconds")
        return Markup(f'<time datetime="{at}" data-show="{kind}">{escape(written(moment))}</time>')  # noqa: S704

    def shown(moment: datetime | Slot) -> Markup:
        if isinstance(moment, Slot):
            return Markup(moment)  # noqa: S704 - of this process
        # Two moments of the same time of day, before and after the clocks go back, are equal.
        return marked_up(moment, moment.tzname())

    return shown


def speak(environment: Environment, voice: Translator) -> None:
    """Set up the templates of an environment for one language.

    Translates their blocks and the phrases given to them, and adds the filters `number`, `time`, `moment`, `day` and
    `drawn`, and `shown` for the values of components, and `language`. An instant, by a filter or in a phrase, becomes a
    `<time>`; a day without a time stays.
    """
    time, moment, day = (_instant(kind, getattr(voice, kind)) for kind in ("time", "moment", "day"))
    said = sentence_renderer(voice.say, moment)
    environment.voice = voice  # type: ignore[attr-defined]
    environment.policies["ext.i18n.trimmed"] = True
    environment.add_extension(TranslatedBlocks)
    environment.install_gettext_callables(voice.gettext, voice.ngettext, newstyle=True)  # type: ignore[attr-defined]
    environment.finalize = said
    environment.bytecode_cache = CompiledTemplates(voice.language.tag, voice.packages)
    written: dict[type, Callable[..., str]] = {int: voice.number, date: voice.day, datetime: moment}
    environment.filters.update(
        number=voice.number,
        time=time,
        moment=moment,
        day=lambda value: day(value) if isinstance(value, datetime) else voice.day(value),
        drawn=partial(draw_chart, voice=voice),
        shown=value_renderer(said, written),
    )
    environment.globals.update(_=voice.gettext, language=voice.language)


shared_renderer: Final = lru_cache(maxsize=16)(Renderer)
"""providers of one process whose pages are the same share it"""


_SHOW: Final = phrase("Show")


_BREAKS: Final = re.compile(r"(?<=@)|(?<=\.)(?=\S)")
"""where the line of an address or of a long identifier may break"""


_WHOLE: Final = 24
"""characters of a part of an address that stays in one piece, however narrow its column is"""


_MARK: Final = "\0"
"""stands in no name that is stored"""


_CONSTANTS: Final = 4096
"""phrases without values whose markup is cached, per language"""


_WITH_MARKUP: Final = frozenset({BoldName, LinkedName, datetime, Phrase})
"""types of values that may need markup within a sentence"""


def sentence_renderer(
    say: Callable[[Phrase, Callable[[object], object] | None], str], moment: Callable[[datetime], Markup]
) -> Callable[[Any], Any]:
    """A function that shows a phrase in one language, as Markup.

    Names that are links, and instants by `moment`, stay so within it; what is no phrase stays as it is.
    """
    constant = lru_cache(_CONSTANTS)(lambda text: escape(say(text, None)))

    def said(text: Any) -> Any:  # noqa: ANN401
        if type(text) is not Phrase:
            return text
        if not text.values:
            return constant(text)
        if _WITH_MARKUP.isdisjoint(map(type, text.values.values())):
            return escape(say(text, None))
        inserted: list[Markup] = []

        def prepared(value: object) -> object:
            if isinstance(value, LinkedName):
                inserted.append(_show_name(value))
            elif isinstance(value, BoldName):
                inserted.append(Markup("<strong><bdi>{}</bdi></strong>").format(value))
            elif isinstance(value, datetime):
                inserted.append(moment(value))
            else:
                return value.replace(_MARK, "") if isinstance(value, str) and _MARK in value else value
            return f"{_MARK}{len(inserted) - 1}{_MARK}"

        # Between two marks stands the number of what is inserted: other values lose the mark first.
        parts = say(text, prepared).split(_MARK)
        return Markup().join(inserted[int(each)] if at % 2 else escape(each) for at, each in enumerate(parts))

    return said


def value_renderer(
    say: Callable[[Phrase], Markup], written: Mapping[type, Callable[..., str]]
) -> Callable[[Value], Markup]:
    """A filter that shows a value in one language.

    `written` gives the markup of days, instants and numbers, by their type.
    """

    def shown(value: Value) -> Markup:
        if value is None or value == "":
            return Markup("–")  # noqa: RUF001 - a dash
        return escape(by_type.get(type(value), _show_text)(value))

    def show_label(label: Label) -> Markup:
        tone = f" tag-{label.tone}" if label.tone else ""
        return Markup('<span class="tag{}">{}</span>').format(tone, shown(label.text))

    def show_link(link: Link) -> Markup:
        about = say(link.about) if isinstance(link.about, Phrase) else link.about
        return Markup('<a href="{}">{}{}</a>').format(link.url, shown(link.text), about and _show_about(about))

    def show_cell(cell: Cell) -> Markup:
        notes = (Markup('<span class="hint">{}</span>').format(shown(each)) for each in cell.notes)
        return Markup(" ").join((*map(shown, cell.values), *notes))

    by_type: dict[type, Callable[..., str]] = {
        **written,
        Phrase: say,
        Markup: escape,
        LinkedName: _show_name,
        Label: show_label,
        Link: show_link,
        Code: _show_code,
        ForeignText: _show_foreign,
        English: _show_english,
        Cell: show_cell,
        Details: lambda details: _show_details(details, shown),
    }
    return shown


def _show_text(text: str) -> Markup:
    if "@" not in text:
        return Markup("<bdi>{}</bdi>").format(text)
    parts = _BREAKS.split(text)
    whole = Markup(' class="address"') if max(map(len, parts)) <= _WHOLE else ""
    return Markup("<bdi{}>{}</bdi>").format(whole, Markup("<wbr>").join(parts))


def _show_code(code: Code) -> Markup:
    parts = _BREAKS.split(code.text) if len(code.text) > _WHOLE else [code.text]
    return Markup("<code>{}</code>").format(Markup("<wbr>").join(parts))


def _show_foreign(foreign: ForeignText) -> Markup:
    return Markup('<span lang="{}" dir="{}">{}</span>').format(foreign.language, foreign.direction, foreign.text)


def _show_english(english: English) -> Markup:
    pieces = (_show_code(Code(each)) if at % 2 else escape(each) for at, each in enumerate(english.text.split("`")))
    return _show_foreign(ForeignText(Markup().join(pieces), "en", "ltr"))


def _show_name(name: LinkedName) -> Markup:
    return Markup('<a href="{}"><bdi>{}</bdi></a>').format(name.url, name[:])


def _show_about(about: str) -> Markup:
    return Markup(' <span class="visually-hidden">{}</span>').format(about) if about else Markup()


def _show_details(value: Details, shown: Callable[[Value], Markup]) -> Markup:
    facts = (
        Markup("<div><dt>{}</dt> <dd>{}</dd></div>").format(shown(name), shown(each)) for name, each in value.facts
    )
    items = (Markup("<li>{}</li>").format(shown(each)) for each in value.items)
    listed = Markup('<dl class="facts">{}</dl>').format(Markup().join(facts))
    if value.items:
        listed = Markup("<ul>{}</ul>").format(Markup().join(items))
    return Markup('<details class="more"><summary>{}{}</summary>{}</details>').format(
        shown(_SHOW), _show_about(value.about), listed
    )
