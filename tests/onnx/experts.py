"""Mixtures of experts (com.microsoft), beside NumPy; contrib.py compares them with ONNX Runtime.

    experts.py --nnc NNC        reports as TAP
"""

import numpy

from harness import case, main
from write import graph, model, node, tensor, value

DICE = numpy.random.default_rng(8)
WIDTH, INNER = 8, 6


def floats(*shape):
    return DICE.normal(size=shape).astype("f4")


def softmax(x):
    e = numpy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def file(op, x, router, weights, **attributes):
    """The weights are constants, the tokens and what their router says are not."""
    names = [f"w{i}" if w is not None else "" for i, w in enumerate(weights)]
    known = [tensor(n, w) for n, w in zip(names, weights) if n]
    return model(graph([node(op, ["x", "router", *names], ["y"], domain="com.microsoft", **attributes)],
                       [value("x", x.shape), value("router", router.shape)], [value("y", None)], known), domains=["com.microsoft"])


def mixed(x, router, chosen, expert, shares=None, normalised=False):
    """What experts give, `expert(number, token)`, by their shares"""
    out = numpy.zeros_like(x)
    shares = softmax(router) if shares is None else shares
    for t, token in enumerate(x):
        best = numpy.argsort(-router[t], kind="stable")[:chosen]
        weight = shares[t, best] / (shares[t, best].sum() if normalised else 1)
        out[t] = sum(w * expert(e, token) for e, w in zip(best, weight))
    return out


def near(found, want):
    numpy.testing.assert_allclose(found, want, 3e-5, 3e-5)


def weights_of(experts, columns=INNER, third=False):
    return [floats(experts, columns, WIDTH), floats(experts, columns), floats(experts, WIDTH, INNER), floats(experts, WIDTH),
            *([floats(experts, INNER, WIDTH), floats(experts, INNER)] if third else [])]


GATES = {0: lambda v: (v, None), 1: lambda v: (v[::2], v[1::2]), 2: lambda v: (v[:INNER], v[INNER:])}


@case
def gates_lie_in_three_ways(t):
    for tokens, experts in ((5, 4), (1, 12)):
        x, router = floats(tokens, WIDTH), floats(tokens, experts)
        for fusion, halves in GATES.items():
            w = weights_of(experts, 2 * INNER if fusion else INNER, third=not fusion)

            def expert(e, token):
                gate, line = halves(w[0][e] @ token + w[1][e])
                line = w[4][e] @ token + w[5][e] if line is None else line
                gate, line = numpy.minimum(gate, 0.7), numpy.clip(line, -0.7, 0.7)
                return w[2][e] @ (gate * sigmoid(1.5 * gate) * (line + 0.25)) + w[3][e]

            m = file("MoE", x, router, w, k=2, activation_type="swiglu", swiglu_fusion=fusion, activation_alpha=1.5, activation_beta=0.25, swiglu_limit=0.7)
            near(t.value(m, x=x, router=router), mixed(x, router, 2, expert))


@case
def limits_behind_the_gate(t):
    x, router, w = floats(3, WIDTH), floats(3, 4), weights_of(4, 2 * INNER)

    def expert(e, token):
        gate, line = GATES[1](w[0][e] @ token + w[1][e])
        return w[2][e] @ (numpy.minimum(gate * sigmoid(gate), 0.5) * numpy.clip(line, -0.5, 0.5)) + w[3][e]

    m = file("MoE", x, router, w, k=1, activation_type="swiglu", swiglu_fusion=1, swiglu_limit=0.5, swiglu_limit_after_activation=1)
    near(t.value(m, x=x, router=router), mixed(x, router, 1, expert))


@case
def activations(t):
    kinds = {"relu2": lambda v: numpy.maximum(v, 0) ** 2, "silu": lambda v: v * sigmoid(v), "identity": lambda v: v,
             "gelu": lambda v: v / 2 * (1 + numpy.tanh((2 / numpy.pi) ** 0.5 * (v + 0.044715 * v**3)))}
    x, router, w = floats(3, WIDTH), floats(3, 4), weights_of(4)
    for kind, act in kinds.items():
        m = file("MoE", x, router, w, k=3, activation_type=kind, normalize_routing_weights=1)
        want = mixed(x, router, 3, lambda e, token: w[2][e] @ act(w[0][e] @ token + w[1][e]) + w[3][e], normalised=True)
        near(t.value(m, x=x, router=router), want)
    wide = weights_of(4, 2 * INNER)

    def geglu(e, token):
        gate, line = GATES[2](wide[0][e] @ token + wide[1][e])
        return wide[2][e] @ (kinds["gelu"](gate) * line) + wide[3][e]

    m = file("MoE", x, router, wide, k=2, activation_type="geglu", swiglu_fusion=2)
    near(t.value(m, x=x, router=router), mixed(x, router, 2, geglu))


