//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One operation on tensors as three functions: on tensors of static and of
// dynamic shape, and on buffers. Each goes through kas's pipeline for CPUs and
// is compared with what upstream's loops compute.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_UNITTESTS_PIPELINES_OPERATIONCASE_H
#define KAS_UNITTESTS_PIPELINES_OPERATIONCASE_H

#include "mlir/IR/MLIRContext.h"
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace kas::pipelines {

/// What an argument is filled with.
enum class Fill {
  /// Whole numbers from -4 to 4.
  Small,
  /// As Small, but no zero.
  NonZero,
  /// From -2 to 2.
  Fractions,
  /// As Fractions, and zeros of both signs, infinities, NaN, the least numbers.
  Special,
  /// From 0 to `OperationCase::limit`, less than it.
  Indices,
};

/// How results are compared.
enum class Match {
  /// All bits, but NaN is NaN.
  Bits,
  /// Values: zeros of both signs are equal.
  Values,
  /// But for rounding.
  Rounding,
};

/// The text has `$N` for the type of the value N: `tensor<2x3xf32>`, or `f32`
/// for a scalar. Arguments are `%a0`, `%a1`, ...; results `%r`, or `%r0`,
/// `%r1`, ... where there are several.
struct OperationCase {
  /// The operation's name, and what distinguishes this case.
  std::string name, variant;
  /// "2x3xf32", "*f32" of a tensor without dimensions, or "f32" of a scalar.
  std::vector<std::string> types;
  unsigned numArguments = 0;
  /// Indices into `types`.
  std::vector<unsigned> results;
  std::string body;
  /// What upstream's loops take in place of `body`; empty: the same.
  std::string reference = "";
  /// On buffers, where `results` are arguments; empty: there is no such form.
  std::string buffers = "";
  /// Attributes say more than dynamic types could.
  bool isStatic = false;
  /// Only the first dimension of tensors that have that of the first one may be
  /// dynamic.
  bool hasOnlyBatch = false;
  std::vector<Fill> fills = {};
  int64_t limit = 1;
  Match match = Match::Values;
  /// Beside the function.
  std::string globals = "";

  std::string getText() const { return name + " " + variant; }
};

enum class Form { Static, Dynamic, Buffers };

/// The outcome of one form.
struct Outcome {
  enum Kind {
    /// The form is no valid MLIR.
    None,
    Equal,
    Refused,
    Wrong
  } kind = None;
  /// The error of what was refused, or what is wrong.
  std::string text = "";
};

class OperationRunner {
public:
  explicit OperationRunner(uint64_t seed);

  mlir::MLIRContext &getContext() { return context; }
  /// Runs `operation` in `form`, compiled for as many `threads`.
  Outcome run(const OperationCase &operation, Form form, unsigned threads);
  /// Whether the text is valid, with the errors if not.
  bool isValid(const OperationCase &operation, Form form,
               std::string *errors = nullptr);

private:
  struct Buffers;
  std::string getSource(const OperationCase &operation, Form form,
                        bool isReference);
  mlir::MLIRContext context;
  std::mt19937_64 random;
};

/// The names of all registered operations of `dialect`.
std::set<std::string> getOperationNames(mlir::MLIRContext &context,
                                        llvm::StringRef dialect);

/// Cases of all operations of a dialect; those that have none are
/// `getLinalgParts` and so on.
std::vector<OperationCase> makeLinalgCases(OperationRunner &runner,
                                           std::mt19937_64 &random);
std::vector<OperationCase> makeElementwiseCases(OperationRunner &runner,
                                                llvm::StringRef dialect,
                                                std::mt19937_64 &random);
std::vector<OperationCase> makeTensorCases(std::mt19937_64 &random);
std::vector<OperationCase> makeTosaCases(std::mt19937_64 &random);

/// From `first` to `last`.
int64_t draw(std::mt19937_64 &random, int64_t first, int64_t last);

} // namespace kas::pipelines

#endif // KAS_UNITTESTS_PIPELINES_OPERATIONCASE_H
