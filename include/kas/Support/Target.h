//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CPUs that code can be made for: their names, and what the choice of tiles
// needs to know of them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_TARGET_H
#define KAS_SUPPORT_TARGET_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace kas {

/// How a user names a target.
struct TargetNames {
  /// `host`, or a name that LLVM knows, such as `x86-64-v3`.
  std::string cpu = "host";
  /// Such as `aarch64-unknown-linux-gnu`; empty: Linux on the first of x86_64,
  /// aarch64 and riscv64 that has the CPU, so that the same name means the same
  /// target everywhere; the host's for `host` and `generic`.
  std::string triple;
  /// Changes to what the CPU has: `+avx512f,-fma`.
  std::string features;
};

/// A target with what is known about it.
struct Target {
  std::string triple, cpu, features;
  /// Bits of a vector register that the compiler uses.
  int64_t vectorBits = 128;
  /// Bits of the widest vectors on which two arithmetic operations begin per
  /// cycle; operations on wider ones take twice as long.
  int64_t arithmeticBits = 256;
  int64_t vectorRegisters = 16;
  /// Multiplies and adds vectors in one instruction.
  bool hasFMA = false;
  /// Bits of the widest sums that one instruction adds products of unsigned and
  /// signed bytes to, four to each 32 bits; 0: there is none.
  int64_t byteDotBits = 0;
  /// The same of sums of f32 and products of bf16, two to each sum.
  int64_t bfloatDotBits = 0;
  /// The same of sums of i32 and products of i16, two to each sum; 0 also where
  /// bytes have an instruction.
  int64_t shortDotBits = 0;
  /// Sizes of the caches of one core.
  int64_t l1Bytes = 32 << 10, l2Bytes = 512 << 10;
};

/// Looks a target up. Registers and instructions are LLVM's; the caches are
/// those of the machine for `host`, else the usual ones of the CPU. Errors name
/// what can be chosen: a triple of another architecture or without ELF objects,
/// an unknown CPU or feature, features without vectors of f32 (of 64 bits), or
/// without registers of floats that the triple passes them in.
llvm::Expected<Target> getTarget(const TargetNames &names = {});

/// Makes LLVM's tables for this machine available, which the functions here do
/// by themselves: for code that is only linked.
void initializeHostTarget();

/// The compiler for `target` at LLVM's level `optLevel`, from 0 to 3; for a
/// process that runs the code, or for position-independent object files.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const Target &target, unsigned optLevel, bool jit);

} // namespace kas

#endif // KAS_SUPPORT_TARGET_H
