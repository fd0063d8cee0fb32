"""Sixteen float32 numbers side by side, for loops that numba makes no vectors of, or slow ones.

A vector is added, subtracted, multiplied and divided like a number. In LLVM a vector is a <16 x float>: one register of
AVX-512, two of AVX2, four of NEON. Places in arrays are counted as if an array had one dimension; nothing checks that
they exist.
"""

import operator
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, register_model

LANES = 16
FLOAT32, INT32, INT1 = ir.FloatType(), ir.IntType(32), ir.IntType(1)
FLOAT32_VECTOR, INT32_VECTOR, INT1_VECTOR, BF16_VECTOR = (
    ir.VectorType(kind, LANES) for kind in (FLOAT32, INT32, INT1, ir.IntType(16))
)


class _VectorType(types.Type):  # type: ignore[misc]
    """Type of a vector in numba."""


vector_type = _VectorType("sixteen float32 numbers")


@register_model(_VectorType)
class _VectorModel(PrimitiveModel):  # type: ignore[misc]
    """Type of a vector in LLVM."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, FLOAT32_VECTOR)


def _register_vector_operator(python_operator: Any, llvm_instruction: str) -> None:
    """Let numba compute a Python operator of two vectors by an instruction of LLVM."""

    class _OperatorTemplate(ConcreteTemplate):  # type: ignore[misc]
        cases = (signature(vector_type, vector_type, vector_type),)

    def codegen(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return getattr(builder, llvm_instruction)(*arguments, flags=["contract"])  # x * y + z may be rounded once

    infer_global(python_operator)(_OperatorTemplate)
    lower_builtin(python_operator, vector_type, vector_type)(codegen)


for python_operator, instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _register_vector_operator(python_operator, instruction)


def _constant(number: float, kind: Any = FLOAT32_VECTOR) -> Any:
    return ir.Constant(kind, [ir.Constant(kind.element, number)] * LANES)


def _splat(builder: Any, number: Any, kind: Any = FLOAT32_VECTOR) -> Any:
    """A number of LLVM, LANES times."""
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), number, INT32(0))
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), ir.Constant(INT32_VECTOR, [0] * LANES))


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, offset: Any, kind: Any) -> Any:
    """Return a pointer to the place at which `kind` begins in an array."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), kind.as_pointer())


def _lane_mask(builder: Any, count: Any) -> Any:
    """Return flags of the first `count` of LANES."""
    order = ir.Constant(INT32_VECTOR, list(range(LANES)))
    return builder.icmp_signed("<", order, _splat(builder, builder.trunc(count, INT32), INT32_VECTOR))


@intrinsic
def splat(_, number):  # type: ignore[no-untyped-def]
    """A float32, sixteen times."""
    return vector_type(types.float32), lambda context, builder, signature, arguments: _splat(builder, arguments[0])


def _emit_load(context: Any, builder: Any, array_type: Any, array: Any, offset: Any, count: Any = None) -> Any:
    """The numbers of an array from a place on, or the first `count`; those of 16 bits are widened as bf16."""
    is_low = array_type.dtype == types.uint16
    kind, name, align = (BF16_VECTOR, "i16", 2) if is_low else (FLOAT32_VECTOR, "f32", 4)
    pointer = _pointer(context, builder, array_type, array, offset, kind)
    if count is None:
        vector = builder.load(pointer, align=align)
    else:
        function = ir.FunctionType(kind, [pointer.type, INT32, INT1_VECTOR, kind])
        masked = cgutils.get_or_insert_function(builder.module, function, f"llvm.masked.load.v16{name}.p0v16{name}")
        vector = builder.call(masked, [pointer, INT32(align), _lane_mask(builder, count), ir.Constant(kind, None)])
    return _bf16_to_f32(builder, vector, FLOAT32_VECTOR) if is_low else vector


def _bf16_to_f32(builder: Any, bf16_vector: Any, kind: Any) -> Any:
    """Widen numbers of bf16, which are the upper half of a float32."""
    if kind is FLOAT32:
        return builder.bitcast(builder.shl(builder.zext(bf16_vector, INT32), INT32(16)), FLOAT32)
    return builder.bitcast(
        builder.shl(builder.zext(bf16_vector, INT32_VECTOR), _constant(16, INT32_VECTOR)), FLOAT32_VECTOR
    )


