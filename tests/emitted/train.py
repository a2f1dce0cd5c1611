#!/usr/bin/python3
"""`nnc train` against the same training in NumPy, interrupted and resumed, on terminals of many widths.

    train.py --nnc build/nnc --terminal tests/lit/bin/on-terminal

Orders of samples and keys are drawn with Philox in NumPy.  Speaks TAP.
"""

import argparse
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "conform"))
from generators import blocks, fold_in

ORDER, TRAIN, VALID = range(3)  # what keys are drawn for

LINEAR = """nnc 1
use "nn"
const B = 4
graph step(x: f64[B, 3], label: f64[B]) -> (loss: f64[]) {
    param w: f64[3] = 0.5
    param b: f64[] = -0.25
    e = reduce_sum(x * w, axes = 1) + b - label
    loss = mean(e * e)
    minimize(loss, with = momentum(rate = 0.05))
}
graph run(x: f64[3]) -> (y: f64[]) {
    param w: f64[3] = 0.5
    param b: f64[] = -0.25
    y = reduce_sum(x * w) + b
}
"""

SPIRALS = """nnc 1
use "nn"
const B = 16
fn net(x) -> (y) { y = dense@out(tanh(dense@hidden(x, 24)), 2) }
graph step(point: f32[B, 2], label: i64[B], key: i64[]) -> (loss: f32[], logits: f32[B, 2]) {
    logits = dropout(net@net(point), 0.1, key)
    loss = mean(cross_entropy(logits, label))
    minimize(loss, with = adam(rate = cosine(0.01, steps = 3000)))
}
graph classify(point: f32[7, 2]) -> (probability: f32[7, 2]) { probability = softmax(net@net(point)) }
"""


