# SPDX-License-Identifier: Apache-2.0
"""What checking a registry of programs costs, written to docs/scale.md.

    python bench/remote.py [--page docs/scale.md]

Programs of several sizes are checked in fsspec's memory store and through a web server on this
machine; then many of them at once through a server that waits before each answer, as a distant one
does. Exits with 1 if a check fetched more than 1 MiB of a program whose graph is smaller.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "python"))

import fsspec

import files
from etvk_guard import check, pte
from ranged_server import serve

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
PROGRAMS = {  # faulty norms, other ops, bytes of weights
    "a block": (2, 30, 1 << 20),
    "28 layers": (57, 1200, 64 << 20),
    "28 layers, all weights": (57, 1200, 3 << 30),
    "very deep": (400, 9600, 8 << 30),
}
DELAY = 0.03  # seconds before each answer of the distant server
MANY = 600
WORKERS = (1, 8, 32, 128)
CALLS = 20
LIMIT = 1 << 20
FLEET = 1_000_000


@dataclass(frozen=True)
class Measured:
    """One program: sizes in bytes, time in seconds of CPU."""

    name: str
    size: int
    needed: int
    heads: int
    gets: int
    fetched: int
    cpu: float


def _needed(path: Path) -> int:
    """Bytes of the flatbuffers and graphs, which have to be read whatever the way."""
    asked = [0]

    class Counted(pte.RemoteFile):
        def read(self, offset: int, size: int, /) -> bytes:
            asked[0] += size
            return super().read(offset, size)

    with serve(path.parent) as sent:
        check(Counted(f"{sent.url}/{path.name}"))
    return asked[0]


def measure(name: str, folder: Path) -> Measured:
    """Check one program through a server on this machine, and from the memory store."""
    norms, others, weights = PROGRAMS[name]
    path = folder / "a.pte"
    files.write(path, norms, weights, sparse=True, multiplies=others)
    with serve(folder) as sent:
        report = check(f"{sent.url}/a.pte")
        if len(report.findings) != norms:
            raise RuntimeError(f"{len(report.findings)} findings of {norms}")
        heads, bodies = sent.heads, list(sent.bodies)
    return Measured(
        name, path.stat().st_size, _needed(path), heads, len(bodies), sum(bodies), _cpu(path)
    )


def _cpu(path: Path) -> float:
    """Seconds of CPU of a check from the memory store, which holds only what is fetched."""
    store = fsspec.filesystem("memory")
    with path.open("rb") as file:
        store.pipe("/a.pte", file.read(min(path.stat().st_size, 64 << 20)))
    source = pte.RemoteFile("memory://a.pte")
    source.size = path.stat().st_size
    times = []
    for _ in range(CALLS):
        start = time.process_time()
        check(source)
        times.append(time.process_time() - start)
    store.rm("/a.pte")
    return statistics.median(times)


def fan_out(folder: Path) -> list[tuple[int, float]]:
    """Workers, and programs a second through the distant server."""
    norms, others, weights = PROGRAMS["a block"]
    files.write(folder / "a.pte", norms, weights, sparse=True, multiplies=others)
    rows = []
    with serve(folder, DELAY) as sent:
        for workers in WORKERS:
            count = min(MANY, 40 * workers)
            urls = [f"{sent.url}/a.pte?{index}" for index in range(count)]
            start = time.monotonic()
            with ThreadPoolExecutor(workers) as pool:
                if not all(len(report.findings) == norms for report in pool.map(check, urls)):
                    raise RuntimeError("a report is not as expected")
            rows.append((workers, count / (time.monotonic() - start)))
    return rows


def _bytes(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            break
        number /= 1000
    return f"{number:.3g} {unit}"


def _model(row: Measured) -> str:
    """A million files like this one."""
    requests = FLEET * (row.heads + row.gets)
    fetched = FLEET * row.fetched
    cells = [
        row.name,
        f"{requests / 1e6:.0f} million",
        f"{fetched / 1e12:.2g} TB",
        f"{FLEET * row.size / 1e12:,.3g} TB",
        f"{requests / 1000 * 0.0004:.2f} USD",
        f"{FLEET * row.cpu / 60:.0f} min",
    ]
    return "| " + " | ".join(cells) + " |"


def page(rows: list[Measured], fans: list[tuple[int, float]]) -> str:
    """docs/scale.md."""
    table = [
        f"| {r.name} | {_bytes(r.size)} | {_bytes(r.needed)} | {r.heads} + {r.gets} "
        f"| {_bytes(r.fetched)} | {r.cpu * 1e3:.1f} |"
        for r in rows
    ]
    fan = [f"| {workers} | {rate:.0f} |" for workers, rate in fans]
    return TEMPLATE.format(
        rows="\n".join(table),
        fans="\n".join(fan),
        models="\n".join(map(_model, rows)),
        delay=round(DELAY * 1000),
        hours=FLEET / max(rate for _, rate in fans) / 3600,
    )


TEMPLATE = """\
<!-- Written by bench/remote.py: do not edit. -->
# Many programs

