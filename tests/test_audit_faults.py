"""The auditor catches every planted fault (design, section 10.3), and nothing that answers can reach one."""

from __future__ import annotations

import pytest

import discreet.release
import discreet.statement_parts
from discreet.audit.faults import FAULTS, planted
from discreet.audit.self_test import tried

QUICK = {
    "the scale is halved": "neighbours",
    "groups are forgotten in the sensitivity": "neighbours",
    "> stands for >= at the threshold": "machinery",
    "the engine's error comes out": "machinery",
    "keys are taken from the data": "neighbours",
    "a fork copies the state of randomness": "statistics",
    "a negative epsilon is accepted": "machinery",
}
SLOW = {
    "each measurement spends the whole epsilon": "machinery",
    "the threshold is one too low": "machinery",
    "noise in floats": "neighbours",
    "one noise for all groups": "neighbours",
    "no noise on one statistic": "neighbours",
    "a mean divides by the true count": "neighbours",
    "no clamp": "neighbours",
    "the clamp comes before the expression": "neighbours",
    "NaN is let through": "neighbours",
    "heavy units are not cut down": "neighbours",
    "the order of rows tells the totals": "neighbours",
    "a seed": "statistics",
}
BY_NAME = {fault.name: fault for fault in FAULTS}


def test_every_fault_stands_in_one_of_the_tables():
    assert {**QUICK, **SLOW}.keys() == BY_NAME.keys()


@pytest.mark.parametrize("name", QUICK)
def test_a_fault_is_caught(name):
    found = tried(BY_NAME[name]).found
    assert found is not None
    assert found.part == QUICK[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_the_other_faults_are_caught(name):
    found = tried(BY_NAME[name]).found
    assert found is not None
    assert found.part == SLOW[name]


@pytest.mark.slow
def test_the_command_catches_all(discreet):
    done = discreet("audit", "--self-test")
    assert done.code == 0, done.err
    assert done.out.count("caught by") == len(FAULTS)
    assert done.out.count("nothing found, as it should be") == 2


def test_a_fault_is_gone_when_it_has_been_looked_for():
    before = discreet.release.add_noise, discreet.statement_parts.clamp
    for fault in FAULTS:
        with planted(fault):
            pass
    assert (discreet.release.add_noise, discreet.statement_parts.clamp) == before


def test_a_self_test_takes_no_question(discreet):
    assert discreet("audit", "--self-test", "x.csv", "SELECT 1").code == 2
