"""Read files and frames: `locate` names a source, `register` fixes what it is, `relation` reads it in every
query.

`register` is the owner's act: it reads everything and may fail loudly. `relation` runs for analysts: no
record can make it fail or change its shape. DuckDB and the frame libraries are imported on first use.
"""

from __future__ import annotations

from discreet.sources.inspection import Inspection
from discreet.sources.location import Location, identify, is_address, locate, where_it_was
from discreet.sources.options import Reading, read_options
from discreet.sources.reading import (
    attach,
    belongs,
    check_there,
    extended,
    files_of,
    fingerprint,
    has_files,
    is_read_in_place,
    relation,
    same_files,
)
from discreet.sources.registering import (
    check_frame,
    check_stored,
    describe,
    inspect_source,
    register,
    register_frame,
    stored_reading,
)
from discreet.sources.spark_tables import frame_at, is_spark_frame, is_spark_session, select_spark

__all__ = [
    "Inspection",
    "Location",
    "Reading",
    "attach",
    "belongs",
    "check_frame",
    "check_stored",
    "check_there",
    "describe",
    "extended",
    "files_of",
    "fingerprint",
    "frame_at",
    "has_files",
    "identify",
    "inspect_source",
    "is_address",
    "is_read_in_place",
    "is_spark_frame",
    "is_spark_session",
    "locate",
    "read_options",
    "register",
    "register_frame",
    "relation",
    "same_files",
    "select_spark",
    "stored_reading",
    "where_it_was",
]
