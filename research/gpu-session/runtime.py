# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for GPUs through libkas-rt: `kas-rt.h` for Python, and what a manifest says about a program."""

import base64
import ctypes
from collections import Counter
from ctypes import byref, c_char, c_char_p, c_double, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

import numpy as np

QUIET_NAN = 0x7FFF7FFF
"""In f32 and, twice, in f16 and bf16: what no kernel writes is detected."""


class DeviceInfo(ctypes.Structure):
    _fields_ = [
        ("backend", c_int32), ("name", c_char * 256), ("architecture", c_char * 32), ("maxThreadsPerBlock", c_uint32),
        ("maxBlock", c_uint32 * 3), ("maxGrid", c_uint32 * 3), ("maxSharedBytes", c_uint32), ("maxBuffers", c_uint32),
        ("warpSize", c_uint32), ("maxBufferBytes", c_uint64), ("memoryBytes", c_uint64), ("hasFloat16", c_int32),
        ("isHost", c_int32),
    ]  # fmt: skip


class TensorMap(ctypes.Structure):
    _fields_ = [
        ("argument", c_uint32), ("rank", c_uint32), ("isBFloat16", c_int32), ("sizes", c_uint64 * 5),
        ("strides", c_uint64 * 4), ("box", c_uint32 * 5),
    ]  # fmt: skip


class LaunchSize(ctypes.Structure):
    _fields_ = [("grid", c_uint32 * 3), ("block", c_uint32 * 3), ("dynamicSharedBytes", c_uint32)]


class Argument(ctypes.Structure):
    _fields_ = [("buffer", c_void_p), ("offset", c_uint64), ("bytes", c_uint64)]


class Step(ctypes.Structure):
    _fields_ = [
        ("kernel", c_void_p), ("size", LaunchSize), ("arguments", ctypes.POINTER(Argument)), ("count", c_uint32),
    ]  # fmt: skip


class Matrix(ctypes.Structure):
    _fields_ = [("argument", c_uint32), ("strides", c_uint64 * 3)]


class Matmul(ctypes.Structure):
    _fields_ = [
        ("sizes", c_uint64 * 4), ("left", Matrix), ("right", Matrix), ("result", Matrix), ("factorType", c_int32),
        ("resultType", c_int32), ("precision", c_int32), ("bias", c_int32), ("residual", c_int32),
        ("isRectified", c_int32),
    ]  # fmt: skip


class Convolution(ctypes.Structure):
    _fields_ = [
        ("image", c_uint32), ("filter", c_uint32), ("result", c_uint32), ("imageSizes", c_uint64 * 4),
        ("filterSizes", c_uint64 * 4), ("strides", c_uint64 * 2), ("dilations", c_uint64 * 2), ("pads", c_uint64 * 2),
        ("areChannelsLast", c_int32), ("elementType", c_int32), ("precision", c_int32), ("bias", c_int32),
        ("residual", c_int32), ("isRectified", c_int32),
    ]  # fmt: skip


PRECISIONS = ("f32", "tf32", "f16", "bf16")
"""In the order of `KasRtElement`."""


def make_matmul(kernel: dict) -> Matmul:
    """What a kernel of a manifest computes, as the runtime takes it."""
    entry = kernel["matmul"]
    made = Matmul((c_uint64 * 4)(*entry["sizes"]))
    for name in ("left", "right", "result"):
        setattr(made, name, Matrix(entry[name]["argument"], (c_uint64 * 3)(*entry[name]["strides"])))
    made.factorType = PRECISIONS.index(kernel["arguments"][entry["left"]["argument"]]["dtype"])
    made.resultType = PRECISIONS.index(kernel["arguments"][entry["result"]["argument"]]["dtype"])
    set_epilogue(made, entry)
    return made


def make_convolution(kernel: dict) -> Convolution:
    entry = kernel["convolution"]
    made = Convolution(entry["image"], entry["filter"], entry["result"])
    made.imageSizes, made.filterSizes = (c_uint64 * 4)(*entry["image_sizes"]), (c_uint64 * 4)(*entry["filter_sizes"])
    for name in ("strides", "dilations", "pads"):
        setattr(made, name, (c_uint64 * 2)(*entry[name]))
    made.areChannelsLast = entry["channels_last"]
    made.elementType = PRECISIONS.index(kernel["arguments"][entry["image"]]["dtype"])
    set_epilogue(made, entry)
    return made


def set_epilogue(made: Matmul | Convolution, entry: dict) -> None:
    made.precision = PRECISIONS.index(entry["precision"])
    made.bias, made.residual = entry.get("bias", -1), entry.get("residual", -1)
    made.isRectified = entry["rectified"]


