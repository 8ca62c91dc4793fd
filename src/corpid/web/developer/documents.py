"""Documents of developer mode: the catalogue of errors, and schemas (D66).

Nothing loads it outside developer mode. Unlike `routes`, it needs no test people, so `corpid serve` has it, too.
"""

from __future__ import annotations

from typing import Final

from corpid.rules.oauth.refusals import CATALOGUE_PATH
from corpid.web.developer.answer_schemas import answer_schemas
from corpid.web.developer.error_catalogue import page
from corpid.web.developer.paths import SCHEMAS_PATH
from corpid.web.route import Route, as_json, as_page

DOCUMENTS: Final = (
    Route(path=CATALOGUE_PATH, methods=("GET",), endpoint=page, fails=as_page),
    Route(path=f"{SCHEMAS_PATH}{{rest}}", methods=("GET",), endpoint=answer_schemas, fails=as_json),
)
