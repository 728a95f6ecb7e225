# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lines of JSON like those of kas-bench, from what was measured."""

import json
import math

from . import groupedlayers

# f32 sums in another order; what computes in a shorter format or by another algorithm with larger errors does not count.
TOLERANCE = 1e-4


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


class Report:
    def __init__(self, stream, threads):
        self.stream, self.threads = stream, threads
        self.means = {}  # (group, metric) -> values
        self.shares = {}  # case -> share of peak
        self.calls = {}  # case -> share of peak of calls from C
        self.networks = {}  # case -> (milliseconds, multiply-adds)

    def line(self, case, impl, metric, value, unit="", **more):
        entry = {"suite": "cpu", "case": case, "impl": impl, "metric": metric, "value": float(f"{value:.6g}"), "unit": unit, **more}
        if self.threads != 1:
            entry["threads"] = self.threads
        self.stream.write(json.dumps(entry) + "\n")
        self.stream.flush()

    def kas_line(self, case, metric, value):
        """A number of ours that is averaged over the classes of the case."""
        self.line(case.name, "kas", metric, value, **{"class": case.group})
        layers = ("grouped layers",) if groupedlayers.get_dense(case.name) else ()
        for group in dict.fromkeys((case.group, case.subgroup, *layers)):
            self.means.setdefault((group, metric), []).append(value)

    def case(self, case, variants):
        machine = {variant.name: variant.median for variant in variants if variant.worker.name == "machine"}
        variants = [variant for variant in variants if variant.worker.name != "machine"]
        gflop = 2e-9 * case.macs
        peak = case_peak(machine)
        for variant in variants:
            times = variant.times
            self.line(case.name, variant.name, "time_ms", variant.median, "ms", median=round(variant.median, 6), min=round(min(times), 6), n=len(times),
                      max_rel_err=float(f"{variant.error:.3g}"), ok=variant.error <= TOLERANCE, flops=2 * case.macs, bytes=4 * case.elements, **{"class": case.group, "subclass": case.subgroup})
            self.line(case.name, variant.name, "gflops", 1e3 * gflop / variant.median, "GFLOP/s")
            if peak:
                self.line(case.name, variant.name, "share_of_peak", 1e3 * gflop / variant.median / (peak * self.threads), real=round(case.real, 4))
        if peak:
            self.line(case.name, "machine", "peak_gflops", peak, "GFLOP/s")
        if "copy" in machine:
            self.line(case.name, "machine", "copy_bandwidth", 4e-6 * case.elements / machine["copy"], "GB/s")
        for variant in variants:
            if variant.name == "kas-from-c" and variant.error <= TOLERANCE and peak:
                self.calls[case.name] = 1e3 * gflop / variant.median / (peak * self.threads)
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
            others = [v for v in variants if v.worker.name != ours.worker.name and v.error <= TOLERANCE and v.name.endswith("/by-hand") == by_hand]
            if others:
                best = min(others, key=lambda variant: variant.median)
                self.kas_line(case, metric, best.median / ours.median)
                self.line(case.name, best.name, metric.replace("ratio_to_", ""), best.median, "ms")

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
            layer = groupedlayers.get_dense(case.name)
            if layer and case.name in self.calls and layer[0] in self.calls:
                # Shares of the peak, not times: the machine may have been slower in one of them.
                self.kas_line(case, "achieved_over_expected", self.calls[case.name] / self.calls[layer[0]])
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
