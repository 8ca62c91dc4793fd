"""Templates in one language: what stands in `{% trans %}` is translated when a template is compiled, not when it is shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from jinja2 import nodes
from jinja2.bccache import BytecodeCache
from jinja2.ext import InternationalizationExtension

from corpid.texts import Phrase

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.bccache import Bucket

    from corpid.web.catalogues import Voice

_PLACEHOLDER: Final = re.compile(r"%\((\w+)\)s|%%")
_COMPILED: Final[dict[tuple[str, str], bytes]] = {}


class TranslatedBlocks(InternationalizationExtension):
    """`{% trans %}` as constant text, with its variables between; the number in a plural decides at run time."""

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
            at = match.end()
        return nodes.Output([*parts, nodes.TemplateData(wording[at:])])


class _CompiledOnce(BytecodeCache):
    """Keeps what is compiled of a language for the next renderer of the process."""

    def __init__(self, tag: str) -> None:
        self._tag = tag

    def load_bytecode(self, bucket: Bucket) -> None:
        """What was kept, if it was."""
        kept = _COMPILED.get((self._tag, bucket.key + bucket.checksum))
        if kept is not None:
            bucket.bytecode_from_string(kept)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep it."""
        _COMPILED[self._tag, bucket.key + bucket.checksum] = bucket.bytecode_to_string()


def speak(environment: Environment, voice: Voice) -> None:
    """Let the templates of an environment speak this language: their blocks, the phrases that they are given,
    the filters `number`, `time`, `moment` and `day`, and `language`."""

    def finalized(value: Any) -> Any:  # noqa: ANN401
        return say(value) if type(value) is Phrase else value

    say = voice.say
    environment.voice = voice  # type: ignore[attr-defined]
    environment.policies["ext.i18n.trimmed"] = True
    environment.add_extension(TranslatedBlocks)
    environment.install_gettext_callables(voice.gettext, voice.ngettext, newstyle=True)  # type: ignore[attr-defined]
    environment.finalize = finalized
    environment.bytecode_cache = _CompiledOnce(voice.language.tag)
    environment.filters.update(number=voice.number, time=voice.time, moment=voice.moment, day=voice.day)
    environment.globals.update(_=voice.gettext, language=voice.language)
