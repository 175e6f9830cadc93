"""Write the site of the project into a folder: front page, playground, and around them the atlas and the docs.

    python tools/site.py build/site build/atlas build/docs [https://where.it.will.be/]

Atlas and docs must be written already (`make site` does that). Pages need no server, and ask for nothing from
elsewhere. With an address, pictures for previews of links are named in full, as most readers of `og:image` want.
"""

from __future__ import annotations

import html
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from vitrify.constructions.catalogue import build
from vitrify.encoding import JsonObject
from vitrify.report.frame import DOCS, SITE, STATIC, environment, page, with_bar
from vitrify.report.live import embedded, packed, script, styles
from vitrify.spec import read_spec
from vitrify.spec.automata.automaton import Automaton
from vitrify.web.examples import examples, kind_of

PICTURE = "docs/_images/overview.png"
EXPRESSION = "(ab|ba)*"
ABOUT = 200  # characters of a description
CHOSEN = "try{const t=localStorage.getItem('vitrify-theme');if(t)localStorage.setItem('theme',t)}catch{}"
FRONT = """import vitrify as v

spec = v.Automaton.from_regex({spec!r})
net = v.build(spec, max_length=16)
print(v.run(net, "abba").accept)
print(v.certify(net, spec, max_length=8).verdict)"""
EXAMPLE = """import vitrify as v

spec = v.read({name!r})
net = v.build(spec)
print(net({words!r}))
print(v.certify(net, spec).verdict)"""


def main(out: Path, atlas: Path, docs: Path, address: str = "", names: Sequence[str] = ()) -> None:
    """Write the site; its playground has the named examples, or all."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(atlas, out / "atlas", ignore=shutil.ignore_patterns("store", ".lock"))
    shutil.copytree(docs, out / "docs", ignore=shutil.ignore_patterns(".doctrees", "objects.inv", ".buildinfo"))
    shutil.copytree(STATIC, out / "static")
    (out / "static" / "live.js").write_text(script(), encoding="utf-8")
    (out / "static" / "live.css").write_text(styles(), encoding="utf-8")
    front(out)
    playground(out, names or list(examples()))
    for path in sorted(out.rglob("*.html")):
        path.write_text(finished(path, out, address), encoding="utf-8")


def front(out: Path) -> None:
    """Write the front page, with a network in it."""
    spec = Automaton.from_regex(EXPRESSION)
    data = packed(build(spec, max_length=16), spec)
    data["suggestions"].insert(0, list("abba"))  # which it accepts
    values = {
        "data": embedded(data),
        "spec": EXPRESSION,
        "python": FRONT.format(spec=EXPRESSION),
        "count": len(examples()),
    }
    (out / "index.html").write_text(page("home.html.j2", "", "", SITE, **values), encoding="utf-8")


def playground(out: Path, chosen: Sequence[str]) -> None:
    """Write a page for the network of each example; the first page is that of a formula."""
    kinds: dict[str, list[str]] = {}
    for name in chosen:
        kinds.setdefault(kind_of(name), []).append(name)
    folder = out / "playground"
    folder.mkdir()
    for name in chosen:
        path = examples()[name]
        spec = read_spec(path)
        data: JsonObject = packed(build(spec), spec)
        values = {
            "name": name,
            "kinds": kinds,
            "what": data["facts"]["what"],
            "text": path.read_text(encoding="utf-8"),
            "data": embedded(data),
            "python": EXAMPLE.format(name=name, words=data["suggestions"][0]),
        }
        (folder / f"{name}.html").write_text(page("playground.html.j2", "playground", "../", SITE, **values), "utf-8")
    shutil.copy(folder / "door.ltl.html", folder / "index.html")


def finished(path: Path, out: Path, address: str) -> str:
    """Return a page with the bar of the site, and with what previews of links show."""
    text, name = path.read_text(encoding="utf-8"), path.relative_to(out)
    root = "../" * (len(name.parts) - 1)
    text = in_frame(text, root, name) if name.parts[0] == "docs" else with_bar(text, root, SITE)
    figure = out / "atlas" / "figures" / f"{path.stem}.png"
    picture = str(figure.relative_to(out)) if figure.exists() and name.parts[0] == "atlas" else PICTURE
    said = re.search(r"<title>(.*?)</title>", text, re.DOTALL)
    first = re.search(r"<p(?: class=\"(?:lead|text)[^>]*)?>(.*?)</p>", text[text.find("<h1") :], re.DOTALL)
    about = " ".join(html.unescape(re.sub(r"<[^>]*>", "", first[1])).split())[:ABOUT] if first else ""
    facts = {"title": html.unescape(said[1]).strip() if said else "vitrify", "description": about, "type": "website"}
    facts["image"] = address + picture if address else root + picture
    tags = "".join(f'<meta property="og:{key}" content="{html.escape(value)}">\n  ' for key, value in facts.items())
    return text.replace("</head>", f"{tags}</head>", 1)


def in_frame(text: str, root: str, name: Path) -> str:
    """Return a page of the docs with the bar of the site on top, and its choice of colours."""
    here = next((place.key for place in SITE if place.address == name.as_posix()), DOCS.key)
    bar = environment().get_template("bar.html.j2").render(here=here, root=root, places=SITE)
    brand = f'<a class="brand" href="{root}index.html"><img src="{root}static/favicon.svg" alt="">vitrify</a>'
    header = f'<div class="site-bar">{brand}{bar}</div>'
    return re.sub(r"<body([^>]*)>", lambda found: f"<body{found[1]}><script>{CHOSEN}</script>{header}", text, count=1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:5])