class Work:
    """A folder with a model in it, and nnc."""
    def __init__(self, nnc, terminal, folder, text):
        self.nnc, self.terminal, self.folder = nnc, terminal, folder
        (folder / "model.nnc").write_text(text)

    def data(self, name, **arrays):
        np.savez(self.folder / name, **arrays)

    def words(self, *words):
        return [str(self.nnc), "train", "model.nnc", *(str(w) for w in words)]

    def train(self, *words, status=0):
        done = subprocess.run(self.words(*words), cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == status, f"{words}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def bytes(self, name):
        return (self.folder / name).read_bytes()

    def tensors(self, name):
        raw = self.bytes(name)
        begin = 8 + int.from_bytes(raw[:8], "little")
        dtypes = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4"}
        return {key: np.frombuffer(raw[begin + e["data_offsets"][0]:begin + e["data_offsets"][1]],
                                   dtypes[e["dtype"]]).reshape(e["shape"])
                for key, e in json.loads(raw[8:begin]).items() if key != "__metadata__"}


def scores(text, name):
    """The values of a score in the lines of epochs; of validation with `validation ` before it."""
    lines = [line for line in text.splitlines() if line.startswith("epoch")]
    return [float(re.search(rf"{name} (-?[\d.e+-]+|nan)", line)[1]) for line in lines]


def close(what, ours, theirs, within):
    assert np.allclose(ours, theirs, rtol=within, atol=within), f"{what}: {ours}, not {theirs}"


def key_of(seed, what, number):
    return int(fold_in(fold_in(seed, what), number))


def order_of(count, key):
    """Fisher and Yates, from the end."""
    word = blocks(key & (2**64 - 1), np.arange(count, dtype=np.uint64), 0)
    share = ((word[:, 0] | word[:, 1] << np.uint64(32)) >> np.uint64(11)).astype(float) * 2.0**-53
    number = np.arange(count)
    for i in range(count - 1, 0, -1):
        j = int(share[i] * (i + 1))
        number[i], number[j] = number[j], number[i]
    return number


def points(count, seed):
    chance = np.random.default_rng(seed)
    label, turn = chance.integers(0, 2, count), np.sqrt(chance.random(count)) * 7
    place = turn[:, None] / 7 * np.stack([np.cos(turn + np.pi * label), np.sin(turn + np.pi * label)], axis=1)
    return {"point": (place + chance.normal(0, 0.01, place.shape)).astype("f4"), "label": label}


# ---- What is tested: each takes a function that makes a Work ----

def as_in_numpy(make):
    """Shuffled or not, the last samples left over: weights, moments and losses."""
    work, chance = make(LINEAR), np.random.default_rng(1)
    x = chance.normal(size=(30, 3))
    label = x @ [1.0, -2.0, 0.5] + 0.25
    work.data("d.npz", x=x, label=label)
    for words, seed in ((["--in-order"], None), ([], 0), (["--seed", -3], -3)):
        w, b, vw, vb, losses = np.full(3, 0.5), -0.25, np.zeros(3), 0.0, []
        for epoch in range(3):
            number, total = np.arange(30) if seed is None else order_of(30, key_of(seed, ORDER, epoch)), 0
            for at in range(0, 28, 4):
                xs, ys = x[number[at:at + 4]], label[number[at:at + 4]]
                e = xs @ w + b - ys
                vw, vb = 0.9 * vw + 2 * xs.T @ e / 4, 0.9 * vb + 2 * e.mean()
                w, b, total = w - 0.05 * vw, b - 0.05 * vb, total + np.mean(e * e)
            losses.append(total / 7)
        text = work.train("--data", "d.npz", "--epochs", 3, "--save", "c", "-o", "w", *words)
        close(f"losses {words}", scores(text, "loss"), losses, 1e-3)
        close(f"w {words}", work.tensors("w")["w"], w, 1e-12)
        close(f"b {words}", work.tensors("w")["b"], b, 1e-12)
        assert sorted(work.tensors("w")) == ["b", "w"], "a moment is no weight"
        close("moment", work.tensors("c")["momentum.w.v"], vw, 1e-12)


def given_numbers(make):
    """What inputs without an axis of samples are given: counts, keys, and numbers of the file."""
    work = make("""nnc 1
graph step(x: f64[2], epoch: i32[], step: f32[], seed: i64[], rate: f64[]) -> (loss: f64[]) {
    param w: f64[] = 0.0
    state epochs: i32[6] = 0
    state steps: f32[6] = 0.0
    state keys: i64[6] = 0
    state t: i64[] = 0
    epochs <- dynamic_update(epochs, [t], reshape(epoch, shape = [1]))
    steps <- dynamic_update(steps, [t], reshape(step, shape = [1]))
    keys <- dynamic_update(keys, [t], reshape(seed, shape = [1]))
    t <- t + 1
    w <- w + rate * reduce_sum(x)
    loss = w * 1.0
}
""")
    work.data("d.npz", x=np.arange(5.0), rate=np.float64(0.5))
    for seed in (0, 12):
        work.train("--data", "d.npz", "--epochs", 3, "--save", "c", "--seed", seed)
        kept = work.tensors("c")
        assert kept["epochs"].tolist() == [0, 0, 1, 1, 2, 2], kept["epochs"]
        assert kept["steps"].tolist() == [0, 1, 2, 3, 4, 5], kept["steps"]
        assert kept["keys"].tolist() == [key_of(seed, TRAIN, i) for i in range(6)], kept["keys"]
        close("w", kept["w"], 0.5 * sum(order_of(5, key_of(seed, ORDER, e))[:4].sum() for e in range(3)), 1e-12)


def one_at_a_time(make):
    """An input without an axis of samples is given one of them."""
    work = make("""nnc 1
graph step(x: f32[2, 3], y: i32[]) -> (loss: f32[]) {
    param w: f32[2, 3] = 0.0
    param n: f32[] = 0.0
    w <- w + x * f32(y)
    n <- n + 1.0
    loss = reduce_sum(x)
}
""")
    x, y = np.arange(30, dtype="f4").reshape(5, 2, 3), np.arange(5, dtype="i4") - 2
    work.data("d.npz", x=x, y=y)
    text = work.train("--data", "d.npz", "--epochs", 2, "--save", "c")
    assert "5 steps of 1" in text, text
    close("w", work.tensors("c")["w"], 2 * (x * y[:, None, None]).sum(axis=0), 1e-6)
    assert work.tensors("c")["n"] == 10


def nothing_to_show(make):
    """A graph that gives no number has no scores in its lines, only how fast it is."""
    work = make("""nnc 1
graph step(x: f32[3]) -> () {
    param w: f32[3] = 0.0
    w <- w + x
}
""")
    work.data("d.npz", x=np.ones((5, 3), "f4"))
    text = work.train("--data", "d.npz", "--epochs", 1, "--save", "c")
    assert re.search(r"^epoch 1/1: [\d.,e+]+ steps/s$", text, re.MULTILINE), text


def batches(make):
    """--batch sets the constant that the model writes for it."""
    work = make(LINEAR)
    work.data("d.npz", x=np.ones((30, 3)), label=np.ones(30))
    for batch, steps, left in ((1, 30, 0), (7, 4, 2), (30, 1, 0)):
        text = work.train("--data", "d.npz", "--epochs", 1, "--save", "c", "--batch", batch)
        assert f"{steps} step{'s' * (steps > 1)} of {batch} in an epoch" in text, text
        assert (f"; {left} left out" in text) == (left > 0), text


def validated(make):
    """The accuracy of 50 samples, seven at once, is that of NumPy; the best epoch's weights are kept, and patience ends."""
    work = make(SPIRALS)
    work.data("d.npz", **points(400, 1))
    other = points(50, 2)
    work.data("v.npz", **other)
    shares, weights = [], []
    for epochs in range(1, 9):
        resume = ["--resume", "c"] if epochs > 1 else ["--save", "c"]
        text = work.train("--data", "d.npz", "--validate", "v.npz", "--epochs", epochs, "-o", f"w{epochs}", *resume)
        p = work.tensors("c")
        h = np.tanh(other["point"] @ p["net.hidden.weight"] + p["net.hidden.bias"])
        y = h @ p["net.out.weight"] + p["net.out.bias"]
        shares.append(100 * np.mean(y.argmax(axis=1) == other["label"]))
        weights.append(p["net.hidden.weight"])
        close(f"accuracy of epoch {epochs}", scores(text, "validation accuracy"), [shares[-1]], 1e-3)
    best = int(np.argmax(shares))
    work.train("--data", "d.npz", "--validate", "v.npz", "--epochs", 8, "-o", "w", "--save", "d")
    assert np.array_equal(work.tensors("w")["net.hidden.weight"], weights[best]), "other weights than of the best epoch"
    text = work.train("--data", "d.npz", "--validate", "v.npz", "--epochs", 500, "--patience", 3, "--save", "d")
    again = work.train("--data", "d.npz", "--validate", "v.npz", "--epochs", len(scores(text, "loss")) + 1, "--resume", "d",
                       "-o", "none", "--patience", 9)
    lines = scores(text + again, "validation accuracy")
    assert ("none is not written" in again) == (max(lines) > lines[-1]) == (not (work.folder / "none").exists()), again
    lines = scores(text, "validation accuracy")
    assert len(lines) < 500 and int(np.argmax(lines)) == len(lines) - 4, lines


def resumed(make):
    """From any epoch on, to the bits of one that was never left: checkpoint, weights, curve and lines."""
    work = make(SPIRALS)
    work.data("d.npz", **points(200, 3))
    work.data("v.npz", **points(30, 4))
    files = ["--data", "d.npz", "--validate", "v.npz", "-o", "w", "--curve", "s.svg"]
    for words in ([], ["--in-order", "--seed", 5], ["--target", "generic", "--cc", "gcc -O1"], ["--batch", 40]):
        lines = scores(work.train(*files, "--epochs", 5, "--save", "c", *words), "loss")
        whole = [work.bytes(name) for name in ("c", "w", "s.svg")]
        for first in (1, 4):
            work.train(*files, "--epochs", first, "--save", "c", *words)
            rest = [word for word in words if word not in ("--in-order", "--seed", 5, "--batch", 40)]
            again = scores(work.train(*files, "--epochs", 5, "--resume", "c", *rest), "loss")
            assert again == lines[first:], f"{again}, not {lines[first:]}"
            # how many steps a point of the curve is depends on the epochs that were planned
            assert work.tensors("c").keys() and all(np.array_equal(a, b) for a, b in zip(
                work.tensors("c").values(), tensors_of(whole[0], work).values())), "other bits"
            assert work.bytes("w") == whole[1], "other weights"


def tensors_of(raw, work):
    (work.folder / "whole").write_bytes(raw)
    return work.tensors("whole")


def heed_hangups():
    """The tests themselves may run where they are ignored, as under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def judged_anew(make):
    """Scores on other samples to validate with say nothing of the new ones: the best epoch is sought among those to come."""
    work = make(SPIRALS)
    work.data("d.npz", **points(200, 3))
    other = points(30, 4)
    work.data("v.npz", **other)
    work.data("wrong.npz", point=other["point"], label=1 - other["label"])
    work.train("--data", "d.npz", "--validate", "v.npz", "--epochs", 30, "--save", "c")
    files = ["--data", "d.npz", "--resume", "c", "--patience", 2, "--epochs", 31, "--save", "d"]
    text = work.train(*files, "--validate", "wrong.npz", "-o", "w")
    assert "begins anew" in text and "best by validation: epoch 31" in text and work.bytes("w"), text
    assert "begins anew" not in work.train(*files, "--validate", "v.npz")
    text = work.train(*files[:2], "--validate", "wrong.npz", "--resume", "d", "--save", "d", "--epochs", 32)
    assert "begins anew" not in text, text


def nobody_labelled(make):
    """Without a label that counts there is no accuracy: for the epoch that sees none, or at all. Such an epoch is not the best."""
    work = make(SPIRALS)
    given = points(32, 3)
    work.data("d.npz", point=given["point"], label=np.full(32, -1))
    text = work.train("--data", "d.npz", "--epochs", 1, "--save", "c")
    assert "loss 0;" in text and "accuracy" not in text and "nan" not in text, text
    work.data("d.npz", **given)
    work.data("v.npz", point=given["point"], label=np.full(32, 255))
    (work.folder / "model.nnc").write_text(SPIRALS.replace("logits, label)", "logits, label, ignore = 255)"))
    text = work.train("--data", "d.npz", "--validate", "v.npz", "--epochs", 2, "--save", "c", "-o", "w")
    assert "validation no accuracy" in text and "nan" not in text and "best by" not in text, text
    assert not (work.folder / "w").exists(), "weights of an epoch that nothing has judged"


def one_element(make):
    """A loss of one element is a number, whatever its rank."""
    work = make(LINEAR.replace("loss: f64[])", "loss: f64[1])").replace("mean(e * e)", "unsqueeze(mean(e * e), 0)")
                .replace("minimize(loss", "minimize(loss[0]"))
    work.data("d.npz", x=np.zeros((4, 3)), label=np.zeros(4))
    text = work.train("--data", "d.npz", "--epochs", 1, "--save", "c")
    close("loss", scores(text, "loss"), [0.25**2], 1e-3)


def narrow_lines(make):
    """Lines fit where the width is known, and are whole where it is not."""
    work = make(SPIRALS)
    work.data("d.npz", **points(200, 3))
    words = work.words("--data", "d.npz", "--validate", "d.npz", "--epochs", 2, "--save", "c", "-o", "w")
    for columns in ("40", "80", None):
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | ({"COLUMNS": columns} if columns else {})
        text = subprocess.run(words, cwd=work.folder, capture_output=True, text=True, check=True, env=environment).stdout
        widest = max(len(line) for line in text.splitlines())
        assert widest <= int(columns) if columns else widest > 80, f"{widest} columns\n{text}"


def interrupted(make):
    """Stopped by Ctrl-C, SIGTERM or SIGHUP wherever it is, again and again, and gone on with: the same bits of everything."""
    work = make(SPIRALS)
    work.data("d.npz", **points(60000, 5))
    work.data("v.npz", **points(3000, 6))
    words = ["--data", "d.npz", "--validate", "v.npz", "-o", "w", "--curve", "s.svg", "--epochs", 40]
    work.train(*words, "--save", "whole")
    whole = [work.bytes(name) for name in ("whole", "w", "s.svg")]
    stops, more = 0, ["--save", "c"]
    for round_ in range(160):
        process = subprocess.Popen(work.words(*words, *more), cwd=work.folder, stdout=subprocess.PIPE, text=True,
                                   preexec_fn=heed_hangups)
        process.stdout.readline()  # now it watches
        # The first comes before anything is there to be kept; later ones give more and more time, for machines that are busy.
        time.sleep(0.07 + 0.011 * (round_ % 5) + 0.004 * round_ if round_ else 0)
        number = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[round_ % 3]
        process.send_signal(number)
        text = process.communicate()[0]
        if "checkpoint: c" in text:  # it came too late
            break
        assert process.returncode == 128 + number, f"exit status {process.returncode}\n{text}"
        assert "--resume c goes on" in text and (round_ or "epoch 1 " in text), text
        stops, more = stops + 1, ["--resume", "c"]
    assert "checkpoint: c" in text and stops > 2, f"{stops} stops"
    assert [work.bytes(name) for name in ("c", "w", "s.svg")] == whole, f"other bits after {stops} stops"
    left = {path.name for path in work.folder.iterdir()} - {"model.nnc", "d.npz", "v.npz", "c", "whole", "w", "s.svg"}
    assert not left, f"left behind: {left}"


def stopped_unread(make):
    """Stopped while its lines wait for someone to read them: they are whole, and the checkpoint is written."""
    work = make(LINEAR)
    work.data("d.npz", x=np.zeros((4, 3)), label=np.zeros(4))
    process = subprocess.Popen(work.words("--data", "d.npz", "--epochs", 100000, "--save", "c"), cwd=work.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    first = process.stdout.readline()
    time.sleep(1)  # some thousand epochs: the pipe is full
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    text, errors = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM, f"exit status {process.returncode}\n{errors}"
    lines = (first + text).splitlines()
    epochs = [int(re.match(r"epoch (\d+)", line)[1]) for line in lines if line.startswith("epoch ")]
    assert epochs == sorted(set(epochs)) and len(epochs) > 50 and "--resume c goes on" in lines[-1], lines[-3:]
    assert work.tensors("c")


def states_that_infer(make):
    """Running means, which the other graph reads, are weights; `nnc run` takes them."""
    work = make("""nnc 1
use "nn"
fn net(x, training) -> (y) { y = dense(batch_norm(x, training = training), 1) }
graph step(x: f32[8, 3], t: f32[8, 1]) -> (loss: f32[]) {
    loss = mean((net@net(x, true) - t) ** 2)
    minimize(loss, with = adam(rate = 0.05))
}
graph run(x: f32[1, 3]) -> (y: f32[1, 1]) { y = net@net(x, false) }
""")
    chance = np.random.default_rng(7)
    x = chance.normal(3, 2, (160, 3)).astype("f4")
    work.data("d.npz", x=x, t=x.sum(axis=1, keepdims=True))
    work.train("--data", "d.npz", "--epochs", 40, "--save", "c", "-o", "model.safetensors")
    names = set(work.tensors("model.safetensors"))
    assert any("mean" in name for name in names) and not any("adam" in name for name in names), names
    np.save(work.folder / "x.npy", x[:1])
    subprocess.run([work.nnc, "run", "model.nnc", "--graph", "run", "--input", "x=x.npy", "--output", "y=y.npy"],
                   cwd=work.folder, check=True, capture_output=True)
    close("what it has learnt", np.load(work.folder / "y.npy"), x[:1].sum(), 0.1)


def from_weights(make):
    """--weights-from is where it begins; a checkpoint is such a file, and weights beside the model are not read."""
    work = make(LINEAR)
    work.data("d.npz", x=np.zeros((4, 3)), label=np.zeros(4))
    work.train("--data", "d.npz", "--epochs", 9, "--save", "c", "-o", "model.safetensors")
    learnt = work.tensors("model.safetensors")["b"]
    text = work.train("--data", "d.npz", "--epochs", 1, "--save", "d")
    close("from the initialiser", scores(text, "loss"), [0.25**2], 1e-3)
    text = work.train("--data", "d.npz", "--epochs", 1, "--save", "d", "--weights-from", "c")
    close("from weights", scores(text, "loss"), [learnt**2], 1e-3)


def on_terminals(make):
    """A bar that fits, whatever the width, and is gone when a line is printed."""
    work = make(SPIRALS)
    work.data("d.npz", **points(60000, 8))
    for columns in (20, 40, 80, 200):
        words = [sys.executable, work.terminal, str(columns), *work.words("--data", "d.npz", "--epochs", 9, "--save", "c")]
        done = subprocess.run(words, cwd=work.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        bars = [part for part in done.stdout.replace("\n", "\\r").split("\\r\\e[K") if "\u2591" in part or "/9 " in part]
        assert bars, done.stdout
        widest = max(len(part.split("\\r")[0]) for part in bars)
        assert widest < columns, f"{widest} columns of {columns}"
        assert columns < 80 or all("loss" in bar and "steps/s" in bar and "left" in bar for bar in bars), bars[0]
        assert re.findall(r"epoch (\d)/9: loss", done.stdout) == [str(i) for i in range(1, 10)], done.stdout


def drawn(make):
    """The drawing is XML with a picture for each score, a dot for each validation, and about as many points as promised."""
    work = make(SPIRALS)
    work.data("d.npz", **points(4000, 9))
    work.data("v.npz", **points(40, 10))
    text = work.train("--data", "d.npz", "--validate", "v.npz", "--epochs", 6, "--save", "c", "--curve", "s.svg")
    root = xml.etree.ElementTree.fromstring(work.bytes("s.svg"))
    of = lambda tag, kind: [e for e in root.iter("{http://www.w3.org/2000/svg}" + tag) if e.get("class") == kind]
    assert [e.text for e in of("text", "name")] == ["loss", "accuracy"]
    assert [e.text for e in of("text", "head")] == ["model: step"]
    dots = [float(e[0].text.split(": ")[1]) * 100 for e in of("circle", "dot")]
    close("dots", dots, scores(text, "validation accuracy"), 1e-3)
    lines = [np.array(e.get("d")[1:].split(), float).reshape(-1, 2) for e in of("path", "line train")[1:]]
    for line in lines:
        assert 200 < len(line) <= 300 and np.all(np.diff(line[:, 0]) > 0), len(line)
    assert lines[0][-1, 1] > lines[0][0, 1], "the loss does not fall"


def many_epochs(make):
    """Time grows as short epochs do: the checkpoint, which holds the curves of all, is not written after each; the last is."""
    work = make(LINEAR)
    work.data("d.npz", x=np.ones((4, 3)), label=np.ones(4))
    begun = time.monotonic()
    text = work.train("--data", "d.npz", "--epochs", 8000, "--save", "c", "--cc", "gcc -O1")
    assert "epoch 8000/8000" in text, text[-300:]
    assert time.monotonic() - begun < 45, "as if all were written each time"
    text = work.train("--data", "d.npz", "--epochs", 8001, "--resume", "c")
    assert "epoch 8001/8001" in text and "epoch 8000/" not in text, text[-300:]


# Its second epoch divides by zero.
FAILING = """nnc 1
graph step(x: f32[3], epoch: f32[]) -> (loss: f32[]) {
    param w: f32[3] = 1.0
    loss = LOSS
    w <- NEXT
}
"""


def ends_at_nan(make):
    work = make(FAILING.replace("LOSS", "reduce_sum(w * x) / (1.0 - epoch)").replace("NEXT", "w * 0.5"))
    work.data("d.npz", x=np.ones((8, 3), "f4"))
    work.train("--data", "d.npz", "--epochs", 1, "--save", "c")
    before = work.bytes("c")
    text = work.train("--data", "d.npz", "--epochs", 3, "--resume", "c", status=1)
    assert "epoch 2/" not in text and work.bytes("c") == before, "a checkpoint that has learnt nothing but NaN"


def ends_at_params(make):
    """The last step of an epoch makes params that no score has seen: they are not kept over better ones."""
    work = make(FAILING.replace("LOSS", "reduce_sum(w * x)").replace("NEXT", "w / (1.0 - epoch)"))
    work.data("d.npz", x=np.ones((1, 3), "f4"))
    work.train("--data", "d.npz", "--epochs", 1, "--save", "c", "-o", "w")
    before = work.bytes("c"), work.bytes("w")
    work.train("--data", "d.npz", "--epochs", 2, "--resume", "c", "-o", "w", status=1)
    assert (work.bytes("c"), work.bytes("w")) == before, "params that are not finite are kept"


TESTS = [as_in_numpy, given_numbers, one_at_a_time, nothing_to_show, batches, validated, resumed, judged_anew,
         nobody_labelled, one_element, narrow_lines, interrupted,
         stopped_unread, states_that_infer, from_weights, on_terminals, drawn, many_epochs, ends_at_nan, ends_at_params]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    parser.add_argument("--terminal", required=True, type=pathlib.Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    tests = [test for test in TESTS if arguments.only in test.__name__]
    print(f"1..{len(tests)}")
    failed = 0
    for number, test in enumerate(tests, 1):
        error = None
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(lambda text: Work(arguments.nnc.resolve(), arguments.terminal.resolve(), pathlib.Path(folder), text))
            except AssertionError as wrong:
                error = str(wrong) or "failed"
        print(f"{'not ok' if error else 'ok'} {number} - {test.__name__}", flush=True)
        for line in (error or "").splitlines()[:20]:
            print(f"# {line}")
        failed += error is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
