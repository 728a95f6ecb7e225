"""Writes .npy and .npz files, good ones and broken ones: npy.py KIND FILE.

KIND is `SHAPE` (f32 of ones, such as 2x3), or a damage followed by the shape:
f64:2x3, big:2x3 (byte order), fortran:2x3, truncated:2x3, trailing:2x3, nan:2x3,
npz:NAME=SHAPE,... (deflated), cut:NAME=SHAPE (the archive loses its end).
A shape may have a value before it (-1*2x3) and the position of a zero after it (2x3/5).
Only the standard library is needed.
"""

import io
import struct
import sys
import zipfile


def npy(shape, dtype="<f4", fortran=False, value=1.0):
    if "*" in shape:
        number, _, shape = shape.partition("*")
        value = float(number)
    shape, _, zero = shape.partition("/")
    dims = [int(d) for d in shape.split("x")]
    count = 1
    for d in dims:
        count *= d
    text = ", ".join(map(str, dims)) + ("," if len(dims) == 1 else "")
    header = f"{{'descr': '{dtype}', 'fortran_order': {fortran}, 'shape': ({text}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    code = {"<f4": "<f", ">f4": ">f", "<f8": "<d"}[dtype]
    values = [value] * count
    if zero:
        values[int(zero)] = 0.0
    data = b"".join(struct.pack(code, v) for v in values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def make(kind):
    damage, _, shape = kind.rpartition(":")
    if damage in ("npz", "cut"):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for member in shape.split(","):
                name, _, dims = member.partition("=")
                archive.writestr(name + ".npy", npy(dims))
        data = buffer.getvalue()
        return data[: len(data) - 30] if damage == "cut" else data
    return {
        "": lambda: npy(shape),
        "f64": lambda: npy(shape, "<f8"),
        "big": lambda: npy(shape, ">f4"),
        "fortran": lambda: npy(shape, fortran=True),
        "truncated": lambda: npy(shape)[:-1],
        "trailing": lambda: npy(shape) + b"x",
        "nan": lambda: npy(shape, value=float("nan")),
    }[damage]()


kind, path = sys.argv[1:]
with open(path, "wb") as file:
    file.write(make(kind))
