"""Reverse mode in NumPy: as much of it as the training networks take, in f64.

    w = Value(array);  loss = (relu(x @ w)).sum();  loss.backward();  w.gradient

Each operation leaves with its result what its operands get of the result's gradient; `backward` goes through them from
the last to the first.
"""

import numpy as np


class Value:
    def __init__(self, array, operands=(), pull=None):
        """pull(d): the gradient of each operand, where d is that of this."""
        self.array, self.operands, self.pull = np.asarray(array, np.float64), operands, pull
        self.gradient = np.zeros_like(self.array)

    def backward(self):
        self.gradient = np.ones_like(self.array)
        for value in reversed(in_order(self)):
            for operand, d in zip(value.operands, value.pull(value.gradient) if value.pull else ()):
                operand.gradient = operand.gradient + d

    def __add__(self, other):
        other = of(other)
        return Value(self.array + other.array, (self, other), lambda d: (fit(d, self), fit(d, other)))

    def __mul__(self, other):
        other = of(other)
        return Value(self.array * other.array, (self, other), lambda d: (fit(d * other.array, self), fit(d * self.array, other)))

    def __matmul__(self, other):
        """Of a batch of matrices and one, or as many."""
        x, y = self.array, other.array
        return Value(x @ y, (self, other), lambda d: (fit(d @ y.swapaxes(-1, -2), self), fit(x.swapaxes(-1, -2) @ d, other)))

    def __sub__(self, other):
        return self + of(other) * -1.0

    def __pow__(self, number):
        return Value(self.array**number, (self,), lambda d: (d * number * self.array**(number - 1),))

    def __getitem__(self, at):
        """A part, or rows that may stand in it several times."""
        def pull(d):
            whole = np.zeros_like(self.array)
            np.add.at(whole, at, d)
            return (whole,)
        return Value(self.array[at], (self,), pull)

    def sum(self, axis=None):
        """Over axes that are kept, with extent 1."""
        total = self.array.sum(axis=axis, keepdims=True)
        return Value(total, (self,), lambda d: (np.broadcast_to(d, self.array.shape),))

    def mean(self, axis=None):
        total = self.sum(axis)
        return total * (total.array.size / self.array.size)

    def reshape(self, *shape):
        return Value(self.array.reshape(shape), (self,), lambda d: (d.reshape(self.array.shape),))

    def transpose(self, *axes):
        return Value(self.array.transpose(axes), (self,), lambda d: (d.transpose(np.argsort(axes)),))


def of(thing):
    return thing if isinstance(thing, Value) else Value(thing)


def fit(d, value):
    """The gradient of what was broadcast: sums over what it was repeated along."""
    shape = value.array.shape
    d = d.sum(axis=tuple(range(d.ndim - len(shape))))
    return d.sum(axis=tuple(i for i, extent in enumerate(shape) if extent == 1), keepdims=True) if 1 in shape else d


def in_order(last):
    """All values that `last` is made of, each behind its operands."""
    found, seen, stack = [], set(), [(last, False)]
    while stack:
        value, done = stack.pop()
        if done:
            found.append(value)
        elif id(value) not in seen:
            seen.add(id(value))
            stack += [(value, True)] + [(operand, False) for operand in value.operands]
    return found


def elementwise(function, slope):
    """`slope` is of the operand and the result."""
    def apply(x):
        y = function(x.array)
        return Value(y, (x,), lambda d: (d * slope(x.array, y),))
    return apply


exp = elementwise(np.exp, lambda x, y: y)
log = elementwise(np.log, lambda x, y: 1 / x)
tanh = elementwise(np.tanh, lambda x, y: 1 - y * y)
relu = elementwise(lambda x: np.maximum(x, 0), lambda x, y: x > 0)
sigmoid = elementwise(lambda x: 1 / (1 + np.exp(-x)), lambda x, y: y * (1 - y))


def softmax(x):
    e = exp(x - x.array.max(axis=-1, keepdims=True))
    return e * e.sum(-1)**-1


def cross_entropy(logits, label):
    """The mean of rows [n, classes] with their classes [n]."""
    d = logits - logits.array.max(axis=-1, keepdims=True)
    picked = (d - log(exp(d).sum(-1)))[np.arange(len(label)), label]
    return picked.mean() * -1.0


def convolve(x, weight, stride=1, pad=0):
    """[n, c, h, w] by [o, c, k, k]: a sum over the taps of the window."""
    padded = np.pad(x.array, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    size = weight.array.shape[2]
    rows, columns = ((extent - size) // stride + 1 for extent in padded.shape[2:])

    def seen(i, j):
        return (slice(None), slice(None), slice(i, i + stride * (rows - 1) + 1, stride), slice(j, j + stride * (columns - 1) + 1, stride))

    def pull(d):
        dx, dw = np.zeros_like(padded), np.zeros_like(weight.array)
        for i, j in np.ndindex(size, size):
            dw[:, :, i, j] = np.einsum("nchw,nohw->oc", padded[seen(i, j)], d)
            dx[seen(i, j)] += np.einsum("nohw,oc->nchw", d, weight.array[:, :, i, j])
        return dx[:, :, pad:pad + x.array.shape[2], pad:pad + x.array.shape[3]], dw

    y = sum(np.einsum("nchw,oc->nohw", padded[seen(i, j)], weight.array[:, :, i, j]) for i, j in np.ndindex(size, size))
    return Value(y, (x, weight), pull)


def max_pool(x):
    """Windows of 2 by 2; of equal elements each gets its share."""
    n, c, h, w = x.array.shape
    blocks = x.array[:, :, :h // 2 * 2, :w // 2 * 2].reshape(n, c, h // 2, 2, w // 2, 2)
    y = blocks.max(axis=(3, 5), keepdims=True)

    def pull(d):
        match, dx = blocks == y, np.zeros_like(x.array)
        share = match * d[:, :, :, None, :, None] / match.sum(axis=(3, 5), keepdims=True)
        dx[:, :, :h // 2 * 2, :w // 2 * 2] = share.reshape(n, c, h // 2 * 2, w // 2 * 2)
        return (dx,)
    return Value(y[:, :, :, 0, :, 0], (x,), pull)
