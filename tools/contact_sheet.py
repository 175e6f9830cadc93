"""Make contact sheets of the figures of an atlas: desktop, phone and dark, to be looked at.

    python tools/contact_sheet.py ATLAS OUT [ID|NAME…]

ATLAS is a folder that `vitrify atlas` wrote. The page of each claim is opened in chromium in three ways, its figure is
photographed, and sheets of 12 figures with their ids are written to OUT. What a program can see is printed: text below
9 pixels, text that leaves the figure, pages wider than the window, and claims without a figure.
"""

from __future__ import annotations

import re
import shutil
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw
from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
WAYS = {  # of looking: width of the window, colours, pictures in a row of a sheet, width of a picture
    "desktop": (1280, "light", 3, 620),
    "phone": (390, "light", 6, 320),
    "dark": (1280, "dark", 3, 620),
}
SHEET = 12  # figures
FAULTS = """() => {
  const plot = document.querySelector(".plot"), edge = plot.getBoundingClientRect(), found = [];
  for (const text of plot.querySelectorAll("text, p, button, span")) {
    const box = text.getBoundingClientRect();
    if (!box.width || !text.textContent.trim()) continue;
    if (parseFloat(getComputedStyle(text).fontSize) < 9) found.push(`small: ${text.textContent}`);
    if (box.left < edge.left - 1 || box.right > edge.right + 1) found.push(`outside: ${text.textContent}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page scrolls sideways");
  return found;
}"""


def photographs(atlas: Path, way: str, names: list[str]) -> list[tuple[str, Image.Image]]:
    """Return the id and figure of each claim, seen in one way; print the faults."""
    width, scheme, _, _ = WAYS[way]
    program = next(filter(None, map(shutil.which, NAMES)), None)
    found = []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        looks: Any = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
        page = browser.new_page(**looks)
        for name in names:
            page.goto((atlas / "claims" / f"{name}.html").absolute().as_uri())
            title = page.title().split(" · ")[0]
            plot = page.locator(".plot")
            if not plot.count():
                print(f"{way} {title} {name}: no figure")
                continue
            for fault in page.evaluate(FAULTS):
                print(f"{way} {title}: {fault}")
            found.append((title, Image.open(BytesIO(plot.screenshot())).convert("RGB")))
        browser.close()
    return found


def sheets(way: str, pictures: list[tuple[str, Image.Image]], out: Path) -> None:
    """Write sheets of pictures with their ids."""
    _, _, across, width = WAYS[way]
    for first in range(0, len(pictures), SHEET):
        some = [
            (title, picture.resize((width, picture.height * width // picture.width)))
            for title, picture in pictures[first : first + SHEET]
        ]
        columns: list[list[tuple[str, Image.Image]]] = [[] for _ in range(across)]
        for each in some:
            min(columns, key=lambda own: sum(picture.height + 24 for _, picture in own)).append(each)
        tall = max(sum(picture.height + 24 for _, picture in own) for own in columns)
        sheet = Image.new("RGB", (across * (width + 8), tall), "#888888")
        draw = ImageDraw.Draw(sheet)
        for number, own in enumerate(columns):
            top = 0
            for title, picture in own:
                draw.text((number * (width + 8) + 4, top + 6), title, fill="white")
                sheet.paste(picture, (number * (width + 8), top + 22))
                top += picture.height + 24
        sheet.save(out / f"{way}-{first // SHEET + 1:02}.png")


def main(atlas: Path, out: Path, wanted: list[str]) -> None:
    """Write the sheets of some claims, of all by default."""
    out.mkdir(parents=True, exist_ok=True)
    index = (atlas / "index.html").read_text(encoding="utf-8")
    pairs = re.findall(r'<span class="place">(\w+)</span>.*?href="claims/(\w+)\.html"', index, re.DOTALL)
    names = [name for key, name in pairs if not wanted or key in wanted or name in wanted]
    for way in WAYS:
        sheets(way, photographs(atlas, way, names), out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
