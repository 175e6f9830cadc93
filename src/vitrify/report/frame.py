"""The frame that every page stands in: templates, the places in the bar on top, and the files that pages load.

A page says with `root` how to get from it to the top of the site (`""`, `"../"` or `"/"`), so that the same templates
work from a disk and from a server. Scripts are plain ones and not modules, which browsers refuse to load from a disk.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import vitrify
from vitrify.encoding import JsonObject
from vitrify.optional import need

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"


class Place(NamedTuple):
    """A part of the site: its key (a page says where it is `here`), its name in the bar, and its address."""

    key: str
    title: str
    address: str


ATLAS = Place("atlas", "Atlas", "index.html")
STORIES = Place("stories", "Stories", "stories.html")
MAPS = Place("maps", "Maps", "maps.html")
GLASS = Place("glass", "Glass box", "glass")
LANDSCAPE = Place("landscape", "Landscape", "landscape.html")
CURVES = Place("curves", "Curves", "curves")
WATCH = Place("watch", "Watch", "watch")
WRITTEN = (ATLAS, STORIES, MAPS)  # what is in the folder that `vitrify atlas` writes
LIVE = (ATLAS, STORIES, MAPS, GLASS, LANDSCAPE, CURVES, WATCH)  # what `vitrify serve` has
PLAYGROUND = Place("playground", "Playground", "playground/index.html")
GALLERY = Place("gallery", "Gallery", "docs/gallery.html")
DOCS = Place("docs", "Docs", "docs/index.html")
SEARCH = Place("search", "Search", "docs/search.html")
# What `make site` puts into one folder: the atlas in a folder of its own, with pages of the project around it.
SITE = (*(place._replace(address=f"atlas/{place.address}") for place in WRITTEN), PLAYGROUND, GALLERY, DOCS, SEARCH)
BAR = re.compile(r'<nav aria-label="Parts of the site">.*?</nav>', re.DOTALL)
BRAND = re.compile(r'(<a class="brand" href=")[^"]*')
CURRENT = re.compile(r'aria-current="page">([^<]*)<')


@cache
def environment() -> Environment:
    """The templates; everything that is put into them is escaped, unless it is markup that was made here."""
    jinja2 = need("jinja2", "report")
    templates: Environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    return templates


def page(template: str, here: str, root: str = "", places: Sequence[Place] = WRITTEN, **values: object) -> str:
    """A whole page, as text."""
    return environment().get_template(template).render(**around(here, root, places), **values)


def around(here: str, root: str, places: Sequence[Place]) -> JsonObject:
    """Return the values that the frame of a page needs."""
    return {"here": here, "root": root, "places": places, "version": vitrify.__version__}


def with_bar(text: str, root: str, places: Sequence[Place]) -> str:
    """Return a page as it was written with other places in its bar; it stays where it was among them."""
    bar = BAR.search(text)
    if bar is None:
        return text
    title = CURRENT.search(bar[0])
    here = next((place.key for place in places if title and place.title == title[1]), "")
    made = environment().get_template("bar.html.j2").render(here=here, root=root, places=places)
    text = text[: bar.start()] + made.strip() + text[bar.end() :]
    return BRAND.sub(rf"\g<1>{root}index.html", text)
