# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the models of language.py learn: a text by characters or by byte pairs, and three tasks made by a procedure.

The tasks are those of Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures" (2024), section 3, in a
form that needs no other network: `copy` (selective copying), `recall` (of pairs seen before in the window) and `facts`
(of pairs that are the same in all windows, so that weights must hold them; it stands for their tasks of memory and of
compression). Only answers are scored.
"""

import gzip
import io
import math
import zlib
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional

import kas.evaluate
import kas.torch

TEXT = Path("/usr/share/dictd/gcide.dict.dz")
LENGTH, BATCH = 128, 16
VALIDATION, TEST = 256, 1024
"""Windows of 128 tokens."""
PIECES = 1024
SAMPLE = 4_000_000
"""Characters of the training part that byte pairs are counted in."""
LETTERS, COPIED = 16, 16
KEYS, PAIRS = 16, 8
FACTS = 48
"""Two of so many keys have one of so many values: 2 304 facts of 5.6 bits."""
UNSCORED = -100
"""A target that `cross_entropy` leaves out."""


@dataclass(frozen=True)
class Sequences:
    """Windows of numbers below `kinds`. `tokens` are those for each character of the two parts that are evaluated."""

    data: kas.evaluate.TaskData
    kinds: int
    tokens: dict[str, float]


@dataclass(frozen=True)
class NextToken(kas.evaluate.Task):
    """To predict the next token; `bits` for each that is scored, and the share of these that are `right`."""

    metric = "bits"

    def loss(self, outputs, targets):
        return functional.cross_entropy(outputs.flatten(0, 1), targets.flatten(), ignore_index=UNSCORED)

    def metrics(self, outputs, targets):
        scored = targets != UNSCORED
        right = (outputs.argmax(-1) == targets)[scored].double().mean()
        return {"bits": self.loss(outputs, targets) / math.log(2), "right": right}

    def make_optimizer(self, network, recipe):
        groups = kas.torch.parameter_groups(network, recipe.learning_rate)
        return torch.optim.AdamW(groups, betas=(0.9, 0.95), weight_decay=recipe.weight_decay)


def read_text(path):
    """The bytes of a text; those that are not of ASCII are one."""
    if not path.exists():
        raise SystemExit(f"requires {path}, of Debian's package dict-gcide (tools/setup.sh --package=dict-gcide)")
    try:
        letters = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise SystemExit(f"requires a text that gzip has compressed, got {path}: {error}") from error
    codes = torch.frombuffer(bytearray(letters), dtype=torch.uint8)
    return torch.where(codes < 128, codes, 0)


def cut(numbers, count):
    """The first `count` windows: inputs, and what follows each token."""
    end = count * LENGTH
    return numbers[:end].view(count, LENGTH), numbers[1 : end + 1].view(count, LENGTH)


def require_length(length, steps):
    """Training, validation and test are eight, one and one tenth of a text, in this order."""
    least = 10 * max(steps * BATCH * LENGTH // 8, TEST * LENGTH, VALIDATION * LENGTH) + 10
    if length < least:
        raise SystemExit(f"requires a text of at least {least} characters for {steps} steps, got {length}")


def make_characters(path, steps):
    kinds, numbers = torch.unique(read_text(path), return_inverse=True)
    whole = len(numbers)
    require_length(whole, steps)
    parts = [
        cut(numbers, steps * BATCH),
        cut(numbers[whole * 8 // 10 :], VALIDATION),
        cut(numbers[whole * 9 // 10 :], TEST),
    ]
    data = kas.evaluate.TaskData(f"gcide characters {len(kinds)}", *parts)
    return Sequences(data, len(kinds), {"validation": 1.0, "test": 1.0})


def train_pieces(text):
    """Byte pairs of a text whose lines end with a pilcrow."""
    try:
        import sentencepiece
    except ImportError as error:
        raise SystemExit("requires the Python package sentencepiece==0.2.3, got none") from error
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line + "\u00b6" for line in text.split("\u00b6")),
        model_writer=model,
        model_type="bpe",
        vocab_size=PIECES,
        character_coverage=1.0,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
        split_by_whitespace=True,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def make_pairs(path, steps):
    """Byte pairs of the training part, by sentencepiece."""
    codes = read_text(path)
    whole = len(codes)
    require_length(whole, steps)
    # What sentencepiece would treat for itself has other signs: ends of lines, and what is not of ASCII.
    text = bytes(codes.tolist()).decode("latin-1").replace("\n", "\u00b6").replace("\0", "\u00a4")
    pieces = train_pieces(text[: min(SAMPLE, whole * 8 // 10)])
    lengths = torch.tensor([len(pieces.id_to_piece(number)) for number in range(len(pieces))], dtype=torch.float64)
    parts, tokens = [], {}
    starts = {"train": (0, steps * BATCH), "validation": (whole * 8 // 10, VALIDATION), "test": (whole * 9 // 10, TEST)}
    for name, (start, count) in starts.items():
        # No piece is shorter than one character.
        numbers = torch.tensor(pieces.encode(text[start : start + 8 * (count * LENGTH + 1)]))
        if len(numbers) <= count * LENGTH:
            raise SystemExit(f"requires {count * LENGTH + 1} byte pairs for '{name}', got {len(numbers)}")
        inputs, targets = cut(numbers, count)
        parts.append((inputs, targets))
        tokens[name] = targets.numel() / float(lengths[targets].sum())
    data = kas.evaluate.TaskData(f"gcide byte pairs {len(pieces)}", *parts)
    return Sequences(data, len(pieces), tokens)


def draw_parts(name, kinds, steps, draw):
    """Three parts of windows by `draw(count, generator)`: `LENGTH` + 1 numbers, and which of them are answers."""
    parts = []
    for seed, count in enumerate((steps * BATCH, VALIDATION, TEST)):
        numbers, scored = draw(count, torch.Generator().manual_seed(seed))
        targets = torch.where(scored, numbers, UNSCORED)
        parts.append((numbers[:, :-1].contiguous(), targets[:, 1:].contiguous()))
    return Sequences(kas.evaluate.TaskData(name, *parts), kinds, {"validation": 1.0, "test": 1.0})


def make_copy(_, steps):
    """Letters among blanks, in random places; after a mark, the letters again."""
    blank, mark = LETTERS, LETTERS + 1

    def draw(count, generator):
        letters = torch.randint(0, LETTERS, (count, COPIED), generator=generator)
        room = LENGTH + 1 - COPIED - 1
        places = torch.rand(count, room, generator=generator).topk(COPIED).indices.sort().values
        numbers = torch.full((count, LENGTH + 1), blank)
        numbers.scatter_(1, places, letters)
        numbers[:, room] = mark
        numbers[:, room + 1 :] = letters
        scored = torch.zeros_like(numbers, dtype=torch.bool)
        scored[:, room + 1 :] = True
        return numbers, scored

    return draw_parts(f"copy {COPIED} of {LETTERS}", LETTERS + 2, steps, draw)


def make_recall(_, steps):
    """Keys and values in turn: in each window some keys have one value each, scored from the second time on."""

    def draw(count, generator):
        keys = torch.rand(count, KEYS, generator=generator).topk(PAIRS).indices
        values = torch.randint(0, KEYS, (count, PAIRS), generator=generator)
        chosen = torch.randint(0, PAIRS, (count, (LENGTH + 2) // 2), generator=generator)
        numbers = torch.stack([keys.gather(1, chosen), KEYS + values.gather(1, chosen)], -1).flatten(1)
        seen = functional.one_hot(chosen, PAIRS).cumsum(1).gather(2, chosen[..., None])[..., 0] > 1
        scored = torch.stack([torch.zeros_like(seen), seen], -1).flatten(1)
        return numbers[:, : LENGTH + 1], scored[:, : LENGTH + 1]

    return draw_parts(f"recall {PAIRS} of {KEYS}", 2 * KEYS, steps, draw)


def make_facts(_, steps):
    """Two keys and their value in turn: each two have the same value always, drawn once for all windows."""
    table = torch.randint(0, FACTS, (FACTS, FACTS), generator=torch.Generator().manual_seed(1234))

    def draw(count, generator):
        keys = torch.randint(0, FACTS, (count, (LENGTH + 3) // 3, 2), generator=generator)
        values = table[keys[..., 0], keys[..., 1]]
        numbers = torch.stack([keys[..., 0], FACTS + keys[..., 1], 2 * FACTS + values], -1).flatten(1)
        scored = (torch.arange(numbers.shape[1]) % 3 == 2).expand_as(numbers)
        return numbers[:, : LENGTH + 1], scored[:, : LENGTH + 1]

    return draw_parts(f"facts {FACTS}", 3 * FACTS, steps, draw)


FACTORIES = {
    "characters": make_characters,
    "pairs": make_pairs,
    "copy": make_copy,
    "recall": make_recall,
    "facts": make_facts,
}
