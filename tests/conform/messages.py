"""What a failure of conformance says: the wrong element, the operands that made it, and the rule that it breaks."""

import sys

import numpy as np

from tensors import Exact, Sum, Tensor, Ulp, mismatch

X = Tensor("f32", [[1.0, 2.0, 3.0]])
Y = Tensor("f32", [[0.5], [0.25]])
WANT = np.array([[1.5, 2.5, 3.5], [1.25, 2.25, 3.25]], np.float32)
GOT = WANT + np.array([[0, 0, 0], [0, 0, 0.5]], np.float32)
ONE = Tensor("f32", [1.0, 2.0])

CASES = [
    ("f32", GOT, WANT, Exact(), [X, Y],
     "1 of 6 differ; first at [1, 2]: got 3.75, expected 3.25 (exactly this: 0.5 off, 0 allowed); "
     "operand 0 f32(3.0), operand 1 f32(0.25)"),
    ("f32", GOT, WANT, Ulp(4, tiny=True), [ONE],
     "1 of 6 differ; first at [1, 2]: got 3.75, expected 3.25 (within 4 units in the last place, or anything below the "
     "normal range: 0.5 off, 9.54e-07 allowed); operand 0 f32[2]"),
    ("f32", GOT, WANT, Sum(9, np.abs(WANT)), [],
     "1 of 6 differ; first at [1, 2]: got 3.75, expected 3.25 (what a sum of 9 terms may lose in any order, and one unit "
     "in the last place: 0.5 off, 2.95e-06 allowed)"),
    ("i32", np.array(3, np.int32), np.array(4, np.int32), Exact(), [Tensor("i32", 7)],
     "1 of 1 differ; first at [0]: got 3, expected 4 (exactly this); operand 0 i32(7)"),
    ("f32", WANT, WANT, Exact(), [X, Y], None),
]


def main():
    print(f"1..{len(CASES)}")
    failed = 0
    for number, (dtype, got, want, tolerance, operands, expected) in enumerate(CASES, 1):
        said = mismatch(dtype, got, want, tolerance, False, operands)
        failed += said != expected
        print(f"{'ok' if said == expected else 'not ok'} {number} - {tolerance}")
        if said != expected:
            print(f"# said     {said}\n# expected {expected}")
    return 1 if failed else 0


sys.exit(main())
