"""Pictures of approximate runs show the numbers of the runs."""

import numpy as np
import pytest

from tightrope.approximate import Exact, KappaAPI, KappaPSDP, SampledModel, run
from tightrope.model.problems import garnet
from tightrope.views import style
from tightrope.views.plot_approximate import approximation, loss_against_kappa

MDP = garnet(15, 2, 3, seed=1)


def test_loss_error_and_bound_are_drawn():
    runs = {kind.__name__: run(MDP, kind(0.5, SampledModel(2), iterations=4)) for kind in (KappaAPI, KappaPSDP)}
    figure = approximation(runs, bounds={"KappaAPI": [5.0, 4.0, 3.0, np.inf]})
    left, right = figure.axes
    api, bound, psdp = left.lines
    np.testing.assert_allclose(api.get_ydata(), style.positive(runs["KappaAPI"]["loss"]))
    np.testing.assert_allclose(psdp.get_ydata(), style.positive(runs["KappaPSDP"]["loss"]))
    np.testing.assert_allclose(bound.get_ydata()[:3], [5.0, 4.0, 3.0])
    assert bound.get_linestyle() == "--"
    assert np.isnan(bound.get_ydata()[3])
    assert "allows" in left.get_title(loc="left")
    assert len(right.lines) == 2
    assert style.png(figure).startswith(b"\x89PNG")


def test_one_run_names_itself():
    figure = approximation(run(MDP, KappaAPI(0.5, Exact(), iterations=2)))
    assert figure.get_suptitle() == "KappaAPI, kappa=0.5"


def test_loss_against_kappa_draws_means_and_marks_the_best():
    losses = np.array([[3.0, 1.0, 2.0], [5.0, 1.0, 2.0]])
    figure = loss_against_kappa([0.0, 0.9, 1.0], {"API": losses}, subtitle="two models")
    ax = figure.axes[0]
    assert ax.lines[0].get_ydata().tolist() == pytest.approx([4.0, 1.0, 2.0])
    assert ax.lines[1].get_ydata().tolist() == [1.0]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "0.9", "1"]
    assert style.png(figure).startswith(b"\x89PNG")
