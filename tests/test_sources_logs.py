"""Logs in named forms: access logs, syslog of both kinds, audit logs."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import SourceError, UsageError
from discreet.sources import inspect_source, register
from source_rows import one, rows, types

UTC = datetime.UTC
FIRST = '1.2.3.4 - ann [17/May/2015:10:05:03 +0200] "GET /a b?q=\\"x\\" HTTP/1.1" 200 2326'


def lines(path: Path, *texts: str) -> Path:
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return path


def named(registration: Any) -> list[dict[str, Any]]:
    return [dict(zip(registration.schema.names(), row, strict=True)) for row in rows(registration)]


def test_access_logs(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "access.log",
        f'{FIRST} "http://x/" "A \\"quoted\\" agent"',
        '::1 - - [31/Dec/2023:23:59:60 -0000] "-" 408 - "-" "-"',
        '5.6.7.8 - a person [01/Jan/2024:00:00:00 +0000] "\\x16\\x03" 400 0 "" "" extra 12',
        '5.6.7.9 - - [01/Jan/2024:00:00:01 +0000] "POST /p HTTP/2.0" 304 0',
    )
    registration = register(path, log_format="combined")
    assert types(registration) == {
        "ip": "VARCHAR",
        "identity": "VARCHAR",
        "user": "VARCHAR",
        "time": "TIMESTAMPTZ",
        "method": "VARCHAR",
        "path": "VARCHAR",
        "protocol": "VARCHAR",
        "status": "BIGINT",
        "bytes": "BIGINT",
        "referer": "VARCHAR",
        "user_agent": "VARCHAR",
    }
    first, *_ = (row for row in named(registration) if row["ip"] == "1.2.3.4")
    assert first == {
        "ip": "1.2.3.4",
        "identity": None,
        "user": "ann",
        "time": datetime.datetime(2015, 5, 17, 8, 5, 3, tzinfo=UTC),
        "method": "GET",
        "path": '/a b?q=\\"x\\"',
        "protocol": "HTTP/1.1",
        "status": 200,
        "bytes": 2326,
        "referer": "http://x/",
        "user_agent": 'A \\"quoted\\" agent',
    }
    by_ip = {row["ip"]: row for row in named(registration)}
    assert by_ip["::1"]["bytes"] is None
    assert by_ip["::1"]["method"] is None
    assert by_ip["5.6.7.8"]["user"] == "a person"
    assert by_ip["5.6.7.9"]["user_agent"] is None
    assert types(register(path, log_format="common")) == dict(list(types(registration).items())[:9])


def test_r42_lines_of_another_form_are_left_out_and_the_owner_is_told(tmp_path: Path) -> None:
    path = lines(tmp_path / "access.log", FIRST, FIRST, FIRST)
    registration = register(path, log_format="common")
    with path.open("ab") as file:
        file.write(b"\n \nnoise\n" + FIRST.encode() + b'\x00"\n' + FIRST[:-6].encode() + b"\n\xff\xfe\n")
    assert one(registration, "COUNT(*)") == (3,)
    inspection = inspect_source(path, log_format="common", encoding="utf-8", strict=False)
    assert (inspection.records, inspection.bad_records) == (3, 4)
    with pytest.raises(SourceError, match="line 6 does not have the form"):
        register(path, log_format="common", encoding="utf-8", strict=True)
    with pytest.raises(SourceError, match="no line of it is a rfc5424 record"):
        register(path, log_format="rfc5424", encoding="utf-8")
    with pytest.raises(UsageError, match="log_format: is required for a log: one of combined"):
        register(path)


def test_times_that_are_none_are_missing(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.log", FIRST)
    registration = register(path, log_format="common")
    lines(
        path, *(FIRST.replace("17/May/2015:10:05:03 +0200", text) for text in ("", "99/Foo", "17/May/99999:1:1:1 +0"))
    )
    assert one(registration, "COUNT(*), COUNT({time})") == (3, 0)


def test_syslog(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "messages",
        "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
        "Jan  2 03:04:05 host sshd[123]: Accepted publickey for ann",
        "2024-02-29T12:00:00.123456+01:00 host cron[9]: (root) CMD",
        "Feb 30 03:04:05 host kernel: no such day",
    )
    with pytest.raises(SourceError, match=r"its times have no year.*year=2024"):
        register(path, log_format="syslog")
    registration = register(path, log_format="syslog", year=2023, timezone="Asia/Tokyo")
    by_app = {row["app"]: row for row in named(registration)}
    assert by_app["su"]["facility"], by_app["su"]["severity"] == (4, 2)
    assert by_app["su"]["time"] == datetime.datetime(2023, 10, 11, 13, 14, 15, tzinfo=UTC)
    assert by_app["sshd"]["pid"] == "123"
    assert by_app["sshd"]["time"] == datetime.datetime(2023, 1, 1, 18, 4, 5, tzinfo=UTC)
    assert by_app["cron"]["time"] == datetime.datetime(2024, 2, 29, 11, 0, 0, 123456, tzinfo=UTC)
    assert by_app["cron"]["facility"] is None
    assert by_app["kernel"]["time"] is None
    assert by_app["kernel"]["message"] == "no such day"


def test_rfc_5424(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.log",
        "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \ufeff'su root' failed",
        '<165>1 2003-10-11T22:14:15.003Z host evntslog - ID48 [a@1 k="v\\"]"][b x="y"] An event',
        "<0>1 - - - - - -",
    )
    registration = register(path, log_format="rfc5424")
    by_id = {row["msgid"]: row for row in named(registration)}
    assert by_id["ID47"]["message"] == "'su root' failed"
    assert by_id["ID47"]["time"] == datetime.datetime(2003, 10, 11, 22, 14, 15, 3000, tzinfo=UTC)
    assert by_id["ID48"]["structured_data"] == '[a@1 k="v\\"]"][b x="y"]'
    assert (by_id["ID48"]["facility"], by_id["ID48"]["severity"]) == (20, 5)
    assert [by_id[None][name] for name in ("host", "app", "time", "structured_data")] == [None] * 4


def test_audit_logs(shared_data: Path, tmp_path: Path) -> None:
    inspection = inspect_source(shared_data / "logs" / "auditd_rhel7.log", log_format="auditd")
    assert (inspection.records, inspection.bad_records) == (49, 1)  # type=UNKNOWN[1329] msg=?
    registration = inspection.registration
    kinds = types(registration)
    assert (kinds["type"], kinds["time"], kinds["auid"], kinds["acct"], kinds["a0"]) == (
        "VARCHAR",
        "TIMESTAMPTZ",
        "BIGINT",
        "VARCHAR",
        "VARCHAR",
    )
    text = (shared_data / "logs" / "auditd_rhel7.log").read_text()
    right = (text.count("res=success"), text.count('acct="') - text.count('acct="?"'))
    assert one(registration, "COUNT_IF({res} = 'success'), COUNT({acct})") == right
    path = lines(
        tmp_path / "audit.log",
        "node=h1 type=SYSCALL msg=audit(1364481363.243:24287): arch=c000003e success=no exit=-13 uid=1 "
        'comm="cat x" key=(null)',
        'type=USER_LOGIN msg=audit(1364481364.5:24288): pid=7 uid=0 msg=\'op=login acct="root" exe="/usr/sbin/sshd" '
        'addr=? res=success\'\x1dUID="root"',
    )
    first, second = sorted(named(register(path, log_format="auditd")), key=lambda row: row["serial"])
    assert first["time"] == datetime.datetime(2013, 3, 28, 14, 36, 3, 243000, tzinfo=UTC)
    assert [first[name] for name in ("node", "exit", "comm", "key", "acct")] == ["h1", -13, "cat x", None, None]
    assert [second[name] for name in ("node", "uid", "UID", "acct", "addr", "res")] == [
        None,
        0,
        "root",
        "root",
        None,
        "success",
    ]


def test_rotated_logs_in_one_pattern(tmp_path: Path) -> None:
    import gzip

    lines(tmp_path / "access.log", FIRST)
    lines(tmp_path / "access.log.1", FIRST, FIRST)
    (tmp_path / "access.log.2.gz").write_bytes(gzip.compress(FIRST.encode()))
    assert one(register(tmp_path / "access.log*", log_format="common"), "COUNT(*)") == (4,)
