"""DFT and STFT of ONNX: the calls that they become, and their numbers beside NumPy.

    spectra.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, expect, main
from write import graph, model, node, tensor, value


def whole(name, n):
    return tensor(name, numpy.array(n, "i8"))


@case
def spectra_of_any_length_are_calls(t):
    """Of audio, too, which products with literal matrices of cosines would be too large for"""
    rng = numpy.random.default_rng(3)
    for n in (8, 4095, 6000):
        x = rng.normal(size=(2, n, 1)).astype("f4")
        m = model(graph([node("DFT", ["x"], ["y"], onesided=1)], [value("x", [2, n, 1])], [value("y", None)]), opset=17)
        expect(t.text(m), "y = dft(x, onesided = true)")
        y, exact = t.value(m, x=x), numpy.fft.rfft(x[..., 0].astype("f8"))
        assert numpy.abs(y[..., 0] + 1j * y[..., 1] - exact).max() < 1e-6 * numpy.abs(exact).max()
    m = model(graph([node("STFT", ["x", "step", "w"], ["y"])], [value("x", [1, 9000, 1]), value("w", [4800])], [value("y", None)], [whole("step", 1200)]), opset=17)
    expect(t.text(m), "y = stft(x, 1200, 4800, window = w)")
    x, w = rng.normal(size=(1, 9000, 1)).astype("f4"), numpy.hanning(4800).astype("f4")
    exact = numpy.fft.rfft(numpy.stack([x[:, i:i + 4800, 0].astype("f8") * w for i in range(0, 4200, 1200)], 1))
    y = t.value(m, x=x, w=w)
    assert numpy.abs(y[..., 0] + 1j * y[..., 1] - exact).max() < 1e-6 * numpy.abs(exact).max()


@case
def a_convolution_by_spectra_reads_as_one(t):
    steps = [node("DFT", ["x", "n", "axis"], ["a"], onesided=1), node("DFT", ["a", "n", "axis"], ["y"], onesided=1, inverse=1), node("DFT", ["c", "", "first"], ["z"])]
    m = model(graph(steps, [value("x", [2, 6, 1]), value("c", [3, 5, 2])], [value("y", None), value("z", None)], [whole("n", 8), whole("axis", 1), whole("first", 0)]), opset=20)
    expect(t.text(m), "a = dft(x, onesided = true, length = 8)", "y = dft(a, inverse = true, onesided = true)", "z = dft(c, axis = 0)")
    x, c = (numpy.random.default_rng(i).normal(size=s).astype("f4") for i, s in enumerate([(2, 6, 1), (3, 5, 2)]))
    numpy.testing.assert_allclose(t.value(m, x=x, c=c)[..., 0], numpy.pad(x[..., 0], [(0, 0), (0, 2)]), atol=1e-6)
    exact = numpy.fft.fft(c[..., 0] + 1j * c[..., 1], axis=0)
    numpy.testing.assert_allclose(t.value(m, "z", x=x, c=c), numpy.stack([exact.real, exact.imag], -1), atol=1e-6)


@case
def frames_of_pairs_and_of_whole_signals(t):
    m = model(graph([node("STFT", ["c", "step", "", "n"], ["y"], onesided=0), node("STFT", ["x", "step"], ["z"])],
                    [value("c", [1, 20, 2]), value("x", [2, 9])], [value("y", None), value("z", None)], [whole("step", 4), whole("n", 6)]), opset=17)
    expect(t.text(m), "y = stft(c, 4, 6, onesided = false)", "z = stft(unsqueeze(x, -1), 4, 9)")
    c = numpy.random.default_rng(1).normal(size=(1, 20, 2)).astype("f4")
    exact = numpy.fft.fft(numpy.stack([c[:, i:i + 6, 0] + 1j * c[:, i:i + 6, 1] for i in range(0, 15, 4)], 1))
    numpy.testing.assert_allclose(t.value(m, c=c, x=numpy.ones((2, 9), "f4")), numpy.stack([exact.real, exact.imag], -1), atol=1e-5)


@case
def spectra_that_are_too_long_are_all_listed(t):
    t.write(model(graph([node("DFT", ["x"], ["y"]), node("STFT", ["x", "step"], ["z"]), node("DFT", ["u"], ["v"])], [value("x", [1, 2097166, 1]), value("u", [1, 1 << 25, 2])],
                        [value(name, None) for name in "yzv"], [whole("step", 4)]), opset=17))
    error = t.run("import", "m.onnx", status=1)
    assert error.count("its length, 2097166, has a factor 1048583 without divisors up to 32, which may be 1048576 at most") == 2, error
    assert "its length, 33554432, is too large; it may be 16777216" in error and "3 of 3 nodes" in error, error


if __name__ == "__main__":
    main()
