"""Portraits in: FairFace as people have it, and any folder with a label CSV."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenedit.core.errors import EvenEditError
from evenedit.protocol.factors import cells
from evenedit.sources.dataset import CLASSES, open_dataset
from evenedit.sources.fairface import FairFace
from evenedit.sources.folder import Folder
from tests.support.fairface_copies import as_folder, as_shards, dot, rows
from tests.support.studies import open_study

CELLS = ["_".join(cell.values()) for cell in cells()]


def cells_of(path, **options):
    dataset = open_dataset(path, **options)
    return [face.cell for face in dataset.faces()], dataset.outside


def test_a_folder_and_shards_with_indices_or_words_tell_the_same_labels(tmp_path):
    folder = as_folder(tmp_path / "a", rows())
    indices = as_shards(tmp_path / "b", rows())
    words = as_shards(tmp_path / "c", rows(), words=True)
    assert cells_of(folder) == cells_of(indices) == cells_of(words) == (CELLS, 3)


def test_class_indices_mean_what_the_file_says_they_mean(tmp_path):
    names = {name: {"names": list(reversed(known)), "_type": "ClassLabel"} for name, known in CLASSES.items()}
    metadata = {"huggingface": json.dumps({"info": {"features": names}})}
    turned = [{k: CLASSES[k][::-1][CLASSES[k].index(v)] for k, v in row.items()} for row in rows()]
    path = as_shards(tmp_path / "a", turned, metadata=metadata)
    assert cells_of(path) == (CELLS, 3)


def test_the_dataset_index_counts_over_the_shards_of_a_split(tmp_path):
    faces = list(open_dataset(as_shards(tmp_path / "a", rows(), shards=3)).faces())
    assert [face.index for face in faces] == list(range(84))
    assert faces[0].origin == "train-00000-of-00003.parquet#0"
    assert faces[40].origin == "train-00001-of-00003.parquet#11"


def test_reading_some_rows_gives_their_own_bytes(tmp_path):
    dataset = open_dataset(as_shards(tmp_path / "a", rows(2), shards=3))
    faces = list(dataset.faces())
    wanted = [faces[at] for at in (0, 19, 20, 83, 84, 150, 167)]
    assert {face.at: content for face, content in dataset.read(wanted)} == {f.at: dot(f.at) for f in wanted}


@pytest.mark.parametrize("layout", ["hub", "zips"])
def test_both_paddings_are_found_by_their_names(tmp_path, layout):
    if layout == "hub":
        places = {"0.25": tmp_path / "0.25", "1.25": tmp_path / "1.25"}
        for place in places.values():
            as_shards(place, rows())
    else:
        for name in ("fairface-img-margin025-trainval", "fairface-img-margin125-trainval"):
            as_folder(tmp_path, rows(), images=name)
        (tmp_path / "fairface-img-margin125-trainval/train/0.png").write_bytes(dot(5000))
    with pytest.raises(EvenEditError, match=r"both paddings .* 0\.25 or 1\.25"):
        open_dataset(tmp_path)
    for padding in ("0.25", "1.25"):
        dataset = open_dataset(tmp_path, padding)
        first = next(iter(dataset.faces()))
        ((_, content),) = dataset.read([first])
        assert content == (dot(5000) if (layout, padding) == ("zips", "1.25") else dot(0))
    if layout == "hub":
        shutil.rmtree(places["0.25"])
        assert cells_of(tmp_path) == (CELLS, 3)
        with pytest.raises(EvenEditError, match=r"holds padding 1\.25, not 0\.25"):
            open_dataset(tmp_path, "0.25")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"race": "Martian"}, r"fairface_label_train.csv line 2: race 'Martian' is not a known label"),
        ({"race": "7"}, r"line 2: race 7 is not a class index; there are 7 classes"),
        ({"age": ""}, r"line 2: age '' is not a known label"),
    ],
)
def test_an_unknown_label_names_its_line(tmp_path, change, said):
    labels = rows()
    labels[0] = {**labels[0], **change}
    with pytest.raises(EvenEditError, match=said):
        cells_of(as_folder(tmp_path, labels))


def test_what_is_no_dataset_is_told(tmp_path):
    with pytest.raises(EvenEditError, match="neither parquet shards nor a label file"):
        open_dataset(tmp_path)
    with pytest.raises(EvenEditError, match="no such file or folder"):
        open_dataset(tmp_path / "nowhere")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(EvenEditError, match="not a readable parquet file"):
        cells_of(tmp_path)
    pq.write_table(pa.table({"image": [b""], "age": [3], "gender": [0]}), tmp_path / "a.parquet")
    with pytest.raises(EvenEditError, match="lacks the column race"):
        cells_of(tmp_path)
    pq.write_table(pa.table({"age": [3], "gender": [0], "race": [0]}), tmp_path / "a.parquet")
    dataset = open_dataset(tmp_path)
    with pytest.raises(EvenEditError, match="no column 'image' of bytes"):
        list(dataset.read(list(dataset.faces())))


def test_a_study_runs_on_fairface_with_several_faces_per_cell(tmp_path):
    as_shards(tmp_path / "data", rows(3))
    settings = {"path": "data", "faces_per_cell": 2, "size": 64}
    study = open_study(tmp_path, sources={"kind": "fairface", "settings": settings})
    sources = study.runner().load_sources()
    assert len(sources) == 168 and {"Latino_Female_70plus", "Latino_Female_70plus_2"} <= sources.keys()
    assert len({s.origin for s in sources.values()}) == 168
    assert study.store.images.open(sources["White_Male_20s"].image).size == (64, 64)
    for source in sources.values():  # the label in the set is the label of the row it came from
        shard, row = source.origin.split("#")
        start = 0 if shard.startswith("train-00000") else 128
        assert source.id.startswith(CELLS[(start + int(row)) % 84])


def test_a_damaged_image_is_passed_over_and_counted(tmp_path, capsys):
    labels = [row for row in rows(2) if row["age"] not in ("0-2", "3-9", "10-19")]
    whole = list(FairFace(path=str(as_shards(tmp_path / "whole", labels)), size=8).portraits())
    shard, row = whole[0][2].split("#")
    at = int(row) + (0 if shard.startswith("train-00000") else 84)
    hurt = as_shards(tmp_path / "hurt", labels, contents={at: dot(at)[:30]})
    again = list(FairFace(path=str(hurt), size=8).portraits())
    assert [p[2] for p in again[1:]] == [p[2] for p in whole[1:]], "the other cells keep their images"
    assert again[0][0] == whole[0][0] and again[0][2] != whole[0][2]
    assert "1 unreadable images were skipped" in capsys.readouterr().err


def test_cells_without_enough_faces_are_named(tmp_path):
    labels = [row for row in rows() if (row["race"], row["age"]) != ("Black", "more than 70")]
    with pytest.raises(EvenEditError, match=r"2 cells: Black_Male_70plus \(0\), Black_Female_70plus \(0\)"):
        list(FairFace(path=str(as_folder(tmp_path, labels))).portraits())


# -- any folder ----------------------------------------------------------------------------------------------


def own_folder(path, faces):
    grown = [row for row in rows(faces) if row["age"] not in ("0-2", "3-9", "10-19")]
    return as_folder(path, grown, name="labels.csv")


def test_a_folder_gives_as_many_faces_per_cell_as_asked(tmp_path):
    path = str(own_folder(tmp_path, 3))
    found = [ident for ident, *_ in Folder(path=path, faces_per_cell=2).portraits()]
    assert len(found) == 168 and "White_Male_20s_2" in found and "White_Male_20s_3" not in found
    assert len(list(Folder(path=path).portraits())) == 252
    with pytest.raises(EvenEditError, match=r"fewer in 84 of 84 cells: White_Male_20s \(3\)"):
        list(Folder(path=path, faces_per_cell=4).portraits())


def test_a_folder_names_the_cells_it_lacks(tmp_path, capsys):
    labels = [row for row in rows() if row["race"] == "Indian"]
    found = list(Folder(path=str(as_folder(tmp_path, labels, name="labels.csv"))).portraits())
    assert len(found) == 12
    said = capsys.readouterr().err
    assert "72 of 84 cells have no face: White_Male_20s" in said and "Indian_Male_20s" not in said
