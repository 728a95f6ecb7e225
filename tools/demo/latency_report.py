"""Reads what the steps of tools/demo/latency.sh left in a directory, and says what it shows.

usage: latency_report.py DIRECTORY STEP [argument...]
"""

import json
import math
import re
import statistics
import struct

from demo_common import fail, read_candidates, read_space, run_step

SCORE = re.compile(r"^  kas\.operator @(\S+?)<.*kas\.score = \{(.*?)\}")


def read_results(directory):
    path = directory / "results.json"
    return json.loads(path.read_text()) if path.exists() else {}


def update_results(directory, **parts):
    results = read_results(directory) | parts
    (directory / "results.json").write_text(json.dumps(results, indent=2) + "\n")


def read_baseline(directory, space):
    """The baselines and the number of layers of a kas.space."""
    text, layers = read_space(directory, space)
    numbers = {name: int(value) for name, value in re.findall(r"baseline_(\w+) = (\d+)", text)}
    return {"layers": sum(count for _, count in layers), "kinds": len(layers), **numbers}


def sites(directory, space):
    text = (directory / "sites.mlir").read_text()
    for name in re.findall(r"kas\.space @(\w+)", text):
        found = read_baseline(directory, name)
        mark = "  <- to be replaced" if name == space else ""
        print(f"{name:22}{found['layers']:3} layers, {found['kinds']} shapes, {found['flops'] / 1e6:8.1f} MFLOP{mark}")
    update_results(directory, replaced=read_baseline(directory, space))


def progress(directory):
    """Passes on what the search says: each improvement, and how far it is."""
    best, failed = math.inf, 0
    for count, event in enumerate(read_candidates(directory), 1):
        metrics = event.get("metrics")
        failed += metrics is None
        if metrics and metrics["latency_ms"] < best:
            best = metrics["latency_ms"]
            print(
                f"candidate {count:4}: {metrics['flops'] / 1e6:7.1f} MFLOP, {best:8.2f} ms, the fastest so far",
                flush=True,
            )
        elif count % 25 == 0:
            print(f"candidate {count:4}: {failed} failed", flush=True)


def read_operators(directory, space):
    """Name, score and text of each operator of the space, in order."""
    operators, text = [], ""
    for line in (directory / "found.mlir").read_text().splitlines(keepends=True):
        match = SCORE.match(line)
        if match:
            numbers = re.findall(r"(\w+) = ([-+.\deE]+)", match.group(2))
            operators.append({"name": match.group(1), **{name: float(value) for name, value in numbers}})
            text = line
        elif text:
            text += line
        if text and line.rstrip() == "  }":
            operators[-1]["text"], text = text, ""
    return [operator for operator in operators if operator["name"].startswith(space + "_")]


def operators(directory, space, wanted):
    found = read_operators(directory, space)
    baseline = read_baseline(directory, space)
    texts = {operator["text"].split("{", 2)[-1] for operator in found}
    if len(texts) != len(found):
        fail(f"of {len(found)} operators only {len(texts)} are distinct")
    worst = max((operator["flops"] for operator in found), default=0)
    if 2 * worst > baseline["flops"]:
        fail(f"an operator has {worst:.0f} FLOPs, more than half of {baseline['flops']}")
    if len(found) < int(wanted):
        fail(f"found {len(found)} operators, expected at least {wanted}; see {directory / 'search.log'}")
    (directory / "operators.mlir").write_text("".join(operator["text"] for operator in found))
    print(f"{len(found)} distinct operators, each at most {worst / baseline['flops']:.2f} of the layers' FLOPs")
    print(f"{'fastest':16}{'FLOPs':>8}{'parameters':>12}{'ms, all layers':>16}")
    for operator in found[:8]:
        ratios = operator["flops"] / baseline["flops"], operator["params"] / baseline["params"]
        print(f"@{operator['name']:15}{ratios[0]:8.3f}{ratios[1]:12.4f}{operator['latency_ms']:16.2f}")
    print(found[0]["text"], end="")
    scores = [{name: value for name, value in operator.items() if name != "text"} for operator in found]
    update_results(directory, operators=scores)


def substituted(directory, space):
    count = len(re.findall(r"= kas\.apply ", (directory / "changed.mlir").read_text()))
    expected = read_baseline(directory, space)["layers"]
    print(f"{count} of {expected} layers replaced")
    if count != expected:
        fail(f"replaced {count} layers, expected {expected}")


def read_npy(path):
    """The values of a little-endian f32 array."""
    data = path.read_bytes()
    length = struct.unpack_from("<H", data, 8)[0]
    if b"'<f4'" not in data[10 : 10 + length]:
        fail(f"{path} does not hold little-endian f32")
    return [value for (value,) in struct.iter_unpack("<f", data[10 + length :])]


def table(directory, space):
    networks = {}
    for name in ("original", "changed"):
        rounds = [json.loads(line) for line in (directory / f"{name}.jsonl").read_text().splitlines()]
        output = read_npy(directory / f"{name}.npy")
        if not output or not all(math.isfinite(value) for value in output):
            fail(f"the output of the {name} network is not finite")
        networks[name] = {
            "flops": rounds[0]["flops"],
            "params": rounds[0]["params"],
            "median_ms": statistics.median(entry["median_ms"] for entry in rounds),
            "min_ms": min(entry["min_ms"] for entry in rounds),
            "compile_ms": rounds[0]["compile_ms"],
            "rounds_ms": [entry["median_ms"] for entry in rounds],
        }
    old, new = networks["original"], networks["changed"]
    print(f"ResNet-18, one image of 224x224, its 3x3 convolutions of stride 1 replaced by @{space}_0;")
    print(f"times are medians of {len(old['rounds_ms'])} rounds in turn")
    print(f"{'':18}{'original':>14}{'changed':>14}{'ratio':>9}")
    rows = [("FLOPs, millions", "flops", 1e6), ("parameters", "params", 1), ("time, ms", "median_ms", 1)]
    for label, key, unit in rows:
        digits = 0 if key == "params" else 1
        values = [f"{network[key] / unit:14,.{digits}f}" for network in (old, new)]
        print(f"{label:18}{values[0]}{values[1]}{new[key] / old[key]:9.3f}")
    print("The accuracy of such a network after training is not measured here.")
    update_results(directory, networks=networks)
    if new["flops"] >= old["flops"]:
        fail("the changed network has no fewer FLOPs")


if __name__ == "__main__":
    run_step((sites, progress, operators, substituted, table), __doc__)
