"""From a view to the bytes of a page, and the static files that pages refer to.

A static file's name carries a hash of its content, so that a browser may keep it for a year (D31).
Everything comes out of the package and is read once, at start.
"""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined

if TYPE_CHECKING:
    from corpid.web.views import View

STATIC_PATH: Final = "/static/"
MEDIA_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def hashed_name(name: str, content: bytes) -> str:
    """`style.css` → `style.0123456789abcdef.css`; another content gives another name (D31)."""
    stem, _, suffix = name.rpartition(".")
    return f"{stem}.{sha256(content).hexdigest()[:16]}.{suffix}"


def packaged_static_files() -> dict[str, bytes]:
    """The static files of the package, by name."""
    directory = files("corpid").joinpath("web", "static")
    return {file.name: file.read_bytes() for file in directory.iterdir() if _suffix(file.name) in MEDIA_TYPES}


class StaticFiles:
    """Files by the name that carries their hash. `prefix` is the URL path they are served under."""

    def __init__(self, contents: dict[str, bytes], *, prefix: str = STATIC_PATH) -> None:
        self._prefix = prefix
        self._names = {name: hashed_name(name, content) for name, content in contents.items()}
        self._files = {self._names[name]: (content, MEDIA_TYPES[_suffix(name)]) for name, content in contents.items()}

    def url(self, name: str) -> str:
        """The URL path of a file by its plain name, e.g. `style.css`. Raises KeyError if there is none."""
        return self._prefix + self._names[name]

    def file(self, name: str) -> tuple[bytes, str]:
        """Content and media type by hashed name. Raises KeyError if there is none, or no longer (D31)."""
        return self._files[name]


def page_environment(loader: BaseLoader, static: StaticFiles) -> Environment:
    """A template environment that escapes everything and refuses undefined names; templates call
    `static(name)` for the URL of a static file."""
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        cache_size=-1,
    )
    environment.globals["static"] = static.url
    return environment


class Renderer:
    """Renders views. `name` is the provider's name, `base_path` the path of base_url without a
    trailing slash (D32); in developer mode every page carries a banner."""

    def __init__(self, *, name: str = "CorpID", base_path: str = "", developer_mode: bool = False) -> None:
        self.static = StaticFiles(packaged_static_files(), prefix=base_path + STATIC_PATH)
        loader = PackageLoader("corpid", "web/templates")
        environment = page_environment(loader, self.static)
        environment.globals.update(provider_name=name, developer_mode=developer_mode)
        self._templates = {template: environment.get_template(template) for template in environment.list_templates()}

    def render(self, view: View) -> bytes:
        """The page as UTF-8 HTML (DESIGN "Pages")."""
        errors = getattr(view, "errors", ())
        text = self._templates[view.template].render(view=view, frame=view.frame, errors=errors)
        return text.encode()

    def static_file(self, name: str) -> tuple[bytes, str]:
        """Content and media type of a static file by hashed name. Raises KeyError if there is none (D31)."""
        return self.static.file(name)


def _suffix(name: str) -> str:
    return name.rpartition(".")[2]
