"""The two addresses of a sign-in by OpenID Connect: the way to the provider, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import RedirectResponse, Response

from privada._text import printable_line
from privada.exceptions import PrivadaError
from privada.service.console.oidc.pending import LONGEST, PendingSignIns
from privada.service.console.oidc.provider import Provider
from privada.service.console.oidc.settings import OidcSettings
from privada.service.console.stage import Console, Refused

START, BACK = "/sign-in/oidc", "/sign-in/oidc/back"
COOKIE = "privada-sign-in"
Text = Annotated[str, Query(max_length=4000)]


def add_oidc(app: FastAPI, console: Console, file: Path) -> str:
    """Add the pages to the application; returns the provider's name, for the link to it.

    The way there is a link, not a form: the content security policy lets no form lead elsewhere. The way back
    comes from another site, so its cookie is lax, and the session's cookie, which is strict, is only sent
    once the browser goes on from a page of the console's own.
    """
    pending = PendingSignIns()

    @app.get(START)
    def start(request: Request) -> Response:
        origin = next(each for each in console.origins if each.endswith(f"//{request.headers['host']}"))
        provider = _provider(file)
        try:
            state, cookie, begun = pending.begin(origin + BACK, provider.discover())
            reply = RedirectResponse(provider.address(begun, state), 303)
        except PrivadaError as error:
            raise Refused(502, str(error)) from None
        flags = {"httponly": True, "samesite": "lax", "secure": origin.startswith("https:")}
        reply.set_cookie(COOKIE, cookie, path=START, max_age=int(LONGEST), **flags)  # type: ignore[arg-type]
        return reply

    @app.get(BACK)
    def back(
        request: Request, state: Text = "", code: Text = "", error: Text = "", iss: Text = ""
    ) -> Response:
        provider = _provider(file)
        begun = pending.take(state, request.cookies.get(COOKIE, ""))
        if begun is None:
            raise Refused(403, "This sign-in is over, was used before, or was begun in another browser.")
        if iss not in ("", provider.settings.issuer):
            raise Refused(403, "The answer comes from another issuer.")
        if error or not code:
            why = printable_line(error)[:100] or "no code"
            raise Refused(403, f"The identity provider did not sign you in: {why}.")
        try:
            person = provider.settings.person(provider.claims(begun, code))
        except PrivadaError as fault:
            raise Refused(403, str(fault)) from None
        if person is None:
            raise Refused(403, "The identity provider knows you, but nobody gave you a role here.")
        reply = console.page("signed_in.html", None, title="Signed in", person=person)
        console.sign_in(reply, person)
        reply.delete_cookie(COOKIE, path=START, httponly=True, samesite="lax")
        return reply

    return OidcSettings.read(file).host


def _provider(file: Path) -> Provider:
    try:
        return Provider(OidcSettings.read(file))
    except PrivadaError:  # what is wrong with the file is the owner's business alone
        raise Refused(500, f"{file.name} cannot be read; the owner has to correct it.") from None


__all__ = ["BACK", "COOKIE", "START", "add_oidc"]
