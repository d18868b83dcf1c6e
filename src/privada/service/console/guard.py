"""Which requests the console hears, and what every reply says to the browser.

A page of another origin can make a browser send requests here, and a name of somebody else's can be made to
point to this machine. So the Host must be the console's own, whatever is changed must come from its own
Origin, and no reply may be framed, cached, sniffed or load anything from elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from privada.service.ports import local_hosts

LARGEST_FORM = 1 << 16  # bytes
MOST_DIGITS = 12  # of a size; and where a body comes in chunks, its stated size is not believed by servers
SAFE = ("GET", "HEAD")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # under no-referrer, browsers send forms with the Origin "null"
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


def refuse(
    method: str, headers: Mapping[str, str], origins: tuple[str, ...], *, largest: int = LARGEST_FORM
) -> tuple[int, str] | None:
    """The status and the reason for which a request is not heard, None if it is.

    >>> own = ("http://127.0.0.1:8400",)
    >>> refuse("GET", {"host": "127.0.0.1:8400"}, own)
    >>> refuse("GET", {"host": "evil.example"}, own)
    (421, 'This is not the console of that name.')
    >>> refuse("POST", {"host": "127.0.0.1:8400", "origin": "https://evil.example"}, own)
    (403, 'The form does not come from the console.')
    """
    own = {urlsplit(origin).netloc for origin in origins}
    if headers.get("host", "") not in own:
        return 421, "This is not the console of that name."
    if method in SAFE:
        return None
    if method != "POST":
        return 405, "The console knows GET and POST."
    if headers.get("origin", "") not in origins:
        return 403, "The form does not come from the console."
    size = headers.get("content-length", "")
    sized = (
        "transfer-encoding" not in headers and size.isascii() and size.isdigit() and len(size) < MOST_DIGITS
    )
    if not sized or int(size) > largest:
        return 413, "The form is too large, or does not say how large it is."
    return None


def local_origins(port: int) -> tuple[str, ...]:
    """The origins of a console that listens on this machine only."""
    return tuple(f"http://{host}" for host in local_hosts(port))


__all__ = ["HEADERS", "LARGEST_FORM", "local_origins", "refuse"]
