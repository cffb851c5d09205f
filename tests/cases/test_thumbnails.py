"""Small pictures: made once, kept whole, served to staff for ever."""

import io
from collections.abc import Iterator

import httpx
import pytest
from PIL import Image

from evenedit.api.study import Study
from evenedit.cases.thumbnails import Thumbnails
from evenedit.core.errors import EvenEditError
from evenedit.core.images import open_images
from tests.support.studies import open_study
from tests.support.web_study import PASSWORD, app_of, serving


def picture(width: int = 400, height: int = 300) -> Image.Image:
    return Image.linear_gradient("L").resize((width, height)).convert("RGB")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    yield open_study(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="module")
def base(loaded: Study) -> Iterator[str]:
    with serving(app_of(loaded)) as address:
        yield address


@pytest.fixture(scope="module")
def staff(base: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=base, headers={"Origin": base}) as client:
        client.post("/admin/login", data={"name": "admin", "password": PASSWORD})
        yield client


def test_a_picture_is_made_small_once_and_never_larger(tmp_path):
    images = open_images(str(tmp_path / "images"))
    large, tiny = images.put(picture()), images.put(picture(40, 30))
    thumbnails = Thumbnails(images, tmp_path)
    first = thumbnails.get(large, 160)
    assert Image.open(io.BytesIO(first)).size == (160, 120)
    assert Image.open(io.BytesIO(thumbnails.get(tiny, 160))).size == (40, 30)
    images.path(large).unlink()
    assert thumbnails.get(large, 160) == first, "the copy on disk stands on its own"
    assert [p.suffix for p in (tmp_path / "thumbnails" / "160").rglob("*") if p.is_file()] == [".webp", ".webp"]
    with pytest.raises(ValueError, match="not one of"):
        thumbnails.get(large, 161)


def test_pictures_elsewhere_are_made_small_in_the_study(tmp_path):
    images = open_images("memory://thumbnails-test")
    sha256 = images.put(picture())
    assert Image.open(io.BytesIO(Thumbnails(images, tmp_path).get(sha256, 320))).size == (320, 240)
    assert Thumbnails(images, tmp_path).path(sha256, 320).is_file()


def test_a_damaged_picture_is_told_and_leaves_no_copy(tmp_path):
    images = open_images(str(tmp_path / "images"))
    sha256 = images.put(picture())
    path = images.path(sha256)
    path.write_bytes(path.read_bytes()[:300])
    thumbnails = Thumbnails(images, tmp_path)
    with pytest.raises(EvenEditError, match="damaged"):
        thumbnails.get(sha256, 160)
    assert not thumbnails.path(sha256, 160).exists()


def test_staff_get_pictures_that_browsers_keep(loaded, staff):
    sha256 = loaded.store.images.put(picture())
    whole = staff.get(f"/pictures/{sha256}")
    assert whole.content == loaded.store.images.read(sha256) and whole.headers["content-type"] == "image/png"
    small = staff.get(f"/pictures/{sha256}/160")
    assert Image.open(io.BytesIO(small.content)).size == (160, 120)
    for answer in (whole, small):
        assert "immutable" in answer.headers["cache-control"] and "private" in answer.headers["cache-control"]
        again = staff.get(answer.url.path, headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304 and not again.content
        assert again.headers["etag"] == answer.headers["etag"]


@pytest.mark.parametrize(
    "path",
    ["0" * 64, "0" * 64 + "/160", "{sha}/161", "{sha}/big", "..%2f..%2fstudy.db", "%2e%2e%2fstudy.toml/160", "A" * 64],
)
def test_nothing_else_is_served(path, loaded, staff):
    path = path.format(sha=loaded.store.images.put(picture()))
    assert staff.get(f"/pictures/{path}").status_code == 404


def test_strangers_see_no_picture(loaded, base):
    sha256 = loaded.store.images.put(picture())
    for path in (f"/pictures/{sha256}", f"/pictures/{sha256}/160"):
        assert httpx.get(base + path).status_code == 401
