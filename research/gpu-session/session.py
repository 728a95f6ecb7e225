#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a bundle of research/gpu-session.sh on a GPU: values, networks, times, most important first.

    python3 session.py run --minutes=9       # again, until nothing is left
    python3 session.py run --minutes=9 --fill       # what is left of the time: times are measured again
    python3 session.py report > report.md

Each result is a line of results.jsonl, written when it is there; what is there is not run again. A case that crashes or
hangs takes its process with it, and the next one starts after it. Needs NumPy; PyTorch with CUDA is measured beside
kas where it is installed.
"""

import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peers
from runtime import Device, DriverError, Program, measure
from values import Bundle

FOLDER = Path(__file__).resolve().parent
COPIES = 3
"""So that no run finds its inputs in a cache."""
PATIENCE = 150
"""Seconds that a unit of work may take."""
PHASES = {"values": 0.3, "times": 0.6, "schedules": 0.75, "compiled": 1.0}
"""In order, each with the part of the time after which nothing more of it is begun: the next ones have the rest."""


def can_run(chip: str, architecture: str) -> bool:
    """Machine code runs on the chips of its major version that are not older; with an `a` on its own only."""
    if "vulkan" in (chip, architecture):
        return chip == architecture
    wanted, own = (re.fullmatch(r"sm_(\d+)(\d)(a?)", name) for name in (chip, architecture))
    if not wanted or not own or wanted[1] != own[1]:
        return False
    return wanted[2] == own[2] if wanted[3] else int(wanted[2]) <= int(own[2])


def get_architecture(name: str, device: Device) -> str:
    return "vulkan" if name.startswith("vulkan") else device.info.architecture.decode()


class Session:
    def __init__(self, options):
        self.options = options
        self.bundle = Bundle(options.bundle)
        self.bundle.cases = [case for case in self.bundle.cases if re.search(options.cases, case["name"])]
        self.results = options.results
        self.end = options.deadline
        """When nothing more of the phase is begun."""
        self.done = {line["unit"] for line in read_lines(self.results) if line["status"] != "started"}
        self.device = Device(str(options.library), options.device)
        self.architecture = options.architecture or get_architecture(options.device, self.device)
        self.torch = None if options.no_peers else peers.load_torch()

    def write(self, unit: str, status: str, **fields) -> None:
        with self.results.open("a") as stream:
            stream.write(json.dumps({"unit": unit, "status": status, **fields}) + "\n")

    def run_unit(self, unit: str, body) -> None:
        if unit in self.done or time.time() > self.end:
            return
        self.write(unit, "started")
        start = time.time()
        try:
            fields = body()
        except DriverError as failure:
            self.write(unit, "error", text=str(failure))
            if "lost" in str(failure):
                # Nothing on the device works any more.
                os._exit(3)
            return
        self.write(unit, "done", seconds=round(time.time() - start, 2), **fields)

    # Programs

    def get_programs(self, case: dict, libraries: bool = False) -> list[dict]:
        """Those of the best chip that runs here, of kernels alone or with libraries."""
        chips = [program["chip"] for program in case["programs"] if can_run(program["chip"], self.architecture)]
        return [
            program
            for program in case["programs"]
            if program["chip"] in chips[-1:] and program.get("libraries", False) == libraries
        ]

    def load(self, case: dict, program: dict, copies: int, lenders: list[Program] | None = None) -> list[Program]:
        """Copies of a program with the arguments of the case, those of `lenders` if there are some."""
        binary = self.bundle.get_binary(case, program)
        loaded: list[Program] = []
        try:
            for lender in lenders or [None] * copies:
                loaded.append(Program(self.device, program["manifest"], binary, case.get("function", "run"), lender))
                if not lender:
                    loaded[-1].upload(self.bundle.get_arguments(case))
        except DriverError:
            for one in loaded:
                one.close()
            raise
        return loaded

    def run_program(self, case: dict, program: dict, seconds: float = 0, lenders: list[Program] | None = None) -> dict:
        """Error of the result, and times where `seconds` are given."""
        loaded = self.load(case, program, COPIES if seconds else 1, lenders)
        try:
            loaded[0].launch()
            error, is_right = self.bundle.compare(case, loaded[0].download())
            fields = {"error": error, "ok": is_right, "chip": program["chip"]}
            if program.get("schedule"):
                fields["schedule"] = program["schedule"]
            if seconds:
                times = measure(self.device, loaded, seconds)
                fields |= {"ms": statistics.median(times), "least_ms": min(times)}
            if program.get("libraries"):
                # After all launches, in which a library may have failed.
                fields["libraries"] = loaded[0].count_libraries()
            return fields
        finally:
            for one in loaded:
                one.close()

    # Units of work

    def run_values(self) -> None:
        for case in self.bundle.cases:
            programs = self.get_programs(case)
            if case["kind"] == "values" and programs:
                self.run_unit(case["name"], lambda: self.run_program(case, programs[0]))  # noqa: B023

    def run_peers(self, case: dict) -> dict:
        """Milliseconds of PyTorch's forms."""
        torch = self.torch
        peers.set_precision(torch, case["name"].rsplit("/")[-1])
        if case["kind"] == "network":
            layers = peers.make_network(torch, case["name"])
        else:
            layers = peers.make_layers(torch, case, self.bundle.get_arguments(case))
        fields = {}
        for name, (function, inputs) in layers.items():
            fields[name] = peers.measure(torch, function, inputs, self.options.seconds)
            if case["kind"] == "time":
                with torch.no_grad():
                    result = function(inputs[0]).float().cpu().contiguous().numpy()
                fields[name + "_error"] = self.bundle.compare(case, result)[0]
        return fields

    def run_times(self, prefix: str = "") -> None:
        """The cost model's choice, the same with libraries, and PyTorch; `prefix` is that of the units."""
        for kind in ("network", "time"):
            for case in self.bundle.cases:
                programs = self.get_programs(case)
                if case["kind"] != kind or not programs:
                    continue
                name = f"{prefix}{kind}/{case['name']}"
                self.run_unit(name, lambda: self.run_program(case, programs[0], self.options.seconds))  # noqa: B023
                for program in self.get_programs(case, libraries=True):
                    self.run_unit(
                        f"{prefix}libraries/{case['name']}",
                        lambda: self.run_program(case, program, self.options.seconds),  # noqa: B023
                    )
                if self.torch:
                    self.run_unit(f"{prefix}peers/{case['name']}", lambda: self.run_peers(case))  # noqa: B023

    def run_schedules(self) -> None:
        """The other schedules, of the cases first that lose most."""
        found = {line["unit"]: line for line in read_lines(self.results) if line["status"] == "done"}

        def get_ratio(case: dict) -> float:
            own = found.get(f"time/{case['name']}")
            best = get_best_peer(found.get(f"peers/{case['name']}", {}))
            return best / own["ms"] if own and best else 1

        for case in sorted((case for case in self.bundle.cases if case["kind"] == "time"), key=get_ratio):
            programs = list(enumerate(self.get_programs(case)))[1:]
            left = [(index, program) for index, program in programs if get_unit(case, index) not in self.done]
            if not left or time.time() > self.end:
                continue
            try:
                lenders = self.load(case, left[0][1], COPIES)
            except DriverError as failure:
                for index, _ in left:
                    self.write(get_unit(case, index), "error", text=str(failure))
                continue
            for index, program in left:
                self.run_unit(
                    get_unit(case, index),
                    lambda: self.run_program(case, program, self.options.seconds, lenders),  # noqa: B023
                )
            for lender in lenders:
                lender.close()

    def run_compiled(self) -> None:
        """torch.compile with max-autotune: last, as it takes long."""
        if not self.torch:
            return
        for kind in ("network", "time"):
            for case in self.bundle.cases:
                if case["kind"] == kind:
                    self.run_unit(f"compiled/{case['name']}", lambda: self.run_compiled_case(case))  # noqa: B023

    def run_compiled_case(self, case: dict) -> dict:
        torch = self.torch
        torch._dynamo.reset()
        peers.set_precision(torch, case["name"].rsplit("/")[-1])
        if case["kind"] == "network":
            layers = peers.make_network(torch, case["name"])
        else:
            layers = peers.make_layers(torch, case, self.bundle.get_arguments(case))
        name = next((name for name in ("channels_last", "composite", "eager") if name in layers), None)
        if name is None:
            return {}
        function, inputs = layers[name]
        compiled = torch.compile(function, mode="max-autotune-no-cudagraphs", dynamic=False)
        return {"compiled": peers.measure(torch, compiled, inputs, self.options.seconds)}

    def run_machine(self) -> dict:
        """Who is here, the bandwidth of a copy and what cuBLAS reaches."""
        info = self.device.info
        fields = {"device": info.name.decode(), "architecture": self.architecture, "memory": info.memoryBytes}
        torch = self.torch
        if not torch:
            return fields
        fields["torch"] = torch.__version__
        source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        copy = peers.measure(torch, lambda value: target.copy_(value), [source], 0.2)
        fields["copy_gb_per_s"] = 2 * (1 << 30) / copy * 1e-6
        for precision in ("f32", "tf32", "f16", "bf16"):
            peers.set_precision(torch, precision)
            left = torch.randn(8192, 8192, device="cuda", dtype=peers.get_dtype(torch, precision))
            taken = peers.measure(torch, lambda value: value @ value, [left], 0.3)
            fields[f"peak_{precision}_tflops"] = 2e-9 * 8192**3 / taken
        return fields

    def run(self) -> None:
        self.run_unit("machine", self.run_machine)
        start = self.options.deadline - self.options.minutes * 60
        for name in self.options.phases.split(","):
            self.end = start + PHASES[name] * self.options.minutes * 60
            getattr(self, f"run_{name}")()
        self.end = self.options.deadline
        if self.options.fill:
            self.run_again()
        self.device.close()

    def run_again(self) -> None:
        """Rounds of all that is timed, to the end: how much times differ between the minutes of a session."""
        if not any(case["kind"] in ("network", "time") and self.get_programs(case) for case in self.bundle.cases):
            return
        for number in itertools.count(1):
            if time.time() > self.end:
                return
            self.run_times(f"again/{number}/")


