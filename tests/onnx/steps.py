"""Steps of decoders of com.microsoft, beside NumPy: gated delta networks, causal convolutions of sequences of several
lengths, attention of one position.  contrib.py compares them with ONNX Runtime.

    steps.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, main
from single import HALF, file, floats, near, said, sigmoid


def given(operands, known=()):
    return {f"i{i}": v for i, v in enumerate(operands) if v is not None and i not in known}


def find(t, op, operands, results, known=(), **attributes):
    """All results"""
    m = file(op, operands, known, results, **attributes)
    return [t.value(m, r, **given(operands, known)) for r in results if r]


# Gated delta networks

BATCH, STEPS, KEY, VALUE = 2, 3, 4, 3


def recurrent(rule, q, k, v, decay, beta, state, scale):
    """[batch, steps, heads, width] of each, heads of values; the state is [batch, heads, value, key]."""
    ys = []
    for s in range(q.shape[1]):
        state = state * numpy.exp(decay[:, s, :, None]) if "gated" in rule else state
        new = v[:, s] - numpy.einsum("bhvk,bhk->bhv", state, k[:, s]) if "delta" in rule else v[:, s]
        new = new * beta[:, s, :, None] if "delta" in rule else new
        state = state + numpy.einsum("bhv,bhk->bhvk", new, k[:, s])
        ys.append(numpy.einsum("bhvk,bhk->bhv", state, q[:, s]) * scale)
    return numpy.stack(ys, 1), state


class Net:
    """Operands, each [batch, steps, ...], and what comes of them"""

    def __init__(self, rule="gated_delta", groups=2, heads=4, each=False):
        self.rule, self.shared = rule, heads // groups
        self.q, self.k, self.v = floats(BATCH, STEPS, groups, KEY), floats(BATCH, STEPS, groups, KEY), floats(BATCH, STEPS, heads, VALUE)
        self.decay = -abs(floats(BATCH, STEPS, heads, *([KEY] if each else []))) if "gated" in rule else None
        self.beta = abs(floats(BATCH, STEPS, heads)) if "delta" in rule else None
        self.state = floats(BATCH, heads, VALUE, KEY)

    def want(self, decay=None, beta=None, scale=KEY**-0.5, normed=False):
        decay = self.decay if decay is None else decay
        decay = decay if decay is None or decay.ndim == 4 else decay[..., None]
        q, k = (numpy.repeat(x / numpy.sqrt((x * x).sum(-1, keepdims=True)) if normed else x, self.shared, 2) for x in (self.q, self.k))
        return recurrent(self.rule, q, k, self.v, decay, self.beta if beta is None else beta, self.state, scale)

    def operands(self, flat=True, packed=False):
        heads = [self.q, self.k, self.v]
        if packed:
            heads = [numpy.concatenate([x.reshape(BATCH, STEPS, -1) for x in heads], -1), None, None]
        return [x if x is None or not flat else x.reshape(BATCH * STEPS, *x.shape[2:]) for x in [*heads, None, self.decay, self.beta]] + [self.state]


def check_net(t, net, operands, want, **attributes):
    y, state = find(t, "GatedDeltaNet", operands, ("y", "s"), update_rule=net.rule, **attributes)
    near(y, want[0].reshape(*operands[0].shape[: y.ndim - 2], *want[0].shape[2:]))
    near(state, want[1])


@case
def tokens_behind_each_other_or_in_a_batch(t):
    for rule in ("linear", "gated", "delta", "gated_delta"):
        for groups, heads, each in ((2, 4, False), (2, 2, True)):
            net = Net(rule, groups, heads, each)
            for flat in (True, False):
                check_net(t, net, net.operands(flat), net.want())
                check_net(t, net, net.operands(flat, packed=True), net.want())
            check_net(t, net, net.operands(), net.want(scale=0.3, normed=True), scale=0.3, qk_l2_norm=1)


@case
def what_lengths_say_of_sequences_that_are_alike(t):
    net, lengths = Net(), numpy.arange(BATCH + 1, dtype="i4") * STEPS
    operands = net.operands()
    operands[3], net.state = lengths, 0 * net.state
    y, state = find(t, "GatedDeltaNet", operands[:6], ("y", "s"), known=(3,))
    want = net.want()
    near(y, want[0].reshape(y.shape))
    near(state, want[1])


@case
def gates_of_decays_and_of_rates(t):
    for each in (False, True):
        net = Net(each=each)
        a, bias = floats(4), floats(4, KEY) if each else floats(4)
        wide = (slice(None), None) if each else slice(None)
        for word, decay in (("softplus", -numpy.exp(a)[wide] * numpy.log1p(numpy.exp(net.decay + bias))),
                            ("kda", -2.0 * sigmoid(numpy.exp(a)[wide] * (net.decay + bias)))):
            want = net.want(decay, sigmoid(net.beta))
            for kept in (bias, bias.reshape(-1)):
                check_net(t, net, [*net.operands(), a, kept], want, gate_activation=word, beta_activation="sigmoid", gate_lower_bound=-2.0)


@case
def halves_are_widened(t):
    net = Net()
    operands = [x.astype(HALF) if x is not None and i < 3 else x for i, x in enumerate(net.operands())]
    y = t.value(file("GatedDeltaNet", operands), **given(operands))
    assert y.dtype == HALF
    near(y, net.want()[0].reshape(y.shape), 2e-2)


@case
def nets_that_are_refused(t):
    net = Net()

    def refused(change=(), operands=None, known=(), results=("y",), **attributes):
        operands = net.operands() if operands is None else operands
        operands = operands + [None] * 4
        for i, v in dict(change).items():
            operands[i] = v
        return said(t, "GatedDeltaNet", operands, known, results=results, **attributes)

    lengths = numpy.array([0, 2, 6], "i4")
    assert "sequences that are not equally long" in refused({3: lengths}, known=(3,))
    assert "'i3' is known only when running" in refused({3: lengths})
    assert "by state_update_capacity" in refused({9: numpy.array([1, 1], "i4")}, results=("y", "s", "u"), state_update_capacity=2)
    assert "neither cu_seqlens nor a state" in refused({6: None})
    assert "its packed heads lie" in refused({6: None}, net.operands(packed=True))
    assert "its update_rule, plain, is unknown" in refused(update_rule="plain")
    assert "its gate_activation, tanh, is unknown" in refused(gate_activation="tanh")
    assert "its beta_activation, tanh, is unknown" in refused(beta_activation="tanh")
    assert "does not go with its update_rule" in refused({4: None})
    assert "does not go with its update_rule" in refused(update_rule="linear")
    assert "its a_log or its dt_bias does not fit" in refused(gate_activation="softplus")
    assert "its a_log or its dt_bias does not fit" in refused({7: floats(4), 8: floats(5)}, gate_activation="softplus")
    assert "its state does not fit its heads" in refused({6: floats(BATCH, 4, KEY, VALUE)})
    assert "its heads cannot be shared out" in refused({0: floats(6, 3, KEY), 1: floats(6, 3, KEY)})
    assert "its tokens cannot be shared out" in refused({6: floats(4, 4, VALUE, KEY)})


# Convolutions of sequences of several lengths

CHANNELS = 5


def convolved(x, w, bias, past, dilation):
    """[tokens, channels] of one sequence, behind [channels, positions]; and what is kept for the next"""
    taps = w.shape[2]
    x = numpy.concatenate([past.T, x])
    count = len(x) - (taps - 1) * dilation
    y = sum(x[j * dilation : j * dilation + count] * w[:, 0, j] for j in range(taps)) + bias
    return y, x[len(x) - (taps - 1) * dilation :].T


@case
def sequences_of_several_lengths(t):
    for ends in ([0, 7], [0, 1, 7], [0, 3, 4, 7]):
        for taps, dilation in ((1, 1), (3, 1), (3, 2)):
            batch = len(ends) - 1
            x, w, bias, past = floats(7, CHANNELS), floats(CHANNELS, 1, taps), floats(CHANNELS), floats(batch, CHANNELS, (taps - 1) * dilation)
            each = [convolved(x[ends[i] : ends[i + 1]], w, bias, past[i], dilation) for i in range(batch)]
            operands = [x, w, numpy.array(ends, "i4"), bias, past]
            y = numpy.concatenate([y for y, _ in each])
            found = find(t, "VarlenCausalConvWithState", operands, ("y", "s"), dilation=dilation)
            near(found[0], y)
            near(found[1], numpy.stack([s for _, s in each]))
            for word in ("silu", "swish"):
                found = find(t, "VarlenCausalConvWithState", operands, ("y",), known=(1, 2, 3), dilation=dilation, activation=word)
                near(found[0], y * sigmoid(y))
            near(find(t, "VarlenCausalConvWithState", [*operands[:3], None, past], ("y",), dilation=dilation)[0], y - bias)


@case
def first_tokens_of_each_sequence(t):
    x, w, ends, past = floats(7, CHANNELS), floats(CHANNELS, 1, 2), numpy.array([0, 2, 7], "i4"), floats(2, CHANNELS, 1)
    for counts in ([3, 1], [0, 9], [-1, 3]):
        want = numpy.zeros((2, 3, CHANNELS), "f4")
        for i, count in enumerate(counts):
            part = x[ends[i] : ends[i + 1]][: max(min(count, 3), 0)]
            want[i, : len(part)] = part
        operands = [x, w, ends, None, past, numpy.array(counts, "i4")]
        near(find(t, "VarlenCausalConvWithState", operands, ("y", "s", "u"), state_update_capacity=3)[2], want, 0)


@case
def convolutions_of_halves(t):
    x, w, past = floats(4, CHANNELS).astype(HALF), floats(CHANNELS, 1, 2).astype(HALF), floats(1, CHANNELS, 1).astype(HALF)
    y, state = find(t, "VarlenCausalConvWithState", [x, w, numpy.array([0, 4], "i4"), None, past], ("y", "s"))
    assert y.dtype == state.dtype == HALF
    near(y, convolved(x.astype("f4"), w.astype("f4"), 0, past[0].astype("f4"), 1)[0], 4e-3)


@case
def sequences_that_are_refused(t):
    good = [floats(7, CHANNELS), floats(CHANNELS, 1, 2), numpy.array([0, 3, 7], "i4"), None, floats(2, CHANNELS, 1)]

    def refused(operands=good, **rest):
        return said(t, "VarlenCausalConvWithState", operands, **rest)

    assert "its activation, gelu, is unknown" in refused(activation="gelu")
    assert "its dilation is 0" in refused(dilation=0)
    assert "its state does not fit its weights" in refused(dilation=2)
    assert "its capture_count does not go with" in refused(state_update_capacity=2)
    assert "its state_update_capacity is 9" in refused(state_update_capacity=9)
    assert "and state_update_capacity is 0" in refused(results=("y", "s", "u"))
    assert "its kernel_delta and previous_mask are for GPUs alone" in refused([*good, None, floats(7, 2, 5), floats(7, 1)])
    assert "its weights do not fit its tokens" in refused([good[0], floats(6, 1, 2), *good[2:]])


# Attention of one position

HEADS, WIDTH, BUFFER, PAST = 2, 4, 6, 3
FEATURES = HEADS * WIDTH


def heads(x):
    return x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)


def attended(q, keys, values, added=0, scale=WIDTH**-0.5):
    scores = heads(q) @ keys.transpose(0, 1, 3, 2) * scale + added
    e = numpy.exp(scores - scores.max(-1, keepdims=True))
    return ((e / e.sum(-1, keepdims=True)) @ values).transpose(0, 2, 1, 3).reshape(q.shape)


def step():
    """Queries, keys and values of a step; and buffers"""
    return [floats(BATCH, 1, FEATURES) for _ in range(3)], [floats(BATCH, HEADS, BUFFER, WIDTH) for _ in range(2)]


MASKED = "DecoderMaskedMultiHeadAttention"
ALL = ("y", "k", "v")


@case
def keys_and_values_in_a_buffer(t):
    (q, k, v), buffers = step()
    mask = numpy.array([[1, 0, 1, 1], [1, 1, 1, 1]], "i4")
    added, bias, at = floats(1, HEADS, 1, PAST + 1), floats(3 * FEATURES), numpy.array([PAST], "i4")
    for known in ((), (7,)):
        for m, a, b in ((None, None, None), (mask, None, bias), (None, added, None), (mask, added, bias)):
            shift = numpy.split(bias if b is not None else 0 * bias, 3)
            keys, values = (x.copy() for x in buffers)
            keys[:, :, PAST], values[:, :, PAST] = heads(k + shift[1])[:, :, 0], heads(v + shift[2])[:, :, 0]
            more = (0 if a is None else a) + (0 if m is None else numpy.where(m, 0, -9.0)[:, None, None])
            want = attended(q + shift[0], keys[:, :, : PAST + 1], values[:, :, : PAST + 1], more, 0.7)
            operands = [q, k, v, m, a, *buffers, at, None, None, b]
            found = find(t, MASKED, operands, ALL, known, num_heads=HEADS, past_present_share_buffer=1, scale=0.7, mask_filter_value=-9.0)
            for x, w in zip(found, (want, keys, values)):
                near(x, w)
    one = [*operands[:8], numpy.array([1], "i4"), numpy.zeros((BATCH, 1, BUFFER), "i4"), bias]  # of one beam there is one
    near(find(t, MASKED, one, ("y",), (8,), num_heads=HEADS, past_present_share_buffer=1, scale=0.7, mask_filter_value=-9.0)[0], want)


@case
def keys_and_values_that_grow(t):
    (q, k, v), past = step()
    keys, values = numpy.concatenate([past[0], heads(k)], 2), numpy.concatenate([past[1], heads(v)], 2)
    for x, w in zip(find(t, MASKED, [q, k, v, None, None, *past], ALL, num_heads=HEADS), (attended(q, keys, values), keys, values)):
        near(x, w)


@case
def keys_and_values_of_an_encoder(t):
    (q, _, _), kept = step()
    mask, bias = numpy.ones((BATCH, BUFFER), "i4"), floats(3 * FEATURES)
    mask[0, 2:4] = 0
    want = attended(q + bias[:FEATURES], *kept, numpy.where(mask, 0, -10000.0)[:, None, None])
    near(find(t, MASKED, [q, *kept, mask, *[None] * 6, bias], ("y",), num_heads=HEADS)[0], want)


@case
def steps_that_are_refused(t):
    (q, k, v), buffers = step()
    at = numpy.array([PAST], "i4")

    def refused(change=(), known=(), results=("y",), **attributes):
        operands = [q, k, v, None, None, *buffers, at, None, None, None]
        for i, x in dict(change).items():
            operands[i] = x
        return said(t, MASKED, operands, known, results=results, **{"num_heads": HEADS, "past_present_share_buffer": 1} | attributes)

    assert "its queries, keys and values are packed" in refused({1: None, 2: None})
    assert "queries of other than one position" in refused({0: floats(BATCH, 2, FEATURES)})
    assert "it gives its scores, by output_qk" in refused(results=(*ALL, "qk"), output_qk=1)
    beams = {8: numpy.array([2], "i4"), 9: numpy.zeros((1, 2, BUFFER), "i4")}
    assert "its cache_indirection is of several beams" in refused(beams, known=(8,))
    assert "its past_sequence_length does not fit its buffer" in refused({7: numpy.array([BUFFER], "i4")}, known=(7,))
    assert "it has no past_sequence_length" in refused({7: None})
    assert "shared out to num_heads, 3" in refused(num_heads=3)
    assert "its keys or values do not fit its buffers" in refused({5: floats(BATCH, HEADS, BUFFER, WIDTH + 1)})
    assert "its bias does not fit its operands" in refused({10: floats(5)})
    assert "that it has from elsewhere" in refused({1: buffers[0], 2: buffers[1]})


if __name__ == "__main__":
    main()
