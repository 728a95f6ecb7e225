// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v3 | FileCheck %s --check-prefix=AVX2
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=x86-64-v4 | FileCheck %s --check-prefix=AVX512
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=skylake-avx512 | FileCheck %s --check-prefix=SKYLAKE
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=znver4 | FileCheck %s --check-prefix=ZEN
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=neoverse-n1 | FileCheck %s --check-prefix=NEON
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=generic triple=x86_64-linux-gnu" | FileCheck %s --check-prefix=GENERIC
// A triple alone is for any CPU of the architecture.
// RUN: kas-opt %s -kas-attach-cpu-target=triple=x86_64-linux-gnu | FileCheck %s --check-prefix=GENERIC
// RUN: kas-opt %s -kas-attach-cpu-target=triple=aarch64-linux-gnu | FileCheck %s --check-prefix=GENERIC-ARM
// RUN: kas-opt %s -kas-attach-cpu-target="triple=riscv64-linux-gnu features=+v" | FileCheck %s --check-prefix=GENERIC-RISCV
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=x86-64-v3 features=-fma,+avx512f" | FileCheck %s --check-prefix=FEATURES
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=x86-64-v4 features=+amx-tile" | FileCheck %s --check-prefix=SERVER
// RUN: kas-opt %s -kas-attach-cpu-target="cpu=emeraldrapids features=-amx-tile" | FileCheck %s --check-prefix=SERVER
// What processors of the triple have in any case.
// RUN: kas-opt %s -kas-attach-cpu-target=triple=arm-linux-gnueabihf | FileCheck %s --check-prefix=HARD-FLOAT
// RUN: kas-opt %s -kas-attach-cpu-target="triple=thumbv7em-none-eabihf cpu=cortex-m4" | FileCheck %s --check-prefix=SMALL
// RUN: kas-opt %s -kas-attach-cpu-target="triple=riscv32-unknown-elf" | FileCheck %s --check-prefix=RISCV32
// RUN: not kas-opt %s -kas-attach-cpu-target="triple=arm-linux-gnueabihf cpu=arm7tdmi" 2>&1 | FileCheck %s --check-prefix=NO-FLOATS
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=cascadelake | FileCheck %s --check-prefix=VNNI
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=alderlake | FileCheck %s --check-prefix=AVX-VNNI
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=neoverse-v1 | FileCheck %s --check-prefix=I8MM
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=cooperlake | FileCheck %s --check-prefix=BF16
// RUN: kas-opt %s -kas-attach-cpu-target | FileCheck %s --check-prefix=HOST
// RUN: kas-opt %s -kas-attach-cpu-target=cpu=neoverse-n1 -kas-attach-cpu-target | FileCheck %s --check-prefix=NEON

// AVX2: "max_vector_op_width" = 256 : i64, "arithmetic_vector_width" = 256 : i64, "vector_registers" = 16 : i64, "L1_cache_size_in_bytes" = 32768 : i64, "L2_cache_size_in_bytes" = 524288 : i64, "fused_multiply_add" = true
// AVX2-SAME: llvm.target = #llvm.target<triple = "x86_64-unknown-linux-gnu", chip = "x86-64-v3">}
// AVX512: "max_vector_op_width" = 512 : i64, "arithmetic_vector_width" = 256 : i64, "vector_registers" = 32 : i64
// A CPU for whose short loops LLVM prefers 256 bits.
// SKYLAKE: "max_vector_op_width" = 512 : i64, "arithmetic_vector_width" = 512 : i64, "vector_registers" = 32 : i64, {{.*}}"L2_cache_size_in_bytes" = 1048576
// Whose units for them have 256 bits.
// ZEN: "max_vector_op_width" = 512 : i64, "arithmetic_vector_width" = 256 : i64, "vector_registers" = 32 : i64, {{.*}}"L2_cache_size_in_bytes" = 1048576
// NEON: "max_vector_op_width" = 128 : i64, "arithmetic_vector_width" = 256 : i64, "vector_registers" = 32 : i64, {{.*}}"fused_multiply_add" = true
// NEON-SAME: llvm.target = #llvm.target<triple = "aarch64-unknown-linux-gnu", chip = "neoverse-n1">}
// GENERIC: "max_vector_op_width" = 128 : i64, "arithmetic_vector_width" = 256 : i64, "vector_registers" = 16 : i64, {{.*}}"fused_multiply_add" = false
// GENERIC-SAME: chip = "generic"
// GENERIC-ARM: triple = "aarch64-unknown-linux-gnu", chip = "generic"
// GENERIC-RISCV: triple = "riscv64-unknown-linux-gnu", chip = "generic", features = <["+m", "+a", "+f", "+d", "+c", "+v"]>
// HARD-FLOAT: "fused_multiply_add" = false
// HARD-FLOAT-SAME: triple = "arm-unknown-linux-gnueabihf", chip = "generic", features = <["+vfp3d16"]>
// SMALL: "fused_multiply_add" = true
// SMALL-SAME: triple = "thumbv7em-unknown-none-eabihf", chip = "cortex-m4"
// RISCV32: "fused_multiply_add" = false
// NO-FLOATS: error: expected a target with the features '+vfp2sp', got 'arm7tdmi' with ''
// FEATURES: "max_vector_op_width" = 512 : i64
// FEATURES-SAME: features = <["-fma", "+avx512f"]>
// With instructions for products of bytes, and of bf16.
// VNNI: "byte_dot_width" = 512 : i64
// AVX-VNNI: "byte_dot_width" = 256 : i64
// I8MM: "byte_dot_width" = 128 : i64, "bfloat_dot_width" = 128 : i64
// VNNI-NOT: "bfloat_dot_width"
// BF16: "bfloat_dot_width" = 512 : i64
// A server, whatever a virtual machine calls it, and whichever of its instructions that hides.
// SERVER: "max_vector_op_width" = 512 : i64, "arithmetic_vector_width" = 512 : i64
// HOST: "max_vector_op_width" = {{[0-9]+}}
// HOST-SAME: llvm.target = #llvm.target<triple = "{{.+}}", chip = "{{.+}}"

