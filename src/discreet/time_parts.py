"""The parts of dates and times, and the units of intervals, that the dialect knows."""

from __future__ import annotations

__all__ = ["DATE_PARTS", "EXTRACTED", "SHIFTS", "TIME_PARTS"]

DATE_PARTS = ("DAY", "WEEK", "ISOWEEK", "MONTH", "QUARTER", "YEAR", "ISOYEAR")
TIME_PARTS = ("HOUR", "MINUTE", "SECOND")
_EXTRA_PARTS = ("DAYOFWEEK", "DOW", "ISODOW", "DAYOFYEAR", "DOY")
EXTRACTED = (*DATE_PARTS, *_EXTRA_PARTS, *TIME_PARTS)
"""What EXTRACT knows, beside DATE."""

SHIFTS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 10**6,
    "MINUTE": 60 * 10**6,
    "HOUR": 3_600 * 10**6,
    "DAY": 86_400 * 10**6,
    "WEEK": 7 * 86_400 * 10**6,
}
"""Units of a fixed length, in microseconds."""