@intrinsic
def load(_, array, offset):  # type: ignore[no-untyped-def]
    """The sixteen numbers of an array of float32, or of bits of bf16, from a place on."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _emit_load(context, builder, signature.args[0], *arguments)

    return vector_type(array, types.int64), codegen


@intrinsic
def load_partial(_, array, offset, count, fill_value):  # type: ignore[no-untyped-def]
    """Load the first `count` numbers of an array from a place on, or sixteen if that is more, and fill up with a
    float32 `fill_value`.
    """

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, offset, count, fill_number = arguments
        array_arguments = context, builder, signature.args[0], array, offset
        with builder.if_else(builder.icmp_signed(">=", count, count.type(LANES))) as (full_block, partial_block):
            with full_block:  # what processors without masks do fast
                vector, full_exit = _emit_load(*array_arguments), builder.block
            with partial_block:
                lanes = builder.select(
                    _lane_mask(builder, count), _emit_load(*array_arguments, count), _splat(builder, fill_number)
                )
                partial_exit = builder.block
        result = builder.phi(FLOAT32_VECTOR)
        result.add_incoming(vector, full_exit)
        result.add_incoming(lanes, partial_exit)
        return result

    return vector_type(array, types.int64, types.int64, types.float32), codegen


@intrinsic
def load_scalar(_, array, offset):  # type: ignore[no-untyped-def]
    """The number of an array at a place; one of 16 bits is widened as bf16."""
    is_low = array.dtype == types.uint16

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        number = builder.load(builder.gep(data, [arguments[1]]))
        return _bf16_to_f32(builder, number, FLOAT32) if is_low else number

    return (types.float32 if is_low else array.dtype)(array, types.int64), codegen


def _emit_store(
    context: Any, builder: Any, array_type: Any, array: Any, offset: Any, x: Any, count: Any = None
) -> None:
    """Emit a store of a vector, or of its first `count` lanes, at an index of an array; 16 bits are rounded to bf16."""
    is_low = array_type.dtype == types.uint16
    kind, name, align = (BF16_VECTOR, "i16", 2) if is_low else (FLOAT32_VECTOR, "f32", 4)
    pointer, x = _pointer(context, builder, array_type, array, offset, kind), _f32_to_bf16(builder, x) if is_low else x
    if count is None:
        builder.store(x, pointer, align=align)
    else:
        function = ir.FunctionType(ir.VoidType(), [kind, pointer.type, INT32, INT1_VECTOR])
        masked = cgutils.get_or_insert_function(builder.module, function, f"llvm.masked.store.v16{name}.p0v16{name}")
        builder.call(masked, [x, pointer, INT32(align), _lane_mask(builder, count)])


def _f32_to_bf16(builder: Any, x: Any) -> Any:
    """The nearest numbers of bf16, of two the even one; NaN stays NaN."""
    bits = builder.bitcast(x, INT32_VECTOR)
    lowest_bit = builder.and_(builder.lshr(bits, _constant(16, INT32_VECTOR)), _constant(1, INT32_VECTOR))
    nearest = builder.lshr(
        builder.add(builder.add(bits, _constant(0x7FFF, INT32_VECTOR)), lowest_bit), _constant(16, INT32_VECTOR)
    )
    low = builder.select(builder.fcmp_unordered("uno", x, x), _constant(0x7FC0, INT32_VECTOR), nearest)
    return builder.trunc(low, BF16_VECTOR)


@intrinsic
def store(_, array, offset, vector):  # type: ignore[no-untyped-def]
    """Write a vector to an array of float32, or of bits of bf16, from a place on."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        _emit_store(context, builder, signature.args[0], *arguments)
        return context.get_dummy_value()

    return types.void(array, types.int64, vector_type), codegen


