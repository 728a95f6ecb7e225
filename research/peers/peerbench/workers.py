# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One process per implementation: loads a case in all its variants, checks their outputs, and times them on request.

Lines of JSON on the standard input and output. `begin` forgets what was loaded and names the variants of a case; `load`
prepares one and says how far its output is from the float64 one; `time` makes some calls of one variant, in turn over
inputs that do not fit the second-level cache together. Calls to the other workers come in between, so that all see the
same weather.
"""

import ctypes
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from typing import ClassVar

from . import groupedlayers
from .isa import CPUS


class Loaded:
    """A variant: a call for each input without arguments, and the output for input i as an array."""

    def __init__(self, calls, fetch, timer=None):
        # timer(start, count): nanoseconds of so many calls, where they are not made from Python.
        self.calls, self.fetch, self.timer = calls, fetch, timer


class Kas:
    name = "kas"

    def __init__(self, threads):
        import numpy

        self.numpy, self.threads, self.keep = numpy, threads, []

    def versions(self):
        return {}

    def forget(self):
        self.keep.clear()

    def variants(self, case, directory, forms):
        yield "kas", lambda: self.load(case, directory)
        if case.group in groupedlayers.LAYERS:
            yield "kas-from-c", lambda: self.load(case, directory, from_c=True)
            if layer := groupedlayers.get_dense(case.name):
                # Next to it in the same rounds; it has been checked as a case of its own.
                yield (
                    "kas-dense-from-c",
                    lambda: Loaded([], None, self.load(case, self.find_directory(layer[0]), from_c=True).timer),
                )
        for name in case.others:
            yield f"kas/{name}", lambda name=name: self.load_other(case, directory, name)

    def load_other(self, case, directory, name):
        return Loaded(self.load(case, directory, name=f"kas-{name}").calls, None)

    def load(self, case, directory, from_c=False, name="kas"):
        """The shared object of the case, called as a C program would; `from_c`: by one."""
        np = self.numpy
        # As kas-run does: memory for intermediate results stays with the process.
        libc = ctypes.CDLL(None)
        for option in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
            libc.mallopt(option, 1 << 30)
        library = ctypes.CDLL(str(directory / f"{name}-{self.threads}.so"))
        function = getattr(library, case.entry)
        function.restype = None
        with np.load(directory / f"{name}-weights.npz") as stored:
            weights = [np.ascontiguousarray(stored[key]) for key in stored.files]
        shape = np.load(directory / "y.npy", mmap_mode="r").shape[1:]
        inputs = [x.copy() for x in np.load(directory / "x.npy")]
        output = np.empty(shape, np.float32)

        def pointer(array):
            return ctypes.c_void_p(array.ctypes.data)

        tail = [pointer(w) for w in weights] + [pointer(output)]
        packed = self.prepare(library, case.entry, tail[:-1])
        if packed is not None:
            tail.append(pointer(packed))
        calls = []
        for x in inputs:
            arguments = [pointer(x), *tail]
            calls.append(lambda arguments=arguments: function(*arguments))

        def fetch(i):
            output.fill(float("nan"))
            calls[i]()
            return output.copy()

        # The arrays live as long as the calls.
        self.keep.append((library, inputs, weights, output, packed))
        timer = self.make_timer(directory, function, [[pointer(x), *tail] for x in inputs]) if from_c else None
        return Loaded(calls, fetch, timer)

    def make_timer(self, directory, function, arguments):
        machine = ctypes.CDLL(str(directory.parent / "machine.so"))
        table = (ctypes.c_void_p * 6 * len(arguments))()
        for row, pointers in zip(table, arguments):
            for i, pointer in enumerate(pointers):
                row[i] = pointer

        def time_calls(start, count):
            times = (ctypes.c_double * count)()
            machine.kas_time_calls(function, table, len(arguments), start, count, times)
            return list(times)

        return time_calls

    def prepare(self, library, entry, weights):
        """The weights as the function wants them, if it does: rearranged once."""
        try:
            count = getattr(library, f"{entry}_prepacked_elements")
        except AttributeError:
            return None
        count.restype = ctypes.c_int64
        size = count()
        # At the beginning of a line of the cache.
        memory = self.numpy.zeros(size + 16, self.numpy.float32)
        packed = memory[-(memory.ctypes.data // 4) % 16 :][:size]
        prepare = getattr(library, f"{entry}_prepack")
        prepare.restype = None
        prepare(*weights, ctypes.c_void_p(packed.ctypes.data))
        return packed


class PyTorch:
    name = "pytorch"
    # What is measured of each form unless all variants are requested; of convolutions the compiled ones are libraries'
    # in either layout.
    every: ClassVar = [
        "eager",
        "eager-nhwc",
        "compiled",
        "compiled-nhwc",
        "compiled-frozen",
        "compiled-frozen-nhwc",
        "compiled-autotuned",
    ]
    usual: ClassVar = {
        "searched": ["eager", "compiled"],
        "new": ["eager", "compiled", "compiled-frozen", "compiled-autotuned"],
        "network": ["eager", "eager-nhwc", "compiled", "compiled-frozen", "compiled-frozen-nhwc"],
    }

    def __init__(self, threads):
        import numpy
        import torch
        import torch._dynamo

        self.numpy, self.torch = numpy, torch
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        torch.set_grad_enabled(False)
        torch._dynamo.config.cache_size_limit = 1000

    def versions(self):
        return {"torch": self.torch.__version__}

    def variants(self, case, directory, forms):
        for form in forms:
            convolutions = case.subgroup == "sequence" or case.group not in self.usual or form == "by-hand"
            names = ["eager", "eager-nhwc", "compiled-frozen-nhwc"] if convolutions else self.usual[case.group]
            for name in self.every if self.all_variants else names:
                variant = f"pytorch-{name}" + ("" if form == "written" else "/" + form)
                yield variant, lambda name=name, form=form: self.load(case, directory, name, form)

    def load(self, case, directory, name, form):
        torch, channels_last = self.torch, self.torch.channels_last
        module = case.build(torch, form)
        inputs = [torch.from_numpy(x.copy()) for x in self.numpy.load(directory / "x.npy")]
        if name.endswith("nhwc"):
            for parameter in module.parameters():
                if parameter.dim() == 4:
                    parameter.data = parameter.data.contiguous(memory_format=channels_last)
            inputs = [x.to(memory_format=channels_last) for x in inputs]
        function = module
        if not name.startswith("eager"):
            import torch._inductor.config as inductor

            torch._dynamo.reset()
            inductor.freezing = "frozen" in name or "autotuned" in name
            mode = {"mode": "max-autotune-no-cudagraphs"} if "autotuned" in name else {}
            function = torch.compile(module, dynamic=False, fullgraph=True, **mode)
            function(inputs[0])
            inductor.freezing = False
        return Loaded([lambda x=x: function(x) for x in inputs], lambda i: function(inputs[i]).contiguous().numpy())


class ONNXRuntime:
    name = "onnxruntime"

    def __init__(self, threads):
        import numpy
        import onnxruntime

        self.numpy, self.runtime, self.threads = numpy, onnxruntime, threads

    def versions(self):
        return {"onnxruntime": self.runtime.__version__}

    def variants(self, case, directory, forms):
        for form in forms:
            yield (
                "onnxruntime" + ("" if form == "written" else "/" + form),
                lambda form=form: self.load(directory, form),
            )

    def load(self, directory, form):
        ort, np = self.runtime, self.numpy
        options = ort.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        session = ort.InferenceSession(str(directory / f"{form}.onnx"), options, providers=["CPUExecutionProvider"])
        shape = list(np.load(directory / "y.npy", mmap_mode="r").shape[1:])
        output = ort.OrtValue.ortvalue_from_shape_and_type(shape, np.float32, "cpu")
        calls = []
        for x in np.load(directory / "x.npy"):
            binding = session.io_binding()
            binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x.copy(), "cpu"))
            binding.bind_ortvalue_output("y", output)
            calls.append(lambda binding=binding: session.run_with_iobinding(binding))

        def fetch(i):
            calls[i]()
            return output.numpy().copy()

        return Loaded(calls, fetch)


class OpenVINO:
    name = "openvino"

    def __init__(self, threads):
        import numpy
        import openvino

        self.numpy, self.openvino, self.threads = numpy, openvino, threads
        self.core = openvino.Core()

    def versions(self):
        return {"openvino": self.openvino.__version__}

    def variants(self, case, directory, forms):
        for form in forms:
            yield "openvino" + ("" if form == "written" else "/" + form), lambda form=form: self.load(directory, form)

    def load(self, directory, form):
        # f32 is requested: by itself it takes a shorter format where the machine has one.
        model = self.core.compile_model(
            str(directory / f"{form}.onnx"),
            "CPU",
            {
                "PERFORMANCE_HINT": "LATENCY",
                "NUM_STREAMS": "1",
                "INFERENCE_NUM_THREADS": str(self.threads),
                "INFERENCE_PRECISION_HINT": "f32",
                "ENABLE_CPU_PINNING": "NO",
            },
        )
        requests, calls = [], []
        for x in self.numpy.load(directory / "x.npy"):
            request = model.create_infer_request()
            request.set_input_tensor(self.openvino.Tensor(x.copy()))
            requests.append(request)

            def call(request=request):
                request.start_async()
                request.wait()

            calls.append(call)

        def fetch(i):
            calls[i]()
            return requests[i].get_output_tensor(0).data.copy()

        return Loaded(calls, fetch)


class IREE:
    name = "iree"
    pipeline = "--iree-preprocessing-pass-pipeline=builtin.module(util.func({}))"
    flags: ClassVar = {
        "iree": [],
        "iree-nhwc": [pipeline.format("iree-preprocessing-convert-conv-to-channels-last")],
        "iree-im2col": [pipeline.format("iree-global-opt-convert-conv2d-to-img2col")],
    }

    def __init__(self, threads):
        import iree.runtime
        import numpy

        self.numpy, self.runtime = numpy, iree.runtime
        if threads == 1:
            self.config = iree.runtime.Config(driver_name="local-sync")
        else:
            iree.runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
            self.config = iree.runtime.Config(driver_name="local-task")

    def versions(self):
        from importlib.metadata import version

        return {package: version(package) for package in ("iree-base-compiler", "iree-base-runtime")}

    def variants(self, case, directory, forms):
        for form in forms:
            for name, flags in self.flags.items():
                if name != "iree" and case.subgroup in ("thin", "depthwise", "call") and not self.all_variants:
                    continue
                variant = name + ("" if form == "written" else "/" + form)
                yield variant, lambda name=name, flags=flags, form=form: self.load(directory, name, flags, form)

    def compile(self, directory, name, flags, form):
        from pathlib import Path

        programs = Path(sys.executable).parent
        source = directory / f"{form}.iree.mlir"
        target = directory / f"{form}.{name}.{self.cpu or 'host'}.vmfb"
        if not source.exists():
            subprocess.run(
                [programs / "iree-import-onnx", directory / f"{form}.onnx", "-o", source],
                check=True,
                capture_output=True,
                timeout=120,
            )
        if not target.exists():
            command = [
                programs / "iree-compile",
                source,
                "--iree-hal-target-device=local",
                "--iree-hal-local-target-device-backends=llvm-cpu",
                f"--iree-llvmcpu-target-cpu={self.cpu or 'host'}",
                "--iree-opt-level=O3",
                *flags,
                "-o",
                target,
            ]
            done = subprocess.run(command, capture_output=True, text=True, timeout=240)
            if done.returncode:
                raise RuntimeError("iree-compile: " + done.stderr.strip()[:300])
        return target

    def load(self, directory, name, flags, form):
        rt, np, device = self.runtime, self.numpy, self.config.device
        context = rt.SystemContext(config=self.config)
        module = rt.VmModule.mmap(self.config.vm_instance, str(self.compile(directory, name, flags, form)))
        context.add_vm_module(module)
        function, vm = module.lookup_function("main_graph"), context.vm_context
        arguments = []
        for x in np.load(directory / "x.npy"):
            view = device.allocator.allocate_buffer_copy(
                memory_type=rt.MemoryType.DEVICE_LOCAL,
                allowed_usage=rt.BufferUsage.DEFAULT | rt.BufferUsage.MAPPING,
                device=device,
                buffer=x.copy(),
                element_type=rt.HalElementType.FLOAT_32,
            )
            operands = rt.VmVariantList(1)
            operands.push_ref(view)
            arguments.append(operands)

        def call(operands, keep=(context, module)):
            results = rt.VmVariantList(1)
            vm.invoke(function, operands, results)
            return results

        def fetch(i):
            view = call(arguments[i]).get_as_object(0, rt.HalBufferView)
            return rt.DeviceArray(device, view, implicit_host_transfer=True).to_host().copy()

        return Loaded([lambda operands=operands: call(operands) for operands in arguments], fetch)


# Of one call of the kernel of machine.c.
PEAK_FLOPS = 2.0 * 16 * 24 * 25000


class Machine:
    """The peak of one core, and copies of as many bytes as the tensors of the case have, half read, half written."""

    name = "machine"

    def __init__(self, threads):
        import numpy

        self.numpy = numpy

    def versions(self):
        return {}

    def variants(self, case, directory, forms):
        library = ctypes.CDLL(str(directory.parent / "machine.so"))
        library.kas_peak_flops.restype = ctypes.c_double
        assert library.kas_peak_flops() == PEAK_FLOPS
        yield "peak", lambda: Loaded([library.kas_peak], None)
        np = self.numpy
        count = len(np.load(directory / "x.npy", mmap_mode="r"))
        size = max(1, case.elements // 2)
        sources, target = [np.ones(size, np.float32) for _ in range(count)], np.empty(size, np.float32)
        yield "copy", lambda: Loaded([lambda source=source: np.copyto(target, source) for source in sources], None)


IMPLEMENTATIONS = {worker.name: worker for worker in (Machine, Kas, PyTorch, ONNXRuntime, OpenVINO, IREE)}


class Limit:
    """Raises TimeoutError after so many seconds."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __enter__(self):
        def handler(*_):
            raise TimeoutError(f"over {self.seconds} s")

        self.old = signal.signal(signal.SIGALRM, handler)
        signal.alarm(self.seconds)

    def __exit__(self, *_):
        signal.alarm(0)
        signal.signal(signal.SIGALRM, self.old)


