"""Configuration of the kas test suite: FileCheck tests on IR and the GoogleTest programs."""

import json
import os
import subprocess
import sys

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

# libMLIR is not instrumented: memory that an arena poisons in our code and hands out in libMLIR's would be reported.
# A data race is to fail tests that expect an error, too: a process that aborts has none.
# LLVM's handler of that signal, which prints the stack, allocates memory: no report about it.
thread_options = "abort_on_error=1 halt_on_error=1 report_signal_unsafe=0"
sanitizer_options = {"ASAN_OPTIONS": "allow_user_poisoning=0", "TSAN_OPTIONS": thread_options}

config.name = "kas"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test"]
config.excludes = ["unittests", "lib", "Inputs", "CMakeLists.txt", "lit.cfg.py", "lit.site.cfg.py", "client"]
config.test_source_root = os.path.dirname(__file__)
# For the configurations of folders.
sys.path.insert(0, config.test_source_root)
config.test_exec_root = os.path.join(config.kas_obj_root, "test")

if config.reverse_iteration:
    config.available_features.add("reverse-iteration")
# The same tests with hash containers that go backwards: what they print must not depend on that order.
if config.is_reversed:
    folders = ("Codegen", "Conversion", "Dialect", "Library", "Networks", "Pipelines", "Search")
    config.name = "kas-reverse"
    config.excludes += [name for name in os.listdir(config.test_source_root) if name not in folders]
    config.test_exec_root = os.path.join(config.test_exec_root, "reverse")
    config.environment["KAS_REVERSE_ITERATION"] = "1"

# The tests of research/, which are in a suite of their own: research/check.sh runs it.
if config.is_research:
    config.name = "kas-research"
    config.test_source_root = os.path.join(config.kas_src_root, "research", "test")
    config.test_exec_root = os.path.join(config.test_exec_root, "research")

if lit_config.params.get("kas_slow"):
    config.available_features.add("slow")
if lit_config.params.get("kas_lint"):
    config.available_features.add("lint")

# Tests of the JIT start threads through OpenMP; two suffice and keep runs alike on all machines.
config.environment["OMP_NUM_THREADS"] = "2"
# Tests compile what they test, and keep nothing.
config.environment["KAS_CACHE_MB"] = "0"
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
if config.sanitizers:
    config.available_features.add("sanitizers")
    for name, options in sanitizer_options.items():
        config.environment.setdefault(name, options)
    config.environment.setdefault(
        "LSAN_OPTIONS", "print_suppressions=0:suppressions=" + os.path.join(config.kas_src_root, "test", "leaks.txt")
    )

# Devices, in builds with KAS_ENABLE_GPU: Vulkan runs on the CPU, in lavapipe, under the validation layer; kernels
# for CUDA are assembled where there is a toolkit.
if config.has_gpu:
    config.available_features.add("gpu")
    config.environment["VK_ICD_FILENAMES"] = config.lavapipe_icd
    config.environment["KAS_RT_VALIDATION"] = "1"
    # Tests name the libraries that they use: one of the machine's would talk to stand-ins.
    config.environment["KAS_RT_LIBCUBLASLT"] = "libkas-no-library.so"
    config.environment["KAS_RT_LIBCUDNN"] = "libkas-no-library.so"
else:
    lit_config.note("KAS_ENABLE_GPU is OFF: tests that need a component for GPUs are unsupported (feature 'gpu')")
toolkit = subprocess.run(
    [os.path.join(config.kas_src_root, "tools", "cuda-toolkit.py")], capture_output=True, text=True
).stdout.strip()
if toolkit and config.has_gpu:
    config.available_features.add("ptxas")
    config.environment["CUDA_ROOT"] = toolkit
    config.substitutions.append(("%ptxas", os.path.join(toolkit, "bin", "ptxas")))

# Made where there is libFuzzer.
if os.path.exists(os.path.join(config.kas_obj_root, "bin", "kas-fuzz-readers")):
    config.available_features.add("libfuzzer")

plugin = os.path.join(config.kas_obj_root, "lib", "KasPlugin" + config.shlibext)
# A stock tool that loads an instrumented module needs the sanitizer's run-time library first.
mlir_plugin_opt = os.path.join(config.llvm_tools_dir, "mlir-opt")
if config.sanitizers:
    config.available_features.add("sanitizers")
    runtime = "tsan" if "thread" in config.sanitizers else "asan"
    library = "libclang_rt." + runtime + "-" + config.host_arch + ".so"
    library = subprocess.check_output([config.cxx, "-print-file-name=" + library], text=True).strip()
    mlir_plugin_opt = "env LD_PRELOAD=" + library + " " + mlir_plugin_opt
config.substitutions.append(("%mlir_plugin_opt", mlir_plugin_opt))
config.substitutions.append(("%kas_plugin", plugin))
config.substitutions.append(("%cmake", config.cmake))
config.substitutions.append(("%cxx", config.cxx))
config.substitutions.append(("%cc", config.cc))
config.substitutions.append(("%kas_obj_root", config.kas_obj_root))
config.substitutions.append(("%kas_src_root", config.kas_src_root))
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%z3", config.z3))
config.substitutions.append(("%{lit}", config.lit))
with open(os.path.join(config.kas_obj_root, "libraries.json")) as file:
    libraries = json.load(file)
archives = [os.path.join(config.kas_obj_root, "lib", "lib" + library["name"] + ".a") for library in libraries]
config.substitutions.append(("%kas_libraries", " ".join(archives)))

llvm_config.use_default_substitutions()
tool_dirs = [os.path.join(config.kas_obj_root, "bin"), config.llvm_tools_dir]
# The thread sanitizer does not see how threads of libMLIR wait for each other; those of the search are our own.
kas_opt = ToolSubst("kas-opt", extra_args=["-mlir-disable-threading"] if "thread" in config.sanitizers else [])
tools = [
    kas_opt,
    "kas-run",
    "kas-translate",
    "kas-reduce",
    "kas-lsp-server",
    "kas-bench",
    "kas-fuzz",
    "kas-fuzz-passes",
    "kas-fuzz-readers",
    "kas-gpu-pack",
    "kas-search-db",
    "kas-train",
    "kas-tune",
    "kas-mutate-kernels",
    "kas-prove-rules",
    "kas-prove-space",
]
llvm_config.add_tool_substitutions(
    [
        *tools,
        "mlir-opt",
        "mlir-translate",
        "FileCheck",
        "not",
        "count",
        "split-file",
        "llvm-ar",
        "llvm-nm",
        "llvm-objdump",
    ],
    tool_dirs,
)
