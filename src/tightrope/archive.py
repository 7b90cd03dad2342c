"""Results and models on disk: named arrays and a JSON header in one .npz, written whole or not at all, never pickled.

Members are stored uncompressed and aligned, so `load(..., mapped=True)` can leave them on disk; each carries the CRC-32 of
the zip format, which every read compares. Any `numpy.load` can open the files too.
"""

from __future__ import annotations

import json
import lzma
import math
import mmap
import os
import struct
import tempfile
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from tightrope.errors import InvalidFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEADER = "tightrope.json"
_NAMES = "archive arrays"
_VERSION = 1
_ALIGN = 64  # a cache line; also what NumPy pads its own headers to
_PADDING = 0xD935  # the id of a zip extra field that only aligns, as Android's zipalign writes it
#: What a compressed file may grow to before its size alone is suspicious, and by which factor.
_ROOM, _GROWTH = 1 << 28, 200
_CHUNK = 1 << 24


class Stream(NamedTuple):
    """A vector that comes in pieces, because nobody holds all of it."""

    dtype: Any
    length: int
    pieces: Iterator[Any]

    def write(self, file: Any) -> None:
        """As the .npy of the whole."""
        head = {"descr": np.lib.format.dtype_to_descr(np.dtype(self.dtype)), "fortran_order": False, "shape": (self.length,)}
        np.lib.format.write_array_header_1_0(file, head)
        for piece in self.pieces:
            file.write(np.ascontiguousarray(piece, dtype=self.dtype).view(np.uint8).data)


class Member(NamedTuple):
    """Where a vector lies in an archive, for readers that want a part of it."""

    dtype: Any
    shape: tuple[int, ...]
    #: Where its values begin in the file, in bytes.
    begin: int
    #: Where the checksummed bytes begin, how many they are and what they sum up to.
    content: tuple[int, int, int]

    def read(self, path: str | os.PathLike[str], begin: int, end: int) -> Any:
        """The entries begin..end-1, read into memory."""
        found = np.fromfile(path, self.dtype, end - begin, offset=self.begin + begin * self.dtype.itemsize)
        if len(found) != end - begin:
            raise InvalidFile(f"{path} ends early; it is damaged")
        return found


