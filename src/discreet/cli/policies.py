"""Which policy a command goes by, and which of its data sets is meant."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.talk import say
from discreet.errors import SourceError, UsageError

if TYPE_CHECKING:
    from discreet.policy import DatasetPolicy, Policy

__all__ = ["FILE", "Governed", "dataset_named", "find_policy", "governed", "split_words"]

FILE = "discreet.toml"
_SQL = re.compile(r"\s*(SELECT|WITH|\()", re.IGNORECASE)


@dataclass(frozen=True)
class Governed:
    """A policy, and the data set of it that is asked about."""

    policy: Policy
    dataset: DatasetPolicy


def split_words(source: str, sql: str | None) -> tuple[str | None, str]:
    """Source and question; a question alone needs no source where there is a policy.

    Raises:
        UsageError: one word, and it is no question.
    """
    if sql is not None:
        return source, sql
    if not _SQL.match(source):
        rule = "is missing: a SELECT, in quotes, after the source"
        raise UsageError("SQL", rule, hint=f'discreet query {source} "SELECT COUNT(*) FROM data"')
    return None, source


def find_policy(option: str | None) -> Policy | None:
    """The policy to go by: the one that --policy names, else DISCREET_POLICY, else discreet.toml in this folder. Says
    which it is.

    Raises:
        UsageError: one that was named is not there.
        PolicyError: with all its faults.
    """
    from discreet.policy import load_policy

    named = os.environ.get("DISCREET_POLICY") or None
    if option is not None:
        place, how = option, "--policy"
    elif named is not None:
        place, how = named, "DISCREET_POLICY"
    elif Path(FILE).is_file():
        place, how = FILE, "in this folder"
    else:
        return None
    say(f"policy: {place} ({how})" if how != "in this folder" else f"policy: {place} in this folder")
    return load_policy(place)


def governed(option: str | None, source: str | None, relation: str) -> Governed | None:
    """The policy and the data set that a question is about; None if it goes by no policy.

    Args:
        option: --policy, as written.
        source: as written: the name of a data set, or where one of them lies; None if nothing was.
        relation: what FROM names.

    Raises:
        UsageError: it cannot be told, or a policy was named and its data sets are others.
        PolicyError: as `find_policy`.
    """
    policy = find_policy(option)
    if policy is None:
        if source is None:
            raise UsageError(
                "SOURCE",
                "is missing, and there is no policy that says what is asked about",
                hint=f"name a file before the question; or a policy, by --policy, DISCREET_POLICY or {FILE} here",
            )
        return None
    if source is None:
        return Governed(policy, _called(policy, relation))
    found = dataset_named(policy, source)
    if found is not None:
        return Governed(policy, found)
    if option is not None:
        policy.dataset(source)  # refuses, with those there are
    say(f"{source} is none of its data sets, and is asked without it")
    return None


def _called(policy: Policy, relation: str) -> DatasetPolicy:
    if relation != "data" or relation in policy.datasets:
        return policy.dataset(relation)
    if len(policy.datasets) > 1:
        known = ", ".join(policy.datasets)
        raise UsageError("FROM", f"must name one of the policy's data sets: {known}", relation)
    return next(iter(policy.datasets.values()))


def dataset_named(policy: Policy, source: str) -> DatasetPolicy | None:
    """A data set by its name, or by where it lies; None if it is none of the policy's."""
    from discreet.opening import location_of

    if source in policy.datasets:
        return policy.datasets[source]
    for dataset in policy.datasets.values():
        try:
            if location_of(dataset).source == location_of(dataset, source).source:
                return dataset
        except (SourceError, UsageError):  # one of the two is not there, or is nothing that could be the other
            continue
    return None
