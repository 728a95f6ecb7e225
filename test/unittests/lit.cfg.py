"""Runs every GoogleTest program below the build directory's test/unittests."""

import os
import subprocess

import lit.formats

config.name = "kas-unit"
config.test_format = lit.formats.GoogleTest(".", "Tests")
config.suffixes = []
config.test_source_root = os.path.join(config.kas_obj_root, "test", "unittests")
config.test_exec_root = config.test_source_root
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "HOME", "GTEST_FILTER"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
if config.sanitizers:
    # As in ../lit.cfg.py: libMLIR is not instrumented.
    config.environment.setdefault("ASAN_OPTIONS", "allow_user_poisoning=0")
    config.environment.setdefault(
        "LSAN_OPTIONS", "print_suppressions=0:suppressions=" + os.path.join(config.kas_src_root, "test", "leaks.txt")
    )
    config.environment.setdefault("TSAN_OPTIONS", "abort_on_error=1 halt_on_error=1 report_signal_unsafe=0")
# Vulkan runs on the CPU, in Mesa's lavapipe, under the validation layer.
config.environment["VK_ICD_FILENAMES"] = config.lavapipe_icd
config.environment["KAS_RT_VALIDATION"] = "1"
toolkit = subprocess.run(
    [os.path.join(config.kas_src_root, "tools", "cuda-toolkit.py")], capture_output=True, text=True
).stdout.strip()
if toolkit:
    config.environment["CUDA_ROOT"] = toolkit
if lit_config.params.get("kas_slow"):
    config.environment["KAS_SLOW_TESTS"] = "1"
