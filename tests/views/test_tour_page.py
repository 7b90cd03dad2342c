"""The page of the tour: one file, well formed, with every picture inside."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import pytest

from tightrope.experiments import tour
from tightrope.solution import Trace, told
from tightrope.views.page import page, picture, table
from tightrope.views.tour import _verdict, write_page, write_tour

VOID = {"meta", "img", "source", "br"}


class Outline(HTMLParser):
    """Opens and closes, links and pictures."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.headings, self.described = [], [], 0, 0

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        given = dict(attrs)
        self.links += [given[key] for key in ("src", "srcset", "href") if key in given]
        self.headings += tag == "h2"
        self.described += tag == "img" and bool(given.get("alt"))

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def found():
    return tour.tour(quick=True)


@pytest.fixture(scope="module")
def written(found, tmp_path_factory):
    names = []
    path = write_tour(found, tmp_path_factory.mktemp("tour") / "deep" / "er", done=names.append)
    assert names == ["world", "lookahead", "convergence", "dip", "map"]
    return path


def test_the_page_is_well_formed_and_needs_nothing_else(written):
    outline = Outline()
    text = written.read_text(encoding="utf-8")
    outline.feed(text)
    assert outline.open == []
    assert outline.headings == 5
    assert outline.described == 5
    assert len(outline.links) == 10
    assert all(link.startswith("data:image/png;base64,") for link in outline.links)
    assert "<script" not in text
    assert not re.search(r"https?://", text)
    assert "$" not in re.sub(r"base64,[^\"]+", "", text)


def test_the_page_leads_to_a_report_if_there_is_one(found, tmp_path, written):
    pictures = dict.fromkeys(("world", "lookahead", "convergence", "dip", "map"), "")
    text = write_page(found, pictures, tmp_path, report="report.html").read_text(encoding="utf-8")
    assert '<a href="report.html">' in text
    assert "tightrope report" in written.read_text(encoding="utf-8")


def test_the_inlined_pictures_are_the_files(written):
    text = written.read_text(encoding="utf-8")
    inlined = [base64.b64decode(data) for data in re.findall(r'<img src="data:image/png;base64,([^"]+)"', text)]
    files = [(written.parent / f"{name}.png").read_bytes() for name in ("world", "lookahead", "convergence", "dip", "map")]
    assert inlined == files


def test_the_numbers_of_the_page_are_those_of_the_records(written, found):
    text = written.read_text(encoding="utf-8")
    assert f"{found.world.mdp.n_states:,} free cells" in text
    assert f"where PI needed {found.lookahead.h[1].iterations}" in text
    assert f"{found.improvement.change.size:,} of them, of which 0 contradict" in text
    for solution in found.lookahead.kappa.values():
        assert f"<td>{solution.iterations}</td>" in text


def test_the_verdict_follows_the_numbers(found):
    plain, other = found.lookahead.h[1], found.lookahead.kappa[0.9]
    said = _verdict({"PI": plain})
    assert "the fewest of all; PI was also the fastest" in said
    fewest = told(other.account._replace(trace=Trace((plain.trace[-1]._replace(backups=7, seconds=4.2e-6),))))
    said = _verdict({"PI": plain, "κ-PI": fewest})
    assert "κ-PI only 7, the fewest of all" in said
    assert "by the clock κ-PI was the fastest, 4.2e-06 s against" in said


def test_what_is_not_html_is_escaped():
    assert "&lt;b&gt;" in table(["<b>"], [["1"]])
    assert "<td>1 &amp; 2</td>" in table(["a"], [["1 & 2"]])
    assert 'alt="a &quot;b&quot;"' in picture(b"x", b"y", 'a "b"')
    assert "<title>a &lt; b</title>" in page("a < b", "")


def test_the_best_row_stands_out():
    assert table(["a"], [["1"], ["2"]], best=1).count("class=best") == 1


def test_columns_of_words_are_set_as_words_and_columns_of_numbers_are_not():
    text = table(["name", "value", "why"], [["a", "1.5", "it rained"], ["b", "the same", "it did not"], ["c", "2", "-"]])
    assert text.count("class=words") == 4
    assert "<td>the same</td>" in text
