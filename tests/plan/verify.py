"""`nnc plan --verify` against corrupted plans.

    verify.py --nnc build/nnc MODEL...

Of every model a plan is made and damaged at random.  The verdict on each must be that of a plain comparison of all pairs
here; where it is `wrong`, the message must name a tensor that was touched.  Then come texts that are damaged as texts:
whatever they say, the command ends with exit status 0 or 1.
"""

import argparse
import copy
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

DAMAGES, TEXTS = 40, 20


def together(a, b):
    return a["first"] <= b["last"] and b["first"] <= a["last"]


def overlap(a, b):
    return a["offset"] < b["offset"] + b["bytes"] and b["offset"] < a["offset"] + a["bytes"]


def inplace_groups(tensors):
    """Of a plan that is right: tensors that overlap while both live are computed in place of each other."""
    tensors = [t for t in tensors if "alias_of" not in t]
    group = {t["name"]: t["name"] for t in tensors}
    for i, a in enumerate(tensors):
        for b in tensors[:i]:
            if together(a, b) and overlap(a, b):
                old, new = group[a["name"]], group[b["name"]]
                group = {name: new if g == old else g for name, g in group.items()}
    return group


def aliases_fit(plan, known):
    """Parts and views lie where they do in the owner of a plan that is right; what grows stays where it is."""
    own = {t["name"]: t for t in plan["tensors"]}
    for t in plan["tensors"]:
        owner = own.get(t["alias_of"] if "alias_of" in t else t["name"].split("@")[0] if t["kind"] == "growing" else None)
        if not owner:
            continue
        old, old_owner = known[t["name"]], known[owner["name"]]
        if t["offset"] - owner["offset"] != old["offset"] - old_owner["offset"] or t["bytes"] != old["bytes"]:
            return False
    return True


def is_right(plan, model):
    """Is the plan right?  `model` is a plan of the same model that is."""
    known = {t["name"]: t for t in model["tensors"]}
    group = inplace_groups(model["tensors"])
    names = [t["name"] for t in plan["tensors"]]
    if len(set(names)) < len(names) or any(t["name"] not in names for t in known.values() if "alias_of" not in t):
        return False
    if any(t["offset"] + t["bytes"] > plan["peak"] for t in plan["tensors"]) or not aliases_fit(plan, known):
        return False
    stored = [t for t in plan["tensors"] if "alias_of" not in t]
    for i, a in enumerate(stored):
        own = known[a["name"]]
        if a["bytes"] != own["bytes"] or a["offset"] % 64 or min(a["offset"], a["first"], a["last"]) < 0:
            return False
        if a["first"] > own["first"] or a["last"] < own["last"]:
            return False
        for b in stored[:i]:
            same = a["offset"] == b["offset"] and group[a["name"]] == group[b["name"]]
            if together(own, known[b["name"]]) and overlap(a, b) and not same:
                return False
    return True


def damage(plan, chance):
    """Changes the plan a little; returns the names that the change touches."""
    tensors = plan["tensors"]
    one, two = chance.choice(tensors), chance.choice(tensors)
    kind = chance.randrange(10)
    if kind == 0:
        one["offset"] = two["offset"]
    elif kind == 1:
        one["offset"], two["offset"] = two["offset"], one["offset"]
    elif kind == 2:
        one["offset"] += 64 * chance.choice([-1, 1, 2, 16])
    elif kind == 3:
        one["offset"] += chance.choice([1, 4, 63])
    elif kind == 4:
        one["bytes"] += chance.choice([-4, 4])
    elif kind == 5:
        tensors.remove(one)
    elif kind == 6:
        tensors.insert(chance.randrange(len(tensors)), dict(two))
        one = two
    elif kind == 7:
        plan["peak"] -= chance.choice([0, 1, 64])
        return {t["name"] for t in tensors}
    elif kind == 8:
        one["first" if chance.random() < 0.5 else "last"] += chance.choice([-1, 1])
    else:
        chance.shuffle(tensors)
    return {one["name"], two["name"]}


