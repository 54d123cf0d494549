"""Writes tests/golden/pictures: small files of each format, what Pillow and transformers make of them, and what
transformers' image processors make of one of them in other sizes. Used by tests/test_picture.c.

    python3 tools/golden/pictures.py     needs transformers 5.23, torchvision 0.21, Pillow 11.1

decoded.txt: a line for each file, with the width and height of its pixels, which are in decoded.rgb, one after the
other. resized.txt: the part of large.png (x, y, width, height), the filter, the new width and height; resized.rgb.
"""
import os
import pathlib
import struct
import zlib

os.environ["ATEN_CPU_CAPABILITY"] = "avx2"   # with AVX-512 torchvision 0.21 has bilinear in floats, up to 1 away

import numpy
from PIL import Image, ImageOps
from transformers import Gemma3ImageProcessor
from transformers.image_transforms import convert_to_rgb

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/pictures"
WIDTH, HEIGHT = 18, 17
random = numpy.random.default_rng(5)
decoded = []


def draw(width, height):
    """Slopes, edges, a disc and some noise."""
    y, x = numpy.mgrid[:height, :width]
    pixels = numpy.stack([x * 255 // width, y * 255 // height, (x * 5 + y * 9) % 256], -1)
    pixels[(x // 6 + y // 5) % 3 == 0] = [250, 40, 20]
    pixels[(x - width / 2) ** 2 + (y - height / 2) ** 2 < height * height / 9] = [0, 0, 255]
    pixels[: height // 4] += random.integers(-40, 40, (height // 4, width, 3))
    return numpy.clip(pixels, 0, 255).astype(numpy.uint8)


def add(name, pixels=None):
    """Keeps what the file holds; pixels: where Pillow is known to do less."""
    if pixels is None:
        pixels = convert_to_rgb(ImageOps.exif_transpose(Image.open(FOLDER / name)), return_numpy=True)
    decoded.append((name, numpy.ascontiguousarray(pixels)))


def save(name, image, pixels=None, **options):
    image.save(FOLDER / name, **options)
    add(name, pixels)


def exif(orientation):
    tags = Image.Exif()
    tags.endian = "<>"[orientation % 2]
    tags[0x10F] = "Peridot"
    tags[0x112] = orientation
    return tags


# ---- files that Pillow does not write


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(name, samples, interlaced=False):
    """Of 8 or 16 bits, by the type of the samples [height][width][channels]."""
    height, width, n_channels = samples.shape
    adam7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    data = b""
    for x, y, dx, dy in adam7 if interlaced else [(0, 0, 1, 1)]:
        for row in samples[y::dy, x::dx]:
            if row.size:
                data += b"\0" + row.astype(samples.dtype.newbyteorder(">")).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8 * samples.itemsize, {1: 0, 3: 2, 2: 4, 4: 6}[n_channels], 0, 0,
                         interlaced)
    (FOLDER / name).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data, 9))
                                + chunk(b"IEND", b""))


def write_webp_frame(name, source, x, y, width, height):
    """An animation of one frame, which is a still picture's, at (x, y) of a canvas."""
    def part(kind, data):
        return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)

    def three(value):
        return struct.pack("<I", value)[:3]
    bits = (FOLDER / source).read_bytes()[12:]
    frame = three(x // 2) + three(y // 2) + three(WIDTH - 1) + three(HEIGHT - 1) + three(100) + b"\0" + bits
    body = b"WEBP" + part(b"VP8X", struct.pack("<I", 2) + three(width - 1) + three(height - 1))
    body += part(b"ANIM", struct.pack("<IH", 0, 0)) + part(b"ANMF", frame)
    (FOLDER / name).write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)


def on_white(pixels, x, y, width, height):
    canvas = numpy.full((height, width, 3), 255, numpy.uint8)
    canvas[y:y + HEIGHT, x:x + WIDTH] = pixels
    return canvas


# ---- all of them


def jpegs(rgb):
    save("rgb.jpg", rgb, quality=90)
    save("444.jpg", rgb, quality=90, subsampling=0)
    save("422-restart.jpg", rgb, quality=60, subsampling=1, restart_marker_blocks=1)
    save("progressive.jpg", rgb, quality=80, progressive=True)
    save("gray.jpg", rgb.convert("L"))
    save("cmyk.jpg", rgb.convert("CMYK"), quality=90)
    ycck = bytearray((FOLDER / "cmyk.jpg").read_bytes())
    ycck[ycck.index(b"Adobe") + 11] = 2     # its transform
    (FOLDER / "ycck.jpg").write_bytes(ycck)
    add("ycck.jpg")
    for orientation in range(1, 9):
        save(f"turned-{orientation}.jpg", rgb, quality=50, exif=exif(orientation))


