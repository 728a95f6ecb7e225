# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks of transformers and timm with random weights, run through torch.compile with kas: a worker of torch_suite.

Each is made small, and run on two batch sizes, and once for its gradients.
"""

from __future__ import annotations

import copy
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import torch

SMALL: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "use_cache": False,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
DECODER = {**SMALL, "num_key_value_heads": 2, "attention_dropout": 0.0, "head_dim": 8}
IMAGE: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
SEQUENCES = {**SMALL, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4}
SEQUENCES |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "decoder_start_token_id": 2}
SPEECH = {**SMALL, "conv_dim": (32, 32), "conv_kernel": (10, 3), "conv_stride": (5, 2), "num_feat_extract_layers": 2}
SPEECH |= {"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2, "layerdrop": 0.0, "hidden_dropout": 0.0}
TOWERS = {"text_config": {**SMALL, "projection_dim": 32}, "vision_config": {**IMAGE, "projection_dim": 32}}

TRANSFORMERS: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        name: ("text", SMALL)
        for name in (
            "bert",
            "roberta",
            "xlm-roberta",
            "electra",
            "mpnet",
            "deberta",
            "deberta-v2",
            "convbert",
            "roformer",
            "modernbert",
            "gpt2",
            "gpt_neox",
            "bloom",
        )
    },
    "albert": ("text", {**SMALL, "embedding_size": 16}),
    "distilbert": ("text", {**SMALL, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}),
    "opt": ("text", {**SMALL, "ffn_dim": 64, "word_embed_proj_dim": 32, "dropout": 0.0}),
    "falcon": ("text", {**SMALL, "multi_query": True}),
    "gptj": ("text", {**SMALL, "rotary_dim": 4}),
    "gpt_neo": ("text", {**SMALL, "attention_types": [[["global", "local"], 1]]}),
    **{
        name: ("text", DECODER)
        for name in (
            "llama",
            "mistral",
            "mixtral",
            "qwen2",
            "qwen3",
            "gemma",
            "gemma2",
            "phi",
            "phi3",
            "stablelm",
            "olmo",
            "olmo2",
            "cohere",
            "starcoder2",
            "granite",
            "smollm3",
        )
    },
    "t5": (
        "pairs",
        {**SMALL, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "dropout_rate": 0.0},
    ),
    "bart": ("pairs", SEQUENCES),
    "pegasus": ("pairs", SEQUENCES),
    **{name: ("image", IMAGE) for name in ("vit", "deit", "beit", "dinov2")},
    "vit_mae": ("masked", IMAGE),
    "swin": (
        "image",
        {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4},
    ),
    "convnext": ("image", {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2, "image_size": 32}),
    "resnet": ("image", {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1]}),
    "mobilenet_v2": ("image", {"image_size": 32, "depth_multiplier": 0.25}),
    "wav2vec2": ("speech", SPEECH),
    "hubert": ("speech", SPEECH),
    "whisper": ("spectrum", {**SEQUENCES, "num_mel_bins": 16, "max_source_positions": 20, "max_target_positions": 30}),
    "clip": ("both", TOWERS),
    "siglip": ("both", TOWERS),
}
"""Types of models, with what they take and how they are made small."""

TIMM: dict[str, int] = {
    "resnet18": 64,
    "mobilenetv3_small_050": 64,
    "efficientnet_b0": 64,
    "regnetx_002": 64,
    "densenet121": 64,
    "vgg11": 64,
    "convnext_atto": 64,
    "vit_tiny_patch16_224": 224,
    "deit_tiny_patch16_224": 224,
    "swin_tiny_patch4_window7_224": 224,
    "mixer_s32_224": 224,
    "ghostnet_050": 64,
    "repvgg_a0": 64,
    "res2net50_14w_8s": 64,
    "senet154": 64,
    "xception41": 96,
    "inception_v3": 96,
    "hrnet_w18_small": 64,
    "dla34": 64,
    "vovnet39a": 64,
    "cspresnet50": 64,
    "poolformer_s12": 64,
    "mobilevit_xxs": 64,
    "edgenext_xx_small": 64,
    "levit_128s": 224,
    "pit_ti_224": 224,
    "cait_xxs24_224": 224,
    "convmixer_768_32": 64,
    "nfnet_f0": 64,
    "fastvit_t8": 64,
    "starnet_s1": 64,
    "repvit_m0_9": 64,
    "efficientformer_l1": 224,
    "xcit_nano_12_p16_224": 224,
    "coat_lite_tiny": 224,
    "pvt_v2_b0": 64,
    "rexnet_100": 64,
    "tinynet_e": 64,
    "lcnet_050": 64,
    "mnasnet_small": 64,
}
"""A network of a family, with the size of its images."""


def _make_transformer(name: str) -> tuple[torch.nn.Module, Callable[[int], dict[str, torch.Tensor]]]:
    import transformers

    kind, options = TRANSFORMERS[name]
    config = transformers.AutoConfig.for_model(name, **copy.deepcopy(options))
    model = transformers.AutoModel.from_config(config)

    def make(batch: int) -> dict[str, torch.Tensor]:
        words, image = torch.randint(3, 90, (batch, 12)), torch.randn(batch, 3, 32, 32)
        return {
            "text": {"input_ids": words},
            "pairs": {"input_ids": words, "decoder_input_ids": words[:, :7]},
            "image": {"pixel_values": image},
            "masked": {"pixel_values": image, "noise": torch.rand(batch, 16)},
            "speech": {"input_values": torch.randn(batch, 400)},
            "spectrum": {"input_features": torch.randn(batch, 16, 40), "decoder_input_ids": words[:, :7]},
            "both": {"input_ids": words, "pixel_values": image},
        }[kind]

    return model, make


def _make_timm(name: str) -> tuple[torch.nn.Module, Callable[[int], dict[str, torch.Tensor]]]:
    import timm

    size = TIMM[name]
    return timm.create_model(name, num_classes=10), lambda batch: {"x": torch.randn(batch, 3, size, size)}


def _get_result(outputs: Any) -> torch.Tensor:
    """The first tensor of floats of what a network gives."""
    values = (
        outputs.values() if isinstance(outputs, dict) else [outputs] if isinstance(outputs, torch.Tensor) else outputs
    )
    return next(v for v in values if isinstance(v, torch.Tensor) and v.dtype.is_floating_point)


def _get_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    largest = expected.abs().max().item() or 1.0
    return float((found - expected).abs().max().item() / largest)


def run_network(task: Any) -> Any:
    """Values for two batch sizes and gradients, errors of the largest value, and the share that kas computes."""
    import torch_suite

    import kas.torch

    torch.manual_seed(task.seed)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    kas.torch.explain()
    network, make = (_make_transformer if task.suite == "transformers" else _make_timm)(task.name)
    network.eval()
    with torch.no_grad():
        for parameter in network.parameters():
            # Tokens that are nothing but 0 are divided by their deviation: what is left is rounding.
            if not parameter.any():
                parameter.normal_(std=0.02)
    compiled = torch.compile(network, backend=kas.torch.backend)
    errors = []
    for batch in (2, 3):
        inputs = make(batch)
        with torch.no_grad():
            errors.append(_get_error(_get_result(compiled(**inputs)), _get_result(network(**inputs))))
    values = {"values": max(errors), "breaks": _count_breaks()}
    graphs = kas.torch.explain()
    total = sum(graph.flops for graph in graphs)
    values["share"] = sum(graph.flops * graph.share for graph in graphs) / total if total else 1.0
    values["flops"] = total
    reasons = [graph.reason for graph in graphs if graph.reason] + [f"{n}: {why}" for g in graphs for n, why in g.left]
    inputs = make(2)
    gradients = [_get_gradients(call, network, inputs) for call in (compiled, network)]
    values["gradients"], limit = _compare(*gradients), 1e-4
    if values["gradients"] > limit:
        limit = max(limit, 1.5 * _get_condition(network, inputs, values["values"]))
    trained = kas.torch.explain()
    total = sum(graph.flops for graph in trained)
    values["trained"] = sum(graph.flops * graph.share for graph in trained) / total if total else 1.0
    is_right = values["values"] <= 1e-4 and values["gradients"] <= limit
    status = "wrong" if not is_right else "left" if reasons else "compiled"
    return torch_suite.Outcome(status, "; ".join(dict.fromkeys(reasons))[:300], 3, values)


def _get_gradients(call: Any, network: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Of all parameters of the network, which `call` computes."""
    network.zero_grad()
    _get_result(call(**inputs)).square().mean().backward()
    # A result that is not used has gradients of zeros, or none.
    return [torch.zeros_like(p) if p.grad is None else p.grad for p in network.parameters()]


