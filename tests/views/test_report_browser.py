"""The report as a reader meets it, in a real Chromium: pictures are there, links lead on, a telephone is wide enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

import chromium
from coin_experiment import EXPERIMENT, write
from tightrope.views import pdf
from tightrope.views.chapters import chapters
from tightrope.views.report import write_report

pytestmark = pytest.mark.skipif(chromium.path() is None, reason="there is no Chromium; `make test` installs it where it may")
SCREENS = [(1200, False), (1200, True), (390, False), (360, True)]
#: Every text of the page with its size and how far its colour stands out from what is behind it (WCAG's contrast).
TEXTS = """
(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const light = colour => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const part = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(x => x / 255)
      .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const behind = e => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
    return "white";
  };
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement, style = getComputedStyle(e);
    if (!walk.currentNode.textContent.trim()) continue;
    const [a, b] = [light(style.color), light(behind(e))].sort((x, y) => y - x);
    found.push([walk.currentNode.textContent.trim(), parseFloat(style.fontSize), (a + 0.05) / (b + 0.05)]);
  }
  return found;
})()
"""
#: How many pixels of the first picture have the ink of a light page, and how many that of a dark one.
INK = """
(async () => {
  const image = document.querySelector(".panels img"); await image.decode();
  const canvas = document.createElement("canvas"); [canvas.width, canvas.height] = [600, 480];
  const paint = canvas.getContext("2d"); paint.drawImage(image, 0, 0, 600, 480);
  const data = paint.getImageData(0, 0, 600, 480).data, ink = [0, 0];
  for (let i = 0; i < data.length; i += 4) {
    const light = (data[i] + data[i + 1] + data[i + 2]) / 3;
    if (data[i + 3] > 200) { ink[0] += light < 50; ink[1] += light > 225; }
  }
  return ink;
})()
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    to = tmp_path_factory.mktemp("report")
    write(to / "records")
    other = replace(EXPERIMENT, name="other", title="Something with a long title that is not run at all")
    return write_report(chapters(to / "records", (EXPERIMENT, other)), to, tour=False)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_the_page_is_whole_silent_and_alone(browser, page, width, dark):
    browser.open(page, width=width, dark=dark)
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [page.resolve().as_uri()]
    pictures = browser.run("[...document.images].map(i => [i.complete, i.naturalWidth, i.getBoundingClientRect().width, i.alt])")
    assert len(pictures) == 3
    assert all(complete and natural > 0 and shown >= 280 and alt for complete, natural, shown, alt in pictures)


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_nothing_is_wider_than_the_screen_or_too_small_or_too_pale(browser, page, width, dark):
    browser.open(page, width=width, dark=dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    out = browser.run(
        "[...document.querySelectorAll('h1, h2, h3, p, li, img, pre, .wide, .badge, figcaption')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.outerHTML.slice(0, 99))"
    )
    assert out == []
    texts = browser.run(TEXTS)
    assert len(texts) > 50
    assert [text for text, size, _ in texts if size < 12.0] == []
    assert [(text, round(contrast, 2)) for text, _, contrast in texts if contrast < 4.5] == []


def test_the_letters_in_pictures_can_be_read_on_a_telephone(browser, page):
    browser.open(page, width=360)
    scale = browser.run("(() => { const i = document.images[0]; return i.getBoundingClientRect().width / i.naturalWidth })()")
    smallest = 9.5 * 4.0 / 3.0  # ticks, in points, as CSS pixels
    assert smallest * scale >= 10.0


def test_pictures_are_dark_ink_on_light_pages_and_light_on_dark_ones(browser, page):
    browser.open(page, dark=False)
    black, white = browser.run(INK)
    assert black > 500 > 20 * white
    browser.open(page, dark=True)
    black, white = browser.run(INK)
    assert white > 500 > 20 * black


@pytest.mark.parametrize("width", [1200, 390])
def test_links_lead_to_their_sections_and_back(browser, page, width):
    browser.open(page, width=width)
    top = "document.querySelector('{}').getBoundingClientRect().top"
    for link, section in (
        ("nav a[href='#tiny']", "#tiny"),
        ("nav a[href='#advice']", "#advice"),
        (".board a[href='#tiny']", "#tiny"),
        ("#advice a[href='#tiny']", "#tiny"),
    ):
        browser.click(link)
        assert browser.run("location.hash") == section
        assert -1 <= browser.run(top.format(section)) <= 60, link
    browser.click("#tiny .back a")
    assert browser.run("location.hash") == "#top"
    assert browser.run("scrollY") <= 60


def test_contents_stay_in_sight_on_a_wide_screen(browser, page):
    browser.open(page, width=1400, height=700)
    browser.run("scrollTo(0, 1500)")
    assert 0 <= browser.run("document.querySelector('nav a').getBoundingClientRect().top") <= 700


def test_a_wide_table_scrolls_by_itself_and_by_keyboard(browser, page):
    browser.open(page, width=360)
    wide = "document.querySelector('figure.table .wide')"
    assert browser.run(f"{wide}.scrollWidth > {wide}.clientWidth")
    assert browser.run(f"{wide}.tabIndex") == 0
    assert browser.run(f"{wide}.getAttribute('aria-label')").startswith("Heads by κ")


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_a_screenshot_shows_more_than_a_blank_page(browser, page, width, dark, tmp_path):
    browser.open(page, width=width, dark=dark)
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 60_000


def test_the_page_prints(page):
    printed = pdf.write_pdf(page)
    assert printed.name == "report.pdf"
    assert printed.read_bytes()[:5] == b"%PDF-"
    assert printed.stat().st_size > 20_000
