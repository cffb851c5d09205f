"""Drawing candidate pools from a FairFace-shaped parquet file, against reading that file once."""

import hashlib
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.clock import timed
from evenedit.curation.pools import make_pools
from evenedit.protocol.factors import cells
from evenedit.simulation.portraits.drawn import sample
from evenedit.simulation.portraits.portrait import render

IMAGES = 20_000
PEAK = (
    "import sys; from evenedit.cli import commands; commands.main(sys.argv[1:], standalone_mode=False); "
    "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
)
"""Runs a command and prints the largest memory it had, in KB; getrusage would tell its parent's as well."""


def jpegs(size: int = 96) -> list[bytes]:
    """One drawn face per cell, as small JPEG files."""
    made = []
    for seed, cell in enumerate(cells()):
        buffer = io.BytesIO()
        render(sample(cell, seed), size).save(buffer, "JPEG", quality=90)
        made.append(buffer.getvalue())
    return made


def shards(folder: Path, images: int = IMAGES) -> Path:
    """A hub-shaped dataset: two shards, class indices, every file different by a comment inside."""
    rng = np.random.default_rng(1)
    base = jpegs()
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    folder.mkdir(parents=True)
    for number, rows in enumerate(np.array_split(np.arange(images), 2)):
        content = []
        for row in rows:
            comment = hashlib.sha256(str(row).encode()).digest()
            plain = base[row % len(base)]
            content.append(plain[:2] + b"\xff\xfe" + (len(comment) + 2).to_bytes(2) + comment + plain[2:])
        table = pa.table(
            {
                "image": pa.array([{"bytes": c, "path": f"{r}.jpg"} for c, r in zip(content, rows, strict=True)], kind),
                "age": rng.integers(0, 9, len(rows)),
                "gender": rng.integers(0, 2, len(rows)),
                "race": rng.integers(0, 7, len(rows)),
                "service_test": rng.random(len(rows)) < 0.5,
            }
        )
        pq.write_table(table, folder / f"train-{number:05d}-of-00002.parquet", row_group_size=1000)
    return folder


def read_once(folder: Path) -> int:
    """Every byte of every picture, a batch at a time."""
    return sum(
        len(picture.as_py())
        for path in sorted(folder.glob("*.parquet"))
        for batch in pq.ParquetFile(path).iter_batches(batch_size=1000, columns=["image"])
        for picture in batch.column(0).field("bytes")
    )


def run(folder: Path) -> None:
    data = shards(folder / "1.25")
    once, size = timed(lambda: read_once(data))
    print(f"{IMAGES:,} images, {size / 1e6:.0f} MB: reading once takes {once:.2f} s")
    make_pools(folder, folder / "warm-up", seeds=[1], screened=False)
    within, _ = timed(lambda: make_pools(folder, folder / "within", screened=False))
    print(f"drawing seven pools, files written: {within:.2f} s: ratio to reading once {within / once:.2f}")
    for name, options in (("drawing", ["--no-screen"]), ("drawing and pre-screen", [])):
        command = ["sources", "pools", "--from", str(folder), "--out", str(folder / name), *options]
        seconds, done = timed(
            lambda command=command: subprocess.run(
                [sys.executable, "-c", PEAK, *command], check=True, capture_output=True, text=True
            )
        )
        print(
            f"{name} as a command, start-up included: {seconds:.2f} s: ratio to reading once {seconds / once:.2f}; "
            f"at most {int(done.stdout.split()[-1]) / 1024:.0f} MB of memory"
        )