def pngs(pixels, rgb, rgba):
    save("rgb.png", rgb)
    save("rgba.png", rgba)
    save("gray.png", rgb.convert("L"))
    save("gray-1.png", rgb.convert("1"))
    save("gray-alpha.png", rgba.convert("LA"))
    save("palette.png", rgb.quantize(12))
    save("palette-alpha.png", rgb.quantize(60), transparency=bytes(range(0, 240, 4)))
    save("key.png", rgb, transparency=(250, 40, 20))
    save("turned-6.png", rgb, exif=exif(6))
    write_png("interlaced.png", pixels, interlaced=True)
    add("interlaced.png")
    write_png("interlaced-1.png", pixels[:1, :1], interlaced=True)
    add("interlaced-1.png")
    wide = pixels.astype(numpy.uint16) << 8 | random.integers(0, 256, pixels.shape, numpy.uint16)
    write_png("rgb-16.png", wide)
    add("rgb-16.png", pixels)
    write_png("gray-16.png", wide[:, :, :1])
    add("gray-16.png", numpy.repeat(pixels[:, :, :1], 3, -1))


def webps(rgb, rgba, other):
    save("lossy.webp", rgb, quality=80)
    save("lossy-alpha.webp", rgba, quality=80)
    save("lossless.webp", rgb, lossless=True)
    save("lossless-alpha.webp", rgba, lossless=True, exact=True)
    save("turned-8.webp", rgb, quality=40, exif=exif(8))
    save("moving.webp", rgb, save_all=True, append_images=[other], lossless=True)
    write_webp_frame("frame.webp", "lossless.webp", 4, 6, 30, 24)
    add("frame.webp", on_white(numpy.array(rgb), 4, 6, 30, 24))


def gifs(rgb, other):
    few = rgb.quantize(30)
    save("palette.gif", few, interlace=0)
    save("interlaced.gif", few, interlace=1)
    save("transparent.gif", few, transparency=few.getpixel((9, 8)))
    save("moving.gif", few, save_all=True, append_images=[other.quantize(30)])
    frame = bytearray((FOLDER / "palette.gif").read_bytes())
    frame[6:10] = struct.pack("<HH", 30, 24)
    at = frame.index(b",\0\0\0\0" + struct.pack("<HH", WIDTH, HEIGHT))
    frame[at + 1:at + 5] = struct.pack("<HH", 3, 5)
    (FOLDER / "frame.gif").write_bytes(frame)
    add("frame.gif", on_white(numpy.array(few.convert("RGB")), 3, 5, 30, 24))


def resize(large):
    """By Gemma 3's processor, with numbers left from 0 to 255; Gemma 4's calls the same function."""
    lines, data = [], b""
    whole = (0, 0, large.width, large.height)

    def put(part, filter_name, picture):
        nonlocal data
        lines.append(" ".join(map(str, (*part, filter_name, picture.shape[2], picture.shape[1]))))
        data += picture.permute(1, 2, 0).numpy().astype(numpy.uint8).tobytes()

    def process(filter_name, width, height, **options):
        processor = Gemma3ImageProcessor(size={"height": height, "width": width}, do_rescale=False, do_normalize=False,
                                         resample=getattr(Image.Resampling, filter_name.upper()))
        return processor(large, return_tensors="pt", **options)["pixel_values"]

    for filter_name in "bilinear", "bicubic":
        for width, height in ((32, 32), (13, 7), (110, 9), (20, large.height), (large.width, 30), (2, 1), (100, 30),
                              (3, 90)):
            put(whole, filter_name, process(filter_name, width, height)[0])
        crops = process(filter_name, 20, 20, do_pan_and_scan=True, pan_and_scan_min_crop_size=32,
                        pan_and_scan_max_num_crops=4, pan_and_scan_min_ratio_to_activate=1.2)
        for part, picture in zip((whole, (0, 0, 49, 61), (49, 0, 48, 61)), crops, strict=True):
            put(part, filter_name, picture)
    (FOLDER / "resized.txt").write_text("\n".join(lines) + "\n")
    (FOLDER / "resized.rgb").write_bytes(data)


def main():
    FOLDER.mkdir(exist_ok=True)
    pixels = draw(WIDTH, HEIGHT)
    rgb, other = Image.fromarray(pixels), Image.fromarray(255 - pixels)
    rgba = rgb.copy()
    rgba.putalpha(Image.fromarray(numpy.mgrid[:HEIGHT, :WIDTH][1].astype(numpy.uint8) * 10))
    large = Image.fromarray(draw(97, 61))
    jpegs(rgb)
    pngs(pixels, rgb, rgba)
    webps(rgb, rgba, other)
    gifs(rgb, other)
    save("large.png", large)
    resize(large)
    (FOLDER / "decoded.txt").write_text("".join(f"{name} {p.shape[1]} {p.shape[0]}\n" for name, p in decoded))
    (FOLDER / "decoded.rgb").write_bytes(b"".join(p.tobytes() for _, p in decoded))


main()
