"""What several test modules share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real logs and tables: DISCREET_SHARED_DATA, else `shared/data` beside the repository.

    A test that needs it fails where it is missing: a proof that is skipped is none.
    """
    named = os.environ.get("DISCREET_SHARED_DATA")
    candidates = [Path(named)] if named else [ROOT.parent / "shared" / "data", ROOT.parents[1] / "shared" / "data"]
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    pytest.fail("the folder of real data is missing: set DISCREET_SHARED_DATA")
