"""From the texts of a command line to the values that `Dataset` takes. Nothing is opened here but keys files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.query import Bounds

__all__ = ["choose", "keys_file_paths", "read_bounds", "read_keys", "read_public", "read_types"]


def choose(option: str, value: str, known: Sequence[str]) -> str:
    """One of the known words.

    Raises:
        UsageError: it is none of them.
    """
    if value not in known:
        raise UsageError(option, f"must be one of {', '.join(known)}", value)
    return value


def read_bounds(texts: Sequence[str] | None) -> dict[str, Bounds]:
    """``NAME=LOW..HIGH``, several times.

    Raises:
        UsageError: not of that form, not numbers, out of order, or a name twice.
    """
    from discreet.bounds import parse_bounds_option

    bounds: dict[str, Bounds] = {}
    for text in texts or ():
        name, pair = parse_bounds_option(text)
        if bounds.setdefault(name, pair) != pair:
            raise UsageError(f"--bounds {name}", "is given twice, with two values", text)
    return bounds


def read_types(texts: Sequence[str] | None) -> dict[str, str]:
    """``NAME=TYPE``, several times.

    Raises:
        UsageError: not of that form, not a type, or a name twice.
    """
    from discreet.schema import parse_type

    types: dict[str, str] = {}
    for text in texts or ():
        name, sign, kind = text.rpartition("=")
        if not sign or not name.strip() or not kind.strip():
            raise UsageError("--types", "must be NAME=TYPE", text, "for example --types files=BIGINT")
        parse_type(kind, thing=f"--types {name}")
        if types.setdefault(name, kind) != kind:
            raise UsageError(f"--types {name}", "is given twice, with two values", text)
    return types


def read_keys(
    texts: Sequence[str] | None, files: Sequence[str] | None
) -> dict[str | tuple[str, ...], Sequence[object]]:
    """``NAME=A,B,...`` and ``NAME=FILE``, several times; what is said of one name adds up. A ``FILE`` alone is a
    table, whose columns are the grouping columns: several list combinations.

    Raises:
        UsageError: not of that form, no key, or a quote that is not closed.
        SourceError: a file that cannot be read.
    """
    from discreet.key_files import read_keys_list, read_keys_table
    from discreet.keys import parse_keys_option, split_name

    keys: dict[str | tuple[str, ...], Sequence[object]] = {}
    for text in texts or ():
        name, values = parse_keys_option(text)
        keys[name] = (*keys.get(name, ()), *values)
    for text in files or ():
        table = Path(text).expanduser()
        name, path = split_name(text)
        if _is_table(text):
            names, rows = read_keys_table(table, "--keys-file")
            listed: Sequence[object] = [row[0] for row in rows] if len(names) == 1 else rows
            which = names[0] if len(names) == 1 else names
            keys[which] = (*keys.get(which, ()), *listed)
            continue
        if not name or not path.strip():
            raise UsageError("--keys-file", "must be FILE or NAME=FILE", text, "for example --keys-file keys.csv")
        keys[name] = (*keys.get(name, ()), *read_keys_list(Path(path).expanduser(), "--keys-file"))
    return keys


def _is_table(text: str) -> bool:
    """Whether --keys-file names a file alone."""
    return "=" not in text or Path(text).expanduser().is_file()


def keys_file_paths(files: Sequence[str] | None) -> list[Path]:
    """The files that `read_keys` reads."""
    from discreet.keys import split_name

    return [Path(text if _is_table(text) else split_name(text)[1]).expanduser() for text in files or ()]


def read_public(texts: Sequence[str] | None) -> dict[str, str]:
    """``NAME=FILE``, several times.

    Raises:
        UsageError: not of that form, or a name twice.
    """
    public: dict[str, str] = {}
    for text in texts or ():
        name, sign, path = text.partition("=")
        if not sign or not name.strip() or not path.strip():
            raise UsageError("--public", "must be NAME=FILE", text, "for example --public plans=plans.csv")
        if name.strip() in public:
            raise UsageError(f"--public {name.strip()}", "is given twice", text)
        public[name.strip()] = str(Path(path).expanduser())
    return public
