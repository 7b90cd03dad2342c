"""Archives: whole or not at all, checked before memory is asked for, never unpickled."""

from __future__ import annotations

import contextlib
import io
import lzma
import struct
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tightrope import archive
from tightrope.errors import InvalidFile

ARRAYS = {
    "x": np.linspace(0, 1, 999),
    "i": np.arange(5, dtype=np.int32),
    "empty": np.empty((0, 3)),
    "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "scalar": np.float64(3),
    "flags": np.array([True, False]),
}


@pytest.fixture
def path(tmp_path):
    archive.save(tmp_path / "a.npz", "thing", {"note": "é", "n": 3}, ARRAYS)
    return tmp_path / "a.npz"


@pytest.mark.parametrize("mapped", [False, True])
def test_what_was_saved_is_loaded(path, mapped):
    header, arrays = archive.load(path, "thing", mapped=mapped)
    assert (header["note"], header["n"], header["kind"]) == ("é", 3, "thing")
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        np.testing.assert_array_equal(arrays[name], array)


def test_mapped_arrays_lie_on_disk_aligned_and_read_only(path):
    _, arrays = archive.load(path, "thing", mapped=True)
    for name in ("x", "i", "f"):
        assert not arrays[name].flags.writeable
        assert not arrays[name].flags.owndata
        assert arrays[name].ctypes.data % 64 == 0


def test_numpy_itself_can_read_it(path):
    with np.load(path, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["x"], ARRAYS["x"])


@pytest.mark.parametrize("mapped", [False, True])
@given(where=st.integers(0, 10**6), flip=st.integers(1, 255))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_changed_byte_changes_a_number(path, mapped, where, flip):
    """Every byte that carries content is under a checksum; a changed one is refused, or was mere packaging."""
    data = bytearray(path.read_bytes())
    data[where % len(data)] ^= flip
    broken = path.with_name("broken.npz")
    broken.write_bytes(data)
    try:
        header, arrays = archive.load(broken, "thing", mapped=mapped)
    except InvalidFile:
        return
    assert header["n"] == 3
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, ARRAYS[name])


@given(length=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_truncation_is_refused(path, length):
    data = path.read_bytes()
    cut = path.with_name("cut.npz")
    cut.write_bytes(data[: length % len(data)])
    with pytest.raises(InvalidFile, match=r"cut\.npz is not a tightrope thing file"):
        archive.load(cut, "thing")


def test_another_kind_version_or_file(path, tmp_path, monkeypatch):
    with pytest.raises(InvalidFile, match="holds a thing, not a model"):
        archive.load(path, "model")
    with pytest.raises(InvalidFile, match="there is no such file"):
        archive.load(tmp_path / "none.npz", "thing")
    monkeypatch.setattr(archive, "_VERSION", 2)
    with pytest.raises(InvalidFile, match=r"has format version 1; this release reads version 2. Upgrade tightrope."):
        archive.load(path, "thing")
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(InvalidFile, match=r"its header tightrope\.json is missing"):
        archive.load(tmp_path / "other.npz", "thing")


def test_an_array_that_is_gone_is_missed(path, tmp_path):
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "less.npz", "w") as new:
        for name in old.namelist():
            if name != "x.npy":
                new.writestr(name, old.read(name))
    with pytest.raises(InvalidFile, match="it does not hold the arrays it was written with"):
        archive.load(tmp_path / "less.npz", "thing")


def put_zip(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array))
    return buffer.getvalue()


def test_objects_are_never_unpickled(tmp_path):
    np.savez(tmp_path / "evil.npz", x=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidFile, match="never unpickled"):
        archive.read_arrays(tmp_path / "evil.npz")


def test_a_shape_that_the_bytes_do_not_fill_is_refused_before_memory_is_asked_for(tmp_path):
    content = npy(np.zeros(8)).replace(b"(8,)", b"(9999999999999,)".ljust(4))
    length = struct.unpack("<H", content[8:10])[0]
    content = content[:8] + struct.pack("<H", length + 12) + content[10:]
    with pytest.raises(InvalidFile, match="needs 79999999999992 bytes; 64 are there"):
        archive.read_arrays(put_zip(tmp_path / "huge.npz", {"x.npy": content}))


def test_a_header_that_is_no_python_is_refused(tmp_path):
    content = npy(np.zeros(8))
    for broken in (content.replace(b"'descr'", b"('descr'"), content.replace(b"}", b" "), content.replace(b"(8,)", b"f(8)")):
        with pytest.raises(InvalidFile, match="a damaged header"):
            archive.read_arrays(put_zip(tmp_path / "broken.npz", {"x.npy": broken}))


def test_a_zip_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "_ROOM", 1 << 20)  # a real bomb takes seconds to make
    bomb = put_zip(tmp_path / "bomb.npz", {"x.npy": npy(np.zeros(1 << 22, dtype=np.uint8))}, zipfile.ZIP_DEFLATED)
    with pytest.raises(InvalidFile, match="refused as a decompression bomb"):
        archive.read_arrays(bomb)


@pytest.mark.parametrize(("pack", "unpacker"), [(zlib.compress, zlib.decompressobj), (lzma.compress, lzma.LZMADecompressor)])
def test_inflating_is_bounded_and_exact(tmp_path, monkeypatch, pack, unpacker):
    monkeypatch.setattr(archive, "_ROOM", 1 << 20)
    file = tmp_path / "packed"
    content = np.random.default_rng(0).bytes(100_000)
    file.write_bytes(pack(content))
    assert archive.inflate(file, file.read_bytes(), unpacker()) == content
    file.write_bytes(pack(bytes(1 << 22)))
    with pytest.raises(InvalidFile, match="decompression bomb"):
        archive.inflate(file, file.read_bytes(), unpacker())
    file.write_bytes(pack(content)[:50] + b"garbage")
    with contextlib.suppress(InvalidFile):
        assert len(archive.inflate(file, file.read_bytes(), unpacker())) < len(content)


def test_a_name_twice(tmp_path):
    with zipfile.ZipFile(tmp_path / "twice.npz", "w") as file:
        file.writestr("x.npy", npy([1.0]))
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("x.npy", npy([2.0]))
    with pytest.raises(InvalidFile, match="holds x twice"):
        archive.read_arrays(tmp_path / "twice.npz")


def test_a_write_that_fails_leaves_the_old_file(path):
    before = path.read_bytes()

    def half():
        with archive.replacing(path) as file:
            file.write(b"half")
            raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        half()
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_header_that_json_cannot_hold_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        archive.save(tmp_path / "a.npz", "thing", {"x": float("nan")}, {})
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InvalidFile, match="there is no folder"):
        archive.save(tmp_path / "none" / "a.npz", "thing", {}, {})
