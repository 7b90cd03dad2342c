"""What the site shows from outside docs/ (changes, benchmarks, examples), with links that work in both places."""
# ruff: noqa: INP001  (loaded by MkDocs by its path)

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parent.parent
#: Written by commands of their own: the site is whole without them.
LATER = {"results.md", "scaling.md"}
#: Pages from elsewhere in the repository, by their place on the site.
MOUNTED = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks/index.md",
    "benchmarks/RESULTS.md": "benchmarks/RESULTS.md",
    "examples/README.md": "examples/index.md",
}
LINK = re.compile(r"\]\((?!https?:|#)([^)\s#]*)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave out of the navigation what has not been written yet."""
    config.nav = _present(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, pictures and programs that live elsewhere."""
    for source, place in MOUNTED.items():
        files.append(File.generated(config, place, content=_mounted(source)))
    for picture in sorted((ROOT / "benchmarks" / "img").glob("*.png")):
        files.append(File.generated(config, f"benchmarks/img/{picture.name}", abs_src_path=str(picture)))
    for program in sorted((ROOT / "examples").glob("*.py")):
        text = f"# {program.name}\n\n```python\n{program.read_text(encoding='utf-8')}```\n"
        files.append(File.generated(config, f"examples/{program.stem}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links that leave docs/ in the repository, made links within the site."""
    if page.file.generated_by is not None:
        return markdown
    for missing in (name for name in LATER if not (ROOT / "docs" / name).exists()):
        markdown = re.sub(rf"\[([^\]]*)\]\((?:\.\./)*{re.escape(missing)}(?:#[^)]*)?\)", r"\1", markdown)
    return _relinked(markdown, ROOT / "docs", page.file.src_uri)


def _present(items: Any, docs: Path) -> Any:
    if isinstance(items, list):
        return [kept for item in items if (kept := _present(item, docs)) is not None]
    if isinstance(items, dict):
        return next(({name: kept} for name, inner in items.items() if (kept := _present(inner, docs)) is not None), None)
    if items in LATER and not (docs / items).exists():
        logging.getLogger("mkdocs").info("%s is not written yet: left out", items)
        return None
    return items


def _mounted(source: str) -> str:
    text = (ROOT / source).read_text(encoding="utf-8")
    return _relinked(text, (ROOT / source).parent, MOUNTED[source])


def _relinked(text: str, folder: Path, page: str) -> str:
    """Relative links of a text in `folder` of the repository, as links of `page` of the site."""

    def link(found: re.Match[str]) -> str:
        place = _place(folder, found[1])
        if place is None:
            return found[0]
        up = "../" * page.count("/")
        return f"]({up}{place}{found[2] or ''})"

    return LINK.sub(link, text)


def _place(folder: Path, target: str) -> str | None:
    """Where on the site a file of the repository is; None for what is not there, or needs no change."""
    try:
        name = (folder / target).resolve().relative_to(ROOT).as_posix()
    except ValueError:
        return None
    if name in MOUNTED:
        return MOUNTED[name]
    if re.fullmatch(r"examples/\w+\.py", name):
        return name.removesuffix(".py") + ".md"
    if folder != ROOT / "docs" and name.startswith("docs/"):
        return name.removeprefix("docs/")
    return None
