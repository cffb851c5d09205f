"""One picture in every form that people have: each must be read as the same plain picture, or refused with a reason."""

import io
import struct
import zlib
from collections.abc import Callable

import numpy as np
from PIL import Image

from evenedit.simulation.portraits.drawn import sample
from evenedit.simulation.portraits.portrait import render

SIDE = 160
PERSON = sample({"race": "Latino", "gender": "Female", "age": "30s"}, 5)


def plain() -> Image.Image:
    """A drawn portrait, wider than high, so that one lying on its side is seen."""
    whole = render(PERSON, SIDE)
    return Image.frombytes("RGB", whole.size, whole.tobytes()).crop((0, 10, SIDE, SIDE - 10))


def gray() -> Image.Image:
    """The portrait in grey."""
    return plain().convert("L").convert("RGB")


def half_clear() -> Image.Image:
    """The portrait laid on white where its left half is transparent."""
    image = plain()
    image.paste((255, 255, 255), (0, 0, SIDE // 2, image.height))
    return image


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    """The bytes of a file."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def turned(orientation: int, kind: str = "JPEG", **options: object) -> bytes:
    """The portrait as a camera held otherwise wrote it: pixels turned, and EXIF data that say so."""
    back = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270}[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    return saved(plain().transpose(back), kind, exif=exif, **options)


def wide_png(image: Image.Image) -> bytes:
    """A PNG of 16 bits per channel, grey or RGB: every value times 257, the low byte disturbed."""
    values = np.asarray(image).astype(np.uint32) * 257
    values = np.clip(values + np.random.default_rng(1).integers(-60, 60, values.shape), 0, 65535).astype(">u2")
    colour_type = 2 if image.mode == "RGB" else 0

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", image.width, image.height, 16, colour_type, 0, 0, 0)
    lines = b"".join(b"\0" + line.tobytes() for line in values)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def alpha(kind: str, mode: str = "RGBA", **options: object) -> bytes:
    """The portrait with its left half transparent; what lies under it is black."""
    image = plain().convert("RGBA")
    image.paste((0, 0, 0, 0), (0, 0, SIDE // 2, image.height))
    return saved(image if mode == "RGBA" else image.convert(mode), kind, **options)


def palette() -> bytes:
    """Three colours and a fourth that is transparent, as a PNG with a palette."""
    image = Image.new("P", (SIDE, SIDE - 20), 0)
    image.putpalette([200, 120, 90, 20, 30, 40, 250, 240, 230, 0, 0, 0])
    image.paste(1, (40, 40, 80, 80))
    image.paste(3, (0, 0, SIDE // 2, 20))
    return saved(image, "PNG", transparency=3)


def palette_plain() -> Image.Image:
    """What `palette` shows."""
    image = Image.new("RGB", (SIDE, SIDE - 20), (200, 120, 90))
    image.paste((20, 30, 40), (40, 40, 80, 80))
    image.paste((255, 255, 255), (0, 0, SIDE // 2, 20))
    return image


def linear_profile() -> bytes:
    """A small ICC profile of sRGB's primaries in linear light."""
    columns = ((0.4360, 0.2225, 0.0139), (0.3851, 0.7169, 0.0971), (0.1431, 0.0606, 0.7141))
    return _rgb_profile(b"linear\0", columns, struct.pack(">I", 0))


def display_p3(image: Image.Image) -> bytes:
    """A PNG of the picture in the wider colours of Display P3, gamma 2.2, as its profile says."""
    srgb = np.array([(0.4360, 0.2225, 0.0139), (0.3851, 0.7169, 0.0971), (0.1431, 0.0606, 0.7141)]).T
    columns = ((0.5151, 0.2412, -0.0011), (0.2920, 0.6922, 0.0419), (0.1571, 0.0666, 0.7841))
    values = np.asarray(image) / 255
    light = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    wide = np.clip(light @ np.linalg.solve(np.array(columns).T, srgb).T, 0, 1) ** (1 / 2.2)
    profile = _rgb_profile(b"P3\0", columns, struct.pack(">IH", 1, round(2.2 * 256)))
    return saved(Image.fromarray(np.rint(255 * wide).astype(np.uint8)), "PNG", icc_profile=profile)


def _rgb_profile(name: bytes, columns: tuple[tuple[float, ...], ...], curve: bytes) -> bytes:
    def xyz(*values: float) -> bytes:
        return b"XYZ \0\0\0\0" + b"".join(struct.pack(">i", round(v * 65536)) for v in values)

    text = b"desc\0\0\0\0" + struct.pack(">I", len(name)) + name + bytes(12 + 67)
    tags = {b"desc": text, b"wtpt": xyz(0.9642, 1.0, 0.8249)}
    tags |= {channel + b"XYZ": xyz(*column) for channel, column in zip((b"r", b"g", b"b"), columns, strict=True)}
    tags |= {channel + b"TRC": b"curv\0\0\0\0" + curve for channel in (b"r", b"g", b"b")}
    return _profile(b"RGB ", b"mntr", tags)


def ink_profile() -> bytes:
    """A small ICC profile of inks of which only black prints: CIELAB lightness is 100 less the share of black."""
    corners = np.array([[int(n >> bit & 1) for bit in (3, 2, 1, 0)] for n in range(16)])
    lab = np.full((16, 3), 128, dtype=np.uint8)
    lab[:, 0] = np.where(corners[:, 3] == 1, 0, 255)
    identity = struct.pack(">9i", 65536, 0, 0, 0, 65536, 0, 0, 0, 65536)
    straight = bytes(range(256))
    table = b"mft1\0\0\0\0" + bytes([4, 3, 2, 0]) + identity + straight * 4 + lab.tobytes() + straight * 3
    text = b"desc\0\0\0\0" + struct.pack(">I", 4) + b"ink\0" + bytes(12 + 67)
    white = b"XYZ \0\0\0\0" + struct.pack(">3i", 63190, 65536, 54061)
    return _profile(b"CMYK", b"prtr", {b"desc": text, b"wtpt": white, b"A2B0": table, b"A2B1": table}, b"Lab ")


def _profile(space: bytes, device: bytes, tags: dict[bytes, bytes], connection: bytes = b"XYZ ") -> bytes:
    start, table, body = 128 + 4 + 12 * len(tags), struct.pack(">I", len(tags)), b""
    for name, content in tags.items():
        content += bytes(-len(content) % 4)
        table += name + struct.pack(">II", start + len(body), len(content))
        body += content
    head = struct.pack(">I4sI4s4s4s", start + len(body), b"\0" * 4, 0x02400000, device, space, connection)
    head += bytes(12) + b"acsp" + bytes(28) + struct.pack(">3i", 63190, 65536, 54061)
    return head.ljust(128, b"\0") + table + body


def linear() -> Image.Image:
    """The portrait in linear light, as the profile says."""
    values = np.asarray(plain()) / 255
    light = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return Image.fromarray(np.rint(light * 255).astype(np.uint8))


def black_ink() -> bytes:
    """A step wedge of black ink under a coat of yellow that the profile says does not print."""
    inks = np.zeros((40, 256, 4), dtype=np.uint8)
    inks[:, :, 3] = np.arange(256)
    inks[:, :, 2] = 90
    return saved(Image.frombytes("CMYK", (256, 40), inks.tobytes()), "TIFF", icc_profile=ink_profile())


Expected = Callable[[], Image.Image]

READ: dict[str, tuple[Callable[[], bytes], Expected, float]] = {
    "plain.png": (lambda: saved(plain(), "PNG"), plain, 0),
    "plain.jpg": (lambda: saved(plain(), "JPEG", quality=95), plain, 2),
    "plain.webp": (lambda: saved(plain(), "WEBP", lossless=True), plain, 0),
    "plain.bmp": (lambda: saved(plain(), "BMP"), plain, 0),
    "plain.tiff": (lambda: saved(plain(), "TIFF"), plain, 0),
    "upside-down.jpg": (lambda: turned(3, quality=95), plain, 2),
    "on-its-side.jpg": (lambda: turned(6, quality=95), plain, 2),
    "on-its-other-side.png": (lambda: turned(8, "PNG"), plain, 0),
    "grey.png": (lambda: saved(plain().convert("L"), "PNG"), gray, 0),
    "grey-16-bit.png": (lambda: wide_png(plain().convert("L")), gray, 0),
    "grey-16-bit.tiff": (
        lambda: saved(Image.fromarray(np.asarray(plain().convert("L")).astype(np.uint16) * 257), "TIFF"),
        gray,
        0,
    ),
    "rgb-16-bit.png": (lambda: wide_png(plain()), plain, 0.6),
    "cmyk.tiff": (lambda: saved(plain().convert("CMYK"), "TIFF"), plain, 1),
    "cmyk.jpg": (lambda: saved(plain().convert("CMYK"), "JPEG", quality=95), plain, 3),
    "alpha.png": (lambda: alpha("PNG"), half_clear, 0),
    "alpha.webp": (lambda: alpha("WEBP", lossless=True), half_clear, 0),
    "grey-alpha.png": (lambda: alpha("PNG", "LA"), lambda: half_clear().convert("L").convert("RGB"), 0),
    "palette-alpha.png": (palette, palette_plain, 0),
    "linear-profile.png": (lambda: saved(linear(), "PNG", icc_profile=linear_profile()), plain, 3),
    "damaged-profile.png": (lambda: saved(plain(), "PNG", icc_profile=b"none"), plain, 0),
}
"""By file name: how its bytes are made, what it must look like, and the mean difference allowed in levels of 255."""


def _bomb() -> bytes:
    """A small file that says it is 60,000 pixels wide and high."""
    content = bytearray(saved(Image.new("L", (8, 8)), "PNG"))
    content[16:24] = struct.pack(">II", 60_000, 60_000)
    content[29:33] = struct.pack(">I", zlib.crc32(bytes(content[12:29])))
    return bytes(content)


def _large() -> bytes:
    content = bytearray(_bomb())
    content[16:24] = struct.pack(">II", 10_000, 10_000)
    content[29:33] = struct.pack(">I", zlib.crc32(bytes(content[12:29])))
    return bytes(content)


def _animated(kind: str) -> bytes:
    return saved(plain(), kind, save_all=True, append_images=[gray()], duration=100)


def _float_colours() -> bytes:
    """A TIFF of 32-bit floating-point colours, which Pillow does not know."""
    pixels = (np.asarray(plain()) / 255).astype("<f4")
    high, wide = pixels.shape[:2]
    after = 8 + 2 + 12 * 10 + 4
    entries = [(256, 3, 1, wide), (257, 3, 1, high), (258, 3, 3, after), (259, 3, 1, 1), (262, 3, 1, 2)]
    entries += [(273, 4, 1, after + 12), (277, 3, 1, 3), (278, 3, 1, high), (279, 4, 1, pixels.nbytes)]
    entries += [(339, 3, 3, after + 6)]
    table = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    lists = struct.pack("<6H", 32, 32, 32, 3, 3, 3)
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + table + bytes(4) + lists + pixels.tobytes()


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty.png": (lambda: b"", "the file is empty"),
    "text.png": (lambda: b"no picture", "not a PNG, JPEG, WebP"),
    "page.jpg": (lambda: b"<html><body>Not found</body></html>", "not a PNG, JPEG, WebP"),
    "cut-off.jpg": (lambda: saved(plain(), "JPEG")[:-900], "damaged or truncated"),
    "cut-off.png": (lambda: saved(plain(), "PNG")[:-900], "damaged or truncated"),
    "bomb.png": (_bomb, "more than 89 megapixels"),
    "too-large.png": (_large, "more than 89 megapixels"),
    "animated.gif": (lambda: _animated("GIF"), "holds 2 pictures"),
    "animated.webp": (lambda: _animated("WEBP"), "holds 2 pictures"),
    "animated.png": (lambda: _animated("PNG"), "holds 2 pictures"),
    "pages.tiff": (lambda: _animated("TIFF"), "holds 2 pictures"),
    "floats.tiff": (
        lambda: saved(Image.fromarray(np.asarray(plain().convert("L")).astype(np.float32)), "TIFF"),
        "white level is unknown",
    ),
    "float-colours.tiff": (_float_colours, "this kind of TIFF is not read"),
    "phone.heic": (lambda: b"\0\0\0\x18ftypheic" + bytes(40), "HEIC is not read"),
}
"""By file name: how its bytes are made, and words of the reason why it is not read."""


def far(found: Image.Image, wanted: Image.Image) -> float:
    """The mean difference of two pictures in levels of 255; infinite where their sizes differ."""
    if found.size != wanted.size:
        return float("inf")
    return float(np.abs(np.asarray(found).astype(int) - np.asarray(wanted).astype(int)).mean())
