"""FairFace as people have it: a folder with a label file, or the hub's shards."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from evenedit.protocol.factors import cells
from evenedit.sources.dataset import CLASSES
from tests.support.curating import NAMES, write_table

KIND = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def dot(number: int) -> bytes:
    """A small picture unlike every other."""
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), (number % 256, number // 256, 90)).save(buffer, "PNG")
    return buffer.getvalue()


def rows(faces: int = 1) -> list[dict[str, str]]:
    """FairFace's labels in words: `faces` rows for every cell, then three children."""
    grown = [{k: NAMES.get(v, v) for k, v in cell.items()} for _ in range(faces) for cell in cells()]
    return grown + [{"race": "White", "gender": "Female", "age": age} for age in ("0-2", "3-9", "10-19")]


def as_folder(folder, labels, name="fairface_label_train.csv", images="."):
    (folder / images / "train").mkdir(parents=True)
    for number in range(len(labels)):
        (folder / images / f"train/{number}.png").write_bytes(dot(number))
    table = [{"file": f"train/{n}.png", **row, "service_test": "True"} for n, row in enumerate(labels)]
    write_table(folder / name, table)
    return folder


def as_shards(folder, labels, *, words=False, metadata=None, shards=2, contents=None, group=20):
    """The hub's parquet: class indices unless `words`, several files per split."""
    folder.mkdir(parents=True, exist_ok=True)
    for shard, part in enumerate(np.array_split(np.arange(len(labels)), shards)):
        pictures = [{"bytes": (contents or {}).get(n, dot(int(n))), "path": None} for n in part]
        columns = {
            name: [labels[n][name] if words else CLASSES[name].index(labels[n][name]) for n in part]
            for name in ("age", "gender", "race")
        }
        table = pa.table({"image": pa.array(pictures, KIND), **columns, "service_test": [False] * len(part)})
        table = table.replace_schema_metadata(metadata)
        pq.write_table(table, folder / f"train-{shard:05d}-of-{shards:05d}.parquet", row_group_size=group)
    return folder
