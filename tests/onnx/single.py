"""Models of one node of com.microsoft, for microsoft.py and steps.py."""

import numpy

from write import KINDS, graph, model, node, tensor, value

DICE = numpy.random.default_rng(9)
HALF = numpy.dtype("f2")


def floats(*shape):
    return DICE.normal(size=shape).astype("f4")


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def file(op, operands, known=(), results=("y",), kind=None, **attributes):
    """Operands in `known` are constants, others inputs; None is left out.  Results are of `kind`, or of the first's."""
    names = [f"i{i}" if v is not None else "" for i, v in enumerate(operands)]
    inputs = [value(f"i{i}", v.shape, KINDS[v.dtype.name]) for i, v in enumerate(operands) if v is not None and i not in known]
    weights = [tensor(f"i{i}", operands[i]) for i in known]
    kind = KINDS[numpy.dtype(kind or operands[0].dtype).name]
    return model(graph([node(op, names, results, domain="com.microsoft", **attributes)], inputs, [value(r, None, kind) for r in results if r], weights),
                 domains=["com.microsoft"])


def found(t, op, operands, known=(), result="y", **rest):
    given = {f"i{i}": v for i, v in enumerate(operands) if v is not None and i not in known}
    return t.value(file(op, operands, known, **rest), result, **given)


def said(t, op, operands, known=(), **rest):
    t.write(file(op, operands, known, **rest))
    return t.run("import", "m.onnx", status=1)


def near(y, want, tolerance=2e-5):
    assert y.shape == want.shape, f"{y.shape}, not {want.shape}"
    numpy.testing.assert_allclose(y.astype("f8"), want, tolerance, tolerance)
