"""The catalogue of the dialect: everything that a query can say, what it means, and where BigQuery differs.

The parser reads none of this; the tests hold the two together: a function is in this table if and only if it is
accepted (`sql_functions`, `sql_aggregates`), and ``docs/dialect.md`` is made from it (`dialect_page`). What is
refused is in `sql_refusals` and `sql_relations`, beside the code that refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ENTRIES", "FAMILIES", "Entry"]


@dataclass(frozen=True)
class Entry:
    """One thing that a query can say.

    Attributes:
        family: a member of `FAMILIES`.
        signature: how it is written. The examples of one row differ by ``; ``.
        meaning: what it means.
        difference: from BigQuery; "" where there is none.
        functions: the names of functions that it describes, in capitals; () for what is no function.
    """

    family: str
    signature: str
    meaning: str
    difference: str = ""
    functions: tuple[str, ...] = ()


FAMILIES = ("Queries", "Aggregates", "Conditions", "Choices", "Numbers", "Text", "Dates and times", "Types")

_QUERIES = (
    Entry(
        "Queries",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5, ...) ... FROM data",
        "One query over the one private table, called data or by its file's name. WITH DIFFERENTIAL_PRIVACY and each "
        "option may be left out where the policy, the command line or Python says it.",
        "Never needed, and never switched off: every answer is differentially private.",
    ),
    Entry(
        "Queries",
        "OPTIONS(epsilon, delta, privacy_unit_column, max_contributions, max_groups_contributed, "
        "min_privacy_units_per_group, group_selection_strategy)",
        "epsilon and delta: the whole cost of the query. max_contributions (also max_rows_contributed): the rows "
        "that one unit may weigh, over all groups. max_groups_contributed: the groups it may weigh in COUNT(DISTINCT "
        "unit) and in choosing groups. group_selection_strategy: PUBLIC_GROUPS or LAPLACE_THRESHOLD.",
        "max_contributions is ours. A unit with more rows than that is weighed down, not sampled. The limits can "
        "narrow the owner's, not widen them.",
    ),
    Entry(
        "Queries",
        "WITH t AS (SELECT ...); FROM (SELECT ...) AS t",
        "Derived tables that choose, compute and rename columns and filter rows. The privacy unit goes through them "
        "unseen.",
        "No grouping, sorting or limits inside.",
    ),
    Entry(
        "Queries",
        "FROM data [LEFT] JOIN p ON data.x = p.key; ... USING (key)",
        "A public table, named by --public NAME=FILE, on a key that is unique in it.",
        "No other joins.",
    ),
    Entry("Queries", "WHERE condition", "Keeps the rows where the condition is true."),
    Entry(
        "Queries",
        "GROUP BY expression, alias, 1; GROUP BY ALL",
        "Groups by expressions, outputs' aliases or places. The keys are listed (--keys), have few possible values "
        "by themselves (months, bins, true or false), or are chosen from the data with a delta.",
        "Listed keys that have no rows are answered too. No ROLLUP, CUBE or GROUPING SETS; no floating-point keys.",
    ),
    Entry(
        "Queries",
        "HAVING, ORDER BY, LIMIT, OFFSET",
        "Act on the noisy values, and cost nothing. Missing values are smallest, unless NULLS FIRST or LAST is said.",
    ),
    Entry(
        "Queries",
        "SUM(x) / COUNT(*), ROUND(AVG(x), 1), ...",
        "Arithmetic, comparisons and the common functions between aggregates and keys, after the noise.",
    ),
    Entry(
        "Queries",
        'a, "a b", `a b`, data.a, a.b.c, "id.orig_h", a[0].b',
        "Names, in quotes or not; fields by their path. A name is found by its exact letters, else by the only one "
        "that differs in case.",
        "Double quotes hold names, as in the SQL standard, not texts.",
    ),
    Entry(
        "Queries",
        "1, 0.5, 1e-3, 'text', r'text', TRUE, NULL, DATE '2024-12-31', TIMESTAMP '2024-12-31 10:00:00'",
        "Constants. A backslash in a text is a backslash; a quote is doubled. Decimal constants are exact.",
        "A plain text takes the type of what it stands beside: day >= '2024-12-31'. No escapes such as \\n.",
    ),
)

_AGGREGATES = (
    Entry("Aggregates", "COUNT(*); COUNT(x)", "Rows; rows where x is not missing.", functions=("COUNT",)),
    Entry(
        "Aggregates",
        "COUNTIF(condition)",
        "Rows where the condition is true.",
        "COUNT_IF is the same.",
        functions=("COUNTIF", "COUNT_IF"),
    ),
    Entry(
        "Aggregates",
        "COUNT(DISTINCT x)",
        "Units, if x is the privacy unit; else the values of a column that can be grouped by.",
        "APPROX_COUNT_DISTINCT is the same.",
        functions=("APPROX_COUNT_DISTINCT",),
    ),
    Entry(
        "Aggregates",
        "SUM(x, contribution_bounds_per_row => (0, 50)); AVG(...)",
        "The sum or average of x, each row's x clamped to the bounds, infinities too. Bounds stand here, in the "
        "policy or in --bounds.",
        "Bounds are never taken from the data: without any, the query is refused.",
        functions=("SUM", "AVG"),
    ),
    Entry(
        "Aggregates",
        "SUM(x, contribution_bounds_per_group => (0, 100)); COUNT(*, contribution_bounds_per_group => (0, 5)); "
        "COUNTIF(...)",
        "What each unit has in a group, its sum or its number of rows, is clamped to the bounds; a unit in more than "
        "max_groups_contributed groups weighs less in each. Best where persons have many small values.",
        "x is clamped to bounds of its own as well where some are declared, else to 1,024 times these. AVG is written "
        "as SUM(x, ...) / COUNT(x, ...).",
    ),
    Entry(
        "Aggregates",
        "VARIANCE(x), VAR_SAMP, VAR_POP; STDDEV(x), STDDEV_SAMP, STDDEV_POP",
        "Variance and standard deviation of the clamped values, of a sample or of a population; never negative.",
        "VARIANCE_POP is VAR_POP.",
        functions=(
            *("VARIANCE", "VAR_SAMP", "VAR_POP", "VARIANCE_POP"),
            *("STDDEV", "STDDEV_SAMP", "STDDEV_POP"),
        ),
    ),
    Entry(
        "Aggregates",
        "MEDIAN(x); PERCENTILE_CONT(x, 0.95); APPROX_QUANTILES(x, 4)",
        "Quantiles, right to one bin of the bounds' range. All quantiles of one x cost as much as one.",
        "Aggregates, not window functions. QUANTILE_CONT is PERCENTILE_CONT. APPROX_QUANTILES stands alone, as "
        "columns, or with [OFFSET(i)] behind it.",
        functions=("MEDIAN", "PERCENTILE_CONT", "QUANTILE_CONT", "APPROX_QUANTILES"),
    ),
    Entry(
        "Aggregates",
        "SUM(x, share => 3)",
        "Gives this aggregate three times another's part of the query's epsilon.",
        "Ours.",
    ),
    Entry("Aggregates", "SUM(x) FILTER (WHERE condition)", "The aggregate over the rows where the condition is true."),
)

_CONDITIONS = (
    Entry(
        "Conditions",
        "=  <>  !=  <  <=  >  >=",
        "Comparisons. Missing if a side is. Infinities compare as numbers do; texts by their code points.",
        "No side is ever NaN.",
    ),
    Entry("Conditions", "AND, OR, NOT", "With missing values as in standard SQL."),
    Entry("Conditions", "x IS [NOT] NULL; x IS [NOT] TRUE; x IS [NOT] FALSE", "Never missing themselves."),
    Entry("Conditions", "x IS [NOT] DISTINCT FROM y", "Whether x and y differ, two missing values being equal."),
    Entry("Conditions", "x [NOT] BETWEEN a AND b", "a <= x AND x <= b."),
    Entry("Conditions", "x [NOT] IN (1, 2, 3)", "Among constants.", "No subqueries, UNNEST or NULL in the list."),
    Entry(
        "Conditions",
        "x [NOT] LIKE 'a%_'; x [NOT] ILIKE 'A%'",
        "% is any text, _ one character, a backslash makes the next sign stand for itself; ESCAPE names another "
        "sign. ILIKE takes capital and small letters as equal.",
        "The pattern is written out. ILIKE is ours.",
    ),
    Entry(
        "Conditions",
        "REGEXP_CONTAINS(x, r'^a+'); x ~ '^a+'",
        "Whether the pattern is found in x: a plain part of RE2's language (no \\p, no names, no look-around), "
        "written out, at most 1,000 signs.",
        "REGEXP_MATCHES is the same. On engines that backtrack it is refused.",
        functions=("REGEXP_CONTAINS", "REGEXP_MATCHES"),
    ),
    Entry(
        "Conditions",
        "STARTS_WITH(x, y); ENDS_WITH(x, y)",
        "Whether the text x begins or ends with the text y.",
        functions=("STARTS_WITH", "ENDS_WITH"),
    ),
)

_CHOICES = (
    Entry(
        "Choices",
        "CASE WHEN a THEN x WHEN b THEN y ELSE z END; CASE x WHEN 1 THEN y END",
        "The first value whose condition is true; without ELSE, missing. All values are brought to one type.",
    ),
    Entry("Choices", "IF(condition, x, y)", "x where the condition is true, else y.", functions=("IF",)),
    Entry(
        "Choices",
        "COALESCE(x, y, ...); IFNULL(x, y)",
        "The first that is not missing.",
        "NVL is IFNULL.",
        functions=("COALESCE", "IFNULL", "NVL"),
    ),
    Entry("Choices", "NULLIF(x, y)", "x, but missing where x = y.", functions=("NULLIF",)),
    Entry(
        "Choices",
        "GREATEST(x, y, ...); LEAST(x, y, ...)",
        "The largest, the smallest; missing if one is missing.",
        functions=("GREATEST", "LEAST"),
    ),
)

_NUMBERS = (
    Entry(
        "Numbers",
        "x + y, x - y, x * y, -x",
        "Exact for whole numbers, missing beyond 64 bits (with a 128-bit operand: beyond 38 digits). Exact for "
        "decimals where 38 digits, 12 decimal places for products, hold every value of the operands' types; else "
        "both become doubles. Doubles: infinite beyond 1.8e308, missing where there is no value, as for infinity - "
        "infinity.",
        "BigQuery raises an error on overflow; here no row can. SAFE_ADD(x, y), SAFE_SUBTRACT, SAFE_MULTIPLY and "
        "SAFE_NEGATE are the same.",
        functions=("SAFE_ADD", "SAFE_SUBTRACT", "SAFE_MULTIPLY", "SAFE_NEGATE"),
    ),
    Entry(
        "Numbers",
        "x / y",
        "A double, also between whole numbers. Missing for y = 0.",
        "BigQuery raises an error for y = 0. SAFE_DIVIDE is the same.",
        functions=("SAFE_DIVIDE",),
    ),
    Entry(
        "Numbers",
        "DIV(x, y), x // y; MOD(x, y), x % y",
        "Of whole numbers, rounded towards zero; the remainder has x's sign. Missing for y = 0.",
        "BigQuery raises an error for y = 0, and has no // and %.",
        functions=("DIV", "MOD"),
    ),
    Entry("Numbers", "ABS(x); SIGN(x)", "x without its sign; -1, 0 or 1.", functions=("ABS", "SIGN")),
    Entry(
        "Numbers",
        "FLOOR(x), CEIL(x), TRUNC(x), ROUND(x)",
        "Down, up, towards zero, to the nearest (halves away from zero): whole numbers of 64 bits, so that they can "
        "be keys. Missing beyond, and for infinities.",
        "BigQuery gives doubles. CEILING is CEIL.",
        functions=("FLOOR", "CEIL", "CEILING", "TRUNC", "ROUND"),
    ),
    Entry(
        "Numbers",
        "ROUND(x, 2)",
        "To decimal places that are written out, halves away from zero; of whole numbers ROUND(x, -3) too.",
        "The type stays; a double's last digit is the engine's.",
    ),
    Entry(
        "Numbers",
        "SQRT(x), EXP(x), LN(x), LOG10(x), LOG2(x); LOG(x), LOG(x, base)",
        "Doubles. LOG(x) is LN(x). Missing where there is no value: SQRT(-1), LN(0).",
        "BigQuery raises an error there. (In DuckDB and PostgreSQL LOG(x) is LOG10.)",
        functions=("SQRT", "EXP", "LN", "LOG10", "LOG2", "LOG"),
    ),
    Entry(
        "Numbers",
        "POW(x, y), x ** y, x ^ y",
        "A double; missing for 0 to a negative power and for fractional powers of negative numbers.",
        "POWER is POW. In BigQuery ^ is another operator.",
        functions=("POW", "POWER"),
    ),
    Entry(
        "Numbers",
        "BIN(x, 0, 100, 20)",
        "The lower edge of x's bin among 20 equal bins from 0 to 100, a key for GROUP BY. A bin holds its lower edge "
        "and not its upper one; the last holds both. What lies below counts in the first bin, what lies above in the "
        "last.",
        "Ours; BigQuery's RANGE_BUCKET counts what lies outside apart.",
        functions=("BIN",),
    ),
)

_TEXT = (
    Entry(
        "Text",
        "LOWER(x), UPPER(x)",
        "Letter by letter, so that the length stays.",
        "BigQuery makes SS of ß. LCASE and UCASE are the same.",
        functions=("LOWER", "UPPER", "LCASE", "UCASE"),
    ),
    Entry(
        "Text",
        "TRIM(x), LTRIM(x), RTRIM(x); TRIM(x, 'ab'); TRIM(BOTH 'a' FROM x)",
        "Without Unicode's white space, or without the given characters, at both ends, the left or the right.",
        functions=("TRIM", "LTRIM", "RTRIM"),
    ),
    Entry(
        "Text",
        "SUBSTR(x, 2), SUBSTR(x, 2, 3); LEFT(x, 3), RIGHT(x, 3); SUBSTRING(x FROM 2 FOR 3)",
        "Places from 1 and lengths that are written out, in characters (code points). Place 0 is 1; a negative place "
        "counts from the end.",
        functions=("SUBSTR", "SUBSTRING", "LEFT", "RIGHT"),
    ),
    Entry(
        "Text",
        "CONCAT(x, y, ...), x || y",
        "Joined; missing if a part is. A part without a bound on its length is read as its first 1,000 characters; "
        "what could have more than 10,000 is refused.",
        "BigQuery has other limits. Numbers need CAST.",
        functions=("CONCAT",),
    ),
    Entry(
        "Text",
        "REPLACE(x, 'a', 'b')",
        "With each 'a' replaced; the texts are written out, the bounds are those of CONCAT.",
        functions=("REPLACE",),
    ),
    Entry(
        "Text",
        "SPLIT_PART(x, '/', 1)",
        "The part of x at that place, from 1, between the separators; '' if there is none. Both are written out.",
        "For SPLIT(x, '/')[OFFSET(0)].",
        functions=("SPLIT_PART",),
    ),
    Entry(
        "Text",
        "LENGTH(x); BYTE_LENGTH(x)",
        "In characters (code points); in bytes of UTF-8.",
        "CHAR_LENGTH and CHARACTER_LENGTH are LENGTH, OCTET_LENGTH is BYTE_LENGTH.",
        functions=("LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH", "BYTE_LENGTH", "OCTET_LENGTH"),
    ),
    Entry(
        "Text",
        "STRPOS(x, y); POSITION(y IN x)",
        "Where y first stands in x, from 1; 0 if nowhere.",
        "INSTR(x, y) is STRPOS, without its further arguments.",
        functions=("STRPOS", "INSTR"),
    ),
)

_TIMES = (
    Entry(
        "Dates and times",
        "EXTRACT(YEAR FROM x)",
        "YEAR, QUARTER, MONTH, DAY, HOUR, MINUTE, SECOND, DATE; DAYOFYEAR; DAYOFWEEK (Sunday is 1); ISODOW (Monday "
        "is 1); DOW (Sunday is 0); WEEK (from Sunday; 0 before the year's first); ISOWEEK and ISOYEAR.",
        "DOY is DAYOFYEAR. DOW and ISODOW are PostgreSQL's. WEEK(MONDAY) is ISOWEEK. No parts below a second. "
        "YEAR(x), QUARTER(x), MONTH(x), DAY(x), DAYOFMONTH(x), DAYOFYEAR(x), HOUR(x), MINUTE(x) and SECOND(x) are "
        "ours, as is DATE_PART('year', x) or DATEPART, where 'week' is ISOWEEK.",
        functions=(
            *("YEAR", "QUARTER", "MONTH", "DAY", "DAYOFMONTH", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND"),
            *("DATE_PART", "DATEPART"),
        ),
    ),
    Entry(
        "Dates and times",
        "DATE_TRUNC(x, MONTH); DATE_TRUNC('month', x)",
        "The beginning of the year, quarter, month, week (Sunday), ISOWEEK (Monday), ISOYEAR, day, hour, minute or "
        "second; of the same type as x.",
        "Both orders are read. In the second, PostgreSQL's and DuckDB's, a 'week' begins on Monday. TIMESTAMP_TRUNC "
        "and DATETIME_TRUNC are the same; for a zone write x AT TIME ZONE.",
        functions=("DATE_TRUNC", "TIMESTAMP_TRUNC", "DATETIME_TRUNC"),
    ),
    Entry(
        "Dates and times",
        "DATE(x), DATE(x, 'Asia/Shanghai'); DATETIME(x), TIMESTAMP(x)",
        "The date; the date and time; the moment.",
        functions=("DATE", "DATETIME", "TIMESTAMP"),
    ),
    Entry(
        "Dates and times",
        "x AT TIME ZONE 'Europe/Berlin'; ... '+08:00'",
        "What the clocks of a zone show at a moment; or the moment when they show x. A zone is written Area/City, "
        "UTC or as an offset. Missing for the first and last two days of the years 1 to 9999.",
        "In BigQuery it stands inside EXTRACT only.",
    ),
    Entry(
        "Dates and times",
        "x - y",
        "Whole days between dates; seconds, with 6 decimal places, between times.",
        "BigQuery gives an interval.",
    ),
    Entry(
        "Dates and times",
        "DATE_DIFF(x, y, MONTH)",
        "x minus y. Between dates: the boundaries of days, weeks, months, quarters or years crossed. Between times: "
        "whole days, hours, minutes, seconds, milliseconds or microseconds passed.",
        "TIMESTAMP_DIFF, DATETIME_DIFF and DATEDIFF are the same (DATETIME_DIFF counts what has passed too, not "
        "boundaries). DATE_DIFF('month', y, x), in DuckDB's order, is read as well.",
        functions=("DATE_DIFF", "TIMESTAMP_DIFF", "DATETIME_DIFF", "DATEDIFF"),
    ),
    Entry(
        "Dates and times",
        "x + INTERVAL 3 DAY, x - INTERVAL 1 MONTH; DATE_ADD(x, INTERVAL 3 DAY), DATE_SUB(...); day + 3",
        "Moved by a whole number of microseconds, ... days, weeks, months, quarters or years that is written out. A "
        "day that the month does not have becomes its last. Missing outside of the years 1 to 9999.",
        "Months can be added to moments too (in UTC). TIMESTAMP_ADD, TIMESTAMP_SUB, DATETIME_ADD and DATETIME_SUB "
        "are the same.",
        functions=("DATE_ADD", "DATE_SUB", "TIMESTAMP_ADD", "TIMESTAMP_SUB", "DATETIME_ADD", "DATETIME_SUB"),
    ),
    Entry("Dates and times", "LAST_DAY(x)", "The last day of the month.", "Of months only.", functions=("LAST_DAY",)),
    Entry(
        "Dates and times",
        "UNIX_SECONDS(x), UNIX_MILLIS(x), UNIX_MICROS(x)",
        "Whole units since 1970, rounded down.",
        functions=("UNIX_SECONDS", "UNIX_MILLIS", "UNIX_MICROS"),
    ),
    Entry(
        "Dates and times",
        "TIMESTAMP_SECONDS(n), TIMESTAMP_MILLIS(n), TIMESTAMP_MICROS(n)",
        "The moment so many units after 1970; missing outside of the years 1 to 9999.",
        functions=("TIMESTAMP_SECONDS", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS"),
    ),
)

_TYPES = (
    Entry(
        "Types",
        "CAST(x AS T), SAFE_CAST(x AS T), TRY_CAST(x AS T), x::T",
        "All the same: a value that the type does not have becomes missing. The table below says what each pair means.",
        "BigQuery's CAST raises an error.",
    ),
    Entry(
        "Types",
        "BOOLEAN; BIGINT, HUGEINT; DECIMAL(p, s); DOUBLE; VARCHAR; DATE; TIMESTAMP, TIMESTAMPTZ",
        "True or false; whole numbers of 64 and 128 bits; decimals; doubles; texts; dates; times without a zone, and "
        "moments.",
        "Also BOOL, INT64, FLOAT64, STRING, NUMERIC(p, s), DATETIME and the usual names of other engines; shorter "
        "whole numbers are 64 bits wide. TIMESTAMP has no zone: BigQuery's TIMESTAMP is TIMESTAMPTZ.",
    ),
)

ENTRIES: tuple[Entry, ...] = (
    *_QUERIES,
    *_AGGREGATES,
    *_CONDITIONS,
    *_CHOICES,
    *_NUMBERS,
    *_TEXT,
    *_TIMES,
    *_TYPES,
)
"""Everything that a query can say."""
