"""The application: routes around a service, behind a guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse

from newfound import __version__
from newfound.service import routes_categories, routes_images, routes_service, routes_stream
from newfound.service.api_page import api_page
from newfound.service.core import Service
from newfound.service.problems import answer_problems
from newfound.service.security import Guard


def create_app(service: Service) -> FastAPI:
    """An ASGI application for a service, which it starts and stops."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await run_in_threadpool(service.stop)

    app = FastAPI(
        title="newfound",
        version=__version__,
        description="Recognises the classes it was taught and discovers, one image at a time, the ones it was not.",
        docs_url=None,  # FastAPI's own page loads its scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    answer_problems(app, service.journal.name)
    for router in (
        routes_images.routes(service, service.settings),
        routes_categories.routes(service),
        routes_stream.routes(service),
        routes_service.routes(service),
    ):
        app.include_router(router)
    routes_service.serve_assets(app)

    @app.get("/docs", include_in_schema=False)
    def docs(request: Request) -> HTMLResponse:
        return HTMLResponse(api_page(app.openapi(), str(request.base_url)))

    app.add_middleware(Guard, settings=service.settings, courtesy=service.courtesy)
    return app
