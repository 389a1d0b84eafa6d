"""The demo's picture, what the detector wants of it, and boxes from what the detector says."""

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

LINES = [
    # text, size of the font, left, top, angle in degrees
    ("CUVIL", 96, 60, 40, 0),
    ("an AI inference compiler", 36, 64, 150, 0),
    ("ResNet-50: 53 convolutions", 28, 220, 260, 0),
    ("one .cvl file", 44, 80, 330, 12),
    ("no compiler needed", 30, 345, 380, -8),
    ("0123456789", 26, 70, 560, 0),
    ("speed size trust", 40, 300, 520, 0),
]


def draw(width: int = 640, height: int = 640) -> Image.Image:
    """A picture with a few lines of text, some of them turned, on a background that is not plain."""
    x = np.linspace(0, 1, width)[None, :, None]
    y = np.linspace(0, 1, height)[:, None, None]
    base = 205 + 40 * x * np.array([1.0, 0.6, 0.2]) - 35 * y * np.array([0.2, 0.5, 1.0])
    picture = Image.fromarray(np.clip(base, 0, 255).astype(np.uint8), "RGB")
    pen = ImageDraw.Draw(picture)
    pen.ellipse([430, 60, 590, 220], outline=(180, 120, 90), width=6)
    pen.rectangle([40, 470, 600, 500], fill=(170, 190, 175))
    for text, size, left, top, angle in LINES:
        font = ImageFont.load_default(size)
        box = font.getbbox(text)
        tile = Image.new("L", (int(box[2]) + 8, int(box[3]) + 8), 0)
        ImageDraw.Draw(tile).text((4, 4), text, fill=255, font=font)
        tile = tile.rotate(angle, expand=True, resample=Image.Resampling.BICUBIC)
        picture.paste((25, 30, 60), (left, top), tile)
    return picture


def to_input(picture: Image.Image) -> np.ndarray:
    """float32 [1, 3, H, W] in [-1, 1]; H and W must be multiples of 32."""
    pixels = np.asarray(picture, np.float32) / 255.0
    return np.ascontiguousarray(((pixels - 0.5) / 0.5).transpose(2, 0, 1)[None])


@dataclass(frozen=True)
class Box:
    left: int
    top: int
    right: int
    bottom: int
    score: float


def boxes_of(probability: np.ndarray, threshold: float = 0.3, least: float = 0.5) -> list[Box]:
    """Boxes around the connected regions of text in a probability map [H, W], grown as the detector shrank them."""
    label = _components(probability > threshold)
    found = []
    for i in range(1, label.max() + 1):
        ys, xs = np.nonzero(label == i)
        if len(ys) < 16:
            continue
        score = float(probability[ys, xs].mean())
        if score < least:
            continue
        height, width = ys.max() - ys.min() + 1, xs.max() - xs.min() + 1
        # The detector is trained on regions shrunk by area * ratio / perimeter (DB, Liao et al. 2020).
        grow = int(round(1.6 * height * width / (2 * (height + width))))
        h, w = probability.shape
        found.append(
            Box(
                max(0, int(xs.min()) - grow),
                max(0, int(ys.min()) - grow),
                min(w - 1, int(xs.max()) + grow),
                min(h - 1, int(ys.max()) + grow),
                score,
            )
        )
    return sorted(found, key=lambda b: (b.top, b.left))


def _components(mask: np.ndarray) -> np.ndarray:
    """Numbers of the 4-connected components, 0 outside: runs of each row are joined to those of the row above."""
    label = np.zeros(mask.shape, np.int32)
    parent = [0]

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for y, row in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], row.view(np.int8), [0]))))
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            above = {root(i) for i in np.unique(label[y - 1, begin:end]) if i} if y else set()
            if above:
                number = min(above)
                for other in above:
                    parent[other] = number
            else:
                number = len(parent)
                parent.append(number)
            label[y, begin:end] = number
    roots = np.array([root(i) for i in range(len(parent))])
    _, numbers = np.unique(roots, return_inverse=True)
    return numbers[label].astype(np.int32)


def mark(picture: Image.Image, boxes: list[Box]) -> Image.Image:
    marked = picture.copy()
    pen = ImageDraw.Draw(marked)
    font = ImageFont.load_default(14)
    for b in boxes:
        pen.rectangle([b.left, b.top, b.right, b.bottom], outline=(220, 40, 40), width=3)
        pen.text((b.left + 2, max(0, b.top - 16)), f"{b.score:.2f}", fill=(220, 40, 40), font=font)
    return marked