def get_unit(case: dict, index: int) -> str:
    """Of one of the schedules of a case."""
    return f"schedule/{case['name']}/{index}"


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open()] if path.exists() else []


def cut_unfinished_line(path: Path) -> None:
    """What a process left that was ended while it wrote."""
    text = path.read_text() if path.exists() else ""
    if text and not text.endswith("\n"):
        path.write_text(text[: text.rfind("\n") + 1])


def get_best_peer(fields: dict) -> float | None:
    times = [fields[name] for name in peers.PEERS if name in fields]
    return min(times) if times else None


#
# Who watches
#


def note_lost(results: Path, code: int | None, text: str) -> bool:
    """Whether a unit was started and did not end; it is not run again."""
    lines = read_lines(results)
    if not lines or lines[-1]["status"] != "started":
        return False
    with results.open("a") as stream:
        stream.write(json.dumps({"unit": lines[-1]["unit"], "status": "lost", "code": code, "text": text}) + "\n")
    return True


def wait_for(worker: subprocess.Popen, options) -> int:
    """The exit code of a worker, which is killed where it writes nothing for too long."""
    state = (-1, time.time())
    while worker.poll() is None:
        time.sleep(0.2)
        size = options.results.stat().st_size if options.results.exists() else 0
        if size != state[0]:
            state = (size, time.time())
        if time.time() - state[1] > (PATIENCE if time.time() < options.deadline else 30):
            worker.kill()
    return worker.returncode


