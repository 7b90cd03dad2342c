"""The report: what it says follows from the records, and it needs nothing else."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from coin_experiment import EXPERIMENT, VERSIONS, write
from tightrope import experiments
from tightrope.cli import app
from tightrope.errors import MissingProgram
from tightrope.experiments import tour
from tightrope.experiments.experiment import Answer, Verdict
from tightrope.views import pdf, report_markdown
from tightrope.views.chapters import chapters, estimate, score
from tightrope.views.report import prose, report, write_report
from tightrope.views.report_markdown import write_markdown

OTHER = replace(EXPERIMENT, name="other", title="Not run at all")
VOID = {"meta", "img", "br"}


class Outline(HTMLParser):
    """Opens and closes; names, links and pictures."""

    def __init__(self, text):
        super().__init__()
        self.open, self.names, self.links, self.pictures = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.names += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        self.pictures += [given] if tag == "img" else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def text_of(folder, *chosen):
    return report(chapters(folder, chosen or (EXPERIMENT, OTHER)))


def command(*arguments):
    return CliRunner().invoke(app, ["report", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    to = tmp_path_factory.mktemp("records")
    write(to)
    return to


@pytest.fixture(scope="module")
def text(folder):
    return text_of(folder)


@pytest.fixture
def known(monkeypatch):
    """The two experiments of this file as if they were all there are."""
    both = {"tiny": EXPERIMENT, "other": OTHER}
    monkeypatch.setattr(experiments, "NAMES", tuple(both))
    monkeypatch.setattr(experiments, "find", both.__getitem__)


@pytest.mark.parametrize(("heads", "badge"), [(True, "✓ it held"), (False, "✗ it did not hold"), (None, "? the records")])
def test_the_verdict_changes_with_the_records(tmp_path, heads, badge):
    write(tmp_path, heads=heads)
    text = text_of(tmp_path, EXPERIMENT)
    badges = re.findall(r'<span class="badge \w+">([^<]+)<', text)
    assert len(badges) == 2
    assert all(each.startswith(badge) for each in badges)
    share = {True: "100%", False: "0%", None: "60%"}[heads]
    assert text.count(f"heads in {share} of the throws") == 2


def test_the_page_is_well_formed_and_every_link_has_its_end(text):
    outline = Outline(text)
    assert outline.open == []
    assert len(set(outline.names)) == len(outline.names)
    assert {link.removeprefix("#") for link in outline.links} <= set(outline.names)
    assert {"#tiny", "#other", "#claims", "#held", "#advice", "#top"} <= set(outline.links)
    assert '<html lang="en">' in text
    assert text.count("<h1>") == 1


def test_the_page_needs_nothing_else(text):
    assert not re.search(r"https?://|<script|<link|@import|url\(", text)
    assert all(picture["src"].startswith("data:image/svg+xml;base64,") for picture in Outline(text).pictures)


def test_every_picture_is_described(text):
    described = [picture["alt"] for picture in Outline(text).pictures]
    assert described == [
        "A line that rises.",
        "lines with a long title that has to be wrapped. Lines and a map.",
        "map. Lines and a map.",
    ]


def test_a_chapter_says_what_was_asked_found_and_how_to_run_it_again(text):
    for part in (
        EXPERIMENT.question,
        EXPERIMENT.claim,
        "Share of heads: 0.6 (95 % interval: 0.484 to 0.708).",
        "The share of heads rises with κ.",
        "Use a bent coin if you want",
        "<code>tightrope experiment run tiny</code>",
        "80 records of 2026-11-16, made by tightrope 0.1.0 (code 0123456789ab), Python 3.11.7",
        "an abacus, 2 cores",
        "with <code>kappa</code> &lt; 1 &amp; more",
    ):
        assert part in text


def test_what_has_no_records_is_listed_with_its_command(text):
    assert "… not yet run" in text
    assert "There are no records yet" in text
    assert "<code>tightrope experiment run other</code>" in text
    assert "Two claims put to the test: one is undecided, one is not yet run." in text


def test_too_few_records_are_no_verdict(tmp_path):
    write(tmp_path)
    path = tmp_path / "tiny.jsonl"
    path.write_text("".join(f"{line}\n" for line in path.read_text(encoding="utf-8").splitlines()[:31]), encoding="utf-8")
    text = text_of(tmp_path, EXPERIMENT)
    assert "30 of 80 records are there" in text
    assert "No advice before there are records" in text


def test_quick_records_are_labelled_and_give_way_to_full_ones(tmp_path):
    write(tmp_path, quick=True)
    text = text_of(tmp_path, EXPERIMENT)
    assert "All records here are of the quick form" in text
    assert "<b>Quick form.</b> 10 records" in text
    assert "<code>tightrope experiment run tiny --quick</code>" in text
    write(tmp_path)
    text = text_of(tmp_path, EXPERIMENT)
    assert "quick form" not in text
    assert "80 records" in text


def test_records_of_several_versions_say_so(tmp_path):
    write(tmp_path, versions=VERSIONS)
    path = tmp_path / "tiny.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines.insert(41, lines[0].replace("0123456789ab", "ba9876543210").replace("2026-11-16", "2026-11-18"))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text = text_of(tmp_path, EXPERIMENT)
    assert "80 records, from 2026-11-16 to 2026-11-18, made by two versions: tightrope 0.1.0 (code 0123456789ab)" in text
    assert "(code ba9876543210)" in text


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((0.0, 0.0, 0.0123456), "What it is: 0 (95 % interval: 0 to 0.0123)."),
        ((1.5e-9, 1e-9, 2.25e-9), "What it is: 1.5e-09 (95 % interval: 1e-09 to 2.2e-09)."),
        ((12345.6, -1.0, float("inf")), "What it is: 12,300 (95 % interval: -1 to inf)."),
        ((float("nan"), 0.0, 1.0), "What it is: no estimate."),
    ],
)
def test_numbers_are_written_as_one_writes_them(numbers, said):
    assert estimate(Verdict(Answer.YES, "", "what it is", *numbers)) == said


def test_prose_is_escaped_and_its_code_is_code():
    assert prose("a < `b^2 & c_3`, γ^h") == "a &lt; <code>b^2 &amp; c_3</code>, γ<sup>h</sup>"
    assert prose("R_max of best_kappa") == "R<sub>max</sub> of best_kappa"


def test_markdown_keeps_its_signs():
    assert report_markdown.prose("v* < `v*`_k [1]") == "v&#42; &#60; `v*`&#95;k &#91;1&#93;"


def test_a_report_of_nothing_is_a_page():
    assert score(()) == "No claim was put to the test."
    assert "<h1>" in report(())


def test_the_same_records_give_the_same_page(folder, tmp_path, text):
    heard = []
    path = write_report(chapters(folder, (EXPERIMENT, OTHER)), tmp_path / "deep" / "er", done=heard.append)
    assert path.read_text(encoding="utf-8") == text
    assert heard == ["tiny", "other"]


def test_markdown_has_its_figures_in_files_for_light_and_dark(folder, tmp_path):
    (tmp_path / "img" / "results").mkdir(parents=True)
    (tmp_path / "img" / "results" / "of-last-year.svg").write_text("<svg/>", encoding="utf-8")
    page = write_markdown(chapters(folder, (EXPERIMENT, OTHER)), tmp_path).read_text(encoding="utf-8")
    named = re.findall(r"!\[[^\]]+\]\((img/results/[^#)]+)#only-(light|dark)\)", page)
    assert [theme for _, theme in named] == ["light", "dark"] * 3
    assert {path.name for path in (tmp_path / "img" / "results").iterdir()} == {name.rpartition("/")[2] for name, _ in named}
    assert "## 1. A bent coin { #tiny }" in page
    assert "[A bent coin](#tiny)" in page
    assert "| **0.5** | **0.50** |" in page
    assert "80 records of 2026-11-16; machine: an abacus, 2 cores." in page
    assert "`tightrope experiment run other`" in page
    assert "```" not in page  # blocks of code are run by the tests of the documentation


@pytest.mark.usefixtures("known")
def test_the_command_writes_the_page_and_says_what_held(folder, tmp_path):
    result = command("--records", folder, "-o", tmp_path / "out")
    assert result.exit_code == 0
    assert (tmp_path / "out" / "report.html").exists()
    rows = [line.split(maxsplit=1) for line in result.stdout.splitlines() if line]
    assert ["tiny", "the records do not decide it"] in [[name, rest.strip()] for name, rest in rows]
    assert "other  not yet run: tightrope experiment run other" in result.stdout
    assert "report.html in a browser" in result.stdout
    assert command("--records", folder, "--markdown", tmp_path / "docs").exit_code == 0
    assert (tmp_path / "docs" / "results.md").exists()


@pytest.mark.usefixtures("known")
def test_bad_requests_are_one_line(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pdf.shutil, "which", lambda _: None)
    for arguments, message in (
        (("--records", "nowhere"), "there is no such folder. Make records first"),
        (("--records", folder, "--pdf"), "needs Chromium or Google Chrome, and neither is on the PATH: install one (Debian"),
        (("--records", folder, "--pdf", "--markdown", "docs"), "give one of the two"),
    ):
        result = command(*arguments)
        assert result.exit_code == 2
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
        assert not list(tmp_path.iterdir())


def test_a_browser_that_does_not_print_is_named(tmp_path, monkeypatch):
    page = tmp_path / "report.html"
    page.write_text("<p>", encoding="utf-8")
    monkeypatch.setattr(pdf, "browser", lambda: "/bin/false")
    with pytest.raises(MissingProgram, match=r"/bin/false did not print .*report.html \(it gave no reason\)"):
        pdf.write_pdf(page)

    def late(*_, **__):
        raise subprocess.TimeoutExpired("chromium", 120.0)

    monkeypatch.setattr(pdf.subprocess, "run", late)
    with pytest.raises(MissingProgram, match="within 120 s"):
        pdf.write_pdf(page)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.usefixtures("known")
def test_the_demo_leads_from_the_tour_to_the_report_and_back(tmp_path, monkeypatch):
    small = partial(tour.tour, quick=True)
    monkeypatch.setattr(tour, "tour", lambda *, advance, **_: small(advance=advance))
    monkeypatch.setattr(experiments, "NAMES", ("tiny",))
    result = CliRunner().invoke(app, ["demo", "-o", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0
    assert 'href="report.html"' in (tmp_path / "index.html").read_text(encoding="utf-8")
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<a href="index.html">Take the tour first</a>' in report
    assert "All records here are of the quick form" in report
    assert (tmp_path / "records" / "tiny.quick.jsonl").exists()
    assert "One claim put to the test" in result.stdout
    assert "A bent coin" in result.stdout


def test_the_quick_demo_leaves_the_experiments_out_and_says_so(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--quick", "-o", str(tmp_path)], catch_exceptions=False)
    assert "Left out of the quick tour: the experiments" in result.stdout
    assert not (tmp_path / "report.html").exists()
    assert "tightrope report" in (tmp_path / "index.html").read_text(encoding="utf-8")
