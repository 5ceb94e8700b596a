"""Generated questions in the whole grammar, and generated nasty tables to ask them of.

A question is text and keywords, as an analyst would write them: most can be answered, many are refused, and some are
spoiled on purpose by cutting, doubling or swapping their words.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from discreet.binding import bind
from discreet.errors import RefusedError, UsageError
from discreet.query import Apply, Constant, Name, Node, names_in, replace_names
from discreet.query_text import name_text, node_text
from discreet.schema import Column, Kind, Schema, Type, parse_type
from expression_tables import COLUMNS, NASTY, Grammar

ODD_NAMES = {
    "select": "r",
    "Größe (cm)": "m",
    "a.b": "y",
    "it's": "c",
    'x"y': "end",
    "COUNT(*)": "e",
    "用户": "s",
    " ": "n",
}
"""Columns with names that have to be quoted, and the column of `expression_tables` whose type and values they have."""

UNITS: dict[str, str] = {"who": "VARCHAR", "device id": "BIGINT"}
TYPES = {**COLUMNS, **{odd: COLUMNS[plain] for odd, plain in ODD_NAMES.items()}, **UNITS}
del TYPES["h"]  # Arrow has no 128-bit integers
SCHEMA = Schema(tuple(Column(name, parse_type(kind)) for name, kind in TYPES.items()))

PUBLIC = pa.table(
    {
        "code": ["a", "A", "", "abc", "it's", "12"],
        "price": pa.array([10**9, -5, None, 3, 2**63 - 1, 0], pa.int64()),
        "from": [dt.date(2024, 2, 29), dt.date(1, 1, 1), None, dt.date(9999, 12, 31)] + [dt.date(1970, 1, 1)] * 2,
        "label": ["x", "y", "x", None, "é", "y"],
    }
)
_PUBLIC_TYPES = {"price": "BIGINT", "from": "DATE", "label": "VARCHAR"}

TWICE = pa.table({"code": ["a", "a"], "price": [1, 2]})
"""A table that cannot be joined: its key is not unique."""

Row = tuple[Any, ...]


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Rows of the layout as an Arrow table."""
    columns = zip(*rows, strict=True) if rows else [()] * len(TYPES)
    return pa.table(
        {name: pa.array(list(v), _arrow(parse_type(TYPES[name]))) for name, v in zip(TYPES, columns, strict=True)}
    )


def _arrow(type_: Type) -> pa.DataType:
    match type_.kind:
        case Kind.INTEGER:
            return pa.int64()
        case Kind.FLOAT:
            return pa.float64()
        case Kind.DECIMAL:
            return pa.decimal128(type_.precision, type_.scale)
        case Kind.TEXT:
            return pa.string()
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.DATE:
            return pa.date32()
        case kind:
            return pa.timestamp("us", tz="UTC" if kind is Kind.TIMESTAMPTZ else None)


def rows_of(dice: random.Random) -> list[Row]:
    """Up to a dozen nasty rows of a few units; some rows stand there twice, some are nobody's."""
    pools = {name: NASTY[ODD_NAMES.get(name, name)] for name in TYPES if name not in UNITS}
    pools |= {name: [*pools[name], float("nan")] for name in ("x", "y", "a.b")}
    short = {name: [v for v in pool if not isinstance(v, str) or len(v) < 6000] for name, pool in pools.items()}
    short |= {"who": ["ann", "Ann", "bob", ""], "device id": [1, 2, 2**63 - 1]}
    # Few values a column, so that groups, units and keys meet.
    few = {name: [dice.choice(pool) for _ in range(4)] for name, pool in short.items()}
    rows: list[Row] = []
    for _ in range(dice.choice([0, 1, 3, 8, 12])):
        rows.append(tuple(None if dice.random() < 0.1 else dice.choice(few[name]) for name in TYPES))
    return rows + [dice.choice(rows) for _ in range(dice.choice([0, 0, 3])) if rows]


