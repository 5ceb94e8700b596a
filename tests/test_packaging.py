"""What is installed is what is written down: `constraints.txt` pins every package that `make install` brings."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="the pins are those of Python 3.11; others need other packages"
)
ROOT = Path(__file__).resolve().parents[1]


def needed() -> set[str]:
    """The names of all packages that the project and its `dev` extra need here, directly or not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [Requirement(text) for text in project["dependencies"] + extras["dev"]]
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = canonicalize_name(requirement.name)
        if name == project["name"]:
            waiting += [Requirement(text) for extra in requirement.extras for text in extras[extra]]
            continue
        found.add(name)
        for text in metadata.requires(name) or ():
            more = Requirement(text)
            wanted = [extra for extra in requirement.extras if more.marker and more.marker.evaluate({"extra": extra})]
            if wanted:
                more.marker = None
            waiting.append(more)
    return found


def pinned() -> dict[str, str]:
    pins = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        match = re.fullmatch(r"([\w.-]+)==([\w.+!-]+)", line)
        assert match, f"{line!r} must be NAME==VERSION, and nothing else"
        pins[canonicalize_name(match[1])] = match[2]
    return pins


def test_every_package_is_pinned_at_the_version_that_is_tested():
    pins = pinned()
    installed = {name: metadata.version(name) for name in needed()}
    assert {name: pins.get(name) for name in installed} == installed


def test_nothing_is_pinned_in_vain():
    assert set(pinned()) - needed() == set()
