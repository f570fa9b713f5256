"""GET /openapi.json: the document of this API."""

from importlib.metadata import version

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from twinspark_gateway.openapi.document import build_document

router = APIRouter()
_DOCUMENT = build_document(version("twinspark-gateway"))


@router.get("/openapi.json")
async def openapi(request: Request) -> Response:
    """Give the document."""
    return JSONResponse(_DOCUMENT)