@dataclass(frozen=True)
class Asked:
    """One question.

    Attributes:
        unit: `privacy_unit` of the data set; empty at row level.
        sql, given: what the analyst says.
        spoiled: words were changed at random: nobody knows what it means.
    """

    unit: str
    max_contributions: int
    sql: str
    given: dict[str, Any] = field(default_factory=dict)
    spoiled: bool = False


_NUMBER_BOUNDS = ["(0, 10)", "(-3, 4)", "(0.5, 2.25)", "(5, 5)", "(-0.005, 0.015)", "(1000000, 1000001)"]
_WHOLE_BOUNDS = ["(-9223372036854775808, 9223372036854775807)", "(-1e36, 1e36)", "(-1000, 1000)"]
_FLOAT_BOUNDS = ["(-1e200, 1e200)", "(0, 1e-30)", "(-1e300, 1)"]
_ODD_BOUNDS = ["(10, 0)", "('a', 'b')", "(0)", "(NULL, 1)", "(0, 1e999)", "('2024-01-01', 5)", "(n, 3)", "5"]
_DATE_BOUNDS = ["('1960-01-01', '1980-06-01')", "('0001-01-01', '9999-12-31')", "('2024-02-29', '2024-02-29')"]
_CALLS = ("SUM", "AVG", "VARIANCE", "VAR_POP", "STDDEV", "MEDIAN", "PERCENTILE_CONT", "APPROX_QUANTILES")
_AFTER = (
    "{a} / {b}",
    "ROUND({a}, 1)",
    "GREATEST({a}, 0)",
    "{a} - {b} * 2",
    "COALESCE(LN({a}), -1)",
    "CASE WHEN {a} > 3 THEN 'many' ELSE 'few' END",
    "NULLIF({a}, {b})",
    "MOD({a}, 3)",
    "CAST({a} AS VARCHAR)",
    "{a} > {b}",
    "POW({a}, 2)",
)
_REFUSED = (
    "MAX(n)",
    "ARRAY_AGG(s)",
    "ROW_NUMBER() OVER (PARTITION BY s ORDER BY n)",
    "SUM(n)",
    "AVG(s, contribution_bounds_per_row => (0, 1))",
    "COUNT(DISTINCT x)",
    "MEDIAN(AVG(n))",
    "(SELECT COUNT(*) FROM data)",
    "s",
    "COUNT(nothing)",
    "RANDOM()",
    "*",
    "PERCENTILE_CONT(n, 1.5)",
    "FROBNICATE(n)",
)
_EPSILONS = ("1", 1, Decimal("0.01"), 0.3, "2", 0, -1, "nan", True, "1e-13", None, "inf", "1e400")


