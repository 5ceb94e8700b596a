"""Faults put into a copy of the source on purpose: the tests must notice each. `python tests/mutations.py [WORD]`

Each mutation replaces one piece of text in one file, in a copy, and runs the test files that should notice. It
is caught if a test fails (a module that cannot be imported does not count). The table of what was caught by
which test is printed; the exit code is 1 if anything was not.

One fault that people expect here is none: `>=` for `>` in the rule for heavy units. A unit with exactly C rows
then gets the weight floor(S C / C) = S, which it has anyway.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

NEIGHBOURS = ("test_neighbours.py",)
RELEASE = ("test_release_order.py",)
REPORTS = ("test_field_reports.py",)
GENERATED = ("test_generated_queries.py",)


@dataclass(frozen=True)
class Mutation:
    """`old`, which stands once in `file`, becomes `new`; one of `tests` must fail. `also`: further replacements."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    also: tuple[tuple[str, str], ...] = ()


def _halved(function: str, returned: str, tests: tuple[str, ...] = NEIGHBOURS) -> Mutation:
    source = (ROOT / "src/discreet/sensitivity.py").read_text(encoding="utf-8")
    body = source[source.index(f"def {function}(") :]
    old = body[: body.index(returned) + len(returned)]
    new = old.replace(returned, f"{returned} // 2")
    return Mutation(f"sensitivity halved: {function}", "sensitivity.py", old, new, tests)


