#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures kas, PyTorch (eager and compiled), ONNX Runtime, OpenVINO and IREE in one run.

    peers.py --setup                       installs the others into build/peers/venv (peers-requirements.txt)
    peers.py > peers.jsonl                 all operators, one thread
    peers.py --filter='^dw|^g' --rounds=2  some of them, quickly
    peers.py --networks --threads=2        ResNet-18 and what becomes of it with other operators
    peers.py --searched=found.mlir         what kas-search has found
    peers.py --transformed=found.mlir      networks that kas-search has transformed
    peers.py --grouped-layers              the 3x3 layers of three networks, dense and in groups
    peers.py --resume=peers.jsonl > all    what a run that was stopped has left
    peers.py --isa=avx2                    as on a processor without AVX-512
    peers.py --self-check                  tries everything out that needs no other packages

Each implementation is a process of its own, pinned to the same cores. All variants of all of them are timed in turn, in
several rounds, together with the peak of the machine and a copy of as many bytes; the median counts. The inputs rotate
through more memory than the second-level cache has; weights stay. Every output is compared with the one of PyTorch in
float64. kas, ONNX Runtime, OpenVINO and IREE take and give NCHW and pay for what they rearrange; PyTorch's
channels-last variants (nhwc) do not.

Prints lines of JSON like `kas-bench cpu`: time_ms, gflops and share_of_peak of each variant, and of kas
ratio_to_best_peer (above 1 kas is faster), ratio_to_best_rewrite (where there is code that an expert wrote for the same
function), share_of_copy_bandwidth; at the end geometric means. The first run compiles a lot; `--warm` does only that.
"""

import argparse
import datetime
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peerbench import (
    build,
    cases,
    groupedlayers,
    isa,
    measure,
    networks,
    report,
    searched,
    selfcheck,
    transformed,
    workers,
)

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).resolve().parent / "peers-requirements.txt"
PEERS = ["pytorch", "onnxruntime", "openvino", "iree"]


def get_directory(work, name):
    return work / re.sub(r"[^\w.-]", "_", name)


def set_up(python):
    """The virtual environment that `python` is in, with the packages."""
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", python.parent.parent], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--requirement", REQUIREMENTS], check=True)


def all_cases(options):
    """Name -> case of what was requested; all that a worker may receive."""
    if options.searched:
        return searched.make_cases(options.tools, Path(options.searched).resolve(), options.work, options.count)
    if options.transformed:
        return transformed.make_cases(Path(options.transformed).resolve())
    if options.networks:
        return networks.make_cases(options.tools)
    if options.grouped_layers:
        return groupedlayers.make_cases()
    return cases.CASES


def mark_of(case):
    """What is prepared is kept for."""
    return "\n".join([case.mlir, *(text for text, _ in case.others.values())])


def prepare(names, options):
    """Inputs, outputs in float64, weights as kas takes them, and ONNX files, of new cases. Needs PyTorch."""
    import numpy
    import torch

    torch.set_num_threads(1)
    known = all_cases(options)
    for name in names:
        case, directory = known[name], get_directory(options.work, name)
        directory.mkdir(parents=True, exist_ok=True)
        module = case.build(torch)
        inputs = case.inputs(numpy)
        numpy.save(directory / "x.npy", numpy.stack(inputs))
        numpy.savez(directory / "kas-weights.npz", *case.weights(module))
        for other, (_, weights) in case.others.items():
            numpy.savez(directory / f"kas-{other}-weights.npz", *weights(module))
        with torch.no_grad():
            if case.group != "searched":
                for form in case.forms:
                    torch.onnx.export(
                        case.build(torch, form),
                        (torch.from_numpy(inputs[0]),),
                        str(directory / f"{form}.onnx"),
                        dynamo=False,
                        opset_version=17,
                        input_names=["x"],
                        output_names=["y"],
                    )
            module = module.double()
            numpy.save(
                directory / "y.npy", numpy.stack([module(torch.from_numpy(x).double()).numpy() for x in inputs[:2]])
            )
        (directory / "prepared").write_text(mark_of(case))


def prepare_missing(chosen, options, extra):
    missing = []
    for case in chosen:
        mark = get_directory(options.work, case.name) / "prepared"
        if not mark.exists() or mark.read_text() != mark_of(case):
            missing.append(case.name)
    if missing:
        command = [
            options.python,
            "-W",
            "ignore",
            __file__,
            f"--prepare={','.join(missing)}",
            f"--work={options.work}",
            *extra,
        ]
        subprocess.run([str(part) for part in command], check=True, stdout=sys.stderr)


def build_all(chosen, options):
    """The shared objects of kas; cases that cannot be compiled are left out, with a line that says so."""
    build.build_machine(options.work, options.isa)
    ready = []
    for case in chosen:
        try:
            build.build_kas(options.tools, case, get_directory(options.work, case.name), options.threads, options.isa)
            ready.append(case)
        except RuntimeError as problem:
            print(f"# {case.name}: {problem}", file=sys.stderr)
    return ready


def start_workers(options, extra, log):
    cores = [(options.core + i) % os.cpu_count() for i in range(options.threads)]
    started = []
    for name in ["machine", "kas", *options.peers]:
        try:
            started.append(measure.Worker(name, options.python, options.work, cores, log, extra, options.isa))
        except RuntimeError as problem:
            print(f"# {name}: {problem}", file=sys.stderr)
    return started


def run(options):
    known = all_cases(options)
    chosen = [case for case in known.values() if re.search(options.filter, case.name)]
    if not chosen:
        sys.exit(f"peers.py: expected --filter to match a case, got '{options.filter}'")
    extra = [f"--tools={options.tools}", f"--count={options.count}"]
    if options.all_variants:
        extra.append("--all-variants")
    if options.networks:
        extra.append("--networks")
    if options.grouped_layers:
        extra.append("--grouped-layers")
    if options.transformed:
        extra.append(f"--transformed={Path(options.transformed).resolve()}")
    if options.searched:
        extra.append(f"--searched={Path(options.searched).resolve()}")
    prepare_missing(chosen, options, extra)
    chosen = build_all(chosen, options)
    out = report.Report(sys.stdout, options.threads, isa.list_unlimited(options.isa, 0))
    with open(options.work / "workers.log", "a") as log:
        started = start_workers(options, extra, log)
        versions = {name: version for worker in started for name, version in worker.versions.items()}
        if options.resume:
            done = out.restore(Path(options.resume).read_text().splitlines(keepends=True), known)
            chosen = [case for case in chosen if case.name not in done]
        out.line(
            "run",
            "kas",
            "rounds",
            options.rounds,
            versions=versions,
            machine=machine_name(),
            isa=options.isa,
            date=datetime.date.today().isoformat(),
        )
        for case in chosen:
            variants, failures = measure.measure(started, case, options)
            for name, reason in failures:
                print(f"# {case.name}: {name}: {reason}", file=sys.stderr)
            if variants:
                out.case(case, variants)
        out.finish(chosen)
        for worker in started:
            worker.stop()


def machine_name():
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    fields = {key: re.search(rf"^{key}\s*: (.*)$", text, re.M) for key in ("model name", "cpu family", "model")}
    return ", ".join(f"{key} {match[1]}" for key, match in fields.items() if match)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--setup", action="store_true", help="install the other implementations, then end")
    parser.add_argument("--self-check", action="store_true", help="check this program, then end")
    parser.add_argument("--list", action="store_true", help="list the cases, then end")
    parser.add_argument("--warm", action="store_true", help="compile everything, time nothing")
    parser.add_argument("--filter", default=".", metavar="REGEX", help="only cases whose name matches")
    parser.add_argument("--variants", default=".", metavar="REGEX", help="only variants of peers whose name matches")
    parser.add_argument(
        "--all-variants", action="store_true", help="also those that are hardly ever the best of their peer"
    )
    parser.add_argument(
        "--peers", default="all", metavar="none|all|NAME,...", help=f"of {', '.join(PEERS)} (default: all)"
    )
    parser.add_argument("--networks", action="store_true", help="measure networks instead of operators")
    parser.add_argument(
        "--grouped-layers",
        action="store_true",
        help="measure the layers of three networks, dense and in groups, instead",
    )
    parser.add_argument(
        "--resume",
        metavar="FILE",
        help="print again what an earlier run printed to this file, but for its last case, and measure the others",
    )
    parser.add_argument("--searched", metavar="FILE", help="measure the operators of this output of kas-search instead")
    parser.add_argument(
        "--transformed",
        metavar="FILE",
        help="measure the networks of this output of kas-search=network=@forward and the one they "
        "were made of, a residual network of test/Search/Networks/Inputs/cifar.py",
    )
    parser.add_argument("--count", type=int, default=200, help="at most so many of them (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads of each implementation (default: %(default)s)")
    isa.add_option(parser)
    parser.add_argument("--core", type=int, default=1, help="the first core to run on (default: %(default)s)")
    parser.add_argument(
        "--rounds", type=int, default=6, help="how often the turn comes to each variant (default: %(default)s)"
    )
    parser.add_argument("--repetitions", type=int, default=8, help="calls each time (default: %(default)s)")
    parser.add_argument(
        "--budget",
        type=float,
        default=0.4,
        help="seconds for a variant and a round, once 20 calls are sure (default: %(default)s)",
    )
    parser.add_argument("--limit", type=int, default=120, help="seconds to load a variant (default: %(default)s)")
    parser.add_argument(
        "--tools", type=Path, default=ROOT / "build" / "bin", help="the directory of kas-opt and kas-translate"
    )
    parser.add_argument(
        "--work", type=Path, default=ROOT / "build" / "peers" / "work", help="where compiled models are kept"
    )
    parser.add_argument(
        "--python",
        type=Path,
        default=ROOT / "build" / "peers" / "venv" / "bin" / "python",
        help="the one that has the packages",
    )
    parser.add_argument("--worker", choices=list(workers.IMPLEMENTATIONS), help=argparse.SUPPRESS)
    parser.add_argument("--prepare", metavar="NAMES", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.python = options.python.absolute()
    options.tools = options.tools.resolve()
    if options.rounds < 1 or options.repetitions < 1 or options.threads < 1:
        parser.error("--rounds, --repetitions and --threads must be at least 1")
    if sum(map(bool, (options.networks, options.searched, options.grouped_layers, options.transformed))) > 1:
        parser.error("--networks, --searched, --grouped-layers and --transformed exclude each other")
    if options.resume and (options.networks or not Path(options.resume).is_file()):
        parser.error(f"--resume: expected the output of an earlier run on operators, got '{options.resume}'")
    for expression in (options.filter, options.variants):
        try:
            re.compile(expression)
        except re.error as problem:
            parser.error(f"'{expression}': {problem}")
    names = {"none": [], "all": PEERS}.get(options.peers, options.peers.split(","))
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        parser.error(f"--peers: expected some of {', '.join(PEERS)}, got '{unknown[0]}'")
    options.peers = names
    return options


def main():
    options = parse()
    if options.setup:
        return set_up(options.python)
    if options.self_check:
        return selfcheck.run(options)
    if options.list:
        for case in all_cases(options).values():
            print(f"{case.name:20} {case.group:10} {case.subgroup:10} {2e-6 * case.macs:10.2f} MFLOP")
        return None
    options.work.mkdir(parents=True, exist_ok=True)
    if options.worker:
        known = all_cases(options)
        return workers.serve(
            options.worker,
            options.threads,
            options.all_variants,
            options.isa,
            lambda name: (known[name], get_directory(options.work, name)),
        )
    if options.prepare:
        return prepare(options.prepare.split(","), options)
    if not options.python.exists():
        sys.exit(
            f"peers.py: expected the packages of {REQUIREMENTS.name} in the environment of {options.python}; "
            "run peers.py --setup, or give --python"
        )
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