// RUN: not kas-opt %s -kas-attach-cpu-target=cpu=pentium-9000 2>&1 | FileCheck %s --check-prefix=BAD-CPU
// RUN: not kas-opt %s -kas-cpu-pipeline=cpu=pentium-9000 2>&1 | FileCheck %s --check-prefix=BAD-CPU
// RUN: not kas-opt %s -kas-attach-cpu-target=cpu=neoverse-n11 2>&1 | FileCheck %s --check-prefix=NEAR-CPU
// RUN: not kas-opt %s -kas-attach-cpu-target="cpu=znver4 triple=aarch64-linux-gnu" 2>&1 | FileCheck %s --check-prefix=OTHER-CPU
// RUN: not kas-opt %s -kas-attach-cpu-target="cpu=i486 triple=x86_64-linux-gnu" 2>&1 | FileCheck %s --check-prefix=NARROW-CPU
// RUN: not kas-opt %s -kas-attach-cpu-target="cpu=generic triple=pdp11-bsd" 2>&1 | FileCheck %s --check-prefix=TRIPLE
// RUN: not kas-opt %s -kas-attach-cpu-target="cpu=generic triple=x86_64-apple-macosx" 2>&1 | FileCheck %s --check-prefix=ELF
// RUN: not kas-opt %s -kas-attach-cpu-target="cpu=znver4 features=+avx1024" 2>&1 | FileCheck %s --check-prefix=FEATURE
// RUN: not kas-opt %s -kas-attach-cpu-target="cpu=znver4 features=avx2" 2>&1 | FileCheck %s --check-prefix=SIGN
// RUN: not kas-opt %s -kas-attach-cpu-target="cpu=x86-64 features=-sse2" 2>&1 | FileCheck %s --check-prefix=NO-VECTORS
// RUN: not kas-opt %s -kas-attach-cpu-target="cpu=x86-64 features=-64bit" 2>&1 | FileCheck %s --check-prefix=NO-64

// BAD-CPU: attach-cpu-target.mlir{{.*}}: error: expected the CPU 'host', or one of x86_64, aarch64 or riscv64 that LLVM knows (see llc -mtriple=x86_64 -mcpu=help), got 'pentium-9000'{{$}}
// NEAR-CPU: got 'neoverse-n11' (did you mean 'neoverse-n1'?)
// OTHER-CPU: error: expected a CPU of 'aarch64-unknown-linux-gnu' (see llc -mtriple=aarch64 -mcpu=help), got 'znver4'
// NARROW-CPU: error: expected a CPU of 'x86_64-unknown-linux-gnu' (see llc -mtriple=x86_64 -mcpu=help), got 'i486'
// TRIPLE: error: expected the triple of an x86_64, aarch64, arm, thumb, riscv64 or riscv32 system with ELF objects, such as x86_64-unknown-linux-gnu or {{.*}}, got 'pdp11-bsd'
// ELF: error: expected the triple of {{.*}} with ELF objects, {{.*}}, got 'x86_64-apple-macosx'
// FEATURE: error: expected features of 'x86_64-unknown-linux-gnu' with '+' or '-' before each (see llc -mtriple=x86_64 -mattr=help), got '+avx1024'
// SIGN: error: expected features of {{.*}} with '+' or '-' before each {{.*}}, got 'avx2'{{$}}
// NO-VECTORS: error: expected a target with the features '+64bit,+sse2', got 'x86-64' with '-sse2'
// NO-64: error: expected a target with the features '+64bit,+sse2', got 'x86-64' with '-64bit'
