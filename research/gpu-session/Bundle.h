//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The bundle of a GPU session: compiled programs, their inputs and what they
// must compute, so that nothing but the runtime and a driver is needed where a
// GPU is. session.py reads it.

#ifndef KAS_TOOLS_BUNDLE_H
#define KAS_TOOLS_BUNDLE_H

#include "kas/ExecutionEngine/GPU/GPUProgram.h"
#include "kas/ExecutionEngine/Signature.h"
#include "llvm/Support/JSON.h"

namespace kas::gpusession {

/// One case: an object of JSON, and the bytes that it refers to by offset.
class PackedCase {
public:
  PackedCase(llvm::StringRef name, llvm::StringRef kind);

  /// `shape` and the values themselves.
  void addArgument(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<float> values);
  /// `shape` and how the values are made: the stream of `seed` and the name.
  void addArgument(const execution::TensorSignature &argument, uint64_t seed);

  /// What the only result must be. `scale`: what an error of `tolerance` is
  /// relative to; exactly these bits where `tolerance` is 0.
  void setExpected(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<float> values,
                   double tolerance, double scale);
  /// The same at some positions only.
  void setExpectedAt(llvm::ArrayRef<int64_t> shape,
                     llvm::ArrayRef<uint32_t> positions,
                     llvm::ArrayRef<float> values, double tolerance,
                     double scale);

  /// A program for `chip`; the first one of a chip is the cost model's choice.
  void addProgram(llvm::StringRef chip, llvm::StringRef schedule,
                  const execution::GPUProgram &program);
  /// One for `chip` that leaves to libraries what they may compute.
  void addLibraryProgram(llvm::StringRef chip,
                         const execution::GPUProgram &program);
  void set(llvm::StringRef key, llvm::json::Value value) {
    object[key] = std::move(value);
  }
  bool hasPrograms() const { return !programs.empty(); }

private:
  friend class BundleWriter;

  llvm::json::Object makeProgram(llvm::StringRef chip,
                                 const execution::GPUProgram &program);
  int64_t addBytes(llvm::StringRef bytes);
  int64_t addValues(llvm::ArrayRef<float> values);

  llvm::json::Object object;
  llvm::json::Array arguments, programs;
  std::string bytes;
};

/// Writes `cases.jsonl` and `data.bin` into a folder.
class BundleWriter {
public:
  static llvm::Expected<std::unique_ptr<BundleWriter>>
  create(llvm::StringRef folder);

  void add(PackedCase &&packed);
  llvm::Error close();

private:
  BundleWriter() = default;

  std::unique_ptr<llvm::raw_fd_ostream> cases, data;
};

} // namespace kas::gpusession

#endif // KAS_TOOLS_BUNDLE_H
