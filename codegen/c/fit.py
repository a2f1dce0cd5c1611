"""Fits the polynomials of math.c: weighted minimax, coefficients rounded to f32 one at a time.

Each job names a smooth function, an interval, a degree and a weight (how much an error of the polynomial moves the
result, relative to the result).  Lawson's iteration turns least squares into minimax; then the lowest coefficient is
rounded to f32 and the others are fitted again around it, and so on, so that rounding costs almost nothing.  Functions
are evaluated as series in exact rationals or in long doubles, never through a cancellation.

    python3 codegen/c/fit.py            prints each polynomial, lowest coefficient first, and its weighted error
"""

import math

import numpy as np

L = np.longdouble
LN2, PI = math.log(2), math.pi


def series(term, x):
    """sum of term(k, x) until it no longer counts; x is an array of long doubles"""
    total = np.zeros_like(x)
    for k in range(400):
        t = term(k, x)
        total = total + t
        if k > 3 and np.all(np.abs(t) <= np.abs(total) * L(2) ** -70):
            break
    return total


def factorial(n):
    return L(math.factorial(n))


def exp_tail(r):
    """(e^r - 1 - r) / r^2"""
    return series(lambda k, x: x**k / factorial(k + 2), r)


def log_tail(f):
    """(log(1 + f) - f + f^2 / 2) / f^3, a series in s = f / (2 + f) away from 0 and in f near it"""
    s = f / (2 + f)
    far = 2 * series(lambda k, x: x ** (2 * k + 1) / L(2 * k + 1), s) - f + f * f / 2
    near = series(lambda k, x: (-x) ** k / L(k + 3), np.where(np.abs(f) < 0.3, f, 0))
    return np.where(np.abs(f) < 0.2, near, far / np.where(f == 0, 1, f) ** 3)


def sin_tail(z):
    """(sin(x) - x) / x^3, z = x^2"""
    return series(lambda k, x: (-1) ** (k + 1) * x**k / factorial(2 * k + 3), z)


def cos_tail(z):
    """(cos(x) - 1 + x^2 / 2) / x^4"""
    return series(lambda k, x: (-1) ** k * x**k / factorial(2 * k + 4), z)


def sinh_tail(z):
    return series(lambda k, x: x**k / factorial(2 * k + 3), z)


def tanh_tail(z):
    """(tanh(x) - x) / x^3 = (sinh - x cosh) / (x^3 cosh)"""
    top = series(lambda k, x: x**k * (1 / factorial(2 * k + 3) - 1 / factorial(2 * k + 2)), z)
    return top / series(lambda k, x: x**k / factorial(2 * k), z)


def erf_tail(z):
    """erf(x) / x - 1"""
    root = 2 / np.sqrt(L("3.14159265358979323846264338327950288"))
    return root * series(lambda k, x: (-1) ** k * x**k / (factorial(k) * L(2 * k + 1)), z) - 1


def log_erfc(a):
    """-log(erfc(a)), by erfc(a) = exp(-a^2) erfcx(a) and the continued fraction of erfcx (good from 0.8 on)"""
    x = L(1) * a
    t = np.zeros_like(x)
    for k in range(3000, 0, -1):
        t = L(k) / 2 / (x + t)
    return x * x - np.log(1 / (np.sqrt(L("3.14159265358979323846264338327950288")) * (x + t)))


def asin_tail(z):
    """(asin(x) - x) / x^3"""
    total, c = np.zeros_like(z), L(1)
    for k in range(0, 120):
        c = c * L(2 * k + 1) / L(2 * k + 2)
        total = total + c / L(2 * k + 3) * z**k
    return total


def atan_tail(z):
    """(atan(x) - x) / x^3"""
    small = series(lambda k, x: (-1) ** (k + 1) * x**k / L(2 * k + 3), np.where(z < 0.3, z, 0))
    x = np.sqrt(z)
    return np.where(z < 0.25, small, (np.arctan(x) - x) / np.where(z == 0, 1, x**3))


def minimax(x, y, weight, powers):
    """Coefficients of sum c_k x^k that make the largest weighted error least (Lawson), and that error."""
    scale = np.max(np.abs(x))
    basis = np.stack([(x / scale) ** p for p in powers], 1).astype(float)
    lawson = np.ones(len(x)) / len(x)
    best, best_error = None, np.inf
    for _ in range(300):
        rows = np.sqrt(lawson) * weight.astype(float)
        c = np.linalg.lstsq(basis * rows[:, None], y.astype(float) * rows, rcond=None)[0]
        error = np.abs(weight * (y - basis.astype(L) @ c.astype(L))).astype(float)
        if error.max() < best_error:
            best, best_error = c, error.max()
        lawson = lawson * (error + 1e-300)
        lawson /= lawson.sum()
    return [c / float(scale) ** p for c, p in zip(best, powers)], best_error


def fit(name, f, low, high, degree, weight):
    x = (low + high) / 2 + (high - low) / 2 * np.cos(np.linspace(0, PI, 1501))
    x = np.sort(x).astype(L)
    y, w = f(x), weight(x)
    fixed, rest = [], y
    for power in range(degree + 1):
        c, _ = minimax(x, rest, w, range(power, degree + 1))
        rounded = np.float32(c[0])
        fixed.append(rounded)
        rest = rest - L(float(rounded)) * x**power
    error = float(np.max(np.abs(w * rest)))
    print(f"{name}: 2^{math.log2(error):.1f} of the result")
    for c in fixed:
        print(f"    {float(c):.9g}f")


HALF = LN2 / 2 + 1e-6
fit("exp", exp_tail, -HALF, HALF, 4, lambda r: r * r / np.exp(r) + 0.001)
fit("expm1", exp_tail, -HALF, HALF, 5, lambda r: np.abs(r) + 0.01)
fit("log", log_tail, math.sqrt(0.5) - 1, math.sqrt(2) - 1, 8, lambda f: f * f + 0.001)
fit("sin", sin_tail, 0, (PI / 4 + 1e-4) ** 2, 3, lambda z: z + 0.01)
fit("cos", cos_tail, 0, (PI / 4 + 1e-4) ** 2, 2, lambda z: z * z * 1.4 + 0.005)
fit("sinh", sinh_tail, 0, 1, 3, lambda z: z + 0.01)
fit("tanh", tanh_tail, 0, 0.625**2, 4, lambda z: z + 0.01)
fit("erf", erf_tail, 0, 0.9**2, 6, lambda z: 0.9 + 0 * z)
fit("-log erfc", log_erfc, 0.9, 4.0, 6, lambda a: np.exp(-log_erfc(a)))
fit("asin", asin_tail, 0, 0.25, 4, lambda z: z + 0.01)
fit("atan", atan_tail, 0, 1, 8, lambda z: z + 0.01)
