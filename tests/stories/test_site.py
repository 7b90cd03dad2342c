"""The documentation site: pages, links, pictures and public names are all there, and nothing comes from the network."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("**/*.md"))
#: Pages that the site takes from elsewhere in the repository (docs/hooks.py), and those that are written by commands.
MOUNTED = {"changelog.md", "contributing.md", "benchmarks/RESULTS.md", "examples/index.md"}
LATER = {"results.md", "scaling.md"}
#: The public rooms; each name they export belongs into the reference.
ROOMS = [
    "",
    "operators",
    "planning",
    "online",
    "approximate",
    "theory",
    "model.problems",
    "model.files",
    "views.plot",
    "solution",
    "cluster",
]


def navigation():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return set(re.findall(r"[\w/-]+\.md\b", text[text.index("\nnav:") :]))


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page():
    pages = {path.relative_to(DOCS).as_posix() for path in PAGES}
    assert pages <= navigation()
    assert navigation() <= pages | MOUNTED | LATER


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "examples/README.md", *PAGES], ids=lambda p: p.relative_to(ROOT).as_posix()
)
def test_links_and_pictures_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        if target.startswith("http") or (Path(name).name in LATER and not (DOCS / Path(name).name).exists()):
            continue
        place = (page.parent / name).resolve() if name else page
        assert place.exists(), f"{page.name} links to {target}"
        if anchor and place.suffix == ".md" and place.parent.name != "api":
            assert anchor in anchors(place), f"{page.name} links to {target}"


def anchors(page):
    """Of every heading: given in braces, else words without marks and without letters beyond ASCII, joined by -."""
    text = page.read_text(encoding="utf-8")
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE) + re.findall(r"\{ *#([\w-]+) *\}", text)
    plain = [re.sub(r"[^\w\s-]", "", head.encode("ascii", "ignore").decode()).strip().lower() for head in heads]
    return {re.sub(r"[-\s]+", "-", head) for head in plain}


def reference():
    """The names that the reference shows, by the objects they are."""
    shown = [
        name for page in (DOCS / "api").glob("*.md") for name in re.findall(r"^::: ([\w.]+)", page.read_text(), re.MULTILINE)
    ]
    assert len(shown) == len(set(shown))
    return {name: found(name) for name in shown}


def found(path):
    """The object of a dotted name; where a module and what it defines share one, the module."""
    thing, sofar = importlib.import_module("tightrope"), "tightrope"
    for part in path.split(".")[1:]:
        sofar += f".{part}"
        try:
            thing = importlib.import_module(sofar)
        except ModuleNotFoundError:
            thing = getattr(thing, part)
    return thing


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_in_the_reference(room):
    module = importlib.import_module(f"tightrope.{room}".rstrip("."))
    shown = list(reference().values())
    for name in module.__all__:
        thing = getattr(module, name)
        assert inspect.ismodule(thing) or any(thing is other for other in shown), (
            f"{module.__name__}.{name} is in no docs/api/*.md"
        )


def test_everything_in_the_reference_has_a_docstring_down_to_its_methods():
    silent = []
    for path, thing in reference().items():
        if not inspect.getdoc(thing):
            silent.append(path)
        if inspect.isclass(thing) and thing.__module__.startswith("tightrope"):
            members = {name: getattr(thing, name) for name in vars(thing) if not name.startswith("_")}
            made = {name for name, m in members.items() if callable(m) or isinstance(vars(thing)[name], property)}
            silent += [f"{path}.{name}" for name in made if not inspect.getdoc(members[name] or vars(thing)[name])]
    assert not silent


def test_the_site_builds_without_a_warning_and_asks_nothing_of_the_network(tmp_path):
    pytest.importorskip("mkdocstrings", reason="the extra docs is not installed: make docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    for page in tmp_path.glob("**/*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(https?:[^\"]+)\"", text)
        assert not loaded, f"{page.name} loads {loaded}"
        assert "Bases: <code>NamedTuple" not in text
    assert (tmp_path / "search" / "search_index.js").stat().st_size > 100_000
    reference = (tmp_path / "api" / "model.html").read_text(encoding="utf-8")
    assert 'id="tightrope.MDP.from_dense"' in reference
