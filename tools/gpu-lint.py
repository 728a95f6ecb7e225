#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what `kas-bench gpu --static` reports about the named kernels with the record of it.

Exit code 1 where a number of a case is worse than recorded, or where the cases are not those of the record. Numbers of
machine code are compared where the same ptxas wrote it, and where there is a disassembler.
"""

import argparse
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RECORD = os.path.join(ROOT, "test", "Tools", "kas-bench", "Inputs", "gpu-static.json")
# The lower the better, in PTX or in the model.
COUNTS = ["narrow_loads", "narrow_stores", "modelled_read_bytes", "modelled_written_bytes", "modelled_us"]
# The same of machine code, and what is better the higher it is.
MACHINE_COUNTS = ["narrow_loads_of_machine_code", "narrow_stores_of_machine_code", "spilled_bytes", "serialized"]
MACHINE_SHARES = ["loop_matrix_products_per_instruction"]


def find_assembler():
    """Lets kas-bench use the toolkit of the tests; the version of its ptxas, empty: there is none."""
    script = os.path.join(ROOT, "tools", "cuda-toolkit.py")
    root = subprocess.run([sys.executable, script], capture_output=True, text=True).stdout.strip()
    if not root:
        return ""
    os.environ["CUDA_ROOT"] = root
    command = [os.path.join(root, "bin", "ptxas"), "--version"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.search(r"V(\d+\.\d+\.\d+)", text).group(1)


def measure(program, chip, pattern):
    """The numbers of each case, by name."""
    command = [program, "gpu", "--static", f"--chip={chip}", f"--filter={pattern}"]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    cases = {}
    for line in map(json.loads, text.splitlines()):
        if line["metric"] in COUNTS + MACHINE_COUNTS + MACHINE_SHARES and not line["case"].startswith("geomean/"):
            # Five digits: a modelled time is no more exact.
            value = float(f"{line['value']:.5g}")
            cases.setdefault(line["case"], {})[line["metric"]] = int(value) if value.is_integer() else value
    return cases


def compare(recorded, measured, has_machine_code):
    """What is worse, a line for each number."""
    errors = []
    for case in sorted(recorded.keys() | measured.keys()):
        if case not in recorded or case not in measured:
            errors.append(f"{case}: {'not in the record' if case in measured else 'in the record only'}")
            continue
        metrics = COUNTS + (MACHINE_COUNTS + MACHINE_SHARES if has_machine_code else [])
        for metric in metrics:
            # What is zero is left out of the record.
            before, now = recorded[case].get(metric, 0), measured[case].get(metric)
            if now is None:
                continue
            if now < before * 0.999 if metric in MACHINE_SHARES else now > before * 1.001:
                errors.append(f"{case}: {metric} was {before:g}, got {now:g}")
    return errors


def write(values):
    """The numbers of a case as in the record."""
    return json.dumps({metric: value for metric, value in values.items() if value != 0})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=os.path.join(ROOT, "build", "bin", "kas-bench"), metavar="PATH")
    parser.add_argument("--record", default=RECORD, metavar="FILE")
    parser.add_argument("--chip", action="append", metavar="NAME", help="only these of the record")
    parser.add_argument("--filter", default=".*", metavar="REGEX", help="only cases that match")
    parser.add_argument("--update", action="store_true", help="make what is measured the record")
    arguments = parser.parse_args()
    record = {"ptxas": "", "chips": {}}
    if os.path.exists(arguments.record):
        with open(arguments.record) as file:
            record = json.load(file)
    assembler = find_assembler()
    if arguments.update:
        record["ptxas"] = assembler
    errors = []
    for chip in arguments.chip or ["sm_80", "sm_90a"]:
        measured = measure(arguments.bench, chip, arguments.filter)
        # As LLVM's regular expressions are searched for.
        recorded = record["chips"].setdefault(chip, {})
        selected = {case: values for case, values in recorded.items() if re.search(arguments.filter, case)}
        if arguments.update:
            if not all(MACHINE_COUNTS[0] in values for values in measured.values()):
                sys.exit("expected ptxas and nvdisasm for a record, got none (see tools/cuda.sh)")
            kept = {case: values for case, values in recorded.items() if case not in selected}
            record["chips"][chip] = dict(sorted({**kept, **measured}.items()))
            continue
        errors += [f"{chip}: {error}" for error in compare(selected, measured, assembler == record["ptxas"])]
        print(f"{chip}: {len(measured)} kernels")
    if arguments.update:
        with open(arguments.record, "w") as file:
            lines = (
                f'  "{chip}": {{\n'
                + ",\n".join(f"    {json.dumps(case)}: {write(values)}" for case, values in cases.items())
                + "\n  }"
                for chip, cases in sorted(record["chips"].items())
            )
            file.write(f'{{"ptxas": "{record["ptxas"]}", "chips": {{\n' + ",\n".join(lines) + "\n}}\n")
    if assembler != record["ptxas"]:
        print(f"ptxas {record['ptxas']} wrote the record, got {assembler or 'none'}: machine code is not compared")
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    if errors:
        sys.exit("a change that is meant so: tools/gpu-lint.py --update")


if __name__ == "__main__":
    main()