`check`, `repair` and `show` take URLs of whatever
[fsspec](https://filesystem-spec.readthedocs.io) knows (`pip install 'etvk-guard[remote]'`; each
kind of store has a package of its own: `s3fs`, `gcsfs`, ...):

```
etvk-guard check --json s3://models/              # every .pte below it
etvk-guard check https://host/a.pte 's3://models/*/v2/*.pte'
etvk-guard repair s3://models/a.pte -o s3://fixed/a.pte
```

Credentials and options come from fsspec's own configuration. `check` asks for the file's length
and for the ranges that it needs: header, program and graphs, never weights. `repair` reads the
whole file once and refuses an input that changed meanwhile; the new name appears when the last
byte is there, where the store can do that (fsspec's transactions). To count requests and bytes
yourself, give `check` a `pte.RemoteFile(url)`.

## What a check fetches

Through a web server on this machine; the time is CPU of one core, from fsspec's memory store.
Ranges are of 64 kB at least, since a request costs more than its bytes.

| program | file | header, program, graphs | requests (length + ranges) | fetched | CPU, ms |
| --- | ---: | ---: | ---: | ---: | ---: |
{rows}

## Waiting is what costs

Many programs are checked at once: programs a second ("a block") from a server on this machine that
waits {delay} ms before each answer. Client and server share two cores, and their Python is what
limits the rate in the end; the check itself runs without the interpreter's lock. The command line
uses 32 threads.

| threads | programs a second |
| ---: | ---: |
{fans}

## A million files, on paper

A million files of each kind, requests and bytes as measured above. Money: 0.0004 USD for 1,000
requests, an object store's usual price for reads (look yours up), traffic within a region being
free. Time: at the best rate above, {hours:.1f} hours on one such machine, of which the checks
themselves are the minutes in the last column; machines share out the rest evenly.

| programs | requests | fetched | in the store | requests cost | CPU of the checks |
| --- | ---: | ---: | ---: | ---: | ---: |
{models}

What else grows with the fleet is the report: about 1 kB of JSON a finding.

## On a cluster

`etvk-guard check` is one machine, and holds all reports until the end. To fan out, let an engine
that you have hand out batches of URLs: [examples/audit_ray.py](examples/audit_ray.py) does it with
[Ray](https://docs.ray.io), on one machine or a cluster. A task checks a batch with 32 threads;
results are appended as lines of JSON; at most two batches a core are in flight, so that memory does
not grow with the fleet; programs that are in the file already are left out, so that a run which was
stopped is taken up again.

```
pip install ray 'etvk-guard[remote]'
python docs/examples/audit_ray.py s3://models/ --out findings.jsonl
```

The same shape fits Spark's `mapPartitions`, Beam or a queue: `audit(urls)` is a plain function.
Repairs fan out the same way, but read and write whole files: plan for bytes, not for requests.
"""


def main() -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    rows: list[Any] = []
    for name in PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(name, Path(folder)))
            print(rows[-1], flush=True)
    with tempfile.TemporaryDirectory() as folder:
        fans = fan_out(Path(folder))
    print(fans)
    options.page.write_text(page(rows, fans))
    return int(any(row.fetched > LIMIT and row.needed < LIMIT / 2 for row in rows))


if __name__ == "__main__":
    sys.exit(main())