class Questions:
    """Draws questions.

    Args:
        choose: gives one of several values.
    """

    def __init__(self, choose: Callable[[Sequence[Any]], Any]) -> None:
        self._choose = choose
        self._grammar = Grammar(choose)

    def _pick(self, *values: Any) -> Any:
        return self._choose(values)

    def _likely(self, percent: int) -> bool:
        return self._choose(range(100)) < percent  # type: ignore[no-any-return]

    def asked(self) -> Asked:
        """One question."""
        unit = self._pick("who", "who", '"device id"', "who, DATE(z)", "LOWER(who)", "")
        source, self._prefix, self._extra = self._source()
        groups = [self._group(i) for i in range(self._pick(0, 0, 1, 1, 2))]
        wanted = [self._statistic(unit, i) for i in range(self._pick(1, 1, 2, 3))]
        outputs = [f"{text} AS {name}" for name, text, _ in groups] + wanted
        names = [output.rpartition(" AS ")[2] for output in outputs if " AS " in output]
        clauses = [self._options(), ", ".join(outputs), f"FROM {source}"]
        if self._likely(40):
            clauses.append(f"WHERE {self._condition()}")
        if groups:
            by = [name for name, _, _ in groups] if self._likely(70) else [text for _, text, _ in groups]
            clauses.append("GROUP BY " + ", ".join(self._pick(b, b, str(i + 1)) for i, b in enumerate(by)))
        if names and self._likely(15):
            clauses.append(f"HAVING {self._pick('COUNT(*) > 1', 'NOT COUNT(*) < -5', f'{names[-1]} IS NOT NULL')}")
        if names and self._likely(30):
            clauses.append(f"ORDER BY {self._pick(*names)} {self._pick('', 'DESC', 'NULLS LAST', 'ASC NULLS FIRST')}")
        if self._likely(15):
            clauses.append(f"LIMIT {self._pick(0, 1, 2, 10**12)}{self._pick('', ' OFFSET 1')}")
        with_ = "WITH t AS (SELECT * FROM data) " if source.startswith("t ") else ""
        sql = with_ + "SELECT " + " ".join(clause for clause in clauses if clause)
        spoiled = self._likely(12)
        return Asked(
            unit, self._pick(1, 2, 3, 100), self._spoil(sql) if spoiled else sql, self._given(unit, groups), spoiled
        )

    # --- parts ------------------------------------------------------------------------------------------------------

    def _source(self) -> tuple[str, str, dict[str, str]]:
        """What stands after FROM, what stands before a column's name, and the columns that are new there."""
        match self._pick("plain", "plain", "plain", "alias", "derived", "cte", "inner", "left"):
            case "plain":
                return self._pick("data", "t1"), "", {}
            case "alias":
                return "data AS d", self._pick("", "d"), {}
            case "derived":
                self._prefix, self._extra = "", {}
                node, kind = self._row_expression(self._pick("number", "text", "time"), 1)
                text = f"(SELECT *, {node} AS made FROM data WHERE {self._condition()}) AS v"
                return text, self._pick("", "v"), {"made": kind}
            case "cte":
                return "t AS u", self._pick("", "u"), {}
            case kind:
                join = "LEFT JOIN" if kind == "left" else "JOIN"
                return f"data {join} p ON data.s = p.code", "", {f"p.{n}": k for n, k in _PUBLIC_TYPES.items()}

    def _named(self, name: str) -> Name:
        return Name((self._prefix, name) if self._prefix else (name,))

    def _column(self, name: Name) -> Node:
        """The column, or another one of its type: with an odd name, from a derived or a public table."""
        plain = "n" if name.parts[-1] == "h" else name.parts[-1]
        kind = COLUMNS[plain]
        others = [odd for odd, like in ODD_NAMES.items() if COLUMNS[like] == kind]
        made = [extra for extra, of in self._extra.items() if of == kind]
        if made and self._likely(40):
            return Name(tuple(self._pick(*made).split(".")))
        return self._named(self._pick(*others) if others and self._likely(35) else plain)

    def _schema(self) -> Schema:
        """The columns as the question calls them; for their types only."""
        parts = [Column(str(self._named(name)), parse_type(kind)) for name, kind in TYPES.items()]
        return Schema((*parts, *(Column(name, parse_type(kind)) for name, kind in self._extra.items())))

    def _row_expression(self, kind: str, level: int, *, constant: int = 20) -> tuple[str, str]:
        """A row expression and its type. Most bind; one that does not is left to the code under test.

        Args:
            kind: "number", "integer", "text", "time" or "condition".
            level: how deep.
            constant: how often, in percent, one of constants only is taken.
        """
        for _ in range(8):
            node = replace_names(getattr(self._grammar, kind)(level), self._column)
            try:
                found = _written(node), str(bind(_flat(node), self._schema()).type)
            except (UsageError, RefusedError):
                continue
            if any(names_in(node)) or self._likely(constant):
                return found
        return _written(node), "?"

    def _condition(self) -> str:
        return self._row_expression("condition", self._pick(1, 1, 2))[0]

    def _statistic(self, unit: str, place: int) -> str:
        if self._likely(3):
            return f"{self._pick(*_REFUSED)} AS a{place}"
        text = self._aggregate(unit)
        if "APPROX_QUANTILES" not in text and self._likely(20):
            text = self._pick(*_AFTER).format(a=text, b=self._aggregate(unit, plain=True))
        return f"{text} AS a{place}" if self._likely(95) else text

    def _aggregate(self, unit: str, *, plain: bool = False) -> str:
        matters = ["rows", "present", "if", "distinct", "units", "number", "number", "number", "time"]
        match self._pick(*matters[: 5 if plain else len(matters)]):
            case "rows":
                text = f"COUNT(*{self._per_group()})"
            case "present":
                text = f"COUNT({self._row_expression(self._pick('number', 'text', 'time'), 1)[0]})"
            case "if":
                text = f"COUNTIF({self._condition()})"
            case "distinct":
                text = f"COUNT(DISTINCT {self._row_expression(self._pick('integer', 'text', 'time'), 1)[0]})"
            case "units":
                text = f"COUNT(DISTINCT {unit if unit and ',' not in unit else 'n'})"
            case "number":
                inner, kind = self._row_expression("number", self._pick(0, 1, 2))
                # A tree of 65,536 bins takes its time: seldom.
                calls = _CALLS if "DOUBLE" not in kind or self._likely(15) else _CALLS[:5]
                bounds = _NUMBER_BOUNDS + (_FLOAT_BOUNDS if "DOUBLE" in kind else _WHOLE_BOUNDS)
                text = self._bounded(inner, self._pick(*calls), bounds)
            case _:
                call = self._pick("AVG", "AVG", "MEDIAN", "COUNT") if self._likely(90) else self._pick(*_CALLS)
                text = self._bounded(self._row_expression("time", self._pick(0, 1))[0], call, _DATE_BOUNDS)
        if self._likely(12) and "APPROX_QUANTILES" not in text:
            text += f" FILTER (WHERE {self._condition()})"
        return text

    def _per_group(self) -> str:
        bounds = self._pick("(0, 1)", "(0, 3)", "(1, 2)", "(0, 0)")
        return f", contribution_bounds_per_group => {bounds}" if self._likely(15) else ""

    def _bounded(self, inner: str, call: str, bounds: list[str]) -> str:
        if call == "COUNT":
            return f"COUNT({inner})"
        point = {"PERCENTILE_CONT": f", {self._pick('0.95', '0', '1', '0.5')}", "APPROX_QUANTILES": ", 3"}.get(call, "")
        chosen = self._pick(*bounds) if self._likely(97) else self._pick(*_ODD_BOUNDS)
        share = f", share => {self._pick('3', '0.5', '0.001', '0')}" if self._likely(10) else ""
        named = f", contribution_bounds_per_row => {chosen}" if self._likely(98) else ""
        if call == "SUM" and self._likely(20):
            # Of single values in the group, beside their bounds or in place of them.
            named = (named if self._likely(50) else "") + f", contribution_bounds_per_group => {self._pick(*bounds)}"
        return f"{call}({inner}{point}{named}{share})"

    def _group(self, place: int) -> tuple[str, str, list[Any] | None]:
        """An alias, an expression, and public keys; None where none are listed."""
        name = self._pick(f"g{place}", f"g{place}", f'"key {place}"')
        match self._pick("column", "expression", "known", "known"):
            case "column":
                column = self._pick("s", "r", "n", "b", "day", "t", "z", "e", "k", "x", "用户", " ", "it's", 'x"y')
                text, kind = _written(self._named(column)), TYPES[column]
            case "expression":
                text, kind = self._row_expression(self._pick("integer", "text", "time"), 1, constant=2)
            case _:
                n, day = (_written(self._named(column)) for column in ("n", "day"))
                pool = (f"BIN({n}, 0, 10, 5)", f"FLOOR({n} / 10) * 10", f"EXTRACT(MONTH FROM {day})", f"{n} > 0")
                text = self._pick(*pool, f"CASE WHEN {n} > 0 THEN 'more' ELSE 'less' END", f"DATE_TRUNC({day}, YEAR)")
                kind = "DATE" if "TRUNC" in text else "DOUBLE" if "FLOOR" in text else "?"
        return name, text, self._keys(kind) if self._likely(75) and kind != "?" else None

    def _keys(self, kind: str) -> list[Any]:
        like = next((name for name, of in COLUMNS.items() if of == kind), None)
        pool = list(NASTY[like]) if like else [0, 10, Decimal("0.5"), "1.5", -10]
        pool = [v for v in pool if not isinstance(v, str) or len(v) < 100] + [None]
        found = [self._choose(pool) for _ in range(self._pick(1, 2, 4))]
        return [*found, self._pick("no such value", object(), 1.5, [])] if self._likely(2) else found

    def _options(self) -> str:
        if not self._likely(12):
            return ""
        pool = ["delta = 1e-5", "max_contributions = 1", "max_groups_contributed = 1"]
        if self._likely(40):
            pool += ["epsilon = 1", "min_privacy_units_per_group = 2", "group_selection_strategy = LAPLACE_THRESHOLD"]
            pool += ["privacy_unit_column = who", "max_contributions = 0", "frob = 1", "group_selection_strategy = X"]
        return f"WITH DIFFERENTIAL_PRIVACY OPTIONS({', '.join(self._choose(pool) for _ in range(self._pick(1, 2)))})"

    def _given(self, unit: str, groups: list[tuple[str, str, list[Any] | None]]) -> dict[str, Any]:
        epsilon = self._pick(*_EPSILONS) if self._likely(4) else self._pick(*_EPSILONS[:5])
        given: dict[str, Any] = {"epsilon": epsilon, "public": {"p": TWICE if self._likely(5) else PUBLIC}}
        listed = {name.strip('"'): keys for name, _, keys in groups if keys is not None}
        if listed:
            given["keys"] = listed
        if len(listed) < len(groups) and self._likely(80):
            given["delta"] = self._pick("1e-5", Decimal("0.00001"), 1e-9) if self._likely(93) else self._pick("0.3", 0)
            given["max_groups_contributed"] = self._pick(None, 1, 2) if unit else None
        if self._likely(15):
            zones = ("Asia/Tokyo", "America/New_York", "+05:30")
            given["timezone"] = self._pick(*zones) if self._likely(90) else "Nowhere/Here"
        return given

    def _spoil(self, sql: str) -> str:
        """Some words cut out, doubled, swapped or replaced."""
        words = re.findall(r"\w+|\s+|[^\w\s]", sql)
        for _ in range(self._pick(1, 1, 2, 4)):
            i, j = self._choose(range(len(words))), self._choose(range(len(words)))
            match self._pick("cut", "double", "swap", "new"):
                case "cut":
                    words[i] = ""
                case "double":
                    words[i] += words[i]
                case "swap":
                    words[i], words[j] = words[j], words[i]
                case _:
                    words[i] = self._pick(
                        "'", '"', "(", ")", "UNION", ";", "--", "NULL", "\x00", "SELECT", "💥", "::", "$1"
                    )
        return "".join(words)


def _flat(node: Node) -> Node:
    """Names of several parts as one, by which `Questions._schema` calls them."""
    return replace_names(node, lambda name: Name((str(name),)))


def _written(node: Node) -> str:
    """The expression as text. (What `query_text` does not write, as the tests' grammar makes it.)"""
    match node:
        case Apply("date_trunc", (subject, Constant(str(unit)))):
            return f"DATE_TRUNC({_written(subject)}, {unit})"
        case Apply("date_add", (subject, Constant(count), Constant(str(unit)))):
            return f"({_written(subject)} + INTERVAL '{count}' {unit})"
        case Apply("date_diff", (first, second, Constant(str(unit)))):
            return f"DATE_DIFF({_written(first)}, {_written(second)}, {unit})"
        case Apply(function, arguments):
            # Arguments are written first, as names that stand for themselves.
            texts = {f"\u241f{i}\u241f": _written(argument) for i, argument in enumerate(arguments)}
            held = [
                argument if isinstance(argument, Constant) else Name((mark,))
                for mark, argument in zip(texts, arguments, strict=True)
            ]
            text = node_text(Apply(function, tuple(held)))
            for mark, inner in texts.items():
                text = text.replace(name_text(mark), f"({inner})")
            return text
        case _:
            return node_text(node)
