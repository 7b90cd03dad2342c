"""A page as PDF, printed by a browser that is already there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tightrope.errors import MissingProgram

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_QUIET = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-pdf-header-footer",
)
_PATIENCE = 120.0


def browser() -> str:
    """The program that prints; found before the work, so that nobody waits for an error."""
    found = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise MissingProgram(
            "--pdf needs Chromium or Google Chrome, and neither is on the PATH: install one (Debian, Ubuntu: apt install "
            "chromium; Fedora: dnf install chromium; macOS: brew install --cask chromium), or print the page from any browser"
        )
    return found


def write_pdf(page: Path) -> Path:
    """Print a page beside itself; the path of the PDF."""
    path = page.with_suffix(".pdf")
    # Root may not use Chromium's sandbox; what is opened is our own page, which runs no script and loads nothing.
    trusted = ("--no-sandbox",) if getattr(os, "geteuid", lambda: 1)() == 0 else ()
    with tempfile.TemporaryDirectory(dir=page.parent, prefix=".printing.") as folder:
        made = Path(folder) / path.name
        own = (f"--user-data-dir={folder}", f"--print-to-pdf={made}", page.resolve().as_uri())
        try:
            done = subprocess.run([browser(), *_QUIET, *trusted, *own], capture_output=True, check=False, timeout=_PATIENCE)  # noqa: S603  (our own page)
        except subprocess.TimeoutExpired:
            raise MissingProgram(f"{browser()} did not print {page} within {_PATIENCE:g} s; print it from any browser") from None
        if not made.exists():
            last = (done.stderr.decode(errors="replace").strip().splitlines() or ["it gave no reason"])[-1]
            raise MissingProgram(f"{browser()} did not print {page} ({last}); print it from any browser")
        made.replace(path)
    return path
