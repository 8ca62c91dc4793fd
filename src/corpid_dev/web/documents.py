"""Documents of developer mode: the catalogue of errors, and schemas (D66).

Unlike `routes`, it needs no test people, so `corpid serve` has it, too, in developer mode.
"""

from __future__ import annotations

from typing import ClassVar, Final

from corpid.web.extension import Extension
from corpid.web.routes import Route, as_json, as_page
from corpid_dev.web.answer_schemas import answer_schemas
from corpid_dev.web.error_catalogue import page
from corpid_dev.web.paths import CATALOGUE_PATH, SCHEMAS_PATH

DOCUMENTS: Final = (
    Route(path=CATALOGUE_PATH, methods=("GET",), endpoint=page, fails=as_page),
    Route(path=f"{SCHEMAS_PATH}{{rest}}", methods=("GET",), endpoint=answer_schemas, fails=as_json),
)


class Documents(Extension):
    """The documents alone.

    `corpid serve` finds them in developer mode, by the entry point `corpid.developer_mode`.
    """

    package: ClassVar[str] = "corpid_dev"
    catalogue_path: ClassVar[str] = CATALOGUE_PATH

    def routes(self, base_url: str) -> tuple[Route, ...]:
        """The documents, at every issuer."""
        del base_url
        return DOCUMENTS
