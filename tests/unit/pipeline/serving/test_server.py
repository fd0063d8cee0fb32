"""The parts of a server are put together; tests/cli/test_serve.py asks a whole one."""

import asyncio
from unittest.mock import Mock

import pytest

pytest.importorskip("uvicorn", reason="no uvicorn (extra: serve)")

from tfm.pipeline.serving import server
from tfm.pipeline.serving.backend import Backend
from tfm.pipeline.serving.catalog import ModelCatalog
from tfm.pipeline.serving.logs import Log


def test_a_backend_is_made_of_options() -> None:
    options = server.ServerOptions(models=(), beam=3)
    catalog = ModelCatalog([])

    async def make() -> Backend:
        return server._make_backend(options, Mock(), catalog, None, Log(as_json=False, with_texts=False))

    backend = asyncio.run(make())
    assert backend.catalog is catalog
    assert backend.limits is options.limits