def relative_error(numpy, output, expected):
    if output.shape != expected.shape:
        raise RuntimeError(f"expected an output of shape {expected.shape}, got {output.shape}")
    error = float(numpy.abs(output.astype(numpy.float64) - expected).max() / numpy.abs(expected).max())
    return error if math.isfinite(error) else 1e30


def find_variants(worker, case, directory, request):
    """Name -> what loads it."""
    return {
        variant: make
        for variant, make in worker.variants(case, directory, request["forms"])
        if re.search(request.get("variants", "."), variant) or worker.name in ("machine", "kas")
    }


def load(worker, case, directory, request, live):
    """How far the outputs of a variant are off, or why there are none; what can be called is left in `live`."""
    import numpy

    expected, variant = numpy.load(directory / "y.npy"), request["variant"]
    try:
        make = find_variants(worker, case, directory, request)[variant]
        with Limit(request["limit"]):
            loaded = make()
            error = (
                max(relative_error(numpy, loaded.fetch(i), y) for i, y in enumerate(expected)) if loaded.fetch else 0.0
            )
        live[variant] = loaded
        return {"error": error}
    except Exception as problem:
        text = re.sub(r"\s+", " ", f"{type(problem).__name__}: {problem}".strip())
        return {"failure": text[:300]}


def time_calls(loaded, request):
    """Nanoseconds of each call, after one that is not counted."""
    calls = loaded.calls
    clock, times, i = time.perf_counter_ns, [], request["start"]
    if loaded.timer:
        # One that is not counted.
        return loaded.timer(i, request["repetitions"] + 1)[1:]
    calls[i % len(calls)]()
    begin = time.time()
    for count in range(request["repetitions"]):
        i += 1
        call = calls[i % len(calls)]
        start = clock()
        call()
        times.append(clock() - start)
        if count + 1 >= request["least"] and time.time() - begin > request["budget"]:
            break
    return times


def serve(name, threads, all_variants, isa, find_case):
    """Answers requests until the standard input ends. `find_case` gives a case and its directory by name."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # Libraries may print: the answers have a descriptor of their own.
    worker = IMPLEMENTATIONS[name](threads)
    worker.all_variants, worker.cpu = all_variants, CPUS[isa]
    worker.find_directory = lambda name: find_case(name)[1]
    answers.write(json.dumps({"versions": worker.versions()}) + "\n")
    live = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "begin":
                live.clear()
                if hasattr(worker, "forget"):
                    worker.forget()
                answer = {"variants": list(find_variants(worker, *find_case(request["case"]), request))}
            elif request["do"] == "load":
                answer = load(worker, *find_case(request["case"]), request, live)
            else:
                answer = {"times": time_calls(live[request["variant"]], request)}
        except Exception:
            answer = {"failure": traceback.format_exc()[-600:]}
        answers.write(json.dumps(answer) + "\n")
