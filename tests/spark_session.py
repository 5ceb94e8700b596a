"""A real Spark on this machine, with two threads: one Java process for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from discreet.engines.spark_session import session_at

__all__ = ["MASTER", "spark"]

MASTER = "local[2]"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Its session."""
    session = session_at(MASTER)
    yield session
    session.stop()
