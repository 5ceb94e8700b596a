"""The pages with measured figures say what `make bench` measured, and nothing else."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def pages() -> dict[Path, str]:
    specification = importlib.util.spec_from_file_location("make_benchmarks", ROOT / "docs" / "make_benchmarks.py")
    module = importlib.util.module_from_spec(specification)
    before = list(sys.path)
    try:
        specification.loader.exec_module(module)
        return dict(module.made())
    finally:
        sys.path[:] = before


@pytest.mark.parametrize("place", sorted(pages()), ids=lambda place: place.name)
def test_the_page_is_what_was_measured(place: Path) -> None:
    assert place.read_text(encoding="utf-8") == pages()[place], "python docs/make_benchmarks.py"


def test_the_main_table_names_the_machine_and_has_ratios_first() -> None:
    for name in ("README.md", "README.zh-CN.md"):
        table = (ROOT / name).read_text(encoding="utf-8").partition("<!-- benchmark")[2].partition("<!-- /benchmark")[0]
        assert "cores" in table
        lines = [line for line in table.splitlines() if line.startswith("| ") and "|---" not in line]
        assert len(lines) > 5
        for line in lines[1:]:
            float(line.split("|")[2])
