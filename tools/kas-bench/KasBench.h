//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the suites of kas-bench share: settings and the lines they print.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_KASBENCH_H
#define KAS_TOOLS_KASBENCH_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/ExecutionEngine/Timing.h"
#include "kas/Pipelines/CPU.h"
#include "kas/Support/Target.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

namespace kas {

/// The command line.
struct BenchSettings {
  /// The path of this program: the other tools are next to it.
  std::string program;
  std::string filter;
  /// Where inputs.npy and outputs.npy of a layer are.
  std::string activations;
  /// For each case.
  double seconds = 1;
  unsigned threads = 1;
  /// cpu: the instruction set, as the option `--isa` names it, and what to
  /// compile for.
  std::string isa = "native";
  TargetNames target;
  /// gpu: what kernels run on, or are only assembled for, and what reads them.
  std::string device = "cuda", chip = "sm_90", disassembler;
  bool isStatic = false;
  /// predict: how many operators of each space, and how many of the best of a
  /// complete list.
  unsigned count = 125, best = 0;
  /// predict: only find the fastest operator of a complete list.
  bool findsFastest = false;
  /// Names of other implementations to measure in the same run.
  llvm::SmallVector<std::string> peers;
};

/// One measured number.
struct BenchLine {
  std::string name, metric;
  double value = 0;
  std::string unit;
  /// For times: all of them; the value is the median.
  std::optional<execution::Timing> timing = {};
  std::optional<double> maxRelativeError = {};
  std::optional<bool> ok = {};
  /// Whose number it is.
  std::string implementation = "kas";
};

/// Prints one JSON object per line, and at the end a summary per class.
class BenchReport {
public:
  BenchReport(llvm::StringRef suite, llvm::raw_ostream &stream)
      : suite(suite), stream(stream) {}

  /// All lines that follow carry the name of the instruction set.
  void setISA(llvm::StringRef name) { isa = name; }

  void print(const BenchLine &line);

  /// Remembers a value for the geometric mean of `className` and `metric`.
  void addToMean(llvm::StringRef className, const BenchLine &line);
  void printMeans();

  /// An error where an output was wrong, or nothing was measured.
  llvm::Error check() const;

private:
  struct Mean {
    std::string name, metric, unit;
    double logSum = 0;
    int64_t count = 0;
  };
  std::string suite, isa;
  llvm::raw_ostream &stream;
  llvm::SmallVector<Mean> means;
  llvm::SmallVector<std::string> failures;
  bool isEmpty = true;
};

/// True if `name` is to be measured.
bool isSelected(const BenchSettings &settings, llvm::StringRef name);

/// The named operator of the library at a binding such as `N=1,Cin=64`, as a
/// module with one function (see `createOperatorModule`).
struct BenchOperator {
  mlir::OwningOpRef<mlir::ModuleOp> library, module;
  OperatorOp op;
  /// Multiply-adds, and those of them with no zero of a padding: what rates are
  /// made of.
  int64_t macs = 0, existingMacs = 0;

  /// The operator `name` of the library at `binding`, `N=1,C=64`.
  static llvm::Expected<BenchOperator> load(mlir::MLIRContext &context,
                                            llvm::StringRef name,
                                            llvm::StringRef binding);
  /// The operator `source` of `library`.
  static llvm::Expected<BenchOperator>
  load(mlir::OwningOpRef<mlir::ModuleOp> library, OperatorOp source,
       llvm::StringRef binding);
};

/// Time to start the tools and to compile one operator.
llvm::Error runToolSuite(mlir::MLIRContext &context,
                         const BenchSettings &settings, BenchReport &report);

/// Time of compiled operators, checked against the reference.
llvm::Error runCPUSuite(mlir::MLIRContext &context,
                        const BenchSettings &settings, BenchReport &report);

/// Time of operators on a device by its own clock, checked against the
/// reference; or what their machine code says without a device.
llvm::Error runGPUSuite(mlir::MLIRContext &context,
                        const BenchSettings &settings, BenchReport &report);

/// How much faster operators get with several threads (two if the settings say
/// one): `scaling_N_threads`.
llvm::Error runThreadsSuite(mlir::MLIRContext &context,
                            const BenchSettings &settings, BenchReport &report);

/// Complete lists and rollouts of the operator search, and how many evaluations
/// the algorithms need in a space whose rewards are known.
llvm::Error runSearchSuite(mlir::MLIRContext &context,
                           const BenchSettings &settings, BenchReport &report);

/// Complete lists at several depths, and without parts of what the search
/// knows; and how the list of the large space grows with time.
llvm::Error runSearchGrowthSuite(mlir::MLIRContext &context,
                                 const BenchSettings &settings,
                                 BenchReport &report);

/// Sampled kernels of the tensor level for ResNet-18 at budgets of what its
/// convolutions cost: legal kernels per second, failures, use of the budget.
llvm::Error runDagSuite(mlir::MLIRContext &context,
                        const BenchSettings &settings, BenchReport &report);

/// Prints the table of rewards that the suite above uses (SearchTable.txt): how
/// well each operator imitates a layer whose activations were recorded
/// (record-activations.py).
llvm::Error runSearchTableSuite(mlir::MLIRContext &context,
                                const BenchSettings &settings,
                                BenchReport &report);

/// Searches for the named operators by what they compute, each in its space
/// (spaces/named.mlir).
llvm::Error runRediscoverySuite(mlir::MLIRContext &context,
                                const BenchSettings &settings,
                                BenchReport &report);

/// Learns what work takes on this machine and keeps it for `predicted_ms`.
llvm::Error runCalibrateSuite(mlir::MLIRContext &context,
                              const BenchSettings &settings,
                              BenchReport &report);

/// Batches for training, per second.
llvm::Error runBatchesSuite(mlir::MLIRContext &context,
                            const BenchSettings &settings, BenchReport &report);

/// Predicted against measured times of operators.
llvm::Error runPredictSuite(mlir::MLIRContext &context,
                            const BenchSettings &settings, BenchReport &report);

} // namespace kas

#endif // KAS_TOOLS_KASBENCH_H
