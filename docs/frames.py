"""Results of wmlrun as pandas frames: `load("r.json")`, or `load("folder")` for the results folder of a series.

The column `run` joins the frames; `flowop` is the number of a flowop in its run.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any, Iterator, NamedTuple

import pandas as pd


class Frames(NamedTuple):
    runs: pd.DataFrame
    """A row for each run: `started_at`, `state`, `variables.NAME`, `summary.ops_per_s` and so on."""
    flowops: pd.DataFrame
    """A row for each flowop of each run: `name`, `ops`, `latency_ns.p99` and so on."""
    intervals: pd.DataFrame
    """A row for each interval and flowop: `t` is the end of the interval in seconds."""
    histograms: pd.DataFrame
    """A row for each bucket of each flowop: `ns`, the greatest latency in it, and `count`."""


def load(path: str | Path) -> Frames:
    """The frames of a file of `--json`, or of all runs of a results folder."""
    path = Path(path)
    files = sorted(path.glob("runs/*.json")) if path.is_dir() else [path]
    found = [run | {"file": str(file)} for file in files for run in json.loads(file.read_text())["runs"]]
    flowops, intervals, buckets = [], [], []
    for number, run in enumerate(found):
        for place, flowop in enumerate(run["flowops"]):
            place_of = {"run": number, "flowop": place, "name": flowop["name"]}
            flowops.append(place_of | {key: value for key, value in flowop.items() if key != "histogram"})
            buckets += [place_of | {"ns": ns, "count": count} for ns, count in histogram(flowop["histogram"])]
        for interval in run["intervals"]:
            intervals += [{"run": number, "t": interval["t"]} | flowop for flowop in interval["flowops"]]
    nested = {"flowops", "intervals"}
    runs = [{"run": number} | {key: value for key, value in run.items() if key not in nested}
            for number, run in enumerate(found)]
    return Frames(
        pd.json_normalize(runs),
        pd.json_normalize(flowops),
        pd.json_normalize(intervals),
        pd.DataFrame(buckets, columns=["run", "flowop", "name", "ns", "count"]),
    )


def histogram(text: str) -> Iterator[tuple[int, int]]:
    """The buckets of an HdrHistogram (V2, compressed, base64): the greatest value of each, and its count."""
    if not text:
        return
    data: Any = zlib.decompress(base64.b64decode(text)[8:])
    digits, lowest = (int.from_bytes(data[begin:end], "big") for begin, end in [(12, 16), (16, 24)])
    unit = lowest.bit_length() - 1
    half = max((2 * 10**digits - 1).bit_length(), 1) - 1
    at, index = 40, 0
    while at < len(data):
        number = shift = 0
        while True:
            byte, at = data[at], at + 1
            # The ninth byte has eight bits of the number.
            number |= (byte if shift == 56 else byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift == 63:
                break
        count = (number >> 1) ^ -(number & 1)
        if count < 0:
            # So many buckets are empty.
            index -= count
            continue
        bucket = max((index >> half) - 1, 0)
        step = index if index < 1 << half else (index & (1 << half) - 1) + (1 << half)
        if count:
            yield ((step + 1) << (bucket + unit)) - 1, count
        index += 1
