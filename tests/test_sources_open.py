"""The options of reading on their way in: `discreet.open` and the command line; stored once, never changed later."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.errors import RefusedError, SourceError, UsageError

MUCH = 10**8
"""An epsilon that lets the true answer be seen."""


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    def make(source: object, **options: Any) -> discreet.Dataset:
        options = {"row_level": True, "budget": 10**9} | options
        return discreet.open(source, ledger=tmp_path / "ledger.sqlite", **options)

    return make


GBK = "姓名,城市,年龄\n张三,北京,30\n李四,上海,41\n".encode("gbk")


def test_r13_chinese_exports_from_end_to_end(opened: Any, tmp_path: Path) -> None:
    path = tmp_path / "人.csv"
    path.write_bytes(GBK)
    with pytest.raises(SourceError, match=r"line 1 is not UTF-8.*--encoding gb18030"):
        opened(path)
    data = opened(path, encoding="gbk")
    answer = data.query(
        "SELECT 城市, COUNT(*) AS n FROM data GROUP BY 城市", epsilon=MUCH, keys={"城市": ["北京", "上海"]}
    )
    assert answer["n"] == (1, 1)
    for again in ({}, {"encoding": "gbk"}, {"encoding": "GB2312"}):
        if again.get("encoding") == "GB2312":
            with pytest.raises(UsageError, match=r"encoding: was registered with gbk.*\(got 'gb2312'\)"):
                opened(path, **again)
        else:
            opened(path, **again)


CSV = "id;v\n1;1.234,5\n2;-\n"
OPTIONS = {"delimiter": ";", "decimal": ",", "thousands": ".", "null_values": ["-"], "header": True, "strict": True}


def test_options_are_stored_and_may_be_said_again_but_not_changed(opened: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(CSV)
    data = opened(path, **OPTIONS)
    answer = data.query("SELECT SUM(v) AS s, COUNT(v) AS n FROM data", epsilon=MUCH, bounds={"v": (0, 10_000)})
    assert answer["n"] == (1,)
    assert abs(answer["s"][0] - 1234.5) < 0.01
    opened(path)
    opened(path, **OPTIONS)
    opened(path, names=["id", "v"], quote='"')
    for name, other, told in (
        ("delimiter", ",", r"with ; .*\(got ','\)"),
        ("decimal", ".", r"with , .*\(got '\.'\)"),
        ("null_values", ["NA"], r"with -; .*\(got 'NA'\)"),
        ("header", False, r"with True; .*\(got 'False'\)"),
        ("encoding", "gbk", r"with utf-8; .*\(got 'gbk'\)"),
        ("names", ["a", "b"], r"with id,v; .*\(got 'a,b'\)"),
        ("timezone", "UTC", r"without it; .*\(got 'UTC'\)"),
    ):
        with pytest.raises(UsageError, match=f"^{name}: was registered {told.replace(' .*', '.*')}"):
            opened(path, **{name: other})
    with pytest.raises(UsageError, match=r"^records: means nothing for delimited text"):
        opened(path, records="Records")
    with pytest.raises(UsageError, match="open: has no such option; those of reading are decimal, delimiter"):
        opened(path, seperator=",")


def test_a_frame_takes_no_option_of_reading(opened: Any) -> None:
    import pyarrow as pa

    with pytest.raises(UsageError, match=r"^encoding: means nothing for a data frame"):
        opened(pa.table({"a": [1]}), name="f", encoding="gbk")


EVENTS = [
    {"actor": {"email": "a"}, "events": [{"name": "edit"}, {"name": "view"}], "tags": {f"k/{i}": i for i in range(9)}},
    {"actor": {"email": "b"}, "events": [{"name": "view"}], "x.y": 7},
    {"actor": {"email": "a"}, "events": []},
    {"actor": None},
]


@pytest.fixture
def events(opened: Any, tmp_path: Path) -> discreet.Dataset:
    path = tmp_path / "events.json"
    path.write_text(json.dumps({"items": EVENTS}))
    return opened(path, records="items", row_level=False, privacy_unit="actor.email", max_contributions=5)


@pytest.mark.parametrize(
    "name", ["events[0].name", '"events[0].name"', "data.events[0].name", "events[OFFSET(0)].name", "`events[0].name`"]
)
def test_paths_below_lists_in_sql(events: discreet.Dataset, name: str) -> None:
    answer = events.query(
        f"SELECT {name} AS k, COUNT(*) AS n, COUNT(DISTINCT actor.email) AS who FROM data GROUP BY k",
        epsilon=MUCH,
        keys={"k": ["edit", "view", None]},
    )
    assert list(zip(answer["k"], answer["n"], answer["who"], strict=True)) == [
        ("edit", 1, 1),
        ("view", 1, 1),
        (None, 1, 1),
    ]
    looked = events.estimate(f"SELECT COUNT(*) AS n FROM data WHERE {name} = 'edit'", epsilon=1)
    assert looked is not None


def test_other_paths_in_sql(events: discreet.Dataset) -> None:
    answer = events.query(
        "SELECT COUNTIF(events[1].name = 'view') AS a, COUNTIF(\"x.y\" = 7) AS b, COUNTIF(x.y = 7) AS c, "
        'COUNTIF(tags."k/3" = 3) AS d, COUNTIF(actor.email IS NULL) AS e FROM data',
        epsilon=MUCH,
    )
    assert [answer[name][0] for name in "abcde"] == [1, 1, 1, 1, 0]
    for text in ("events", "events.name", "events[0]", "nothing[0].name"):
        sql = f"SELECT COUNT({text}) AS n FROM data"
        if text in ("events.name", "events[0]"):
            events.query(sql, epsilon=1)  # a path that no record has is missing
        else:
            with pytest.raises(UsageError):
                events.query(sql, epsilon=1)
    for text in ("events[-1].name", "events[x].name", "events['a']", "events[1:2]", "(1)[0]"):
        with pytest.raises((UsageError, RefusedError)):
            events.query(f"SELECT COUNT({text}) AS n FROM data", epsilon=1)


def test_a_path_can_be_the_privacy_unit(opened: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"ips":["x","z"],"n":1}\n{"ips":["x"],"n":1}\n{"ips":["y"],"n":1}\n{"n":1}\n')
    data = opened(path, row_level=False, privacy_unit="ips[0]", max_contributions=5)
    assert data.unit_text() == '"ips[0]"'
    answer = data.query("SELECT COUNT(DISTINCT ips[0]) AS who, COUNT(*) AS n FROM data WHERE n = 1", epsilon=MUCH)
    assert (answer["who"], answer["n"]) == ((2,), (3,))
    with pytest.raises(UsageError, match="privacy unit"):
        opened(path, row_level=False, privacy_unit="ips[1]", max_contributions=5)


def test_folders_and_their_keys_from_end_to_end(opened: Any, tmp_path: Path) -> None:
    for region, text in (("eu", "id,x\n1,1\n2,1\n"), ("us", "x,id\n1,3\n"), ("__HIVE_DEFAULT_PARTITION__", "id\n4\n")):
        folder = tmp_path / "sales" / f"region={region}"
        folder.mkdir(parents=True)
        (folder / "part.csv").write_text(text)
    data = opened(tmp_path / "sales")
    keys = {"region": ["eu", "us", None, "asia"]}
    sql = "SELECT region, COUNT(*) AS n, COUNT(x) AS x FROM sales GROUP BY region"
    answer = data.query(sql, epsilon=MUCH, keys=keys)
    assert (answer["n"], answer["x"]) == ((2, 1, 1, 0), (2, 1, 0, 0))
    (tmp_path / "sales" / "region=asia").mkdir()
    (tmp_path / "sales" / "region=asia" / "new.csv").write_text("x,id,more\n1,9,z\n")
    assert data.query(sql, epsilon=MUCH, keys=keys, fresh=True)["n"] == (2, 1, 1, 1)


def test_a_registered_folder_opens_whatever_lies_in_it_now(opened: Any, tmp_path: Path) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    with pytest.raises(SourceError, match="no file matches"):
        opened(folder)
    (folder / "a.csv").write_text("id\n1\n")
    opened(folder)
    (folder / "b.parquet").write_bytes(b"")
    assert opened(folder).query("SELECT COUNT(*) AS n FROM data", epsilon=MUCH)["n"] == (1,)
    (folder / "b.parquet").unlink()
    (folder / "a.csv").unlink()
    data = opened(folder)
    assert data.query("SELECT COUNT(*) AS n FROM data", epsilon=MUCH, fresh=True)["n"] == (0,)
    folder.rmdir()
    with pytest.raises(SourceError, match="gone"):
        opened(folder).query("SELECT COUNT(*) AS m FROM data", epsilon=MUCH)
    assert data.balance().queries == 2, "nothing was charged for what cannot be read"
    assert opened(folder).query("SELECT COUNT(*) AS n FROM data", epsilon=MUCH)["n"] == (0,)


def test_the_command_line_says_the_same(discreet: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(GBK)
    (tmp_path / "b.csv").write_text(CSV)
    (tmp_path / "c.json").write_text(json.dumps({"items": EVENTS}))
    (tmp_path / "d.txt").write_text('1.1.1.1 - - [17/May/2015:10:05:03 +0200] "GET / HTTP/1.1" 200 5\n')
    common = ("--row-level", "--epsilon", "100000000", "--budget", "1000000000", "--format", "csv")

    def asked(name: str, sql: str, *options: str) -> str:
        done = discreet("query", str(tmp_path / name), sql, *options, *common)
        assert done.code == 0, done.err
        return done.out.splitlines()[1].split(",")[0]

    assert asked("a.csv", "SELECT COUNT(*) AS n FROM data WHERE 城市 = '北京'", "--encoding", "gbk") == "1"
    options = ("--delimiter", ";", "--decimal", ",", "--thousands", ".", "--null-values", "-", "--header", "--strict")
    assert asked("b.csv", "SELECT COUNT(*) AS n FROM data WHERE v = 1234.5", *options) == "1"
    assert asked("c.json", "SELECT COUNT(*) AS n FROM data WHERE events[0].name = 'view'", "--records", "items") == "1"
    assert asked("d.txt", "SELECT COUNT(*) AS n FROM data WHERE status = 200", "--log-format", "common") == "1"
    done = discreet("query", str(tmp_path / "a.csv"), "SELECT COUNT(*) FROM data", "--encoding", "latin-1", *common)
    assert done.code == 2
    assert "encoding: was registered with gbk" in done.error()
    done = discreet("query", str(tmp_path / "b.csv"), "SELECT COUNT(*) FROM data", "--source-year", "soon", *common)
    assert "--source-year: must be a year" in done.error()
    sql = "SELECT COUNT(*) FROM data"
    (tmp_path / "d.csv").write_text(CSV)
    done = discreet("query", str(tmp_path / "[bd].csv"), sql, *options, *common, "-o", str(tmp_path / "d.csv"))
    assert "must not be the source's d.csv" in done.error()
    done = discreet("estimate", str(tmp_path / "b.csv"), "SELECT COUNT(*) FROM data", "--records", "x", *common[:3])
    assert "records: means nothing for delimited text" in done.error()


def test_what_cannot_be_a_source_or_a_copy_says_so(tmp_path: Path) -> None:
    for name in ("a\udcff.csv", "a\ud800.csv", "a\0.csv"):
        with pytest.raises(SourceError, match="must be valid UTF-8"):
            discreet.open(name, ledger=tmp_path / "l")
    path = tmp_path / "a.csv"
    for nothing in (b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"\n"):
        path.write_bytes(nothing)
        with pytest.raises(SourceError, match="is empty"):
            discreet.open(path, ledger=tmp_path / "l")
    path.write_text("a,b\n1,2\n")
    dataset = discreet.open(path, ledger=tmp_path / "l")
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(UsageError, match="cannot be pickled or copied"):
            copied(dataset)
