"""Write, read, and find the same arrays again, bit for bit, in every format that is written."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tightrope.errors import InvalidArgument, InvalidFile, MissingDiscount, NotStored
from tightrope.model import files

sys.path.insert(0, str(Path(__file__).parent))
from models import RAGGED, RECTANGULAR, assert_same, models, random_model

quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
#: Formats that keep a start which is uniform over some states.
STARTS = (".npz", ".drn", ".tra", ".umb", ".mat")


def write_quietly(mdp, path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotStored)
        files.write(mdp, path, **options)


@pytest.mark.parametrize("ending", RAGGED)
@given(mdp=models())
@quick
def test_any_model_comes_back_exactly(tmp_path, ending, mdp):
    path = tmp_path / f"m{ending}"
    write_quietly(mdp, path)
    back = files.inspect(path, None if ending in (".npz", ".drn", ".umb") else mdp.gamma)
    assert_same(mdp, back.mdp, start=ending in STARTS)
    if mdp.pairs.state_names is not None:
        assert back.mdp.pairs.state_names == mdp.pairs.state_names


@pytest.mark.parametrize("ending", RECTANGULAR)
@given(mdp=models(ragged=False))
@quick
def test_any_model_with_the_same_actions_everywhere_comes_back_exactly(tmp_path, ending, mdp):
    path = tmp_path / f"P{ending}"
    write_quietly(mdp, path)
    back = files.read(path, mdp.gamma if ending == ".bin" else None)
    assert_same(mdp, back, start=ending in STARTS)


@pytest.mark.parametrize("ending", RAGGED + RECTANGULAR)
def test_a_single_state_comes_back_exactly(tmp_path, ending):
    mdp = random_model(1, 5, ragged=False)
    write_quietly(mdp, tmp_path / f"P{ending}")
    assert_same(mdp, files.read(tmp_path / f"P{ending}", mdp.gamma))


@pytest.mark.parametrize("ending", [*RAGGED, ".mat", ".bin", pytest.param(".MDP", marks=pytest.mark.slow)])
def test_1e5_states_come_back_exactly(tmp_path, ending):
    mdp = random_model(100_000, 6, ragged=ending in RAGGED, width=2)
    write_quietly(mdp, tmp_path / f"P{ending}")
    assert_same(mdp, files.read(tmp_path / f"P{ending}", mdp.gamma))


@pytest.mark.parametrize("ending", [".npz", ".drn", ".tra", ".umb"])
@given(seed=st.integers(0, 2**16), storm=st.booleans())
@settings(quick, max_examples=10)
def test_labels_come_back(tmp_path, ending, seed, storm):
    g = np.random.default_rng(seed)
    mdp = random_model(9, seed)
    labels = {
        "goal": np.flatnonzero(g.random(9) < 0.4),
        "bad-1": np.flatnonzero(g.random(9) < 0.4),
        "none": np.empty(0, dtype=int),
    }
    write_quietly(mdp, tmp_path / f"m{ending}", labels=labels, storm=storm and ending == ".tra")
    found = files.inspect(tmp_path / f"m{ending}", 0.9)
    assert_same(mdp, found.mdp)
    for name, states in labels.items():
        if len(states) or ending != ".drn":  # DRN names a label only where a state carries it
            np.testing.assert_array_equal(found.labels[name], states)


@pytest.mark.parametrize("ending", [".npz", ".drn", ".tra", ".umb"])
def test_labels_with_strange_names_come_back(tmp_path, ending):
    mdp = random_model(3, 1)
    names = ["two words", "[x]", "a [b", "{0}", "é", "label-1", "0", "x" * 200]
    labels = {name: np.array([i % 3]) for i, name in enumerate(names)}
    write_quietly(mdp, tmp_path / f"m{ending}", labels=labels)
    found = files.inspect(tmp_path / f"m{ending}", 0.9)
    assert_same(mdp, found.mdp)
    assert {name: states.tolist() for name, states in found.labels.items()} == {name: s.tolist() for name, s in labels.items()}


def test_companions_of_an_older_model_are_not_read_with_the_new_one(tmp_path):
    write_quietly(random_model(4, 1, names=True), tmp_path / "m.tra")
    (tmp_path / "m.srew").write_text("4 1\n0 5\n")
    mdp = random_model(4, 2)
    write_quietly(mdp, tmp_path / "m.tra")
    back = files.read(tmp_path / "m.tra", 0.9)
    assert_same(mdp, back)
    assert back.pairs.state_names is None


@pytest.mark.parametrize("ending", [".npz", ".umb", ".mat"])
def test_any_start_comes_back_where_there_is_room_for_it(tmp_path, ending):
    mdp = random_model(7, 3, ragged=False, start="any")
    files.write(mdp, tmp_path / f"m{ending}")
    assert_same(mdp, files.read(tmp_path / f"m{ending}"))


@pytest.mark.parametrize("ending", [".drn", ".tra", ".csv", ".MDP", ".bin"])
def test_a_start_without_room_is_said_to_be_left_out(tmp_path, ending):
    mdp = random_model(7, 3, ragged=False, start="any")
    with pytest.warns(NotStored, match="start"):
        files.write(mdp, tmp_path / f"m{ending}")
    assert_same(mdp, files.read(tmp_path / f"m{ending}", 0.9), start=False)


@pytest.mark.parametrize("ending", RECTANGULAR)
def test_a_format_without_ragged_actions_names_the_state_and_the_others(tmp_path, ending):
    mdp = random_model(9, 1)
    with pytest.raises(InvalidArgument, match=r"gives every state the same actions, but state \d+ offers 1 of 3\. Write .npz"):
        files.write(mdp, tmp_path / f"m{ending}")


def test_action_names_in_another_order_keep_their_numbers_not_their_names(tmp_path):
    P = np.eye(2)[[1, 0, 1]]
    import tightrope as tr

    mdp = tr.MDP(P, [1.0, 2.0, 3.0], 0.5, [0, 2, 3], actions=[1, 2, 0], action_names=["a", "b", "c"])
    with pytest.warns(NotStored, match="action names were left out"):
        files.write(mdp, tmp_path / "m.tra")
    back = files.read(tmp_path / "m.tra", 0.5)
    assert_same(mdp, back)
    assert back.pairs.action_names is None


def test_the_discount_of_the_caller_is_stronger(tmp_path):
    files.write(random_model(3, 1, gamma=0.8), tmp_path / "m.npz")
    assert files.read(tmp_path / "m.npz", 0.7).gamma == 0.7


def test_a_missing_discount_says_how_to_give_one(tmp_path):
    files.write(random_model(3, 1), tmp_path / "m.tra")
    with pytest.raises(MissingDiscount, match=r"does not state a discount; give one: read\(path, gamma=0.99\), or --gamma 0.99"):
        files.read(tmp_path / "m.tra")


def test_costs_are_negated_and_said(tmp_path):
    mdp = random_model(5, 1)
    files.write(mdp, tmp_path / "m.npz")
    found = files.inspect(tmp_path / "m.npz", costs=True)
    np.testing.assert_array_equal(found.mdp.r, -mdp.r)
    assert "costs became rewards" in str(found)


def test_unknown_endings_missing_files_and_folders_are_refused(tmp_path):
    mdp = random_model(2, 1)
    with pytest.raises(InvalidArgument, match=r"no format for 'm.xyz'; a model file ends in .bin, .csv, .drn"):
        files.write(mdp, tmp_path / "m.xyz")
    with pytest.raises(InvalidArgument, match=r"dialect is one of \.tra files"):
        files.write(mdp, tmp_path / "m.drn", storm=True)
    with pytest.raises(InvalidFile, match="there is no folder"):
        files.write(mdp, tmp_path / "nowhere" / "m.npz")
    with pytest.raises(InvalidFile, match="there is no such file"):
        files.read(tmp_path / "m.npz")
    with pytest.raises(InvalidFile, match="is a folder"):
        files.read(tmp_path)
    (tmp_path / "what").write_bytes(b"\x00\x01 what is this?")
    with pytest.raises(InvalidFile, match="in none of the known formats"):
        files.read(tmp_path / "what")


@pytest.mark.parametrize("name", ["", "init", 'a"b', "a\nb"])
def test_names_no_label_can_have(tmp_path, name):
    with pytest.raises(InvalidArgument, match="cannot be the name of a label"):
        files.write(random_model(2, 1), tmp_path / "m.npz", labels={name: [0]})
    with pytest.raises(InvalidArgument, match="outside 0 to 1"):
        files.write(random_model(2, 1), tmp_path / "m.npz", labels={"good": [2]})


@pytest.mark.parametrize("ending", RAGGED + RECTANGULAR)
def test_content_is_stronger_than_the_extension(tmp_path, ending):
    mdp = random_model(4, 2, ragged=False)
    write_quietly(mdp, tmp_path / f"P{ending}")
    if ending == ".bin":
        (tmp_path / "g.dat").write_bytes((tmp_path / "g.bin").read_bytes())
    if ending == ".tra":
        for beside in (".trew", ".lab"):
            (tmp_path / f"P{beside}").rename(tmp_path / f"Q{beside}")
    other = tmp_path / ("P.dat" if ending != ".tra" else "Q.dat")
    (tmp_path / f"P{ending}").rename(other)
    assert_same(mdp, files.read(other, mdp.gamma), start=False)


@pytest.mark.parametrize("ending", RAGGED + RECTANGULAR)
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, ending, monkeypatch):
    from tightrope import archive

    mdp = random_model(4, 2, ragged=False)
    path = tmp_path / f"P{ending}"
    write_quietly(mdp, path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_quietly(random_model(5, 3, ragged=False), path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("ending", [".drn", ".tra", ".csv", ".MDP"])
def test_lines_that_end_as_on_windows(tmp_path, ending):
    mdp = random_model(6, 2, ragged=False, names=True)
    write_quietly(mdp, tmp_path / f"m{ending}")
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    back = files.read(tmp_path / f"m{ending}", 0.9)
    assert_same(mdp, back, start=ending in STARTS)
    assert back.pairs.state_names == mdp.pairs.state_names
    assert back.pairs.action_names == mdp.pairs.action_names


def test_large_text_files_show_their_progress(tmp_path, monkeypatch):
    from contextlib import contextmanager

    from tightrope.model.files import text

    asked = []

    class Count:
        done = 0

        def advance(self, amount=1, note=""):  # noqa: ARG002  (the form of a bar)
            self.done += amount

    @contextmanager
    def bar(title, total, *, show):
        asked.append((title, total, show, Count()))
        yield asked[-1][-1]

    monkeypatch.setattr(text.progress, "bar", bar)
    path = tmp_path / "m.csv"
    files.write(random_model(50, 2), path)
    size = path.stat().st_size
    files.read(path, 0.9)
    monkeypatch.setattr(text, "LARGE", size)
    files.read(path, 0.9)
    assert [entry[:3] for entry in asked] == [("m.csv", size, False), ("m.csv", size, None)]  # None: where a terminal is
    assert [entry[3].done for entry in asked] == [size, size]