class DriverError(Exception):
    """What a call of the runtime says that failed."""


def narrow(values: np.ndarray, dtype: str) -> np.ndarray:
    """Values of f32 as elements of `dtype`, rounded to nearest, ties to even."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    if dtype == "f16":
        return values.astype(np.float16)
    if dtype == "bf16":
        bits = values.view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return values


def widen(values: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bf16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32)


ELEMENTS = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i32": np.int32}


def count_bytes(buffer: dict) -> int:
    return int(np.prod(buffer["shape"], dtype=np.int64)) * np.dtype(ELEMENTS[buffer["dtype"]]).itemsize


class Device:
    """An open device of `library`, the path of libkas-rt.so."""

    def __init__(self, library: str, name: str):
        self.library = ctypes.CDLL(library)
        self.library.kasRtErrorText.restype = c_char_p
        self.library.kasRtKernelGetLibrary.restype = c_char_p
        self.handle = c_void_p()
        self.call("kasRtDeviceOpen", name.encode(), byref(self.handle))
        self.info = DeviceInfo()
        self.call("kasRtDeviceGetInfo", self.handle, byref(self.info))

    def call(self, name: str, *arguments) -> None:
        if getattr(self.library, name)(*arguments):
            raise DriverError(self.library.kasRtErrorText().decode(errors="replace"))

    def synchronize(self) -> None:
        self.call("kasRtSynchronize", self.handle)

    def create_event(self) -> c_void_p:
        event = c_void_p()
        self.call("kasRtEventCreate", self.handle, byref(event))
        return event

    def close(self) -> None:
        self.call("kasRtDeviceClose", self.handle)


class Program:
    """A function of a compiled program with buffers of its own; `close` frees them.

    With `lender`, a program with the same arguments, those are the lender's, which has to live longer.
    """

    def __init__(self, device: Device, manifest: dict, binary: bytes, function: str, lender: "Program | None" = None):
        self.device = device
        self.lender = lender or self
        self.lent = lender._list("argument") if lender else []
        self.function = next(entry for entry in manifest["functions"] if entry["name"] == function)
        self.module = c_void_p()
        self.scratch = c_void_p()
        self.prepack = c_void_p()
        self.sequence = c_void_p()
        # How often arguments were uploaded, and of which upload the weights are prepacked.
        self.uploads, self.prepacked = 0, -1
        self.buffers: list[c_void_p | None] = []
        try:
            self._create_buffers()
            device.call("kasRtModuleLoad", device.handle, binary, c_size_t(len(binary)), byref(self.module))
            self.launches = [self._create_launch(manifest, launch) for launch in self.function["launches"]]
            count = self.function.get("prepack_launches", 0)
            self.prepack = self._create_sequence(self.launches[:count])
            self.sequence = self._create_sequence(self.launches[count:])
        except DriverError:
            self.close()
            raise

    def _create_buffer(self, size: int) -> c_void_p:
        buffer = c_void_p()
        self.device.call("kasRtBufferCreate", self.device.handle, c_uint64(size), byref(buffer))
        return buffer

    def _fill(self, buffer: c_void_p, size: int) -> None:
        if size % 4 == 0:
            self.device.call("kasRtBufferFill", buffer, c_uint32(QUIET_NAN))

    def _create_buffers(self) -> None:
        size = self.function.get("scratch_bytes", 0)
        if size:
            self.scratch = self._create_buffer(size)
            self._fill(self.scratch, size)
        for entry in self.function["buffers"]:
            if entry["kind"] == "scratch":
                self.buffers.append(None)
                continue
            if entry["kind"] == "argument" and self.lent:
                self.buffers.append(self.lent[len(self.buffers)][1])
                continue
            size = count_bytes(entry)
            buffer = self._create_buffer(size)
            self.buffers.append(buffer)
            if entry["kind"] == "constant":
                data = base64.b64decode(entry["data"])
                self.device.call("kasRtBufferWrite", buffer, c_uint64(0), data, c_uint64(len(data)))
            elif entry["kind"] in ("result", "status"):
                self._fill(buffer, size)

    def _create_launch(self, manifest: dict, launch: dict):
        kernel = manifest["kernels"][launch["kernel"]]
        arguments = (Argument * len(launch["arguments"]))()
        for argument, position in zip(arguments, launch["arguments"]):
            entry, buffer = self.function["buffers"][position], self.buffers[position]
            argument.buffer = (buffer or self.scratch).value
            argument.offset = 0 if buffer else entry["offset"]
            argument.bytes = count_bytes(entry)
        size = LaunchSize(
            (c_uint32 * 3)(*kernel["grid"]), (c_uint32 * 3)(*kernel["block"]), kernel.get("dynamic_shared_bytes", 0)
        )
        entries = kernel.get("tensor_maps", [])
        maps = (TensorMap * max(1, len(entries)))()
        for made, entry in zip(maps, entries):
            made.argument, made.rank = entry["argument"], len(entry["sizes"])
            made.isBFloat16 = kernel["arguments"][entry["argument"]]["dtype"] == "bf16"
            for field in ("sizes", "strides", "box"):
                for index, value in enumerate(entry[field]):
                    getattr(made, field)[index] = value
        handle = c_void_p()
        self.device.call(
            "kasRtModuleGetKernelWithTensorMaps", self.module, kernel["name"].encode(), c_uint32(len(arguments)),
            maps, c_uint32(len(entries)), byref(handle),
        )  # fmt: skip
        if "matmul" in kernel:
            self.device.call("kasRtKernelUseMatmul", handle, byref(make_matmul(kernel)))
        if "convolution" in kernel:
            self.device.call("kasRtKernelUseConvolution", handle, byref(make_convolution(kernel)))
        return handle, size, arguments

    def count_libraries(self) -> dict[str, int]:
        """How many launches a library computes, by its name, or a kernel for want of one, by the reason."""
        texts = [self.device.library.kasRtKernelGetLibrary(handle).decode() for handle, _, _ in self.launches]
        return dict(Counter(text for text in texts if text != "kernel"))

    def _create_sequence(self, launches: list) -> c_void_p:
        """Launches as one, a graph with CUDA: what is measured has no calls of Python between kernels."""
        sequence = c_void_p()
        steps = [Step(handle.value, size, arguments, len(arguments)) for handle, size, arguments in launches]
        if steps:
            self.device.call(
                "kasRtSequenceCreate", self.device.handle, (Step * len(steps))(*steps), c_uint32(len(steps)),
                byref(sequence),
            )  # fmt: skip
        return sequence

    def close(self) -> None:
        for sequence in (self.prepack, self.sequence):
            if sequence:
                self.device.call("kasRtSequenceDestroy", sequence)
        self.prepack, self.sequence = c_void_p(), c_void_p()
        for buffer in [*self.buffers[len(self.lent) :], self.scratch]:
            if buffer:
                self.device.call("kasRtBufferDestroy", buffer)
        if self.module:
            self.device.call("kasRtModuleUnload", self.module)
        self.buffers, self.scratch, self.module = [], c_void_p(), c_void_p()

    def _list(self, kind: str):
        return [(entry, buffer) for entry, buffer in zip(self.function["buffers"], self.buffers)
                if entry["kind"] == kind]  # fmt: skip

    def upload(self, arguments: list[np.ndarray]) -> None:
        self.uploads += 1
        for (entry, buffer), values in zip(self._list("argument"), arguments, strict=True):
            data = narrow(values, entry["dtype"])
            self.device.call("kasRtBufferWrite", buffer, c_uint64(0), c_void_p(data.ctypes.data), c_uint64(data.nbytes))

    def launch(self) -> None:
        """A call; the first one after an upload prepacks the weights."""
        if self.prepack and self.prepacked != self.lender.uploads:
            self.device.call("kasRtSequenceLaunch", self.prepack)
            self.prepacked = self.lender.uploads
        if self.sequence:
            self.device.call("kasRtSequenceLaunch", self.sequence)

    def download(self) -> np.ndarray:
        """The first result."""
        entry, buffer = self._list("result")[0]
        data = np.empty(entry["shape"], ELEMENTS[entry["dtype"]])
        self.device.call("kasRtBufferRead", buffer, c_uint64(0), c_void_p(data.ctypes.data), c_uint64(data.nbytes))
        return widen(data, entry["dtype"])


def measure(device: Device, programs: list[Program], seconds: float, rounds: int = 7) -> list[float]:
    """Milliseconds of one run by the device's clock: of `rounds` queues of runs, copy after copy."""
    start, stop = device.create_event(), device.create_event()
    elapsed = c_double()

    def run(count: int) -> float:
        device.call("kasRtEventRecord", start)
        for index in range(count):
            programs[index % len(programs)].launch()
        device.call("kasRtEventRecord", stop)
        device.call("kasRtEventElapsed", start, stop, byref(elapsed))
        return elapsed.value / count

    try:
        run(len(programs))
        once = max(run(2 * len(programs)), 1e-3)
        count = max(len(programs), min(2000, int(seconds * 1e3 / rounds / once)))
        return [run(count) for _ in range(rounds)]
    finally:
        for event in (start, stop):
            device.call("kasRtEventDestroy", event)


__all__ = ["Device", "DriverError", "Program", "measure"]
