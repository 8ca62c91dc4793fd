"""JSON Schemas, TypeScript types and OpenAPI documents, for RP developers.

They are served in developer mode only, and stand in the package as files, which `make tables` writes. Source: D66
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

from corpid.web.pages.public_pages import not_found
from corpid.web.pages.responses import NO_STORE

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.web.context import WebContext

_MEDIA_TYPES: Final = {".json": "application/json; charset=utf-8", ".ts": "text/plain; charset=utf-8"}
FILES: Final = {
    file.name: (file.read_bytes(), media_type)
    for file in sorted(files("corpid_dev").joinpath("schemas").iterdir(), key=lambda each: each.name)
    for ending, media_type in _MEDIA_TYPES.items()
    if file.name.endswith(ending)
}
"""name → content and media type"""


async def answer_schemas(request: Request, web: WebContext) -> Response:
    """A file, or without a name the list of them."""
    name = request.path_params["rest"]
    if not name:
        content, media_type = msgspec.json.encode({"files": list(FILES)}), _MEDIA_TYPES[".json"]
    elif name in FILES:
        content, media_type = FILES[name]
    else:
        return await not_found(request, web)
    return Response(content, 200, NO_STORE, media_type)