def _get_condition(network: torch.nn.Module, inputs: dict[str, torch.Tensor], change: float) -> float:
    """How far exact gradients are apart when parameters change by as much as results differ.

    Which number is the larger one, or above zero, is rounding then; what is random has gradients that jump.
    """
    doubles = {name: x.double() if x.is_floating_point() else x for name, x in inputs.items()}
    exact = copy.deepcopy(network).double()
    expected = _get_gradients(exact, exact, doubles)
    differences = []
    for seed in range(4):
        other, generator = copy.deepcopy(network).double(), torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter *= 1 + change * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        differences.append(_compare(_get_gradients(other, other, doubles), expected))
    return max(differences)


def _compare(found: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    """The largest difference, over the largest value of all tensors."""
    largest = max(g.abs().max().item() for g in expected) or 1.0
    return max((a - b).abs().max().item() for a, b in zip(found, expected)) / largest


def _name_operations() -> None:
    """Lets torchvision be imported: the library in the wheels of PyPI is for CUDA, and the package needs its names."""
    for operation in ("nms", "qnms"):
        torch.library.define(f"torchvision::{operation}", "(Tensor dets, Tensor scores, float threshold) -> Tensor")


def _count_breaks() -> dict[str, int]:
    breaks = torch._dynamo.utils.counters["graph_break"]
    return {reason.split("\n")[0][:100]: count for reason, count in breaks.items()}


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    import torch_suite

    _name_operations()
    torch_suite.answer(run_network)