MUTATIONS = (
    # The noise.
    Mutation(
        "scale 2 % too large",
        "laplace/mechanism.py",
        "scale = exact_sensitivity / exact_epsilon",
        "scale = exact_sensitivity / exact_epsilon * Fraction(102, 100)",
        RELEASE,
    ),
    Mutation(
        "scale 2 % too small",
        "laplace/mechanism.py",
        "scale = exact_sensitivity / exact_epsilon",
        "scale = exact_sensitivity / exact_epsilon / Fraction(102, 100)",
        RELEASE,
    ),
    Mutation(
        "noise drawn at a scale 2 % too small",
        "laplace/mechanism.py",
        "totals.add(draw_limbs(scale, len(totals), source))",
        "totals.add(draw_limbs(scale / Fraction(102, 100), len(totals), source))",
        RELEASE,
    ),
    Mutation(
        "noise skipped for one measurement",
        "release.py",
        "release_limbs(total, entropy)\n",
        "release_limbs(total, entropy)\n        if measurement.statistic != 'unit_count' else total\n",
        RELEASE,
    ),
    Mutation(
        "the same noise for every group",
        "laplace/mechanism.py",
        "totals.add(draw_limbs(scale, len(totals), source))",
        "totals.add(Int128Array.from_ints(draw_limbs(scale, 1, source).to_ints() * len(totals)))",
        (*REPORTS, *RELEASE),
    ),
    Mutation(
        "keys of the cipher from nowhere",
        "entropy.py",
        "algorithms.AES(os.urandom(32))",
        "algorithms.AES(bytes(32))",
        ("test_entropy.py",),
    ),
    Mutation(
        "each measurement spends the whole epsilon",
        "privacy.py",
        "tuple(epsilon * share / total for share in shares)",
        "tuple(epsilon * share / share for share in shares if total)",
        REPORTS,
    ),
    # Sensitivities.
    _halved("of_count", "weight * limit"),
    _halved("of_sum", "weight * limit * grid.largest"),
    _halved("of_centred_sum", "weight * limit * grid.width"),
    _halved("of_centred_square", "weight * limit * grid.largest_square", ("test_moments.py",)),
    _halved("of_unit_count", "weight * limit"),
    _halved("of_group_total", "weight * limit * max(abs(end) for end in ends)"),
    Mutation(
        "what a unit has in a group not clamped from above",
        "relational.py",
        "clamped = case([(below, _wide(low)), (above, _wide(high))], own)",
        "clamped = case([(below, _wide(low))], own)",
        NEIGHBOURS,
    ),
    Mutation(
        "what a unit has in a group not clamped from below",
        "relational.py",
        "clamped = case([(below, _wide(low)), (above, _wide(high))], own)",
        "clamped = case([(above, _wide(high))], own)",
        NEIGHBOURS,
    ),
    Mutation(
        "sensitivity of a sum from its upper bound alone",
        "grid.py",
        "return max(abs(self.lowest), abs(self.highest))",
        "return max(0, self.highest)",
        NEIGHBOURS,
    ),
    # Weights.
    Mutation(
        "a unit may have one row too many",
        "relational.py",
        "grouped.having(exp.GT(this=count.copy(), expression=number(limit)), copy=False)",
        "grouped.having(exp.GT(this=count.copy(), expression=number(limit + 1)), copy=False)",
        NEIGHBOURS,
        (
            (
                "case([(exp.GT(this=count.copy(), expression=number(limit)), cut)]",
                "case([(exp.GT(this=count.copy(), expression=number(limit + 1)), cut)]",
            ),
        ),
    ),
    Mutation(
        "weights not cut",
        "relational.py",
        'exp.Coalesce(this=column("w", heavy), expressions=[number(standard)])',
        "exp.Coalesce(this=number(standard), expressions=[number(standard)])",
        NEIGHBOURS,
    ),
    Mutation(
        "weights rounded up",
        "relational.py",
        "cut = named(cast(self._quotient(weight * limit, count), BIGINT), ",
        "cut = named(cast(exp.Add(this=self._quotient(weight * limit, count), expression=number(1)), BIGINT), ",
        NEIGHBOURS,
        (
            (
                "cut = self._quotient(weight * limit, count)",
                "cut = exp.Add(this=self._quotient(weight * limit, count), expression=number(1))",
            ),
        ),
    ),
    Mutation(
        "rows of unlisted keys take part in a unit's weight",
        "relational.py",
        "return self._heavy(self.kept(matched=True), limit, ",
        "return self._heavy(self.kept(matched=False), limit, ",
        NEIGHBOURS,
    ),
    Mutation(
        "rows without a unit are kept",
        "relational.py",
        "kept = [present(column(name)) for name in self.units]",
        "kept = [exp.true() for _ in self.units]",
        NEIGHBOURS,
    ),
    Mutation(
        "units counted by row, not by group",
        "relational.py",
        'return select(*names, *totals, of=kept, called="rows", group_by=names)',
        'return select(*names, *totals, of=kept, called="rows")',
        NEIGHBOURS,
    ),
    # Values.
    Mutation(
        "no clamp to the bounds",
        "statement_parts.py",
        "return case(branches, x.copy()) if branches else x",
        "return x",
        NEIGHBOURS,
    ),
    Mutation(
        "no clamp on the grid",
        "rendering.py",
        "clamped = integer if fits else clamp(integer, number(grid.lowest), number(grid.highest))",
        "clamped = integer",
        NEIGHBOURS,
    ),
    Mutation(
        "the centre is that of 0 and the upper bound",
        "relational.py",
        "centre = exp.Mul(this=number(grid.lowest + grid.highest), expression=counted)",
        "centre = exp.Mul(this=number(grid.highest), expression=counted)",
        NEIGHBOURS,
    ),
    Mutation(
        "products in 64 bits",
        "relational.py",
        "    if size >= 2**62:",
        "    if size >= 2**620:",
        NEIGHBOURS,
    ),
    Mutation(
        "short decimals multiplied as they are",
        "quirks/duckdb.py",
        "_SHORT_DECIMAL = 18",
        "_SHORT_DECIMAL = 1800",
        NEIGHBOURS,
    ),
    Mutation(
        "NaN passed on",
        "rendering.py",
        "above = exp.LTE(this=x.copy(), expression=_double(math.inf))",
        "above = exp.GT(this=x.copy(), expression=_double(high))",
        (*REPORTS, *NEIGHBOURS),
    ),
    # Expressions.
    Mutation(
        "whole numbers beyond 64 bits raise",
        "quirks/duckdb.py",
        "return x if type_ == HUGE else try_cast(x, BIGINT)",
        "return x if type_ == HUGE else cast(x, BIGINT)",
        GENERATED,
    ),
    Mutation(
        "the parser's own error comes out",
        "sql.py",
        """raise UsageError("query", "is not valid SQL: a quote or a comment is not closed") from None""",
        "raise",
        ("test_sql_refusals.py",),
    ),
    # Keys.
    Mutation(
        "the order of groups is that of the data",
        "engines/duckdb.py",
        'places = np.asarray(columns["g"], dtype=np.int64)',
        'places = np.arange(len(columns["g"]), dtype=np.int64)',
        (*REPORTS, "test_row_order.py"),
    ),
    Mutation(
        "groups without rows are left out",
        "engines/duckdb.py",
        "spread[places] = np.asarray(values, dtype=type(offset)) - offset\n    return spread",
        "spread[places] = np.asarray(values, dtype=type(offset)) - offset\n    return spread[np.sort(places)]",
        REPORTS,
    ),
    # Order, budget, outcome.
    Mutation(
        "debit after the engine",
        "release.py",
        "    entry = ledger.debit(",
        "    early = None if statement is None else engine.run(statement)\n    entry = ledger.debit(",
        RELEASE,
        (("public, totals = plan, engine.run(statement)", "public, totals = plan, early"),),
    ),
    Mutation(
        "the budget is not asked",
        "ledger/accounting.py",
        "return budget.total.covers(counted(budget, standing))",
        "return True",
        REPORTS,
    ),
    Mutation(
        "an answer is seen before it is recorded",
        "release.py",
        "ledger.record_release(entry, kept(answer, public, noisy))",
        "pass",
        RELEASE,
    ),
    Mutation(
        "the engine's own text leaves",
        "engines/duckdb.py",
        "    except (duckdb.Error, OSError, MemoryError):\n        pass\n",
        "    except (duckdb.Error, OSError, MemoryError) as error:\n"
        "        raise EngineError('engine', f'could not run the query: {error}') from error\n",
        RELEASE,
    ),
    Mutation(
        "an answer keeps its exact totals",
        "release.py",
        "        del totals\n",
        "",
        RELEASE,
        (
            (
                "ledger.record_release(entry, kept(answer, public, noisy))",
                "ledger.record_release(entry, kept(answer, public, noisy))\n"
                "        answer.details['exact'] = [total.to_ints() for total in totals]",
            ),
        ),
    ),
    Mutation(
        "an answer keeps its exact totals out of sight",
        "release.py",
        "        del totals\n",
        "",
        RELEASE,
        (
            (
                "ledger.record_release(entry, kept(answer, public, noisy))",
                "ledger.record_release(entry, kept(answer, public, noisy))\n"
                "        object.__setattr__(answer, '_kept', {'': (totals,)})",
            ),
        ),
    ),
)


