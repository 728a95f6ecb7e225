"""Without NumPy writes values as one sample to a file, or prints those of a file: npy.py FILE [EXTENTS VALUE...]."""

import struct
import sys

path, *rest = sys.argv[1:]
if rest:
    shape = "".join(f"{extent}, " for extent in ["1", *rest[0].split("x")])
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape})}}"
    header += " " * (117 - len(header)) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(rest) - 1}f", *map(float, rest[1:])))
else:
    with open(path, "rb") as file:
        data = file.read()
    data = data[10 + struct.unpack("<H", data[8:10])[0] :]
    print(*(f"{value:g}" for value in struct.unpack(f"<{len(data) // 4}f", data)))