def members(path: str | os.PathLike[str]) -> dict[str, Member] | None:
    """Where the arrays of an .npz lie, by name; None where some are compressed and can only be read whole."""
    found: dict[str, Member] = {}
    try:
        with zipfile.ZipFile(path) as source, Path(path).open("rb") as file:
            for entry in source.infolist():
                if entry.compress_type != zipfile.ZIP_STORED:
                    return None
                begin = _content(file, entry)
                with source.open(entry) as member:
                    shape, _, dtype, wanted = _head(member, entry.file_size)
                at = begin + entry.file_size - wanted
                found[entry.filename.removesuffix(".npy")] = Member(dtype, shape, at, (begin, entry.file_size, entry.CRC))
    except FileNotFoundError:
        raise InvalidFile(f"{path}: there is no such file") from None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError, struct.error, NotImplementedError) as error:
        # The last is zipfile's word for a compression that it does not know.
        raise InvalidFile(f"{path} is not a NumPy .npz file ({error}); it may be damaged or of another kind") from None
    return found


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the name `path` only when everything was written: readers see the old file or the new one."""
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent or ".", prefix=f".{target.name}.", suffix=".part")
    except FileNotFoundError:
        raise InvalidFile(f"{path} cannot be written: there is no folder {target.parent}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def save(path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write an archive of the given kind; `header` is anything JSON can hold."""
    text = json.dumps({"kind": kind, "version": _VERSION, _NAMES: list(arrays), **header}, allow_nan=False)
    members = {_HEADER: np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as target:
        for name, array in members.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            at = file.tell() + 30 + len(entry.filename.encode()) + 20 + 4  # local header, name, zip64 field, our field's head
            padding = -at % _ALIGN
            entry.extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
            with target.open(entry, "w", force_zip64=True) as member:
                if isinstance(array, Stream):
                    array.write(member)
                else:
                    np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def load(path: str | os.PathLike[str], kind: str, *, mapped: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read an archive of the given kind: its header and its arrays, read-only views of the file when `mapped`."""
    what = f"a tightrope {kind} file"
    arrays = read_arrays(path, what, mapped=mapped)
    header = _checked(path, kind, arrays.pop(_HEADER, None))
    if header.pop(_NAMES, list(arrays)) != list(arrays):
        raise InvalidFile(f"{path} is not {what}: it does not hold the arrays it was written with; it is damaged")
    return header, arrays


def open_parts(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Member]] | None:
    """The header of an archive and where its arrays lie, for readers that want parts; None where it can only be read whole."""
    found = members(path)
    if found is None:
        return None
    head = found.pop(_HEADER, None)
    header = _checked(path, kind, None if head is None else head.read(path, 0, head.shape[0]))
    header.pop(_NAMES, None)
    return header, found


def _checked(path: str | os.PathLike[str], kind: str, head: Any) -> dict[str, Any]:
    """The header of an archive, which must be of the given kind."""
    what = f"a tightrope {kind} file"
    try:
        header = json.loads(head.tobytes())
    except (AttributeError, ValueError, RecursionError) as error:
        raise InvalidFile(f"{path} is not {what}: its header {_HEADER} is missing or damaged ({error})") from None
    if not isinstance(header, dict) or header.get("kind") != kind:
        raise InvalidFile(f"{path} holds a {header.get('kind') if isinstance(header, dict) else 'list'}, not a {kind}")
    if header.get("version") != _VERSION:
        raise InvalidFile(
            f"{path} has format version {header.get('version')}; this release reads version {_VERSION}. Upgrade tightrope."
        )
    return header


def read_arrays(path: str | os.PathLike[str], what: str = "a NumPy .npz file", *, mapped: bool = False) -> dict[str, Any]:
    """The arrays of any .npz: checksums compared, sizes checked before memory is asked for, nothing unpickled."""
    try:
        with zipfile.ZipFile(path) as source:
            entries = [entry for entry in source.infolist() if not entry.is_dir()]
            _refuse_bomb(path, sum(entry.file_size for entry in entries))
            arrays: dict[str, Any] = {}
            for entry in entries:
                name = entry.filename.removesuffix(".npy")
                if name in arrays:
                    raise InvalidFile(f"{path} holds {name} twice")  # noqa: TRY301  (said here, where the name is known)
                on_disk = mapped and entry.compress_type == zipfile.ZIP_STORED
                arrays[name] = _mapped(path, entry) if on_disk else _in_memory(source, entry)
            return arrays
    except FileNotFoundError:
        raise InvalidFile(f"{path}: there is no such file") from None
    except InvalidFile:
        raise
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError, zlib.error, struct.error) as error:
        raise InvalidFile(f"{path} is not {what} ({error}); it may be damaged or of another kind") from None
    except (NotImplementedError, RuntimeError, SyntaxError, MemoryError, OverflowError, RecursionError) as error:
        # What zipfile says of unknown compressions and passwords, and NumPy of headers that are none.
        raise InvalidFile(f"{path} is not {what} ({type(error).__name__}: {error}); it may be damaged") from None


def inflate(path: str | os.PathLike[str], packed: bytes, unpacker: Any) -> bytes:
    """What `packed` expands to with a decompressor of zlib or lzma, as long as that is no bomb."""
    parts, total, rest = [], 0, packed
    try:
        while not unpacker.eof:
            part = unpacker.decompress(rest, _CHUNK)
            rest = getattr(unpacker, "unconsumed_tail", b"")
            if not part and not rest and getattr(unpacker, "needs_input", True):
                break
            total += len(part)
            _refuse_bomb(path, total)
            parts.append(part)
    except (zlib.error, lzma.LZMAError, EOFError, MemoryError) as error:
        raise InvalidFile(f"{path} does not decompress ({error}); it is damaged") from None
    return b"".join(parts)


def _refuse_bomb(path: str | os.PathLike[str], expanded: int) -> None:
    size = Path(path).stat().st_size
    if expanded > _ROOM and expanded > _GROWTH * size:
        raise InvalidFile(
            f"{path} ({size:,} bytes) says it expands to {expanded:,} bytes, more than {_GROWTH} times its size; "
            "refused as a decompression bomb. Store it uncompressed if it is meant."
        )


def _head(file: Any, size: int) -> tuple[tuple[int, ...], bool, Any, int]:
    """Shape, Fortran order, type and number of value bytes that a .npy header promises, held against the member's size."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"NumPy format version {version} is not one this release reads")
    try:
        shape, fortran, dtype = readers[version](file)
    except Exception as error:  # noqa: BLE001  (NumPy lets errors of Python's own parser through)
        raise ValueError(f"a damaged header ({error})") from None
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never unpickled")
    wanted = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or wanted != size - file.tell():
        raise ValueError(f"an array of shape {shape} and type {dtype} needs {wanted} bytes; {size - file.tell()} are there")
    return shape, fortran, dtype, wanted


def _in_memory(source: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Any:
    with source.open(entry) as member:
        shape, fortran, dtype, wanted = _head(member, entry.file_size)
        flat, done = np.empty(wanted, dtype=np.uint8), 0
        while done < wanted:
            part = member.read(min(_CHUNK, wanted - done))
            if not part:
                raise EOFError(f"{entry.filename} ends early")
            flat[done : done + len(part)] = np.frombuffer(part, dtype=np.uint8)
            done += len(part)
        if member.read(1):  # also makes the zip reader compare the checksum of an empty array
            raise ValueError(f"{entry.filename} is longer than it says")
    return flat.view(dtype).reshape(shape, order="F" if fortran else "C")


def _content(file: BinaryIO, entry: zipfile.ZipInfo) -> int:
    """Where the content of a member begins."""
    file.seek(entry.header_offset)
    head = file.read(30)
    if len(head) < 30 or head[:4] != b"PK\x03\x04":
        raise ValueError(f"{entry.filename} has no local header at byte {entry.header_offset}")
    return int(entry.header_offset + 30 + sum(struct.unpack("<HH", head[26:30])))


def _mapped(path: str | os.PathLike[str], entry: zipfile.ZipInfo) -> Any:
    with Path(path).open("rb") as file:
        begin = _content(file, entry)
        buffer = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    content = buffer[begin : begin + entry.file_size]
    check = 0
    for at in range(0, len(content), _CHUNK):
        check = zlib.crc32(content[at : at + _CHUNK], check)
    if len(content) != entry.file_size or check != entry.CRC:
        raise ValueError(f"the checksum of {entry.filename} differs: the file is damaged")
    with zipfile.ZipFile(path) as source, source.open(entry) as member:
        shape, fortran, dtype, wanted = _head(member, entry.file_size)
    flat = np.frombuffer(content[len(content) - wanted :], dtype=np.uint8)
    return flat.view(dtype).reshape(shape, order="F" if fortran else "C")
