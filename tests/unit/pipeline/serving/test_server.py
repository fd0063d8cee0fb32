"""The parts of a server are put together; tests/cli/test_serve.py asks a whole one."""

import asyncio
import socket
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


@pytest.mark.parametrize("host", ["::1", "[::1]", "127.0.0.1", "localhost"])
def test_an_address_may_be_written_as_in_a_url(host: str) -> None:
    if ":" in host and not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6")
    with server.listen(host, 0) as listener:
        assert listener.getsockname()[1] > 0
