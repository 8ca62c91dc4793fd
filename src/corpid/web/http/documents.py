"""Public documents: compressed once, with entity tags (RFC 9110 §8.8.3, §13.1.2).

They hold no secrets, so their length tells nobody anything; pages are never compressed.
"""

from __future__ import annotations

import gzip
import re
from base64 import urlsafe_b64encode
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from corpid.web.http.requests import headers

if TYPE_CHECKING:
    from starlette.requests import Request

_TAG: Final = re.compile(rb'"[\x21\x23-\x7e\x80-\xff]*"')
"""an entity tag, without the W/ of a weak one"""
_ZERO_WEIGHT: Final = re.compile(r"q=0(\.0{0,3})?")


class PublicDocument:
    """A document, plain and compressed, each with a strong entity tag.

    Make a large one in a thread: compressing takes time.
    """

    def __init__(self, content: bytes, media_type: str) -> None:
        digest = urlsafe_b64encode(sha256(content).digest()[:18])
        self._media_type: Final = media_type
        self._plain: Final = content, b'"%b"' % digest
        self._compressed: Final = compress_content(content), b'"%b.gzip"' % digest

    def response(self, request: Request, *, cache_seconds: int) -> Response:
        """The document, compressed if the caller accepts that.

        304 if the caller has it already.
        """
        is_compressed = takes_gzip(request)
        content, tag = self._compressed if is_compressed else self._plain
        sent = {
            "Cache-Control": f"public, max-age={cache_seconds}",
            "Vary": "Accept-Encoding",
            "ETag": tag.decode(),
        }
        if _is_known(request, tag):
            return Response(None, 304, sent)
        coding = {"Content-Encoding": "gzip"} if is_compressed else {}
        return Response(content, 200, sent | coding, self._media_type)


def takes_gzip(request: Request) -> bool:
    """Return whether the caller accepts gzip (RFC 9110 §12.5.3)."""
    for value in headers(request, b"accept-encoding"):
        for each in value.decode("latin-1").lower().split(","):
            coding, _, weight = each.partition(";")
            if coding.strip() == "gzip":
                return not _ZERO_WEIGHT.fullmatch(weight.strip())
    return False


@lru_cache(maxsize=64)
def compress_content(content: bytes) -> bytes:
    """Return content compressed with gzip (RFC 1952), cached."""
    return gzip.compress(content, mtime=0)


def _is_known(request: Request, tag: bytes) -> bool:
    """Return whether If-None-Match names a tag, compared weakly."""
    return any(value.strip() == b"*" or tag in _TAG.findall(value) for value in headers(request, b"if-none-match"))
