#!/usr/bin/python3
"""Are the places of what loops carry as few as can be?  All bodies that carry two matrices and make two, and all that carry
three and make one.

    places.py --nnc build/nnc

What is made is a product with a matrix, which reads all of its operand while it writes, a map of one value, or a sum of two,
which can be written over what they read; any of it, or a carried value, may be the next of each.  The kernels and their order
are read from the emitted IR.  From these alone the contents that are made over some rounds are listed, with the
steps between which each is there; the least number of places is then found by trying them all.  `nnc plan` must say the same.
Speaks TAP.
"""

import argparse
import collections
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROUNDS = 5
STATEMENT = re.compile(r"^ +([\w.%]+): f32\[4, 4\] = (\w+)\(([^)]*)\).*@kernel\((\d+)")
EACH = {"matmul": "{0} @ w", "map": "exp({0} * 0.5)", "add": "{0} + {1}"}


def expressions(values):
    yield from (EACH[kind].format(value) for kind in ("matmul", "map") for value in values)
    yield from (EACH["add"].format(*pair) for pair in itertools.combinations(values, 2))


Body = collections.namedtuple("Body", "made next")  # expressions and next values, by name


def bodies():
    for c, d in itertools.product(expressions("ab"), expressions("abc")):
        for a, b in itertools.product("abcd", repeat=2):
            if {a, b} & {"c", "d"}:
                yield Body({"c": c, "d": d}, {"a": a, "b": b})
    for d in expressions("abc"):
        for following in itertools.product("abcd", repeat=3):
            if "d" in following and all(name != value for name, value in zip("abc", following)):  # else it is not carried
                yield Body({"d": d}, dict(zip("abc", following)))


def text_of(number, body):
    results = [f"y{name}" for name in body.next]
    heads = ", ".join(f"{y}: f32[4, 4]" for y in results)
    first = ", ".join(f"{name} = tanh(x{name})" for name in body.next)
    inputs = ", ".join(f"x{name}: f32[4, 4]" for name in body.next)
    made = "".join(f"        {name} = {value}\n" for name, value in body.made.items())
    following = ", ".join(f"{name} <- {value}" for name, value in body.next.items())
    return f"""graph g{number}({inputs}, w: f32[4, 4]) -> ({heads}) {{
    ({", ".join(results)}, n) = while (i < {ROUNDS}) with ({first}, i = 0) {{
{made}    }} next ({following}, i <- i + 1)
}}
"""


class Loop:
    """Of a graph: kernels in order, each with what it reads and makes, and what follows what."""

    def __init__(self, graph, body, carried):
        self.kernels, self.maker, self.body, self.carried = [], {}, body, carried
        for line in graph[graph.index(" = loop_begin("):graph.index(" loop_end(")].splitlines():
            found = STATEMENT.match(line)
            if found:
                self.add(found[1], found[2], found[3].split(", "), int(found[4]))
        self.next = {name: self.name_of(body.next[name]) for name in carried}
        self.keep_what_leaves()

    def name_of(self, value):
        """What is equal is made once."""
        if value in self.body.next or value in self.maker:
            return value
        return next(name for name in self.body.made if name in self.maker)

    def add(self, name, op, operands, number):
        if not self.kernels or self.kernels[-1]["number"] != number:
            self.kernels.append({"number": number, "reads": {}, "makes": set()})
        kernel = self.kernels[-1]
        for operand in operands:
            if self.maker.get(operand) is not kernel:
                kernel["reads"][operand] = kernel["reads"].get(operand, True) and op != "matmul"
        kernel["makes"].add(name)
        self.maker[name] = kernel

    def keep_what_leaves(self):
        for kernel in self.kernels:
            others = set().union(*(k["reads"] for k in self.kernels if k is not kernel), self.next.values())
            kernel["makes"] &= others  # all of a position are known before one of them is stored

    def families(self):
        """Sets of names that are passed to one another."""
        sets = []
        for name in self.carried:
            one = {name, self.next[name]}
            one.update(*(other for other in sets if other & one))
            sets = [other for other in sets if not other & one] + [one]
        return sets

    def contents(self):
        """Per content: whose it is, when it is made, when it is read, and by whom at once: from round to round."""
        now = {name: (name, "first") for name in self.carried}
        made = {content: -1 for content in now.values()}
        last, step = {}, 0
        for number in range(ROUNDS):
            for kernel in self.kernels:
                for name in kernel["reads"] & now.keys():
                    last[now[name]] = (step, kernel["reads"][name])
                for name in kernel["makes"]:
                    now[name] = (name, number)
                    made[now[name]] = step
                step += 1
            now.update({name: now[self.next[name]] for name in self.carried})
        for name in self.carried:
            last[now[name]] = (step, False)
        return made, last

    def least_places(self, family):
        made, last = self.contents()
        own = [c for c in made if c[0] in family]

        def meets(one, other):
            """Is the older one still there when the newer one is made?"""
            if made[one] == made[other]:
                return True
            older, newer = sorted((one, other), key=made.get)
            until, by_element = last.get(older, (made[older], True))
            return until > made[newer] or (until == made[newer] and not by_element)

        places = 1
        while not color(own, meets, places):
            places += 1
        return places


def color(contents, meets, places):
    """Can they lie in so many places?  All ways are tried."""
    chosen = {}

    def place(i):
        if i == len(contents):
            return True
        taken = {chosen[c] for c in contents[:i] if meets(c, contents[i])}
        for p in range(min(places, max(chosen.values(), default=-1) + 2)):
            if p not in taken:
                chosen[contents[i]] = p
                if place(i + 1):
                    return True
                del chosen[contents[i]]
        return False

    return place(0)


def told(nnc, model, number):
    words = [nnc, "plan", model, "--graph", f"g{number}", "--format", "json"]
    plan = json.loads(subprocess.check_output(words, stderr=subprocess.DEVNULL))
    return {c["name"]: c["places"] for c in plan["loops"][0]["carried"]} if plan["loops"] else {}


def complaints(nnc, all_bodies):
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "all.nnc"
        model.write_text("nnc 1\n" + "".join(text_of(n, body) for n, body in enumerate(all_bodies)))
        subprocess.run([nnc, "compile", model, "-o", folder, "--emit", "ir"], stdout=subprocess.DEVNULL, check=True)
        graphs = re.split(r"^graph g\d+\(", (pathlib.Path(folder) / "all.ir.nnc").read_text(), flags=re.MULTILINE)[1:]
        for number, (body, graph) in enumerate(zip(all_bodies, graphs)):
            places = told(nnc, model, number)
            loop = Loop(graph, body, [name for name in body.next if name in places])
            for family in loop.families():
                least = loop.least_places(family)
                for name in family & places.keys():
                    if places[name] != least:
                        yield f"{body}: {name} takes {places[name]} places, not {least}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nnc", required=True, type=pathlib.Path)
    nnc = parser.parse_args().nnc.resolve()
    groups = {}
    for body in bodies():
        groups.setdefault(next(f"{name} = {value}" for name, value in body.made.items()), []).append(body)
    print(f"1..{len(groups)}")
    failed = 0
    for number, (first, group) in enumerate(groups.items(), 1):
        wrong = list(complaints(nnc, group))
        print(f"{'not ok' if wrong else 'ok'} {number} - {first}: {len(group)} bodies", flush=True)
        for line in wrong[:10]:
            print("#", line)
        failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
