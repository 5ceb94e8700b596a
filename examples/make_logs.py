"""The invented logs beside this file, nobody's data, the same each time: `python examples/make_logs.py`.

Shapes are those of the real things: an access log in the combined form, CloudTrail's {"Records": [...]}, Kubernetes
audit events as JSON lines, and a CSV export. A few accounts do most of the work, as everywhere.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

PLACE = Path(__file__).parent
START = datetime(2026, 3, 2, tzinfo=UTC)


def people(random: Random, number: int, events: int) -> Iterator[tuple[int, datetime]]:
    """Who does something, and when: `events` times in one week, in order."""
    weights = [1 / (rank + 4) for rank in range(number)]
    moments = sorted(random.uniform(0, 7 * 86400) for _ in range(events))
    for seconds, person in zip(moments, random.choices(range(number), weights, k=events), strict=True):
        yield person, START + timedelta(seconds=int(seconds))


def access_log() -> str:
    """An access log in the combined form, with a user for each request."""
    random = Random(1)
    pages = {"/": 30, "/login": 12, "/search": 25, "/cart": 9, "/orders": 6, "/admin": 1}
    lines = []
    for person, when in people(random, 400, 6000):
        page = random.choices(list(pages), list(pages.values()))[0]
        status = random.choices([200, 304, 403 if page == "/admin" else 404, 500], [85, 8, 6, 1])[0]
        size = 0 if status == 304 else min(int(random.lognormvariate(8.5, 1)), 400_000)
        address = f"198.51.100.{person % 250}"
        moment = when.strftime("%d/%b/%Y:%H:%M:%S +0000")
        lines.append(f'{address} - user{person:03d} [{moment}] "GET {page} HTTP/1.1" {status} {size} "-" "Mozilla/5.0"')
    return "\n".join(lines) + "\n"


def cloudtrail() -> str:
    """One document of CloudTrail's shape."""
    random = Random(2)
    calls = {
        ("s3.amazonaws.com", "GetObject"): 40,
        ("s3.amazonaws.com", "PutObject"): 15,
        ("sts.amazonaws.com", "AssumeRole"): 20,
        ("ec2.amazonaws.com", "DescribeInstances"): 15,
        ("iam.amazonaws.com", "CreateUser"): 1,
        ("signin.amazonaws.com", "ConsoleLogin"): 9,
    }
    records = []
    for number, (person, when) in enumerate(people(random, 150, 3000)):
        source, name = random.choices(list(calls), list(calls.values()))[0]
        record = {
            "eventVersion": "1.09",
            "userIdentity": {
                "type": "IAMUser",
                "arn": f"arn:aws:iam::111122223333:user/u{person:03d}",
                "userName": f"u{person:03d}",
            },
            "eventTime": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "eventSource": source,
            "eventName": name,
            "awsRegion": random.choice(["eu-central-1", "us-east-1"]),
            "sourceIPAddress": f"203.0.113.{person % 250}",
            "eventID": f"{number:08x}",
        }
        if random.random() < 0.05:
            record["errorCode"] = "AccessDenied"
        records.append(record)
    return json.dumps({"Records": records}) + "\n"


def kubernetes() -> str:
    """Audit events of a Kubernetes API server, one JSON object a line."""
    random = Random(3)
    verbs = {"get": 40, "list": 20, "watch": 20, "create": 8, "patch": 8, "delete": 2}
    resources = {"pods": 40, "configmaps": 15, "secrets": 5, "deployments": 20, "services": 10}
    lines = []
    for number, (person, when) in enumerate(people(random, 120, 4000)):
        resource = random.choices(list(resources), list(resources.values()))[0]
        event = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": f"{number:08x}",
            "stage": "ResponseComplete",
            "verb": random.choices(list(verbs), list(verbs.values()))[0],
            "user": {"username": f"dev{person:03d}@example.org", "groups": ["system:authenticated"]},
            "sourceIPs": [f"192.0.2.{person % 250}"],
            "objectRef": {"resource": resource, "namespace": random.choice(["default", "shop", "batch"])},
            "responseStatus": {"code": random.choices([200, 403, 404], [92, 4, 4])[0]},
            "requestReceivedTimestamp": when.strftime("%Y-%m-%dT%H:%M:%S.000000Z"),
        }
        lines.append(json.dumps(event))
    return "\n".join(lines) + "\n"


def visits() -> str:
    """A CSV export: visits to a clinic's web page."""
    random = Random(4)
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["patient", "day", "department", "minutes"])
    for person, when in people(random, 500, 2500):
        department = random.choice(["cardiology", "dermatology", "oncology", "surgery"])
        table.writerow([f"p{person:04d}", when.date(), department, min(int(random.lognormvariate(3, 0.6)), 240)])
    return out.getvalue()


def all_logs() -> dict[str, bytes]:
    """Every file, by its name."""
    return {
        "access.log.gz": gzip.compress(access_log().encode(), mtime=0),
        "cloudtrail.json.gz": gzip.compress(cloudtrail().encode(), mtime=0),
        "kubernetes.jsonl.gz": gzip.compress(kubernetes().encode(), mtime=0),
        "visits.csv": visits().encode(),
    }


if __name__ == "__main__":
    for name, content in all_logs().items():
        (PLACE / name).write_bytes(content)
