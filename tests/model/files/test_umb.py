"""The Unified Markov Binary format: the example of its specification, and what is refused by name."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import tarfile

import numpy as np
import pytest

from tightrope import archive
from tightrope.errors import InvalidFile
from tightrope.model import files


def u64(*numbers):
    return np.array(numbers, dtype="<u8").tobytes()


def f64(*numbers):
    return np.array(numbers, dtype="<f8").tobytes()


def example():
    """The model of example/mdp.umbt in the repository pmc-tools/umb, written out from its listing."""
    double, boolean = {"type": "double", "size": 64}, {"type": "bool", "size": 1}
    index = {
        "format-version": 1,
        "format-revision": 0,
        "model-data": {},
        "file-data": {"tool": "PRISM", "tool-version": "4.10"},
        "transition-system": {
            "time": "discrete",
            "#players": 1,
            "#states": 4,
            "#initial-states": 1,
            "#choices": 5,
            "#choice-actions": 2,
            "#branches": 8,
            "#branch-actions": 0,
            "#observations": 0,
            "branch-probability-type": double,
        },
        "annotations": {
            "aps": {"g": {"alias": "g", "applies-to": ["states"], "type": boolean}},
            "rewards": {"r": {"alias": "r", "applies-to": ["choices"], "type": double}},
        },
        "valuations": {
            "states": {
                "unique": True,
                "classes": [
                    {
                        "variables": [
                            {"name": "x", "type": {"type": "uint", "size": 2}},
                            {"name": "b", "type": boolean},
                            {"padding": 5},
                        ]
                    }
                ],
            }
        },
    }
    return index, {
        "state-to-choices.bin": u64(0, 2, 3, 4, 5),
        "choice-to-branches.bin": u64(0, 2, 4, 6, 7, 8),
        "branch-to-probability.bin": f64(0.5, 0.5, 0.2, 0.8, 0.9, 0.1, 1.0, 1.0),
        "branch-to-target.bin": u64(1, 2, 2, 3, 0, 1, 2, 3),
        "state-is-initial.bin": u64(0b0001),
        "actions/choices/string-mapping.bin": u64(0, 1, 2),
        "actions/choices/strings.bin": b"ab",
        "actions/choices/values.bin": np.array([0, 1, 0, 0, 0], dtype="<u4").tobytes(),
        "annotations/aps/g/states/values.bin": u64(0b1000),
        "annotations/rewards/r/choices/values.bin": f64(0, 1, 0, 0, 0),
        "valuations/states/valuations.bin": bytes([0b000, 0b001, 0b010, 0b110]),
    }


def packed(index, members, prefix=""):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        content = index if isinstance(index, bytes) else json.dumps(index).encode()
        for name, data in {"index.json": content, **members}.items():
            entry = tarfile.TarInfo(prefix + name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def put(folder, data):
    (folder / "m.umb").write_bytes(data)
    return folder / "m.umb"


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("prefix", ["", "./", "/"])
def test_the_example_of_the_specification(tmp_path, compress, prefix):
    found = files.inspect(put(tmp_path, compress(packed(*example(), prefix))), 0.9)
    mdp = found.mdp
    np.testing.assert_array_equal(
        mdp.P.toarray(), [[0, 0.5, 0.5, 0], [0, 0, 0.2, 0.8], [0.9, 0.1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    )
    np.testing.assert_array_equal(mdp.r, [0, 1, 0, 0, 0])
    np.testing.assert_array_equal(mdp.start, [1, 0, 0, 0])
    assert mdp.pairs.action_names == ("a", "b")
    assert mdp.pairs.state_names == ("x=0,b=false", "x=1,b=false", "x=2,b=false", "x=2,b=true")
    assert found.labels["g"].tolist() == [3]


def test_rewards_on_states_choices_and_branches_add_up(tmp_path):
    index, members = example()
    index["annotations"]["rewards"]["r"]["applies-to"] = ["states", "choices", "branches"]
    members["annotations/rewards/r/states/values.bin"] = f64(10, 20, 30, 40)
    members["annotations/rewards/r/branches/values.bin"] = f64(2, 4, 0, 1, 0, 0, 7, 0)
    mdp = files.read(put(tmp_path, packed(index, members)), 0.9)
    np.testing.assert_allclose(mdp.r, [10 + 0 + 3, 10 + 1 + 0.8, 20, 30 + 7, 40])


def test_rationals_duplicates_and_defaults(tmp_path):
    rational = {"type": "rational", "size": 128}
    index, _ = example()
    system = index["transition-system"]
    system |= {"#states": 2, "#choices": 2, "#branches": 4, "#choice-actions": 0, "branch-probability-type": rational}
    index |= {"annotations": {}, "valuations": {}}
    thirds = np.array([[1, 3], [2, 3], [1, 2], [1, 2]], dtype="<u8").tobytes()
    members = {
        "choice-to-branches.bin": u64(0, 2, 4),
        "branch-to-target.bin": u64(0, 1, 1, 1),
        "branch-to-probability.bin": thirds,
    }
    mdp = files.read(put(tmp_path, packed(index, members)), 0.9)
    np.testing.assert_array_equal(mdp.P.toarray(), [[1 / 3, 2 / 3], [0, 1]])
    np.testing.assert_array_equal(mdp.start, [0.5, 0.5])


def test_several_choices_of_one_action_are_numbered_by_place(tmp_path):
    index, members = example()
    members["actions/choices/values.bin"] = np.array([0, 0, 1, 1, 1], dtype="<u4").tobytes()
    found = files.inspect(put(tmp_path, packed(index, members)), 0.9)
    np.testing.assert_array_equal(found.mdp.pairs.actions, [0, 1, 0, 0, 0])
    assert "action names were dropped" in found.notes[0]


def change(path, value):
    def apply(index, members):
        at = index
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        return packed(index, members)

    return apply


def drop(name):
    def apply(index, members):
        del members[name]
        return packed(index, members)

    return apply


def swap(name, data):
    def apply(index, members):
        members[name] = data
        return packed(index, members)

    return apply


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (change(["transition-system", "time"], "stochastic"), "models with 'stochastic' time are not read"),
        (change(["transition-system", "#players"], 2), "games of 2 players are not read"),
        (change(["transition-system", "branch-probability-type"], {"type": "double-interval"}), "interval models are not read"),
        (change(["transition-system", "branch-probability-type"], {"type": "complex"}), "is not a known type"),
        (change(["transition-system", "#states"], 10**17), "bytes; 800000000000000008 expected for 100000000000000001 entries"),
        (change(["transition-system", "#states"], -1), "#states in index.json must be a whole number; found '-1'"),
        (change(["transition-system", "#branches"], "many"), "#branches in index.json must be a whole number"),
        (change(["format-version"], 2), "has UMB format version 2; this release reads version 1"),
        (change(["transition-system"], 3), "index.json has no transition-system"),
        (change(["annotations"], []), "annotations/rewards in index.json is not an object"),
        (
            change(["annotations", "rewards", "s"], {"applies-to": ["states"], "type": {"type": "double"}}),
            "has 2 reward models: 'r', 's'",
        ),
        (change(["annotations", "rewards", "r", "applies-to"], ["players"]), "states, choices or branches expected"),
        (drop("branch-to-target.bin"), "has no branch-to-target.bin"),
        (drop("branch-to-probability.bin"), "has no branch-to-probability.bin"),
        (drop("state-to-choices.bin"), r"has no state-to-choices.bin, which is needed when numbers differ \(4 and 5\)"),
        (swap("state-to-choices.bin", u64(0, 2, 1, 4, 5)), "state-to-choices.bin does not run from 0 to 5"),
        (swap("branch-to-target.bin", u64(1, 2, 2, 3, 0, 1, 2, 9)), "a transition leads to a state outside 0 to 3"),
        (swap("branch-to-target.bin", u64(1, 2, 2, 3, 0, 1, 2, 2**63)), "a transition leads to a state outside 0 to 3"),
        (swap("branch-to-target.bin", b"abc"), "has 3 bytes; 64 expected for 8 entries"),
        (swap("branch-to-probability.bin", f64(*[0.5] * 8)), "sum to 0.5"),
        (swap("actions/choices/values.bin", np.full(5, 7, dtype="<u4").tobytes()), "names action 7 of 2"),
        (swap("actions/choices/strings.bin", b"\xff\xfe"), "is not UTF-8 text"),
        (lambda _, members: packed(b"{", members), "index.json does not read as JSON"),
        (lambda _, members: packed(b"[" * 10**5, members), "index.json does not read as JSON"),
        (lambda _, members: packed(b"[]", members), "index.json is not an object"),
        (lambda index, members: packed(index, members)[:3000], "m.umb"),
        (lambda index, members: packed(index, {"../../etc/evil": b"x", **members}), "is no plain file inside the archive"),
        (lambda index, members: packed(index, {"a/../../b": b"x", **members}), "is no plain file inside the archive"),
    ],
)
def test_what_is_refused_by_name(tmp_path, make, message):
    with pytest.raises(InvalidFile, match=message):
        files.read(put(tmp_path, make(*example())), 0.9)
    assert [file.name for file in tmp_path.iterdir()] == ["m.umb"]


def test_links_devices_and_twins_are_refused(tmp_path):
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            entry = tarfile.TarInfo("index.json")
            entry.type, entry.linkname = kind, "/etc/passwd"
            tar.addfile(entry)
        with pytest.raises(InvalidFile, match="is no plain file inside the archive"):
            files.read(put(tmp_path, buffer.getvalue()), 0.9)
    index, members = example()
    with pytest.raises(InvalidFile, match=r"'state-to-choices.bin' is there twice"):
        files.read(put(tmp_path, packed(index, {**members, "./state-to-choices.bin": b""})), 0.9)


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_a_bomb_is_refused(tmp_path, monkeypatch, compress):
    monkeypatch.setattr(archive, "_ROOM", 1 << 20)
    bomb = packed({}, {"zeros.bin": bytes(1 << 22)})
    with pytest.raises(InvalidFile, match="decompression bomb"):
        files.read(put(tmp_path, compress(bomb)), 0.9)


def test_our_own_files_keep_discount_start_and_names(tmp_path):
    import tightrope as tr

    P = np.eye(2)[[1, 0, 1]]
    names = {"state_names": ["é", "b c"], "action_names": ["x", "y", "z"]}
    mdp = tr.MDP(P, [1.0, 2.0, 3.0], 0.5, [0, 2, 3], [0.3, 0.7], actions=[1, 2, 0], **names)
    files.write(mdp, tmp_path / "m.umb", labels={"Goal!": np.array([1]), "goal": np.array([0])})
    found = files.inspect(tmp_path / "m.umb")
    assert found.mdp.gamma == 0.5
    np.testing.assert_array_equal(found.mdp.start, [0.3, 0.7])
    np.testing.assert_array_equal(found.mdp.pairs.actions, [1, 2, 0])
    assert found.mdp.pairs.state_names == ("é", "b c")
    assert found.mdp.pairs.action_names == ("x", "y", "z")
    assert {name: states.tolist() for name, states in found.labels.items()} == {"Goal!": [1], "goal": [0]}
