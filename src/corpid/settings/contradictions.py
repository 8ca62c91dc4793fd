"""What is wrong with settings only together; each alone is judged by `checks`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from corpid.settings import checks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.settings.fields import Settings


def contradictions(settings: Settings) -> Iterator[tuple[bool, str]]:
    """Whether each contradiction is there, and the sentence that says how to put it right (D43, D52)."""
    parts = urlsplit(settings.base_url)
    local, secure = checks.is_local(parts.hostname or ""), parts.scheme == "https"
    own_tls, behind_proxy = settings.tls_certificate is not None, bool(settings.trusted_proxies)
    yield (
        own_tls != (settings.tls_key is not None),
        "tls_certificate and tls_key belong together: set both or neither",
    )
    yield own_tls and not secure, "base_url must begin with https:// when tls_certificate is set"
    yield (
        not secure and not local and not behind_proxy,
        f"base_url {settings.base_url} is http outside localhost: use https, or name your proxy in trusted_proxies",
    )
    yield (
        secure and not own_tls and not behind_proxy,
        (
            f"base_url {settings.base_url} is https, but nothing here speaks TLS: set tls_certificate and tls_key, "
            "or name the proxy that does in trusted_proxies"
        ),
    )
    yield (
        settings.developer_mode and not local,
        f"developer_mode is for one's own machine: turn it off, or use a base_url on localhost, not {settings.base_url}",
    )
    yield (
        bool(settings.mail_url) != bool(settings.mail_from),
        "mail_url and mail_from belong together: set both or neither",
    )
    yield (
        settings.key_encryption_key is not None and settings.key_encryption_key_file is not None,
        "key_encryption_key and key_encryption_key_file are both set: keep one of them",
    )