def apply(mutation: Mutation, source: Path) -> None:
    """Change the copy.

    Raises:
        ValueError: the text to replace does not stand there once: the mutation must follow the source.
    """
    path = source / mutation.file
    text = path.read_text(encoding="utf-8")
    for old, new in ((mutation.old, mutation.new), *mutation.also):
        if text.count(old) != 1:
            raise ValueError(f"{mutation.name}: {old!r} stands {text.count(old)} times in {mutation.file}")
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def _failing(tests: Iterable[str], mutation: Mutation | None) -> str | None:
    """The first test that fails on a copy, mutated or as it is."""
    data = os.environ.get("DISCREET_SHARED_DATA", "")
    for folder in (ROOT.parent, ROOT.parents[1]):
        data = data or (str(folder / "shared" / "data") if (folder / "shared" / "data").is_dir() else "")
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = Path(folder)
        for name in ("src", "tests", "examples"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        if mutation is not None:
            apply(mutation, copy / "src" / "discreet")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-m", "not slow", "-o", "addopts=-q -rf -p no:cacheprovider"]
            + [str(copy / "tests" / name) for name in tests],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy / "src"), **({"DISCREET_SHARED_DATA": data} if data else {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
    if done.returncode == 0:
        return None
    found = re.search(r"^FAILED \S*?(test_\w+\.py::.*?)( - .*)?$", done.stdout, re.MULTILINE)
    if found is None:
        what = "the unchanged source" if mutation is None else mutation.name
        raise ValueError(f"{what}: no test failed, but pytest did:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    return found[1]


def run(mutation: Mutation) -> str | None:
    """The first test that fails on the mutated copy; None if none does."""
    return _failing(mutation.tests, mutation)


def run_unchanged() -> str | None:
    """The first of all tests used here that fails on an unchanged copy: then the table would mean nothing."""
    return _failing(sorted({name for mutation in MUTATIONS for name in mutation.tests}), None)


def main(word: str = "") -> int:
    """Run all mutations with `word` in their names, and print the table."""
    missed = 0
    if (failed := run_unchanged()) is not None:
        print(f"without any mutation {failed} fails")
        return 1
    for mutation in MUTATIONS:
        if word in mutation.name:
            caught = run(mutation)
            missed += caught is None
            print(f"| {mutation.name} | {mutation.file} | {caught or 'NOT NOTICED'} |", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