def spoil(text, chance):
    kind = chance.randrange(5)
    at = chance.randrange(len(text))
    if kind == 0:
        return text[:at]
    if kind == 1:
        return text[:at] + chance.choice("{}[]\",:0-e\\\0\x1b\xff") + text[at + 1 :]
    if kind == 2:
        return text.replace(chance.choice(["64", "0", "1"]), chance.choice(["1e999", "-1", "9007199254740993", "0.5", "null"]), 3)
    if kind == 3:
        return text[:at] + "[" * chance.choice([10, 2000, 200000]) + text[at:]
    begin, end = sorted((at, chance.randrange(len(text))))
    return text[:begin] + text[end:]


HOSTILE = ["", "null", "[]", "{}", '{"nnc_plan": 2, "tensors": []}', '{"nnc_plan": 1}', '{"nnc_plan": 1, "tensors": 3}',
           '{"nnc_plan": 1, "tensors": [3]}', '{"nnc_plan": 1, "tensors": [{"name": "x"}]}', '{"nnc_plan": 1, "tensors": []}',
           '{"nnc_plan": 1, "tensors": [{"name": "x", "bytes": 1e300, "offset": 0}]}',
           '{"nnc_plan": 1, "tensors": [{"name": "x\\u0000y", "bytes": 64, "offset": 9007199254740992, "alias_of": "x"}]}',
           '{"nnc_plan": 1, "tensors": [{"name": "x", "bytes": 64, "offset": 0, "alias_of": []}]}']


class Judge:
    def __init__(self, nnc, model, folder):
        self.nnc, self.model, self.file = nnc, model, pathlib.Path(folder) / "plan.json"

    def __call__(self, text):
        self.file.write_bytes(text.encode("utf-8", "surrogateescape"))
        done = subprocess.run([self.nnc, "plan", self.model, "--verify", self.file], capture_output=True, text=True,
                              errors="replace", timeout=60)
        return done.returncode, done.stdout + done.stderr


def check_damages(judge, plan, chance):
    status, text = judge(json.dumps(plan))
    assert status == 0, f"its own plan: {text}"
    wrong = 0
    for trial in range(DAMAGES):
        damaged = copy.deepcopy(plan)
        touched = damage(damaged, chance)
        expected = is_right(damaged, plan)
        status, text = judge(json.dumps(damaged))
        assert status == (0 if expected else 1), f"trial {trial}: exit status {status}, expected right: {expected}: {text}"
        assert expected or any(name in text for name in touched), f"trial {trial}: none of {touched} in {text}"
        wrong += not expected
    assert wrong > DAMAGES // 3, f"only {wrong} of {DAMAGES} damages matter"


def check_texts(judge, plan, chance):
    text = json.dumps(plan)
    for spoiled in [spoil(text, chance) for _ in range(TEXTS)] + HOSTILE:
        status, said = judge(spoiled)
        assert status in (0, 1), f"exit status {status} on {spoiled[:300]!r}: {said}"
        assert "\x1b" not in said, "a name reached the terminal as it was"
    for hostile in HOSTILE:
        assert judge(hostile)[0] == 1, f"accepted: {hostile}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nnc", required=True, type=os.path.abspath)
    parser.add_argument("model", nargs="+")
    arguments = parser.parse_args()
    failed = number = 0
    print(f"1..{2 * len(arguments.model)}")
    for model in arguments.model:
        plan = json.loads(subprocess.run([arguments.nnc, "plan", model, "--format", "json"], check=True,
                                         capture_output=True, text=True).stdout)
        for name, check in (("damages", check_damages), ("texts", check_texts)):
            number += 1
            with tempfile.TemporaryDirectory() as folder:
                try:
                    check(Judge(arguments.nnc, model, folder), plan, random.Random(number))
                    print(f"ok {number} - {plan['title']}: {name}", flush=True)
                except AssertionError as error:
                    failed += 1
                    print(f"not ok {number} - {plan['title']}: {name}\n# " + str(error).replace("\n", "\n# "), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
