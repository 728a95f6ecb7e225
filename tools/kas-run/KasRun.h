//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by the modes of kas-run: settings, files, the report.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_KASRUN_H
#define KAS_TOOLS_KASRUN_H

#include "kas/Codegen/GPU/Strategy/Options.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/ExecutionEngine/Profile.h"
#include "kas/ExecutionEngine/Timing.h"
#include "kas/Support/ParseModule.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kas {

/// The command line.
struct RunSettings {
  std::string file;
  std::string function;
  std::string operatorName;
  std::string kernelName;
  std::vector<std::string> bindings;
  std::string device;
  /// What factors may be rounded to.
  GPUPrecision precision = GPUPrecision::F32;
  /// Of tensors on devices.
  codegen::GPUElements elements = codegen::GPUElements::F32;
  /// Of the system, on CUDA devices.
  codegen::GPULibraries libraries = codegen::GPULibraries::Auto;
  std::vector<std::string> inputs, weights, args;
  std::string output;
  uint64_t seed = 0;
  bool check = false;
  /// With what to compare; empty: with the reference evaluator.
  std::string checkFile;
  /// On integers for which nothing rounds, bit by bit; how many draws of them,
  /// 0: as many as the bound needs.
  bool exact = false;
  unsigned draws = 0;
  double tolerance = 1e-4;
  bool time = false;
  /// How many runs to time; 0: 20 at least, and for 0.2 s.
  unsigned runs = 0;
  bool cost = false;
  bool json = false;
  bool worker = false;
  unsigned threads = 0;
  std::string cacheDirectory;
  bool profile = false;
  /// Where to write the trace of the profile; may be empty.
  std::string traceFile;
};

/// The results of one run; what was not requested stays empty.
struct RunReport {
  /// "operator", "kernel" or "function", and its name.
  std::string kind, name;
  std::string device;
  /// What a device of kas-rt calls itself; none of others.
  std::optional<std::string> deviceName;
  /// What computed launches that a library may compute, and how many: a
  /// library, or `kernel: ` and why none did.
  std::map<std::string, int64_t> libraries;
  /// `N=1,C=64`, for operators and kernels.
  std::optional<std::string> binding;
  std::optional<int64_t> macs, params;
  /// Of `macs`, those with no zero of a padding: what rates are made of.
  std::optional<int64_t> existingMacs;
  /// Of operators; printed as text where `printsCost`.
  std::optional<Cost> cost;
  bool printsCost = false;
  std::optional<execution::Timing> timing;
  std::optional<double> compileMilliseconds;
  execution::CompileTimes compileTimes;
  /// How many elements of packed weights were made before the runs; none on
  /// other devices.
  std::optional<int64_t> prepackedElements;
  std::optional<execution::Profile> profile;
  std::optional<double> maxRelativeError;
  /// What an exact check has drawn, as text and in JSON, and where results
  /// differ.
  std::optional<std::string> exact, difference;
  llvm::json::Object exactFields;
  bool ok = true;

  void print(llvm::raw_ostream &stream, bool json) const;
  /// GFLOP/s in the median, of the products that exist.
  std::optional<double> getRate() const;
};

/// Turns diagnostics into an `Error`, while it lives.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context)
      : handler(context, [this](mlir::Diagnostic &diagnostic) {
          llvm::raw_string_ostream stream(text);
          stream << (text.empty() ? "" : "; ") << diagnostic;
          return mlir::success();
        }) {}
  llvm::Error takeError() { return llvm::createStringError(text); }

private:
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

/// How the settings want code to be timed.
execution::TimingOptions getTimingOptions(const RunSettings &settings);

/// Writes the results: one to a .npy file, any number to a .npz file.
llvm::Error writeResults(llvm::StringRef path,
                         const execution::FunctionSignature &signature,
                         llvm::MutableArrayRef<execution::Tensor> results);

/// The elements of all arguments but the first, which is the data.
int64_t countParameters(const execution::FunctionSignature &signature);

/// `kas-run [FILE] --operator=NAME --bind=...`.
llvm::Expected<RunReport> runOperator(mlir::MLIRContext &context,
                                      const RunSettings &settings);

/// `kas-run [FILE] --kernel=NAME [--bind=...]`: one sample of a kernel, at its
/// first binding unless the command line says otherwise.
llvm::Expected<RunReport> runKernel(mlir::MLIRContext &context,
                                    const RunSettings &settings);

/// `kas-run --worker`: times the operators that the standard input asks for, as
/// a worker of a search (docs/guide/searching.md), until it ends.
llvm::Error runWorker(mlir::MLIRContext &context, const RunSettings &settings);

/// `kas-run FILE --function=NAME`.
llvm::Expected<RunReport> runFunction(mlir::MLIRContext &context,
                                      const RunSettings &settings);

} // namespace kas

#endif // KAS_TOOLS_KASRUN_H