def watch(options) -> int:
    """Runs workers until all is done or the time is over."""
    options.deadline = time.time() + options.minutes * 60
    cut_unfinished_line(options.results)
    # What a session that was ended had begun may have ended it.
    note_lost(options.results, code=None, text="the session ended")
    command = [sys.executable, __file__, "work", *sys.argv[2:], f"--deadline={options.deadline}"]
    while time.time() < options.deadline:
        # No pipe: one that nobody reads would stop the worker when it is full.
        with tempfile.TemporaryFile("w+") as errors:
            code = wait_for(subprocess.Popen(command, stderr=errors), options)
            errors.seek(0)
            text = errors.read().strip()[-600:]
        if code == 0:
            break
        print(f"gpu-session: a worker ended with {code}: {text}", file=sys.stderr)
        if not note_lost(options.results, code, text):
            return 1
    return 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "work", "report"))
    parser.add_argument("--bundle", type=Path, default=FOLDER, help="the folder with cases.jsonl (default: this one)")
    parser.add_argument("--library", type=Path, default=FOLDER / "libkas-rt.so")
    parser.add_argument("--results", type=Path, default=Path("results.jsonl"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--architecture", default="", help="in place of what the device says")
    parser.add_argument("--minutes", type=float, default=9.0, help="when to stop")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each measurement")
    parser.add_argument("--phases", default=",".join(PHASES))
    parser.add_argument("--fill", action="store_true", help="measure times again until the time is over")
    parser.add_argument("--cases", default="", help="only those that this regular expression finds")
    parser.add_argument("--no-peers", action="store_true", help="without PyTorch")
    parser.add_argument("--deadline", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    check_arguments(parser, options)
    return options


def check_arguments(parser: argparse.ArgumentParser, options) -> None:
    for phase in options.phases.split(","):
        if phase not in PHASES:
            parser.error(f"--phases requires some of {', '.join(PHASES)}, got '{phase}'")
    if options.minutes <= 0 or options.seconds <= 0:
        parser.error(f"--minutes and --seconds require positive numbers, got {options.minutes} and {options.seconds}")
    try:
        re.compile(options.cases)
    except re.error as error:
        parser.error(f"--cases requires a regular expression, got '{options.cases}': {error}")
    if options.command != "report":
        for file in (options.bundle / "cases.jsonl", options.bundle / "data.bin", options.library):
            if not file.is_file():
                parser.error(f"requires the file {file}, found none")


def main() -> int:
    options = parse_arguments()
    if options.command == "report":
        import report

        print(report.write(read_lines(options.results)))
        return 0
    if options.command == "run":
        return watch(options)
    Session(options).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
