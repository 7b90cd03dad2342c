"""MATLAB v5 files, read with every size and index checked.

SciPy's reader trusts them: a damaged file of a kilobyte can make it ask for gigabytes, or index past the end of an array.
After the MAT-File Format description of The MathWorks, level 5: elements of (type, size, bytes), matrices nested in them.
"""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import archive
from tightrope.errors import InvalidFile
from tightrope.model.files import text
from tightrope.model.files.npz import csr

if TYPE_CHECKING:
    from pathlib import Path

_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16"}
_MATRIX, _COMPRESSED = 14, 15
_CELL, _CHAR, _SPARSE = 1, 4, 5
_NUMERIC = range(6, 16)
_DEEPEST = 8


def load(path: Path) -> dict[str, Any]:
    """The variables of a file: arrays of floats, CSR matrices, texts, and lists of them for cells; others are left out."""
    data = path.read_bytes()
    if data.startswith(b"MATLAB 7.3"):
        raise InvalidFile(f"{path} is a MATLAB v7.3 (HDF5) file; save it in MATLAB with save(..., '-v7')")
    order = {b"IM": "<", b"MI": ">"}.get(data[126:128])
    if order is None:
        raise InvalidFile(f"{path}, byte 126: the mark of a MATLAB v5 file expected; found {data[126:128]!r}")
    reader = _Reader(path, order)
    found: dict[str, Any] = {}
    at = 128
    while at < len(data):
        kind, body, at = reader.element(data, at)
        if kind == _COMPRESSED:
            kind, body, _ = reader.element(archive.inflate(path, body, zlib.decompressobj()), 0)
        if kind == _MATRIX:
            name, value = reader.matrix(body, 0)
            if name in found:
                raise InvalidFile(f"{path}, byte {at}: the variable {name!r} is there twice")
            if name and value is not None:
                found[name] = value
    return found


class _Reader:
    def __init__(self, path: Path, order: str) -> None:
        self.path, self.order = path, order

    def element(self, data: bytes, at: int) -> tuple[int, bytes, int]:
        """The element at a byte: its type, its bytes, and where the next begins."""
        if at + 8 > len(data):
            raise InvalidFile(f"{self.path}, byte {at}: an element expected; {len(data) - at} bytes are left")
        kind, size = np.frombuffer(data[at : at + 8], dtype=f"{self.order}u4").tolist()
        if kind >> 16:  # up to four bytes beside the type
            size, kind, begin, end = kind >> 16, kind & 0xFFFF, at + 4, at + 8
        else:
            begin = at + 8
            end = begin + size + (0 if kind == _COMPRESSED else -size % 8)
        if begin + size > min(end, len(data)):
            raise InvalidFile(f"{self.path}, byte {at}: {size} bytes expected; {len(data) - begin} are left")
        return kind, data[begin : begin + size], min(end, len(data))

    def matrix(self, body: bytes, depth: int) -> tuple[str, Any]:
        """The name and the value of a matrix element; None for kinds that no model needs."""
        if not body:
            return "", np.empty((0, 0))
        _, flags, at = self.element(body, 0)
        _, dims, at = self.element(body, at)
        _, name, at = self.element(body, at)
        if len(flags) != 8 or len(dims) % 4 or not 2 <= len(dims) // 4 <= 8:
            raise InvalidFile(f"{self.path}: a matrix without flags or dimensions")
        word = int(np.frombuffer(flags[:4], dtype=f"{self.order}u4")[0])
        shape = tuple(np.frombuffer(dims, dtype=f"{self.order}i4").tolist())
        kind, title = word & 0xFF, name.decode("latin-1")
        if min(shape) < 0:
            raise InvalidFile(f"{self.path}: the variable {title!r} has shape {shape}")
        if word & 0x800:
            raise InvalidFile(f"{self.path}: the variable {title!r} holds complex numbers")
        if kind == _CELL:
            return title, self._cell(body, at, shape, title, depth)
        if kind == _SPARSE:
            return title, self._sparse(body, at, shape)
        if kind == _CHAR:
            return title, self._text(body, at)
        return title, self._numbers(body, at, shape, title) if kind in _NUMERIC else None

    def _cell(self, body: bytes, at: int, shape: tuple[int, ...], title: str, depth: int) -> list[Any]:
        count = math.prod(shape)
        if count * 8 > len(body) or depth > _DEEPEST:
            raise InvalidFile(f"{self.path}: the cell {title!r} has {count} entries in {len(body)} bytes")
        values = []
        for _ in range(count):
            kind, inner, at = self.element(body, at)
            if kind != _MATRIX:
                raise InvalidFile(f"{self.path}: an entry of the cell {title!r} is no matrix")
            values.append(self.matrix(inner, depth + 1)[1])
        return values

    def _vector(self, body: bytes, at: int) -> tuple[Any, int]:
        kind, raw, at = self.element(body, at)
        dtype = _NUMBERS.get(kind)
        if dtype is None or len(raw) % int(dtype[1]):
            raise InvalidFile(f"{self.path}: numbers of a known type expected; found type {kind}")
        return np.frombuffer(raw, dtype=self.order + dtype), at

    def _numbers(self, body: bytes, at: int, shape: tuple[int, ...], title: str) -> Any:
        flat, _ = self._vector(body, at)
        if len(flat) != math.prod(shape):
            raise InvalidFile(f"{self.path}: the variable {title!r} of shape {shape} has {len(flat)} entries")
        return flat.astype(np.float64).reshape(shape, order="F")

    def _sparse(self, body: bytes, at: int, shape: tuple[int, ...]) -> Any:
        """A sparse matrix is stored by columns: the transpose of a CSR matrix, whose offsets and indices are checked."""
        rows, at = self._vector(body, at)
        offsets, at = self._vector(body, at)
        values, _ = self._vector(body, at)
        if len(shape) != 2 or len(offsets) != shape[1] + 1:
            raise InvalidFile(f"{self.path}: a sparse matrix {shape} with {len(offsets)} column offsets")
        text.plausible(self.path, max(*shape, 1), len(body))
        count = int(offsets[-1])
        if not 0 <= count <= min(len(rows), len(values)):
            raise InvalidFile(f"{self.path}: a sparse matrix of {count} entries with {len(values)} values")
        numbers, indices = values[:count].astype(np.float64), rows[:count].astype(np.int64)
        return csr(self.path, numbers, indices, offsets.astype(np.int64), shape[0]).T.tocsr()

    def _text(self, body: bytes, at: int) -> str:
        kind, raw, _ = self.element(body, at)
        endian = {"<": "-le", ">": "-be"}[self.order]
        code = _TEXTS.get(kind, "latin-1")
        return raw.decode(code + endian if code == "utf-16" else code, "replace")
