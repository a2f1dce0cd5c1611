"""States that go from run to run: of causal convolutions and of linear attention.  What NumPy computes for all positions
at once, steps find one by one.

    states.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, main
from write import graph, model, node, tensor, value

DICE = numpy.random.default_rng(7)


def floats(*shape):
    return DICE.normal(size=shape).astype("f4")


def near(found, want):
    assert found.shape == want.shape, f"{found.shape}, not {want.shape}"
    assert numpy.allclose(found, want, rtol=1e-5, atol=1e-5), abs(found - want).max()


# Convolutions

BATCH, CHANNELS, LENGTH, TAPS = 2, 6, 7, 3
X, W, B = floats(BATCH, CHANNELS, LENGTH), floats(CHANNELS, 1, TAPS), floats(CHANNELS)


def convolved(x, past, dilation):
    """Position t is of t, t - dilation and so on, of what came before, too."""
    x = numpy.concatenate([past, x], -1)
    count = x.shape[-1] - (TAPS - 1) * dilation
    y = sum(x[..., j * dilation : j * dilation + count] * W[:, 0, j : j + 1] for j in range(TAPS))
    return y + B[:, None]


def convolution(length, state=None, dims=(CHANNELS,), taps=TAPS, **attributes):
    last = attributes.get("channels_last", 0)
    x = [BATCH, length, *dims] if last else [BATCH, *dims, length]
    weights = [tensor("w", W[:, :, :taps]), tensor("b", B)]
    inputs = [value("x", x)] + ([value("past", list(state))] if state else [])
    n = node("CausalConvWithState", ["x", "w", "b", "past" if state else ""], ["y", "state"], domain="com.microsoft", **attributes)
    return model(graph([n], inputs, [value("y", None), value("state", None)], weights), domains=["com.microsoft"])


@case
def a_convolution_goes_on_where_it_stopped(t):
    for dilation in (1, 2):
        before = (TAPS - 1) * dilation
        state = numpy.zeros((BATCH, CHANNELS, before), "f4")
        want = convolved(X, state, dilation)
        near(t.value(convolution(LENGTH, dilation=dilation), x=X), want)
        m, at = {n: convolution(n, state.shape, dilation=dilation) for n in (1, 3)}, 0
        for steps in (3, 1, 3):
            given = {"x": X[..., at : at + steps], "past": state}
            near(t.value(m[steps], **given), want[..., at : at + steps])
            state = t.value(m[steps], "state", **given)
            at += steps
        near(state, X[..., LENGTH - before :])


@case
def a_convolution_by_swish_of_channels_that_come_last(t):
    past = floats(BATCH, CHANNELS, TAPS - 1)
    y = convolved(X, past, 1)
    want = (y / (1 + numpy.exp(-y))).transpose(0, 2, 1)
    for dims in ((CHANNELS,), (2, 3)):
        for word in ("silu", "swish"):
            m = convolution(LENGTH, (BATCH, TAPS - 1, *dims), dims, channels_last=1, activation=word)
            given = {"x": X.transpose(0, 2, 1).reshape(BATCH, LENGTH, *dims), "past": past.transpose(0, 2, 1).reshape(BATCH, TAPS - 1, *dims)}
            near(t.value(m, **given), want.reshape(BATCH, LENGTH, *dims))
            near(t.value(m, "state", **given), X[..., 1 - TAPS :].transpose(0, 2, 1).reshape(BATCH, TAPS - 1, *dims))


@case
def states_of_the_last_positions(t):
    """Of a window of 4: those before the first of this run are 0."""
    past = floats(4, BATCH, CHANNELS, TAPS - 1)
    for length in (2, LENGTH):
        m = convolution(length, past.shape, state_window=4)
        given, all_of = {"x": X[..., :length], "past": past}, numpy.concatenate([past[3], X[..., :length]], -1)
        near(t.value(m, **given), convolved(X[..., :length], past[3], 1))
        ends = [length - 3 + j for j in range(4)]
        near(t.value(m, "state", **given), numpy.stack([all_of[..., e : e + TAPS - 1] if e > 0 else 0 * past[0] for e in ends]))


@case
def a_convolution_of_one_tap_has_nothing_to_keep(t):
    near(t.value(convolution(LENGTH, taps=1), x=X), X * W[:, 0, :1] + B[:, None])


@case
def convolutions_that_are_refused(t):
    def said(**arguments):
        t.write(convolution(LENGTH, **arguments))
        return t.run("import", "m.onnx", status=1)

    assert "its state does not fit its weights" in said(state=(BATCH, CHANNELS, 3))
    assert "its state does not fit its weights" in said(state=(BATCH, TAPS - 1, CHANNELS))
    assert "its state does not fit its weights" in said(state=(BATCH, CHANNELS, TAPS - 1), dilation=2**31 - 1)
    assert "its activation is unknown" in said(activation="gelu")
    assert "its positions have several dimensions" in said(ndim=2)
    assert "its attribute state_length is for GPUs alone" in said(state_length=4)
    assert "its weights do not fit its operand" in said(dims=(CHANNELS + 1,))


# Attention

KEY, VALUE, STEPS = 4, 3, 5


def recurrent(rule, q, k, v, state, decay, beta, scale):
    """[batch, steps, heads, width] of each; heads of queries and of keys share those of the other in order."""
    ys, count = [], max(q.shape[2], k.shape[2])
    for s in range(q.shape[1]):
        left = state * numpy.exp(decay[:, s, :, :, None]) if "gated" in rule else state
        added = v[:, s] - numpy.einsum("bhkv,bhk->bhv", left, k[:, s]) if "delta" in rule else v[:, s]
        if "delta" in rule:
            added = added * beta[:, s, :, None]
        state = left + numpy.einsum("bhk,bhv->bhkv", k[:, s], added)
        queries, states = (numpy.repeat(x, count // x.shape[1], 1) for x in (q[:, s], state))
        ys.append(numpy.einsum("bhk,bhkv->bhv", queries, states) * scale)
    return numpy.stack(ys, 1).reshape(*q.shape[:2], -1), state


def linear(rule, q_heads, heads, steps, decays, betas, known_state=True, k_heads=None, **attributes):
    window = [attributes["state_window"]] if "state_window" in attributes else []
    shape = {"q": q_heads * KEY, "k": (k_heads or heads) * KEY, "v": heads * VALUE} | ({"decay": decays} if "gated" in rule else {}) | ({"beta": betas} if "delta" in rule else {})
    inputs = [value(n, [BATCH, steps, d]) for n, d in shape.items()] + ([value("past", window + [BATCH, heads, KEY, VALUE])] if known_state else [])
    operands = ["q", "k", "v", "past" if known_state else "", "decay" if "gated" in rule else "", "beta" if "delta" in rule else ""]
    rows = {"q_num_heads": q_heads, "kv_num_heads": heads, "update_rule": rule} | attributes
    return model(graph([node("LinearAttention", operands, ["y", "state"], domain="com.microsoft", **rows)], inputs,
                       [value("y", None), value("state", None)]), domains=["com.microsoft"])


@case
def linear_attention_by_each_rule(t):
    for rule in ("linear", "gated", "delta", "gated_delta"):
        for q_heads, heads, per_key, betas in ((2, 2, False, 2), (4, 2, True, 2), (2, 4, True, 1), (1, 3, False, 3)):
            q, k, v = floats(BATCH, STEPS, q_heads, KEY), floats(BATCH, STEPS, heads, KEY), floats(BATCH, STEPS, heads, VALUE)
            past, decay, beta = floats(BATCH, heads, KEY, VALUE), -abs(floats(BATCH, STEPS, heads, KEY if per_key else 1)), abs(floats(BATCH, STEPS, betas))
            want, state = recurrent(rule, q, k, v, past, decay, beta, KEY**-0.5)
            m = linear(rule, q_heads, heads, STEPS, heads * (KEY if per_key else 1), betas)
            given = {"q": q, "k": k, "v": v} | ({"decay": decay} if "gated" in rule else {}) | ({"beta": beta} if "delta" in rule else {})
            given = {n: x.reshape(BATCH, STEPS, -1) for n, x in given.items()}
            near(t.value(m, past=past, **given), want)
            near(t.value(m, "state", past=past, **given), state)


@case
def values_may_share_a_key(t):
    q, k, v, past = floats(BATCH, STEPS, 2, KEY), floats(BATCH, STEPS, 2, KEY), floats(BATCH, STEPS, 4, VALUE), floats(BATCH, 4, KEY, VALUE)
    want, state = recurrent("linear", q, numpy.repeat(k, 2, 2), v, past, None, None, KEY**-0.5)
    m = linear("linear", 2, 4, STEPS, 0, 0, k_heads=2)
    given = {"q": q.reshape(BATCH, STEPS, -1), "k": k.reshape(BATCH, STEPS, -1), "v": v.reshape(BATCH, STEPS, -1), "past": past}
    near(t.value(m, **given), want)
    near(t.value(m, "state", **given), state)


@case
def a_step_without_a_state_begins_with_zeros(t):
    q, k, v = floats(BATCH, 1, 2, KEY), floats(BATCH, 1, 2, KEY), floats(BATCH, 1, 2, VALUE)
    want, _ = recurrent("linear", q, k, v, numpy.zeros((BATCH, 2, KEY, VALUE), "f4"), None, None, 0.25)
    near(t.value(linear("linear", 2, 2, 1, 0, 0, known_state=False, scale=0.25), q=q.reshape(BATCH, 1, -1), k=k.reshape(BATCH, 1, -1), v=v.reshape(BATCH, 1, -1)), want)


@case
def states_of_the_last_steps(t):
    """Of a window of 3: those before the first of this run are 0."""
    for steps in (1, 3, STEPS):
        q, k, v, past = floats(BATCH, steps, 2, KEY), floats(BATCH, steps, 2, KEY), floats(BATCH, steps, 2, VALUE), floats(3, BATCH, 2, KEY, VALUE)
        ends = [recurrent("linear", q[:, :s], k[:, :s], v[:, :s], past[2], None, None, KEY**-0.5) for s in range(1, steps + 1)]
        states = [numpy.zeros_like(past[0])] * 3 + [state for _, state in ends]
        m = linear("linear", 2, 2, steps, 0, 0, state_window=3)
        given = {n: x.reshape(BATCH, steps, -1) for n, x in (("q", q), ("k", k), ("v", v))} | {"past": past}
        near(t.value(m, **given), ends[-1][0])
        near(t.value(m, "state", **given), numpy.stack(states[-3:]))


@case
def attention_that_is_refused(t):
    def said(*arguments, **attributes):
        t.write(linear(*arguments, **attributes))
        return t.run("import", "m.onnx", status=1)

    assert "its update rule is unknown" in said("gated_linear", 2, 2, 1, 2, 2)
    assert "its heads cannot be shared out" in said("linear", 3, 2, 1, 0, 0)
    assert "its operands do not fit each other" in said("delta", 2, 2, 1, 0, 3)
    assert "its operands do not fit each other" in said("linear", 2, 4, 1, 0, 0, k_heads=3)
    assert "its state_window is 9" in said("linear", 2, 2, 1, 0, 0, state_window=9)
    assert "its state_window is -1" in said("linear", 2, 2, 1, 0, 0, known_state=False, state_window=-1)


# Gates


def gated(op, shapes, results=("y",), kind=1, wide=(), **attributes):
    inputs = [value(n, s, 1 if n in wide else kind) for n, s in shapes.items()]
    return model(graph([node(op, list(shapes), list(results), domain="com.microsoft", **attributes)], inputs, [value(r, None, kind) for r in results]),
                 domains=["com.microsoft"])


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


@case
def decays_and_rates_of_updates(t):
    a, bias, scale, b = floats(2, 3, 4), floats(4), -abs(floats(4)), floats(2, 3, 4)
    shapes, given = {"a": [2, 3, 4], "bias": [4], "scale": [4], "b": [2, 3, 4]}, {"a": a, "bias": bias, "scale": scale, "b": b}
    m = gated("LinearAttentionGate", shapes, ("y", "beta"))
    near(t.value(m, **given), scale * numpy.log1p(numpy.exp(a + bias)))
    near(t.value(m, "beta", **given), sigmoid(b))
    half = gated("LinearAttentionGate", shapes, ("y", "beta"), kind=10, wide=("bias", "scale"))
    found = t.value(half, **given | {"a": a.astype("f2"), "b": b.astype("f2")})
    assert found.dtype == numpy.float16 and abs(found - scale * numpy.log1p(numpy.exp(a + bias))).max() < 4e-3
    t.write(gated("LinearAttentionGate", shapes | {"scale": [3]}))
    assert "its bias or scale has not one element for each head" in t.run("import", "m.onnx", status=1)
    t.write(gated("LinearAttentionGate", shapes | {"b": [2, 3, 1]}, ("y", "beta")))
    assert "its update rates do not fit its decays" in t.run("import", "m.onnx", status=1)


@case
def a_norm_with_a_gate(t):
    x, scale, gate = floats(2, 3, 8), floats(4), floats(2, 3, 8)
    for each, epsilon in ((4, 1e-5), (4, 0.2)):
        parts = x.reshape(2, 3, -1, each)
        normed = (parts / numpy.sqrt((parts * parts).mean(-1, keepdims=True) + epsilon) * scale).reshape(x.shape)
        for word, by in (("silu", gate * sigmoid(gate)), ("swish", gate * sigmoid(gate)), ("sigmoid", sigmoid(gate))):
            m = gated("GatedRMSNorm", {"x": [2, 3, 8], "scale": [each], "gate": [2, 3, 8]}, activation=word, epsilon=epsilon)
            near(t.value(m, x=x, scale=scale, gate=gate), normed * by)

    def said(each=4, gate=8, **attributes):
        t.write(gated("GatedRMSNorm", {"x": [2, 3, 8], "scale": [each], "gate": [2, 3, gate]}, **attributes))
        return t.run("import", "m.onnx", status=1)

    assert "its scale or its gate does not fit its operand" in said(each=3) and "does not fit" in said(gate=4)
    assert "its activation is unknown" in said(activation="tanh")


@case
def a_sum_with_a_gate(t):
    x, y, gate = floats(2, 3, 5), floats(2, 3, 5), floats(2, 3, 1)
    near(t.value(gated("GatedAdd", {"x": [2, 3, 5], "d": [2, 3, 5], "gate": [2, 3, 1]}), x=x, d=y, gate=gate), x + y * gate)
    t.write(gated("GatedAdd", {"x": [2, 3, 5], "d": [2, 3, 5], "gate": [1, 3, 1]}))
    assert "its operands do not fit each other" in t.run("import", "m.onnx", status=1)
    t.write(gated("GatedAdd", {"x": [2, 3, 5], "d": [2, 3, 5], "gate": [2, 3, 7], "weight": [7, 1]}))
    assert "for GPUs alone" in t.run("import", "m.onnx", status=1)


if __name__ == "__main__":
    main()
