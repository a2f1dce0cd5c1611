"""Attention that keeps keys and values from run to run: each step finds what all positions at once do, which NumPy
computes here.

    caches.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, main
from write import graph, model, node, tensor, value

DICE = numpy.random.default_rng(5)
HEADS, GROUPS, WIDTH, LENGTH = 4, 2, 8, 6
ANGLE = numpy.arange(LENGTH)[:, None] * numpy.array([1.0, 0.3, 0.1, 0.01])
COS, SIN = numpy.cos(ANGLE).astype("f4"), numpy.sin(ANGLE).astype("f4")


def floats(*shape):
    return DICE.normal(size=shape).astype("f4")


def heads(x, count):
    return x.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)


def rotated(x):
    a, b = numpy.split(x, 2, -1)
    c, s = COS[: x.shape[2]], SIN[: x.shape[2]]
    return numpy.concatenate([a * c - b * s, a * s + b * c], -1)


def attention(q, k, v, scale=None, window=LENGTH, sink=None, causal=True):
    """Of [batch, heads, steps, width], each step of what came before"""
    k, v = numpy.repeat(k, HEADS // k.shape[1], 1), numpy.repeat(v, HEADS // v.shape[1], 1)
    scores = q @ k.transpose(0, 1, 3, 2) * (scale or WIDTH**-0.5)
    distance = numpy.arange(q.shape[2])[:, None] - numpy.arange(q.shape[2])
    scores = numpy.where((distance >= 0) & (distance < window) if causal else True, scores, -numpy.inf)
    e = numpy.exp(scores)
    shares = e / (e.sum(-1, keepdims=True) + (0 if sink is None else numpy.exp(sink)[:, None, None]))
    return (shares @ v).transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1)


Q, K, V = floats(2, LENGTH, HEADS * WIDTH), floats(2, LENGTH, GROUPS * WIDTH), floats(2, LENGTH, GROUPS * WIDTH)
KEYS, VALUES = rotated(heads(K, GROUPS)), heads(V, GROUPS)
WANT = attention(rotated(heads(Q, HEADS)), KEYS, VALUES)


def step_model(batch, steps, buffer, total, weights=(), names=(), **attributes):
    """A step of `steps` positions, with room for `buffer`; `total` is known, the lengths are not."""
    inputs = [value("q", [batch, steps, HEADS * WIDTH]), value("k", [batch, steps, GROUPS * WIDTH]), value("v", [batch, steps, GROUPS * WIDTH])]
    past = [value(n, [batch, GROUPS, buffer, WIDTH]) for n in ("pk", "pv")] if buffer else []
    operands = ["q", "k", "v", *(["pk", "pv"] if buffer else ["", ""]), "length", "total", "cos", "sin", *names]
    known = [tensor("total", numpy.array(total, "i4")), tensor("cos", COS), tensor("sin", SIN), *weights]
    rows = {"num_heads": HEADS, "kv_num_heads": GROUPS, "do_rotary": 1} | attributes
    return model(graph([node("GroupQueryAttention", operands, ["y", "nk", "nv"], domain="com.microsoft", **rows)],
                       [*inputs, *past, value("length", [batch], 6)], [value(n, None) for n in ("y", "nk", "nv")], known), domains=["com.microsoft"])


def part(begin, end, batch=2):
    return {"q": Q[:batch, begin:end], "k": K[:batch, begin:end], "v": V[:batch, begin:end]}


def near(found, want):
    numpy.testing.assert_allclose(found, want, 2e-5, 2e-5)


@case
def a_prompt_is_attention_of_what_came_before(t):
    m = step_model(2, LENGTH, 0, LENGTH)
    length = numpy.full(2, LENGTH - 1, "i4")
    near(t.value(m, **part(0, LENGTH), length=length), WANT)
    near(t.value(m, "nk", **part(0, LENGTH), length=length), KEYS)
    near(t.value(m, "nv", **part(0, LENGTH), length=length), VALUES)


@case
def a_prompt_in_a_buffer_leaves_what_is_behind(t):
    m = step_model(2, 4, LENGTH, 4)
    past = floats(2, GROUPS, LENGTH, WIDTH)
    given = part(0, 4) | {"pk": past, "pv": past, "length": numpy.full(2, 3, "i4")}
    near(t.value(m, **given), WANT[:, :4])
    near(t.value(m, "nk", **given), numpy.concatenate([KEYS[:, :, :4], past[:, :, 4:]], 2))


@case
def a_step_behind_a_past_that_grows(t):
    m = step_model(1, 2, 4, LENGTH)
    given = part(4, 6, 1) | {"pk": KEYS[:1, :, :4], "pv": VALUES[:1, :, :4], "length": numpy.array([LENGTH - 1], "i4")}
    near(t.value(m, **given), WANT[:1, 4:])
    near(t.value(m, "nk", **given), KEYS[:1])


@case
def steps_in_a_buffer_know_their_place_when_running(t):
    m = step_model(1, 1, LENGTH, LENGTH)
    keys = values = floats(1, GROUPS, LENGTH, WIDTH)  # what is not written yet must not matter
    for i in range(LENGTH):
        given = part(i, i + 1, 1) | {"pk": keys, "pv": values, "length": numpy.array([i], "i4")}
        near(t.value(m, **given), WANT[:1, i : i + 1])
        keys, values = t.value(m, "nk", **given), t.value(m, "nv", **given)
    near(keys, KEYS[:1])
    near(values, VALUES[:1])


@case
def each_sequence_has_its_own_place(t):
    m = step_model(2, 1, LENGTH, LENGTH)
    past, at = floats(2, GROUPS, LENGTH, WIDTH), [4, 1]
    keys, values = past.copy(), past.copy()
    for b, count in enumerate(at):
        keys[b, :, :count], values[b, :, :count] = KEYS[b, :, :count], VALUES[b, :, :count]
    each = {name: numpy.stack([x[b, at[b] : at[b] + 1] for b in range(2)]) for name, x in (("q", Q), ("k", K), ("v", V))}
    given = each | {"pk": keys, "pv": values, "length": numpy.array(at, "i4")}
    near(t.value(m, **given), numpy.stack([WANT[b, at[b] : at[b] + 1] for b in range(2)]))
    t.run("run", "m.onnx", "--cc", "gcc -O1", *[w for n in given for w in ("--input", f"{n}={n}.npy")], "--output", "y=c.npy")
    near(numpy.load(t.folder / "c.npy"), t.value(m, **given))


@case
def a_window_a_scale_and_sinks(t):
    sink = floats(HEADS)
    m = step_model(2, LENGTH, 0, LENGTH, [tensor("sink", sink)], ["", "", "sink"], local_window_size=3, scale=0.2)
    want = attention(rotated(heads(Q, HEADS)), KEYS, VALUES, 0.2, 3, sink)
    near(t.value(m, **part(0, LENGTH), length=numpy.full(2, LENGTH - 1, "i4")), want)
    m = step_model(2, LENGTH, 0, LENGTH, smooth_softmax=1)
    want = attention(rotated(heads(Q, HEADS)), KEYS, VALUES, sink=numpy.zeros(HEADS))
    near(t.value(m, **part(0, LENGTH), length=numpy.full(2, LENGTH - 1, "i4")), want)


@case
def heads_are_normalised_before_they_are_rotated(t):
    weights = {n: 1 + floats(WIDTH) / 4 for n in ("wq", "wk")}

    def normed(x, w, epsilon):
        return (x / numpy.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * w).astype("f4")

    for rows, eq, ek in (({}, 1e-6, 1e-6), ({"qk_norm_epsilon": 0.1}, 0.1, 0.1), ({"qk_norm_epsilon": 0.1, "k_norm_epsilon": 0.5}, 0.1, 0.5)):
        keys = rotated(normed(heads(K, GROUPS), weights["wk"], ek))
        want = attention(rotated(normed(heads(Q, HEADS), weights["wq"], eq)), keys, VALUES)
        m = step_model(2, LENGTH, 0, LENGTH, [tensor(n, w) for n, w in weights.items()], ["", "", "", "", "", "wq", "wk"], **rows)
        given = part(0, LENGTH) | {"length": numpy.full(2, LENGTH - 1, "i4")}
        near(t.value(m, **given), want)
        near(t.value(m, "nk", **given), keys)


@case
def attention_may_see_what_comes_after(t):
    want = attention(rotated(heads(Q, HEADS)), KEYS, VALUES, causal=False)
    near(t.value(step_model(2, LENGTH, 0, LENGTH, causal=0), **part(0, LENGTH), length=numpy.full(2, LENGTH - 1, "i4")), want)


@case
def what_attention_cannot_do_is_refused(t):
    def said(*arguments, **attributes):
        t.write(step_model(1, 1, LENGTH, LENGTH, *arguments, **attributes))
        return t.run("import", "m.onnx", status=1)

    w = [tensor("w", floats(WIDTH)), tensor("n", numpy.array([1], "i4"))]
    assert "it has a window of what comes after, too" in said(causal=0, local_window_size=3)
    assert "it normalises its queries or its keys alone" in said(w, ["", "", "", "", "", "w"])
    assert "it shows its scores, or pads what it reads" in said(w, ["", "", "", "", "", "", "", "n"])


@case
def a_buffer_that_slides_keeps_the_last(t):
    """Of a window of 3: buffers of 3 to 5, which drop their oldest keys at once when they are full; steps of one position and of two."""
    window, want = 3, attention(rotated(heads(Q, HEADS)), KEYS, VALUES, window=3)[:1]
    for room in (3, 4, 5):
        spare = room - window + 1
        kept = [n if n <= room else n - spare * -((room - n) // spare) for n in range(LENGTH + 1)]
        for steps in (1, 2, LENGTH):
            m = step_model(1, steps, room, LENGTH, local_window_size=window, sliding_window_cache=1)
            keys, values = numpy.full((1, GROUPS, room, WIDTH), 9, "f4"), numpy.full((1, GROUPS, room, WIDTH), 9, "f4")
            for at in range(0, LENGTH, steps):
                end, given = at + steps, part(at, at + steps, 1) | {"pk": keys, "pv": values, "length": numpy.array([at + steps - 1], "i4")}
                near(t.value(m, **given), want[:, at:end])
                keys, values = t.value(m, "nk", **given), t.value(m, "nv", **given)
                near(keys[:, :, : kept[end]], KEYS[:1, :, end - kept[end] : end])
                near(values[:, :, : kept[end]], VALUES[:1, :, end - kept[end] : end])


@case
def a_buffer_that_cannot_slide_is_refused(t):
    for batch, room, window in ((1, 3, 4), (2, 4, 4), (1, 4, -1), (1, 0, 4)):
        t.write(step_model(batch, 1, room, LENGTH, local_window_size=window, sliding_window_cache=1))
        assert "shorter than its window, of several sequences, or comes with a bias" in t.run("import", "m.onnx", status=1)


@case
def attention_of_several_heads_keeps_keys_and_values(t):
    k, v = floats(1, LENGTH, HEADS * WIDTH), floats(1, LENGTH, HEADS * WIDTH)
    inputs = [value(n, [1, 2, HEADS * WIDTH]) for n in "qkv"] + [value(n, [1, HEADS, 4, WIDTH]) for n in ("pk", "pv")]
    m = model(graph([node("MultiHeadAttention", ["q", "k", "v", "", "", "", "pk", "pv"], ["y", "nk", "nv"], domain="com.microsoft", num_heads=HEADS, unidirectional=1)],
                    inputs, [value(n, None) for n in ("y", "nk", "nv")]), domains=["com.microsoft"])
    given = {"q": Q[:1, 4:], "k": k[:, 4:], "v": v[:, 4:], "pk": heads(k, HEADS)[:, :, :4], "pv": heads(v, HEADS)[:, :, :4]}
    near(t.value(m, **given), attention(heads(Q[:1], HEADS), heads(k, HEADS), heads(v, HEADS))[:, 4:])
    near(t.value(m, "nv", **given), heads(v, HEADS))


@case
def attention_keeps_them_in_one_tensor(t):
    x, w = floats(1, LENGTH, 16), floats(16, 3 * HEADS * WIDTH) * 0.3
    m = model(graph([node("Attention", ["x", "w", "", "", "past"], ["y", "kept"], domain="com.microsoft", num_heads=HEADS, unidirectional=1)],
                    [value("x", [1, 2, 16]), value("past", [2, 1, HEADS, 4, WIDTH])], [value("y", None), value("kept", None)], [tensor("w", w)]), domains=["com.microsoft"])
    q, k, v = (heads(part, HEADS) for part in numpy.split(x @ w, 3, -1))
    given = {"x": x[:, 4:], "past": numpy.stack([k[:, :, :4], v[:, :, :4]])}
    near(t.value(m, **given), attention(q, k, v)[:, 4:])
    near(t.value(m, "kept", **given), numpy.stack([k, v]))


@case
def attention_of_bytes_keeps_them_too(t):
    x, w = DICE.integers(0, 256, (1, LENGTH, 16), "u1"), DICE.integers(-127, 128, (16, 3 * HEADS * WIDTH), "i1")
    bias, columns = floats(3 * HEADS * WIDTH), abs(floats(3 * HEADS * WIDTH)) / 999
    known = [tensor("w", w), tensor("b", bias), tensor("s", numpy.float32(0.03)), tensor("c", columns), tensor("z", numpy.uint8(101)), tensor("v", numpy.int8(-7))]
    m = model(graph([node("QAttention", ["x", "w", "b", "s", "c", "", "z", "v", "past"], ["y", "kept"], domain="com.microsoft", num_heads=HEADS, unidirectional=1)],
                    [value("x", [1, 2, 16], 2), value("past", [2, 1, HEADS, 4, WIDTH])], [value("y", None), value("kept", None)], known), domains=["com.microsoft"])
    sum = (x.astype("i8") - 101) @ (w.astype("i8") + 7)
    q, k, v = (heads(part, HEADS) for part in numpy.split((sum * (0.03 * columns) + bias).astype("f4"), 3, -1))
    given = {"x": x[:, 4:], "past": numpy.stack([k[:, :, :4], v[:, :, :4]])}
    near(t.value(m, **given), attention(q, k, v)[:, 4:])
    near(t.value(m, "kept", **given), numpy.stack([k, v]))


def codes(x, scale, bits):
    most = 1 << bits - 1
    return numpy.clip(numpy.rint(x / scale), -most, most - 1).astype("i4")


def packed(c, bits):
    return c.astype("i1") if bits == 8 else (c[..., ::2] + 8 | c[..., 1::2] + 8 << 4).astype("u1")


@case
def what_is_kept_as_integers(t):
    """Scores are made of the integers, those of new keys too; steps and the prompt agree."""
    for bits, kind in ((8, 3), (4, 2)):
        for of, scale in (("PER_TENSOR", numpy.float32([0.04 if bits == 8 else 0.5])), ("PER_CHANNEL", abs(floats(1, GROUPS, 1, WIDTH)) / 30 + 0.02)):
            ck, cv = (codes(x, scale, bits) for x in (KEYS, VALUES))
            want = attention(rotated(heads(Q, HEADS)), (ck * scale).astype("f4"), (cv * scale).astype("f4"))
            pk, pv = (packed(c, bits) for c in (ck, cv))
            for at, steps in ((0, LENGTH), (3, 1), (LENGTH - 1, 1)):
                total = LENGTH
                inputs = [value("q", [2, steps, HEADS * WIDTH])] + [value(n, [2, steps, GROUPS * WIDTH]) for n in "kv"]
                inputs += [value(n, [2, GROUPS, LENGTH, pk.shape[-1]], kind) for n in ("pk", "pv")] + [value("length", [2], 6)]
                known = [tensor("total", numpy.array(total, "i4")), tensor("cos", COS), tensor("sin", SIN), tensor("s", scale)]
                attributes = {"num_heads": HEADS, "kv_num_heads": GROUPS, "do_rotary": 1, "kv_cache_bit_width": bits, "k_quant_type": of, "v_quant_type": of}
                operands = ["q", "k", "v", "pk", "pv", "length", "total", "cos", "sin", "", "", "", "s", "s"]
                m = model(graph([node("GroupQueryAttention", operands, ["y", "nk", "nv"], domain="com.microsoft", **attributes)], inputs,
                                [value("y", None), value("nk", None, kind), value("nv", None, kind)], known), domains=["com.microsoft"])
                past = [numpy.where(numpy.arange(LENGTH)[:, None] < at, p, 0).astype(p.dtype) for p in (pk, pv)]
                given = part(at, at + steps) | {"pk": past[0], "pv": past[1], "length": numpy.full(2, at + steps - 1, "i4")}
                near(t.value(m, **given), want[:, at : at + steps])
                for name, p in (("nk", pk), ("nv", pv)):
                    found = t.value(m, name, **given)[:, :, : at + steps]
                    assert (found == p[:, :, : at + steps]).all(), f"{name}, {bits} bits"


@case
def integers_that_do_not_fit_are_refused(t):
    def said(past="pk", scale="s", kind=3, **attributes):
        inputs = [value("q", [1, 1, HEADS * WIDTH])] + [value(n, [1, 1, GROUPS * WIDTH]) for n in "kv"]
        inputs += [value(n, [1, GROUPS, LENGTH, WIDTH], kind) for n in ("pk", "pv")] + [value("length", [1], 6)]
        known = [tensor("total", numpy.array(LENGTH, "i4")), tensor("s", numpy.float32([0.5])), tensor("two", numpy.float32([1, 2]))]
        rows = {"num_heads": HEADS, "kv_num_heads": GROUPS, "kv_cache_bit_width": 8, "k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR"} | attributes
        operands = ["q", "k", "v", past, past and "pv", "length", "total", "", "", "", "", "", scale, scale]
        t.write(model(graph([node("GroupQueryAttention", operands, ["y"], domain="com.microsoft", **rows)], inputs, [value("y", None)], known), domains=["com.microsoft"]))
        return t.run("import", "m.onnx", status=1)

    assert "it quantises what it does not keep" in said(past="")
    assert "its scales do not fit its channels" in said(scale="two")
    assert "its scales do not fit what is to be quantised" in said(scale="")
    assert "its scales do not fit what is to be quantised" in said(v_quant_type="NONE")
    assert "it keeps keys in 3 bits" in said(kv_cache_bit_width=3)
    assert "what it keeps does not fit its keys" in said(kind=1)


@case
def lengths_that_shapes_depend_on_are_asked_for(t):
    inputs = [value(n, [1, 1, HEADS * WIDTH]) for n in "qkv"] + [value(n, [1, HEADS, LENGTH, WIDTH]) for n in ("pk", "pv")]
    m = model(graph([node("GroupQueryAttention", ["q", "k", "v", "pk", "pv", "length", "total"], ["y"], domain="com.microsoft", num_heads=HEADS, kv_num_heads=HEADS)],
                    [*inputs, value("length", [1], 6), value("total", [], 6)], [value("y", None)]), domains=["com.microsoft"])
    t.write(m)
    assert "'total' is known only when running" in t.run("import", "m.onnx", status=1)
    t.run("import", "m.onnx", "-D", f"total=[{LENGTH}]")


if __name__ == "__main__":
    main()