@case
def experts_that_are_not_chosen_do_not_count(t):
    """Not even where they come to no number."""
    for tokens, experts in ((4, 3), (1, 9)):
        x, w = floats(tokens, WIDTH), weights_of(experts)
        router = numpy.repeat(numpy.arange(experts, dtype="f4")[None], tokens, 0)
        w[2][0] = numpy.inf
        want = mixed(x, router, 2, lambda e, token: w[2][e] @ numpy.maximum(w[0][e] @ token + w[1][e], 0) + w[3][e])
        near(t.value(file("MoE", x, router, w, k=2), x=x, router=router), want)


@case
def weights_of_few_experts_are_gathered(t):
    x, router, w = floats(1, WIDTH), floats(1, 16), weights_of(16)
    assert "gather(" in "\n".join(t.text(file("MoE", x, router, w, k=2)))
    x, router, w = floats(9, WIDTH), floats(9, 16), weights_of(16)
    assert "gather(" not in "\n".join(t.text(file("MoE", x, router, w, k=2)))


@case
def integers_are_widened(t):
    """In bytes or halves of them, with scales for columns or blocks of the depth, and zero points or none."""
    for bits in (8, 4):
        for block in (0, 16):
            for pointed in (False, True):
                for tokens, experts in ((3, 4), (1, 8)):
                    check_integers(t, bits, block, pointed, tokens, experts)


def packed(codes, bits):
    if bits == 4 and codes.shape[-1] % 2:
        codes = numpy.concatenate([codes, numpy.zeros((*codes.shape[:-1], 1), codes.dtype)], -1)
    return (codes if bits == 8 else codes[..., ::2] | codes[..., 1::2] << 4).astype("u1")


def check_integers(t, bits, block, pointed, tokens, experts):
    x, router = floats(tokens, 32), floats(tokens, experts)
    shapes = [(experts, 15, 32), (experts, 32, 15)] if not block else [(experts, 16, 32), (experts, 32, 16)]
    if bits == 4 and not block:
        shapes = [(experts, 14, 32), (experts, 32, 14)]
    codes = [DICE.integers(0, 1 << bits, s) for s in shapes]
    parts = [(*s[:2], s[2] // block) if block else s[:2] for s in shapes]
    scales = [(abs(floats(*p)) + 0.1) / (1 << bits) for p in parts]
    zeros = [DICE.integers(0, 1 << bits, p) if pointed else numpy.full(p, 1 << bits - 1) for p in parts]
    spread = [lambda p: numpy.repeat(p, block, -1) if block else p[..., None]] * 2
    w = [((c - s(z)) * s(q)).astype("f4") for c, s, z, q in zip(codes, spread, zeros, scales)]
    biases = [floats(*s[:2]) for s in shapes]
    operands = [packed(codes[0], bits), scales[0], biases[0], packed(codes[1], bits), scales[1], biases[1]]
    operands += [None] * 3 + [packed(z, bits) for z in zeros] if pointed else []
    m = file("QMoE", x, router, operands, k=2, expert_weight_bits=bits, activation_type="silu", **({"block_size": block} if block else {}))

    def expert(e, token):
        inner = w[0][e] @ token + biases[0][e]
        return w[1][e] @ (inner * sigmoid(inner)) + biases[1][e]

    near(t.value(m, x=x, router=router), mixed(x, router, 2, expert, normalised=True))


@case
def what_does_not_fit_is_refused(t):
    x, router = floats(3, WIDTH), floats(3, 4)

    def said(op="MoE", tokens=x, scores=router, weights=None, **attributes):
        t.write(file(op, tokens, scores, weights_of(4) if weights is None else weights, **attributes))
        return t.run("import", "m.onnx", status=1)

    assert "its router does not fit its tokens" in said(scores=floats(2, 4))
    assert "its router does not fit its tokens" in said(k=5)
    assert "its router does not fit its tokens" in said(k=0)
    assert "the weights of fc1 do not fit" in said(scores=floats(3, 5))
    assert "the weights of fc2 do not fit" in said(weights=[*weights_of(4)[:2], floats(4, WIDTH, 5)])
    assert "it mixes sparsely" in said(use_sparse_mixer=1)
    assert "its activation 'tanh' is not known" in said(activation_type="tanh")
    assert "its gate is neither a half of fc1 nor fc1 beside fc3" in said(activation_type="swiglu")
    assert "its gate is neither a half of fc1 nor fc1 beside fc3" in said(weights=weights_of(4, third=True))
    bytes_ = [numpy.zeros((4, 6, 4), "u1"), floats(4, 6), None, numpy.zeros((4, 8, 3), "u1"), floats(4, 8)]
    assert "its weights are no plain integers" in said("QMoE", weights=bytes_, quant_type="fp8")
    assert "its weights are no plain integers" in said("QMoE", weights=bytes_, weights_prepacked=1)
    assert "the weights of fc1 do not fit" in said("QMoE", weights=bytes_, expert_weight_bits=8)
    assert "the weights of fc1 do not fit" in said("QMoE", weights=bytes_, expert_weight_bits=3)
    assert "the weights of fc1 do not fit" in said("QMoE", weights=bytes_, block_size=3)
    assert "its scales are those of other weights" in said("QMoE", weights=bytes_, block_size=-1)


if __name__ == "__main__":
    main()
