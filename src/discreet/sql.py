"""SQL text to a `Query`: BigQuery's differential-privacy dialect, parsed by sqlglot, converted by allow-list.

Only what is converted here by name gets through: every node, and every argument of every node, must be
known, otherwise the query is refused with what to write instead. Nothing is looked up in a schema yet.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token, TokenType

from discreet.errors import RefusedError, UsageError
from discreet.query import Apply, GroupKey, Node, Options, OrderKey, Output, Query, checked
from discreet.sql_aggregates import quantile_columns
from discreet.sql_clauses import read_groups, read_having, read_limit, read_offset, read_order
from discreet.sql_expressions import convert, default_name
from discreet.sql_relations import check_clauses, read_from

__all__ = ["parse"]

LONGEST_TEXT = 50_000
MOST_TOKENS = 20_000


class Dialect(DuckDB):
    """DuckDB's syntax, with BigQuery's backticks, named arguments (`=>`) on aggregates, and order of NULL."""

    NULL_ORDERING = "nulls_are_small"  # BigQuery: first in ascending order, last in descending order
    INDEX_OFFSET = 0  # the first element of a list is x[0], as in JSON paths

    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS = ['"', "`"]  # noqa: RUF012 - sqlglot's own convention
        RAW_STRINGS = [("r'", "'"), ("R'", "'")]  # noqa: RUF012

    class Parser(DuckDBParser):
        # Without an entry a function is parsed as a plain call, which `sql_functions` and `sql_aggregates` read.
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: DuckDBParser.FUNCTION_PARSERS[name]
            for name in ("CAST", "EXTRACT", "POSITION", "SAFE_CAST", "SUBSTRING", "TRIM", "TRY_CAST")
        }
        FUNC_TOKENS: ClassVar[set[TokenType]] = {*DuckDBParser.FUNC_TOKENS, TokenType.DIV}
        TYPE_CONVERTERS: ClassVar[dict[Any, Any]] = {}  # DECIMAL without its digits stays so, and is refused

        def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
            # DISTINCT takes the first argument alone; sqlglot's own takes all, and no named one may follow.
            if self._match(TokenType.DISTINCT):
                return self.expression(exp.Distinct(expressions=[self._parse_disjunction()]))
            return super()._parse_lambda(alias)


def parse(text: str) -> Query:
    """The query that `text` asks.

    Args:
        text: one SELECT, with or without ``WITH DIFFERENTIAL_PRIVACY OPTIONS (...)``.

    Raises:
        UsageError: the text is not SQL, or is not one statement.
        RefusedError: a construct that cannot be answered privately; names it and what to write instead.
    """
    if not isinstance(text, str) or not text.strip():
        raise _no_statement()
    if len(text) > LONGEST_TEXT or "\x00" in text:
        raise UsageError("query", f"must be at most {LONGEST_TEXT} characters, without NUL")
    try:
        statement, options = _parse_statement(text)
        return _convert_select(statement, options, text)
    except RecursionError:
        # Caught here, at the only entrance: sqlglot and the conversion both recurse along the text's nesting.
        raise UsageError("query", "is nested too deeply") from None


def _parse_statement(text: str) -> tuple[exp.Expr, Options]:
    dialect = Dialect()
    logger = logging.getLogger("sqlglot")
    disabled, logger.disabled = logger.disabled, True  # its warnings quote the query on stderr
    try:
        tokens = dialect.tokenize(text)
        if len(tokens) > MOST_TOKENS:
            raise UsageError("query", f"must have at most {MOST_TOKENS} words and signs")
        tokens, options = _take_options(tokens)
        statements = dialect.parser().parse(tokens, text)
    except TokenError:
        raise UsageError("query", "is not valid SQL: a quote or a comment is not closed") from None
    except ParseError as error:
        raise _syntax_error(error) from None
    finally:
        logger.disabled = disabled
    written = [statement for statement in statements if statement is not None]
    if not written:  # semicolons or comments alone
        raise _no_statement()
    if len(written) != 1:
        raise UsageError("query", "must be exactly one statement", len(written))
    return written[0], options


def _no_statement() -> UsageError:
    return UsageError("query", "must be a SELECT statement", hint='for example "SELECT COUNT(*) FROM data"')


def _syntax_error(error: ParseError) -> UsageError:
    details = error.errors[0] if error.errors else {}
    near, line, column = details.get("highlight"), details.get("line"), details.get("col")
    where = f" near {near!r} (line {line}, column {column})" if near else ""
    return UsageError("query", f"is not valid SQL{where}")


def _take_options(tokens: list[Token]) -> tuple[list[Token], Options]:
    """Take ``WITH DIFFERENTIAL_PRIVACY [OPTIONS (...)]`` off the tokens; sqlglot does not know the clause."""
    for i in range(len(tokens) - 2):
        words = [t.text.upper() if t.token_type != TokenType.IDENTIFIER else "" for t in tokens[i : i + 3]]
        if words == ["SELECT", "WITH", "DIFFERENTIAL_PRIVACY"]:
            end, options = i + 3, Options()
            if end < len(tokens) and tokens[end].text.upper() == "OPTIONS":
                end, options = _read_options(tokens, end + 1)
            return tokens[: i + 1] + tokens[end:], options
    return tokens, Options()


_OPTION_FIELDS = {
    "epsilon": "epsilon",
    "delta": "delta",
    "privacy_unit_column": "privacy_unit",
    "max_contributions": "max_contributions",
    "max_rows_contributed": "max_contributions",
    "max_groups_contributed": "max_groups_contributed",
    "min_privacy_units_per_group": "min_privacy_units_per_group",
    "group_selection_strategy": "group_selection_strategy",
}


def _read_options(tokens: list[Token], start: int) -> tuple[int, Options]:
    """Read ``( name = value, ... )``; gives the place after it."""
    found: dict[str, str] = {}
    depth, name, value, i = 0, "", "", start
    example = "write OPTIONS(epsilon = 0.5, max_contributions = 20, privacy_unit_column = actor)"
    if start >= len(tokens) or tokens[start].token_type != TokenType.L_PAREN:
        raise UsageError("OPTIONS", "must be followed by parentheses", hint=example)
    while i < len(tokens):
        token = tokens[i]
        kind = token.token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if (kind == TokenType.COMMA and depth == 1) or depth == 0:
            if name or value:
                _store_option(found, name, value, example)
            name, value = "", ""
            if depth == 0:
                return i + 1, Options(**found)
        elif i > start and kind == TokenType.EQ and depth == 1 and not name:
            name, value = value.lower(), ""
        elif i > start:
            quoted = kind == TokenType.IDENTIFIER
            value += '"' + token.text.replace('"', '""') + '"' if quoted else token.text
        i += 1
    raise UsageError("OPTIONS", "has no closing parenthesis", hint=example)


def _store_option(found: dict[str, str], name: str, value: str, example: str) -> None:
    if name not in _OPTION_FIELDS:
        known = ", ".join(sorted(_OPTION_FIELDS))
        raise UsageError("OPTIONS", f"knows only {known}", name or value, example)
    field = _OPTION_FIELDS[name]
    if field in found:
        raise UsageError("OPTIONS", "names an option twice", name)
    if not value:
        raise UsageError(f"OPTIONS, {name}", "has no value", hint=example)
    found[field] = value


def _convert_select(statement: exp.Expr, options: Options, text: str) -> Query:
    check_clauses(statement, _READ)
    relation = read_from(statement)
    where = statement.args.get("where")
    outputs = _outputs(statement.expressions)
    conditions = relation.where if where is None else (*relation.where, relation.resolve(convert(where.this)))
    having = read_having(statement.args.get("having"), outputs)
    return checked(
        Query(
            relation=relation.table,
            outputs=tuple(Output(output.name, relation.resolve(output.node)) for output in outputs),
            where=_all_of(conditions),
            groups=tuple(
                GroupKey(key.name, relation.resolve(key.node))
                for key in read_groups(statement.args.get("group"), outputs)
            ),
            having=None if having is None else relation.resolve(having),
            order=tuple(
                OrderKey(relation.resolve(key.node), key.descending, key.nulls_first)
                for key in read_order(statement.args.get("order"), outputs)
            ),
            limit=read_limit(statement.args.get("limit")),
            offset=read_offset(statement.args.get("offset")),
            joins=relation.joins,
            derived=relation.columns,
            options=options,
            text=" ".join(text.split()),
        )
    )


_READ = {"with_", "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset"}


def _all_of(conditions: tuple[Node, ...]) -> Node | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return Apply("and", conditions)


def _outputs(expressions: list[exp.Expr]) -> tuple[Output, ...]:
    outputs: list[Output] = []
    taken: set[str] = set()
    for expression in expressions:
        if isinstance(expression, exp.Star) or (
            isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star)
        ):
            raise RefusedError("SELECT *", "would show the private rows themselves", hint="ask for COUNT, SUM or AVG")
        if isinstance(expression, exp.Alias):
            name, node = str(expression.alias), convert(expression.this)
        else:
            node = convert(expression)
            name = _free_name(default_name(node), taken)
        for column, value in quantile_columns(name, node) or [(name, node)]:
            if column in taken:
                raise UsageError("SELECT", "gives two columns the same name", column, "choose another alias")
            taken.add(column)
            outputs.append(Output(column, value))
    return tuple(outputs)


def _free_name(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def parse_expression(text: str, thing: str) -> tuple[Node, ...]:
    """Row expressions from a list such as ``actor, DATE(time)`` (for `--unit`).

    Raises:
        UsageError: the text is not a list of expressions.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST_TEXT or "\x00" in text:
        raise UsageError(thing, "must be a column name, or several with commas between", str(text))
    try:
        statement, _ = _parse_statement(f"SELECT {text}")
        if not isinstance(statement, exp.Select) or {k for k, v in statement.args.items() if v} - {"expressions"}:
            raise UsageError(thing, "must be a column name, or several with commas between", text)
        return tuple(convert(e) for e in statement.expressions)
    except RecursionError:
        raise UsageError(thing, "is nested too deeply") from None
