"""Writes labelled images 8x8 of four classes as idx files: stripes along one of four directions, with noise.

usage: images.py FOLDER COUNT [CLASSES]

Makes images.idx and labels.idx. CLASSES (4) is how many classes there are.
"""

import os
import random
import struct
import sys

folder, count = sys.argv[1], int(sys.argv[2])
classes = int(sys.argv[3]) if len(sys.argv) > 3 else 4
rng = random.Random(7)
images, labels = bytearray(), bytearray()
for _ in range(count):
    label = rng.randrange(classes)
    phase = rng.randrange(4)
    for row in range(8):
        for column in range(8):
            place = [row, column, row + column, row - column, 0][min(label, 4)] + phase
            images.append((100 if place % 4 < 2 else 60) + rng.randrange(120))
    labels.append(label)
with open(os.path.join(folder, "images.idx"), "wb") as file:
    file.write(struct.pack(">BBBBIII", 0, 0, 8, 3, count, 8, 8) + images)
with open(os.path.join(folder, "labels.idx"), "wb") as file:
    file.write(struct.pack(">BBBBI", 0, 0, 8, 1, count) + labels)
