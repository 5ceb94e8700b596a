"""What a query cannot say, why not, and what to write instead. The documentation is made from these tables."""

from __future__ import annotations

from sqlglot import exp

__all__ = ["REFUSED_FUNCTIONS", "REFUSED_NODES", "Refusal"]

Refusal = tuple[str, str, str]
"""The construct, why it is refused, what to write instead."""

_ONE_VALUE = "it is one person's value"
_LISTS = "it lists private values"
_ROWS = "it compares one person's rows with another's"
_SAME = "a query must give the same exact total each time"
_CLOCK = "a query must mean the same every day"
_TABLE_ONLY = "only the table itself is read"
_NOT_SCALAR = "row expressions are numbers, texts, dates, times and true or false"
_UNBOUNDED = "it can build a text of any length"
_FORMATS = "engines write and read formats differently"

REFUSED_NODES: dict[type[exp.Expr], Refusal] = {
    exp.Window: ("a window function", _ROWS, "use GROUP BY"),
    exp.IgnoreNulls: ("IGNORE NULLS", "it picks one person's value", "use COUNT, SUM or AVG"),
    exp.RespectNulls: ("RESPECT NULLS", "it picks one person's value", "use COUNT, SUM or AVG"),
    exp.Subquery: ("a subquery", _TABLE_ONLY, "write the condition out"),
    exp.Select: ("a subquery", _TABLE_ONLY, "write the condition out"),
    exp.Exists: ("EXISTS", _TABLE_ONLY, "write the condition out"),
    exp.Any: ("ANY", _TABLE_ONLY, "write x IN (...), or conditions with OR"),
    exp.All: ("ALL", _TABLE_ONLY, "write conditions with AND"),
    exp.CurrentDate: ("CURRENT_DATE", _CLOCK, "write the date out"),
    exp.CurrentTime: ("CURRENT_TIME", _CLOCK, "write the time out"),
    exp.CurrentTimestamp: ("CURRENT_TIMESTAMP", _CLOCK, "write the time out"),
    exp.CurrentDatetime: ("CURRENT_DATETIME", _CLOCK, "write the time out"),
    exp.Localtime: ("LOCALTIME", _CLOCK, "write the time out"),
    exp.Localtimestamp: ("LOCALTIMESTAMP", _CLOCK, "write the time out"),
    exp.CurrentUser: ("CURRENT_USER", "a query must mean the same for everyone", "write the name out"),
    exp.SessionUser: ("SESSION_USER", "a query must mean the same for everyone", "write the name out"),
    exp.SimilarTo: ("SIMILAR TO", "it is not part of the dialect", "write LIKE or REGEXP_CONTAINS"),
    exp.Glob: ("GLOB", "it is not part of the dialect", "write LIKE or REGEXP_CONTAINS"),
    exp.Collate: ("COLLATE", "engines sort texts differently", "write LOWER(x)"),
    exp.Array: ("a list", _NOT_SCALAR, "name one of its elements"),
    exp.Struct: ("a structure", _NOT_SCALAR, "name one of its fields"),
    exp.Tuple: ("a tuple", _NOT_SCALAR, "compare the columns one by one, with AND"),
    exp.JSONExtract: ("->", _NOT_SCALAR, "name the field by its path: a.b"),
    exp.JSONExtractScalar: ("->>", _NOT_SCALAR, "name the field by its path: a.b"),
    exp.Lambda: ("a lambda", _NOT_SCALAR, "write the expression out"),
    exp.Interval: ("an interval alone", _NOT_SCALAR, "add it to a date: x + INTERVAL 1 DAY"),
    exp.Placeholder: ("a parameter", "a query must say all it means", "write the value out"),
    exp.Parameter: ("a parameter", "a query must say all it means", "write the value out"),
    exp.BitwiseAnd: ("&", "it is not part of the dialect", "write MOD(DIV(x, 8), 2) = 1 for the bit of value 8"),
    exp.BitwiseOr: ("|", "it is not part of the dialect", "for texts write ||, for conditions OR"),
    exp.BitwiseXor: ("a bitwise operator", "it is not part of the dialect", "for powers write POW(x, y)"),
    exp.BitwiseNot: ("~", "it is not part of the dialect", "for conditions write NOT"),
    exp.Star: ("*", "it would show the private rows themselves", "name the columns"),
    exp.Distinct: ("DISTINCT", "it stands inside COUNT(DISTINCT x) only", "use GROUP BY"),
    exp.ByteString: ("a byte string", _NOT_SCALAR, "write a text in plain single quotes"),
    exp.HexString: ("a hexadecimal number", "it is not part of the dialect", "write the number in decimal digits"),
    exp.BitString: ("a bit string", "it is not part of the dialect", "write the number in decimal digits"),
}


def _refused(why: str, instead: str, *names: str) -> dict[str, Refusal]:
    return {name: (name, why, instead) for name in names}


