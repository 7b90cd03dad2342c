"""What loops need of memory besides arithmetic: lines asked for early, arrays without counts, word from one thread to another."""

from __future__ import annotations

import platform

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: Whether instructions are those of Intel and AMD.
_INTEL = platform.machine() in {"x86_64", "AMD64"}


def _prefetch(near):
    """An intrinsic that asks for a line of memory; `near` is how long caches are to keep it, from 0 to 3."""

    @intrinsic
    def prefetch(typing_context, array, index):  # noqa: ARG001  (numba's signature)
        def generate(context, builder, signature, arguments):
            kind = signature.args[0]
            if not isinstance(kind, types.Array):
                return context.get_dummy_value()
            place = _place(context, builder, kind, *arguments)
            byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
            builder.call(fetch, [builder.bitcast(place, byte), number(0), number(near), number(1)])  # to read, data
            return context.get_dummy_value()

        return types.void(array, index), generate

    return prefetch


#: Ask for the line of memory that holds array[index], without waiting for it; nothing else happens, and nothing for a tuple.
prefetch = _prefetch(3)
#: The same for what is read once: nothing else is to leave the caches for it.
prefetch_once = _prefetch(0)


@intrinsic
def row(typing_context, indptr, l):  # noqa: ARG001  (numba's signature)
    """Where row l begins: indptr[l], or l times indptr where that is how long all rows are, None being one; unsigned."""

    def generate(context, builder, signature, arguments):
        indptr, l = arguments
        return _row(context, builder, signature.args[0], indptr, l, builder.mul)

    return types.uint64(indptr, l), generate


@intrinsic
def row_end(typing_context, indptr, k, l):  # noqa: ARG001  (numba's signature)
    """Where the row before l ends, having begun at k: where row l begins."""

    def generate(context, builder, signature, arguments):
        indptr, k, l = arguments
        return _row(context, builder, signature.args[0], indptr, l, lambda length, _: builder.add(k, length))

    return types.uint64(indptr, k, l), generate


@intrinsic
def in_fours(typing_context, data, k, v, j, n):  # noqa: ARG001  (numba's signature)
    """The sum of data[k + i] v[j + i] for i < n: every fourth product together, and what is left over one by one."""

    def generate(context, builder, signature, arguments):
        data, _, v, *_ = signature.args
        lanes, number = ir.VectorType(ir.DoubleType(), 4), ir.IntType(64)
        a = _place(context, builder, data, *arguments[:2])
        b = _place(context, builder, v, *arguments[2:4])
        n, step = arguments[4], number(4)
        whole = builder.and_(n, number(2**64 - 4))

        def product(i, kind):
            near, far = (builder.bitcast(builder.gep(x, [i]), kind.as_pointer()) for x in (a, b))
            return builder.fmul(builder.load(near, align=8), builder.load(far, align=8))

        four = cgutils.alloca_once_value(builder, ir.Constant(lanes, [0.0] * 4))
        with cgutils.for_range_slice(builder, number(0), whole, step, inc=True) as (i, _):
            builder.store(builder.fadd(builder.load(four), product(i, lanes)), four)
        first, second, third, fourth = (builder.extract_element(builder.load(four), ir.IntType(32)(i)) for i in range(4))
        total = cgutils.alloca_once_value(builder, builder.fadd(builder.fadd(first, third), builder.fadd(second, fourth)))
        with cgutils.for_range_slice(builder, whole, n, number(1), inc=True) as (i, _):
            builder.store(builder.fadd(builder.load(total), product(i, ir.DoubleType())), total)
        return builder.load(total)

    return types.float64(data, types.uint64, v, types.uint64, types.uint64), generate


def _row(context, builder, kind, indptr, l, place):
    """Where row l begins; place(length, l) tells where all are of one length."""
    if isinstance(kind, types.Array):
        return context.cast(builder, builder.load(_place(context, builder, kind, indptr, l)), kind.dtype, types.uint64)
    return l if kind is types.none else place(context.cast(builder, indptr, kind, types.uint64), l)


def _place(context, builder, kind, array, index):
    """Where array[index] is."""
    held = context.make_array(kind)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, kind, held, [index])


@intrinsic
def pass_by(typing_context, array, index, number):  # noqa: ARG001  (numba's signature)
    """array[index] = number, written to memory past the caches: for what is not read again soon. `passed_by` comes at the end."""

    def generate(context, builder, signature, arguments):
        kind, _, given = signature.args
        place = _place(context, builder, kind, *arguments[:2])
        store = builder.store(context.cast(builder, arguments[2], given, kind.dtype), place)
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(array, index, number), generate


@intrinsic
def passed_by(typing_context):  # noqa: ARG001  (numba's signature)
    """What has passed the caches by is written before anything that comes later, for whoever reads it on another thread."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001  (numba's signature)
        if _INTEL:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse.sfence"), [])
        else:
            builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def announce(typing_context, array, index, number):  # noqa: ARG001  (numba's signature)
    """array[index] = number, an integer of 64 bits, for other threads: whoever sees it sees all that was written before."""

    def generate(context, builder, signature, arguments):
        kind, _, given = signature.args
        place = _place(context, builder, kind, *arguments[:2])
        builder.store_atomic(context.cast(builder, arguments[2], given, kind.dtype), place, "release", 8)
        return context.get_dummy_value()

    return types.void(array, index, number), generate


@intrinsic
def announced(typing_context, array, index):  # noqa: ARG001  (numba's signature)
    """What another thread has last announced in array[index]."""

    def generate(context, builder, signature, arguments):
        return builder.load_atomic(_place(context, builder, signature.args[0], *arguments), "acquire", 8)

    return array.dtype(array, index), generate


@intrinsic
def give_way(typing_context):  # noqa: ARG001  (numba's signature)
    """A moment for whoever shares the core, where processors know of that: a loop that only waits would take half of it."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001  (numba's signature)
        if _INTEL:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def borrow(typing_context, *arrays):  # noqa: ARG001  (numba's signature)
    """The same arrays without the counts of their holders, which a loop would raise and lower at every call it makes."""
    kinds = types.BaseTuple.from_types(arrays)

    def generate(context, builder, signature, arguments):
        borrowed = []
        for kind, array in zip(arrays, cgutils.unpack_tuple(builder, arguments[0]), strict=True):
            held = context.make_array(kind)(context, builder, array)
            held.meminfo = cgutils.get_null_value(held.meminfo.type)
            held.parent = cgutils.get_null_value(held.parent.type)
            borrowed.append(held._getvalue())  # noqa: SLF001  (numba's way to read a structure)
        return context.make_tuple(builder, signature.return_type, borrowed)

    return kinds(kinds), generate
