"""Routes about the service itself, and the page."""

from __future__ import annotations

from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from newfound import __version__
from newfound.service import schemas
from newfound.service.core import Service
from newfound.service.doubting import score_kind
from newfound.service.problems import Answer, Problem
from newfound.service.security import COOKIE, cookie_for, rights_of

STATIC = Path(str(files("newfound.service"))) / "static"


class _Assets(StaticFiles):
    """Files that a browser keeps and asks about every time: 304 as long as they are the same."""

    def file_response(self, *given: Any, **named: Any) -> Response:
        answer = super().file_response(*given, **named)
        answer.headers["Cache-Control"] = "no-cache"
        return answer


_assets = _Assets(directory=STATIC)


def routes(service: Service) -> APIRouter:
    router = APIRouter(tags=["service"])
    settings = service.settings

    @router.get("/v1/status", response_model=schemas.Status, responses=schemas.errors())
    def status(request: Request) -> Answer:
        """What runs here, how much it has seen, and what this client may do."""
        shelf = service.shelves.now()
        discovered = sum(category["origin"] == "discovered" for category in shelf.categories.values())
        return Answer(
            asdict(service.about)
            | {
                "cut": shelf.cut,
                "score": score_kind(service.discoverer.dictionary),
                "sightings": service.journal.position().sightings,
                "categories": len(shelf.categories),
                "discovered": discovered,
                "version": __version__,
                "rights": request.state.rights,
                "limits": asdict(settings.limits),
            }
        )

    @router.post("/v1/login", response_model=schemas.LoggedIn, responses=schemas.errors())
    def login(request: Request, asked: schemas.Login) -> Answer:
        """Exchange a token for a cookie, which the page then uses."""
        rights = "write" if settings.token is None else rights_of(asked.token, settings)
        if rights is None:
            raise Problem(401, "this token is not one of this service's.")
        answer = Answer({"rights": rights})
        if settings.token is not None:
            secure = request.url.scheme == "https"
            answer.set_cookie(
                COOKIE, cookie_for(rights, settings), httponly=True, samesite="strict", secure=secure, path="/"
            )
        return answer

    @router.post("/v1/logout", status_code=204, response_class=Response, responses=schemas.errors())
    def logout() -> Response:
        """Take the cookie back."""
        answer = Response(status_code=204)
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return answer

    @router.get("/healthz", response_model=schemas.Alive)
    def healthz() -> Answer:
        """Whether the process answers."""
        return Answer({"status": "alive"})

    @router.get("/readyz", response_model=schemas.Alive, responses=schemas.errors())
    def readyz() -> Answer:
        """Whether the model is loaded and the journal answers; 503 if not."""
        service.journal.position()
        return Answer({"status": "ready"})

    @router.get("/metrics", response_class=Response, responses=schemas.errors())
    def metrics() -> Response:
        """Counters for Prometheus."""
        service.metrics.categories.set(len(service.shelves.now().categories))
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    @router.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return await _assets.get_response("index.html", request.scope)

    return router


def serve_assets(app: FastAPI) -> None:
    """The page's own files: all that is loaded comes from here."""
    app.mount("/assets", _assets, name="assets")
