# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lines of JSON like those of kas-bench, from what was measured."""

import json
import math

from . import groupedlayers

# f32 sums in another order; what computes in a shorter format or by another algorithm with larger errors does not
# count.
TOLERANCE = 1e-4


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


class Report:
    """`unlimited`: peers that use more than the instruction set of the run, and so are no best ones."""

    def __init__(self, stream, threads, unlimited=()):
        self.stream, self.threads, self.unlimited = stream, threads, unlimited
        self.means = {}  # (group, metric) -> values
        self.shares = {}  # case -> share of peak
        self.networks = {}  # case -> (milliseconds, multiply-adds)

    def line(self, case, impl, metric, value, unit="", **more):
        entry = {
            "suite": "cpu",
            "case": case,
            "impl": impl,
            "metric": metric,
            "value": float(f"{value:.6g}"),
            "unit": unit,
            **more,
        }
        if self.threads != 1:
            entry["threads"] = self.threads
        self.stream.write(json.dumps(entry) + "\n")
        self.stream.flush()

    def kas_line(self, case, metric, value):
        """A number of ours that is averaged over the classes of the case."""
        self.line(case.name, "kas", metric, value, **{"class": case.group})
        self.mean(case, metric, value)

    def mean(self, case, metric, value):
        layers = ("grouped layers",) if groupedlayers.get_dense(case.name) else ()
        for group in dict.fromkeys((case.group, case.subgroup, *layers)):
            self.means.setdefault((group, metric), []).append(value)

    def case(self, case, variants):
        machine = {variant.name: variant.median for variant in variants if variant.worker.name == "machine"}
        variants = [variant for variant in variants if variant.worker.name != "machine"]
        gflop = 2e-9 * case.macs
        peak = case_peak(machine)
        dense = next((variant for variant in variants if variant.name == "kas-dense-from-c"), None)
        variants = [variant for variant in variants if variant is not dense]
        for variant in variants:
            times = variant.times
            self.line(
                case.name,
                variant.name,
                "time_ms",
                variant.median,
                "ms",
                median=round(variant.median, 6),
                min=round(min(times), 6),
                n=len(times),
                max_rel_err=float(f"{variant.error:.3g}"),
                ok=variant.error <= TOLERANCE,
                **({"limited": False} if variant.worker.name in self.unlimited else {}),
                flops=2 * case.macs,
                bytes=4 * case.elements,
                **{"class": case.group, "subclass": case.subgroup},
            )
            self.line(case.name, variant.name, "gflops", 1e3 * gflop / variant.median, "GFLOP/s")
            if peak:
                self.line(
                    case.name,
                    variant.name,
                    "share_of_peak",
                    1e3 * gflop / variant.median / (peak * self.threads),
                    real=round(case.real, 4),
                )
        if peak:
            self.line(case.name, "machine", "peak_gflops", peak, "GFLOP/s")
        if "copy" in machine:
            self.line(case.name, "machine", "copy_bandwidth", 4e-6 * case.elements / machine["copy"], "GB/s")
        if dense:
            self.compare_dense(case, dense, variants)
        variants = [variant for variant in variants if variant.name != "kas-from-c"]
        ours = [variant for variant in variants if variant.name == "kas" and variant.error <= TOLERANCE]
        if ours:
            self.compare(case, ours[0], variants, machine, peak, gflop)

    def compare(self, case, ours, variants, machine, peak, gflop):
        """Our time against the best of the others, the machine, and what fewer FLOPs promise."""
        if peak:
            share = 1e3 * gflop / ours.median / (peak * self.threads)
            self.means_only(case, "share_of_peak", share)
            self.shares[case.name] = share
        if "copy" in machine:
            self.kas_line(case, "share_of_copy_bandwidth", machine["copy"] / ours.median)
        if case.group == "network":
            self.networks[case.name] = (ours.median, case.macs)
        for metric, by_hand in (("ratio_to_best_peer", False), ("ratio_to_best_rewrite", True)):
            others = [
                v
                for v in variants
                if v.worker.name not in (ours.worker.name, *self.unlimited)
                and v.error <= TOLERANCE
                and v.name.endswith("/by-hand") == by_hand
            ]
            if others:
                best = min(others, key=lambda variant: variant.median)
                self.kas_line(case, metric, best.median / ours.median)
                self.line(case.name, best.name, metric.replace("ratio_to_", ""), best.median, "ms")

    def compare_dense(self, case, dense, variants):
        """The dense layer's time over the number of groups against that of the grouped layer, from the same rounds."""
        self.line(
            case.name, dense.name, "time_ms", dense.median, "ms", min=round(min(dense.times), 6), n=len(dense.times)
        )
        for variant in variants:
            if variant.name == "kas-from-c" and variant.error <= TOLERANCE:
                expected = dense.median / groupedlayers.get_dense(case.name)[1]
                self.kas_line(case, "achieved_over_expected", expected / variant.median)

    def restore(self, lines, cases):
        """Takes the lines of an earlier run that stopped; returns the cases that it has measured: all but the last."""
        entries = [json.loads(line) for line in lines if line.endswith("}\n")]
        names = [entry["case"] for entry in entries if entry["case"] in cases]
        done = set(names) - set(names[-1:])
        for entry in entries:
            if entry["case"] not in done:
                continue
            self.stream.write(json.dumps(entry) + "\n")
            case = cases[entry["case"]]
            if entry["impl"] == "kas" and "class" in entry and entry["metric"] != "time_ms":
                self.mean(case, entry["metric"], entry["value"])
            elif entry["impl"] == "kas" and entry["metric"] == "share_of_peak":
                self.means_only(case, "share_of_peak", entry["value"])
                self.shares[case.name] = entry["value"]
        return done

    def means_only(self, case, metric, value):
        for group in dict.fromkeys((case.group, case.subgroup)):
            self.means.setdefault((group, metric), []).append(value)

    def finish(self, cases):
        """What needs several cases: dense efficiency, speed-ups of networks, geometric means."""
        for case in cases:
            size = case.name.rpartition("@")[2]
            dense = f"c3_{case.shape[1]}_{case.shape[1]}@{size}"
            if case.subgroup in ("thin", "wide") and case.name in self.shares and dense in self.shares:
                self.kas_line(case, "share_of_dense_efficiency", self.shares[case.name] / self.shares[dense])
        dense = self.networks.get("resnet18@224")
        for name, (time, macs) in self.networks.items():
            if dense and name != "resnet18@224":
                self.line(name, "kas", "speedup_over_dense", dense[0] / time)
                self.line(name, "kas", "speedup_over_flop_ratio", dense[0] / time / (dense[1] / macs))
        for (group, metric), values in self.means.items():
            if group != "call":
                self.line(f"geomean/{group}", "kas", metric, geomean(values), n=len(values))


def case_peak(machine):
    """GFLOP/s from the milliseconds of the kernel of machine.c."""
    from .workers import PEAK_FLOPS

    return 1e-6 * PEAK_FLOPS / machine["peak"] if "peak" in machine else 0
