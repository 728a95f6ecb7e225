//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The properties of an operator from their definitions, by brute force.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_SEARCH_OPERATORS_PROPERTYORACLE_H
#define TEST_UNITTESTS_SEARCH_OPERATORS_PROPERTYORACLE_H

#include "kas/Search/Operators/OperatorGraph.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kas {

/// Decides the properties of the operators of one problem: what is seen and
/// reached from the values of the reference evaluator, with ones as weights;
/// the others from all points, one by one.
class PropertyOracle {
public:
  PropertyOracle(mlir::MLIRContext &context,
                 std::shared_ptr<const search::SearchProblem> problem);

  struct Facts {
    bool sees = true, seesAll = true, seesAllOfFirst = true,
         reachesInOne = true, reachesInTwo = true, hasOneProduct = true,
         isLinear = true, isCausal = true, fitsAnyGrid = true;
    /// Along each axis, and along the first one.
    bool isZeroPadded = true, isCyclic = true, isCyclicAlongFirst = true;
  };
  /// All about `graph`; `windows` are those of the axes.
  Facts describe(const search::OperatorGraph &graph,
                 llvm::ArrayRef<Size> windows);

private:
  struct Shape {
    llvm::SmallVector<int64_t> extents;
    int64_t count = 1;
    llvm::SmallVector<int64_t> getIndices(int64_t element) const;
  };
  /// How many points of an output element read an input element.
  using Counts = std::vector<std::vector<int64_t>>;
  Counts count(const search::OperatorGraph &graph, const Binding &binding);
  static Shape getShape(llvm::ArrayRef<search::Dimension> dimensions,
                        const Binding &binding);

  /// Nothing in the place of a window is the whole axis.
  bool sees(const Counts &counts, llvm::ArrayRef<std::optional<Size>> windows,
            const Binding &binding) const;
  bool reaches(const Counts &counts, unsigned layers,
               const Binding &binding) const;
  static bool hasOneProduct(const Counts &counts);
  bool isCausal(const Counts &counts, const Binding &binding) const;
  bool isEquivariant(const search::OperatorGraph &graph, const Binding &binding,
                     llvm::ArrayRef<SpaceAxis> along, bool wraps) const;
  bool fitsAnyGrid(const search::OperatorGraph &graph) const;
  bool isLinear(const search::OperatorGraph &graph,
                const Binding &binding) const;

  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::shared_ptr<const search::SearchProblem> problem;
  llvm::SmallVector<SpaceAxis> axes;
};

} // namespace kas

#endif // TEST_UNITTESTS_SEARCH_OPERATORS_PROPERTYORACLE_H
