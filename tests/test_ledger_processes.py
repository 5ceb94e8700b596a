"""The ledger against races and crashes: real files, a real server, real processes."""

from __future__ import annotations

import json
import random
import signal
import time
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import LedgerError
from discreet.ledger import Balance, Ledger, State
from discreet.privacy import PrivacyLoss
from ledger_places import ONE, PLENTY, Places, balance, debit, is_clear, run, start, write_some

# --- races ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["there", "there", "there", "set", "set"])
def test_twenty_processes_on_one_budget(place: str, how: str) -> None:
    """Each debits 0.1 of 1 at the same moment: exactly ten pay and ten are refused, five times over. In the
    last two runs the ledger is not there yet, so that all twenty also make it and set the budget."""
    if how == "there":
        with Ledger(place) as ledger:
            ledger.set_budget("s", ONE, unit="actor")
    lines, _ = run("race", place, how)
    assert json.loads(lines[0]) == ["paid"] * 10 + ["refused"] * 10
    assert balance(place) == Balance(ONE, ONE, PrivacyLoss(Fraction(0)), 10)
    if "://" not in place:
        assert list(Path(place).parent.iterdir()) == [Path(place)], "no journal or half-made file is left"


@pytest.mark.parametrize("time", range(3))
def test_twenty_processes_of_two_analysts_with_shares(place: str, time: int) -> None:
    """Ten of each debit 0.1 at the same moment; each analyst may spend 0.3: exactly three of each pay."""
    with Ledger(place) as ledger:
        ledger.set_budget("s", ONE, unit="actor")
    lines, _ = run("race_shares", place)
    assert json.loads(lines[0]) == ["paid ann"] * 3 + ["paid bob"] * 3 + ["refused ann"] * 7 + ["refused bob"] * 7
    with Ledger(place) as ledger:
        assert [(share.analyst, share.queries) for share in ledger.shares("s")] == [("ann", 3), ("bob", 3)]
        ledger.verify()


def test_a_held_lock_is_waited_for_and_then_named(place: str) -> None:
    """Another process holds the writer's lock: a debit waits as long as it was told, then says so; reading
    is not held up; once the lock is free, the debit goes through."""
    write_some(place, 1)
    with Ledger(place, timeout=0.3) as ledger, start("hold", place) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        began = time.monotonic()
        with pytest.raises(LedgerError, match=r"locked by another process for more than 0\.3 seconds") as error:
            debit(ledger)
        assert 0.25 < time.monotonic() - began < 5
        assert is_clear(error.value, place)
        assert ledger.balance("s") is not None
        holder.communicate("\n", timeout=60)
        debit(ledger)
    assert balance(place).queries == 2


def test_a_fork_may_go_on_with_its_parents_ledger(place: str) -> None:
    """Debits of parent and child with the same object all count, also after the parent closed it. (With the
    parent's connection, SQLite would lose the child's: it would think that it still held a lock.)"""
    assert run("fork", place) == (["child 0"], 0)
    with Ledger(place) as ledger:
        ledger.verify()
        queries = [entry.query for entry in ledger.history("s")[1:]]
    assert sorted(queries) == ["before", "child", "child, after the parent closed", "parent"]


def test_a_fork_that_python_did_not_see_is_refused(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the connection could not be closed before the fork, so that nothing in the child is safe."""
    with Ledger(place) as ledger:
        ledger.set_budget("s", ONE, unit="actor")
        with monkeypatch.context() as patch:
            patch.setattr("os.getpid", lambda: 1)
            with pytest.raises(LedgerError, match="before this process was forked"):
                debit(ledger)
        debit(ledger)


# --- crashes -------------------------------------------------------------------------------------------


def test_kill_9_between_every_two_steps(places: Places) -> None:
    """R25. A process kills itself at its first step, at its second, and so on, from making the ledger to
    closing it. Each time: the ledger opens and verifies; what was spent is at least what could have been seen;
    what the process had been told is there."""
    step, seen = 0, set()
    with start("die_each") as mortals:
        assert mortals.stdin is not None
        assert mortals.stdout is not None
        while True:
            place = places.new()
            print(step, place, file=mortals.stdin, flush=True)
            lines, code = json.loads(mortals.stdout.readline())
            told = {line.split()[0] for line in lines}
            with Ledger(place) as ledger:
                ledger.verify()
                debits = [entry for entry in ledger.history("s") if entry.state]
                if "debited" in told:
                    assert len(debits) == 1
                if "released" in told:
                    assert (debits[0].state, debits[0].answer) == (State.RELEASED, {"n": 12})
                spent = sum((entry.loss.epsilon for entry in debits if entry.loss), Fraction(0))
                if debits:
                    found = ledger.balance("s")
                    assert found is not None
                    assert found.spent.epsilon == spent == Fraction(1, 10)
                seen.add((len(lines), tuple(entry.state for entry in debits)))
                ledger.set_budget("s", ONE, unit="actor")  # it works on
                debit(ledger)
            places.drop()
            if code == 0:
                assert lines[-1] == "closed"
                break
            assert code == -signal.SIGKILL
            step += 1
    assert step > 40
    # Every stage was met: nothing yet; charged but not told; told; recorded but not told; done.
    assert seen == {
        (0, ()),
        (0, (State.DEBITED,)),
        (1, (State.DEBITED,)),
        (1, (State.RELEASED,)),
        (2, (State.RELEASED,)),
        (3, (State.RELEASED,)),
    }


def test_kill_9_at_any_moment(place: str) -> None:
    """Processes that debit without pause are killed at random moments: no acknowledged entry is missing."""
    with Ledger(place) as ledger:
        ledger.set_budget("s", PLENTY, unit="actor")
    acknowledged: set[int] = set()
    for _ in range(12):
        with start("toil", place) as child:
            assert child.stdout is not None
            acknowledged.add(int(child.stdout.readline()))
            time.sleep(random.uniform(0, 0.05))
            child.kill()
            # The last line may be cut off in the middle: it was not told whole.
            acknowledged.update(int(line) for line in child.stdout if line.endswith("\n"))
    with Ledger(place) as ledger:
        ledger.verify()
        booked = {entry.number for entry in ledger.history("s") if entry.state}
    assert acknowledged <= booked
    assert len(booked - acknowledged) <= 12