@intrinsic
def store_partial(_, array, offset, count, vector):  # type: ignore[no-untyped-def]
    """Write the first `count` numbers of a vector, or all if that is more, to an array from a place on."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, offset, count, vector = arguments
        to_array = context, builder, signature.args[0], array, offset, vector
        with builder.if_else(builder.icmp_signed(">=", count, count.type(LANES))) as (full_block, partial_block):
            with full_block:
                _emit_store(*to_array)
            with partial_block:
                _emit_store(*to_array, count)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, vector_type), codegen


def _emit_max(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", x, y), y, x)


@intrinsic
def vmax(_, x, y):  # type: ignore[no-untyped-def]
    """The larger of each two numbers; of two that cannot be compared, x."""
    return vector_type(vector_type, vector_type), lambda context, builder, signature, arguments: _emit_max(
        builder, *arguments
    )


def _reduce_halves(builder: Any, numbers: Any, join: Any) -> Any:
    """Join all numbers of a vector, each half with the other until one is left."""
    half = LANES // 2
    while half:
        rotation = ir.Constant(INT32_VECTOR, [(i + half) % LANES for i in range(LANES)])
        numbers = join(numbers, builder.shuffle_vector(numbers, numbers, rotation))
        half //= 2
    return builder.extract_element(numbers, INT32(0))


@intrinsic
def hsum(_, numbers):  # type: ignore[no-untyped-def]
    """The sum of the sixteen."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _reduce_halves(builder, arguments[0], builder.fadd)

    return types.float32(vector_type), codegen


@intrinsic
def hmax(_, numbers):  # type: ignore[no-untyped-def]
    """The largest of the sixteen."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _reduce_halves(builder, arguments[0], partial(_emit_max, builder))

    return types.float32(vector_type), codegen


@intrinsic
def any_at_least(_, numbers, bound):  # type: ignore[no-untyped-def]
    """Return whether any of the sixteen is as large as a float32 `bound`."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        flags = builder.fcmp_ordered(">=", arguments[0], _splat(builder, arguments[1]))
        return builder.icmp_unsigned("!=", builder.bitcast(flags, ir.IntType(LANES)), ir.IntType(LANES)(0))

    return types.boolean(vector_type, types.float32), codegen


@intrinsic
def store_hsums(_, array, offset, a, b, c, d):  # type: ignore[no-untyped-def]
    """Write the sums of four vectors to an array from a place on."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array, offset, a, b, c, d = arguments

        def add_halves(x: Any, y: Any, first_lanes: list[int]) -> Any:
            """Numbers of x and y at places `first_lanes`, and those at the others, summed."""
            other_lanes = [i for i in range(2 * LANES) if i not in first_lanes]
            first_indices, other_indices = (
                ir.Constant(INT32_VECTOR, indices) for indices in (first_lanes, other_lanes)
            )
            return builder.fadd(
                builder.shuffle_vector(x, y, first_indices), builder.shuffle_vector(x, y, other_indices)
            )

        halves = [i for i in range(2 * LANES) if i % LANES < LANES // 2]
        quarters = [i for i in range(2 * LANES) if i % 8 < 4]
        sums = add_halves(add_halves(a, b, halves), add_halves(c, d, halves), quarters)  # four of each
        for step in (2, 1):
            permutation = ir.Constant(INT32_VECTOR, [i ^ step for i in range(LANES)])
            sums = builder.fadd(sums, builder.shuffle_vector(sums, sums, permutation))
        four = ir.VectorType(FLOAT32, 4)
        lane_sums = builder.shuffle_vector(sums, sums, ir.Constant(ir.VectorType(INT32, 4), [0, 4, 8, 12]))
        builder.store(lane_sums, _pointer(context, builder, signature.args[0], array, offset, four), align=4)
        return context.get_dummy_value()

    return types.void(array, types.int64, vector_type, vector_type, vector_type, vector_type), codegen


@intrinsic
def floor(_, x):  # type: ignore[no-untyped-def]
    """The largest whole numbers that are not larger."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kind = ir.FunctionType(FLOAT32_VECTOR, [FLOAT32_VECTOR])
        llvm_function = cgutils.get_or_insert_function(builder.module, kind, "llvm.floor.v16f32")
        return builder.call(llvm_function, arguments)

    return vector_type(vector_type), codegen


@intrinsic
def exp2(_, power):  # type: ignore[no-untyped-def]
    """2^n of whole numbers n from -126 to 127, by the bits of the result."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        power = builder.add(builder.fptosi(arguments[0], INT32_VECTOR), _constant(127, INT32_VECTOR))
        return builder.bitcast(builder.shl(power, _constant(23, INT32_VECTOR)), FLOAT32_VECTOR)

    return vector_type(vector_type), codegen