REFUSED_FUNCTIONS: dict[str, Refusal] = {
    **_refused(_ONE_VALUE, "declare bounds; for the upper end ask for a quantile", "MAX", "ARG_MAX", "MAX_BY"),
    **_refused(_ONE_VALUE, "declare bounds; for the lower end ask for a quantile", "MIN", "ARG_MIN", "MIN_BY"),
    **_refused(_ONE_VALUE, "use COUNT, SUM or AVG", "ANY_VALUE", "FIRST", "LAST", "MODE", "FIRST_VALUE", "LAST_VALUE"),
    **_refused(_ONE_VALUE, "use COUNT(*) with GROUP BY", "APPROX_TOP_COUNT", "APPROX_TOP_SUM", "HISTOGRAM"),
    **_refused(_LISTS, "use COUNT, SUM or AVG", "ARRAY_AGG", "LIST", "STRING_AGG", "GROUP_CONCAT", "LISTAGG"),
    **_refused(_ROWS, "use GROUP BY", "ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE", "LAG", "LEAD", "PERCENT_RANK"),
    **_refused(
        "its noise is not derived yet",
        "ask for SUM(x * y, contribution_bounds_per_row => (0, 100)) and the averages",
        *("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "SKEWNESS", "KURTOSIS"),
    ),
    **_refused("the exact sum of floats depends on the order of rows", "use SUM", "FSUM", "KAHAN_SUM", "SUMKAHAN"),
    **_refused("one row decides it", "write COUNTIF(x) and compare it with COUNT(x)", "LOGICAL_AND", "LOGICAL_OR"),
    **_refused("one row decides it", "write COUNTIF(x) and compare it with COUNT(x)", "BOOL_AND", "BOOL_OR", "EVERY"),
    **_refused("one row decides it", "use SUM", "BIT_AND", "BIT_OR", "BIT_XOR", "PRODUCT"),
    **_refused(_SAME, "leave it out", "RAND", "RANDOM", "UUID", "GENERATE_UUID", "GEN_RANDOM_UUID", "SETSEED"),
    **_refused(_CLOCK, "write the date out", "CURRENT_DATE", "TODAY", "GETDATE", "SYSDATE"),
    **_refused(_CLOCK, "write the time out", "NOW", "CURRENT_TIMESTAMP", "CURRENT_DATETIME", "CURRENT_TIME"),
    **_refused(_CLOCK, "write x - y, or DATE_DIFF(x, y, YEAR)", "AGE"),
    **_refused(_UNBOUNDED, "write CONCAT, SUBSTR and LEFT", "LPAD", "RPAD", "REPEAT", "SPACE", "CONCAT_WS", "FORMAT"),
    **_refused(_UNBOUNDED, "write CONCAT, SUBSTR and LEFT", "PRINTF", "TO_JSON_STRING", "TRANSLATE", "INITCAP"),
    **_refused(
        "what it cuts out depends on the engine's rules of matching",
        "test with REGEXP_CONTAINS(x, pattern), or cut with SPLIT_PART(x, '/', 1) or SUBSTR(x, 1, 3)",
        *("REGEXP_EXTRACT", "REGEXP_REPLACE", "REGEXP_SUBSTR", "REGEXP_EXTRACT_ALL", "REGEXP_INSTR"),
    ),
    **_refused("it makes a list", "write SPLIT_PART(x, '/', 1)", "SPLIT", "STRING_SPLIT", "STR_SPLIT"),
    **_refused(
        _FORMATS,
        "write CAST(DATE(x) AS VARCHAR), DATE_TRUNC(x, MONTH) or EXTRACT(YEAR FROM x)",
        *("FORMAT_DATE", "FORMAT_TIMESTAMP", "FORMAT_DATETIME", "STRFTIME", "TO_CHAR", "DATE_FORMAT"),
    ),
    **_refused(
        _FORMATS,
        "write CAST(x AS DATE) or CAST(x AS TIMESTAMP)",
        *("PARSE_DATE", "PARSE_TIMESTAMP", "PARSE_DATETIME", "STRPTIME", "TRY_STRPTIME", "TO_DATE", "TO_TIMESTAMP"),
    ),
    **_refused("it makes a list of rows", "name one element by its path", "UNNEST", "EXPLODE", "GENERATE_SERIES"),
    **_refused("it makes a list of rows", "name one element by its path", "RANGE", "GENERATE_ARRAY", "FLATTEN"),
    **_refused(
        _NOT_SCALAR,
        "name the field by its path: a.b",
        *("JSON_EXTRACT", "JSON_VALUE", "JSON_QUERY", "JSON_EXTRACT_SCALAR", "JSON_EXTRACT_STRING"),
        *("ARRAY_LENGTH", "LIST_CONTAINS", "STRUCT", "STRUCT_PACK"),
    ),
    **_refused(
        "it hides what is counted, and its values cannot be listed as keys",
        "group by the column itself",
        *("MD5", "SHA1", "SHA256", "SHA512", "HASH", "FARM_FINGERPRINT"),
    ),
    **_refused("engines count the days of the week differently", "write EXTRACT(DAYOFWEEK FROM x)", "DAYOFWEEK"),
    **_refused("engines count the days of the week differently", "write EXTRACT(ISODOW FROM x)", "WEEKDAY", "ISODOW"),
    **_refused("engines number weeks differently", "write EXTRACT(ISOWEEK FROM x)", "WEEK", "WEEKOFYEAR"),
    **_refused("its edges belong to the engine", "write BIN(x, 0, 100, 20)", "WIDTH_BUCKET", "RANGE_BUCKET"),
    **_refused("it makes NaN and infinities", "write x / y, which is missing for y = 0", "IEEE_DIVIDE"),
}
