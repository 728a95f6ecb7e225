//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matches linear layers and batched matrix products as sites of an operator:
// the roles of the loops and the sizes.
// `linear` [N, Cin] -> [N, Cout], `batched_linear` with rows [N, L],
// `batch_matmul` with a weight for each batch. Where weights come from decides
// which operand is which, not their position.
//
//===----------------------------------------------------------------------===//

#include "Matching.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace kas;
using namespace kas::networks;

namespace {

/// Roles of the loops: the data is [batch..., rows..., common], the result
/// [batch..., rows..., columns]; the weight has batch, columns and common.
struct Roles {
  SmallVector<unsigned> batch, rows;
  unsigned columns = 0, common = 0;
};

} // namespace

/// `map` reads the dimensions `loops`, in this order.
static bool readsInOrder(AffineMap map, ArrayRef<unsigned> loops) {
  return map.getNumResults() == loops.size() &&
         llvm::all_of(llvm::enumerate(loops), [&](auto entry) {
           return map.getResult(entry.index()) ==
                  getAffineDimExpr(entry.value(), map.getContext());
         });
}

/// The position of the weight among the two operands: the one that is made from
/// an argument or a constant; of two, that with the name of a weight; else the
/// second.
static unsigned findWeightOperand(linalg::LinalgOp op) {
  Value first = traceWeight(op.getDpsInputs()[0]);
  Value second = traceWeight(op.getDpsInputs()[1]);
  if (!first || !second)
    // Only one, or none, is made of a weight.
    return first ? 0 : 1;
  auto isNamedWeight = [](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      // A constant in the module is a weight.
      return true;
    auto function =
        cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
    auto name = function.getArgAttrOfType<StringAttr>(
        argument.getArgNumber(), KasDialect::argumentNameAttrName);
    return name && name.getValue().ends_with("weight");
  };
  return isNamedWeight(first) && !isNamedWeight(second) ? 0 : 1;
}

/// Data and result must be row-major in these roles; the weight may be in any
/// order.
static LogicalResult checkRoles(linalg::LinalgOp op, const Roles &roles,
                                unsigned weightOperand, std::string &reason) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<unsigned> dataLoops = roles.batch, resultLoops;
  dataLoops.append(roles.rows);
  resultLoops = dataLoops;
  dataLoops.push_back(roles.common);
  resultLoops.push_back(roles.columns);
  if (!readsInOrder(maps[1 - weightOperand], dataLoops) ||
      !readsInOrder(maps[2], resultLoops) ||
      !maps[weightOperand].isProjectedPermutation())
    return miss(reason, "requires batch, rows, then channels, in data and "
                        "result");
  return success();
}

/// `linear`, `batched_linear` or `batch_matmul`, with their sizes.
/// The primaries are also the names in the named operators of the library, so
/// that a layer can be compared with them.
static void describeKind(Site &site, const Roles &roles,
                         ArrayRef<int64_t> loopSizes) {
  LayerKind &kind = site.kind;
  StringRef common = "Cin", columns = "Cout";
  if (!roles.batch.empty()) {
    kind.name = "batch_matmul";
    kind.primaries = {"B", "M", "N", "K"};
    common = "K";
    columns = "N";
  } else if (roles.rows.size() == 2) {
    kind.name = "batched_linear";
    kind.primaries = {"N", "L", "Cin", "Cout"};
  } else {
    kind.name = "linear";
    kind.primaries = {"N", "Cin", "Cout"};
  }
  kind.namedOperator = "kas." + kind.name;
  // A batched product has no channels: its columns may be positions.
  kind.hasUnorderedChannels = roles.batch.empty();
  // Dimensions that data and result share, in front.
  SmallVector<unsigned> leading = roles.batch;
  leading.append(roles.rows);
  for (auto [index, loop] : llvm::enumerate(leading)) {
    kind.inputSizes.push_back(kind.primaries[index]);
    site.dataShape.push_back(loopSizes[loop]);
    site.binding.emplace_back(kind.primaries[index], loopSizes[loop]);
  }
  kind.outputSizes = kind.inputSizes;
  site.resultShape = site.dataShape;
  kind.inputSizes.push_back(common.str());
  kind.outputSizes.push_back(columns.str());
  site.dataShape.push_back(loopSizes[roles.common]);
  site.resultShape.push_back(loopSizes[roles.columns]);
  site.binding.emplace_back(common.str(), loopSizes[roles.common]);
  site.binding.emplace_back(columns.str(), loopSizes[roles.columns]);
}

FailureOr<Site>
kas::networks::matchContraction(linalg::LinalgOp op,
                                const linalg::ContractionDimensions &dims,
                                std::string &reason) {
  unsigned weightOperand = findWeightOperand(op);
  // By position of the weight: m are loops of the first operand alone, n of the
  // second.
  ArrayRef<unsigned> rows = weightOperand == 1 ? dims.m : dims.n;
  ArrayRef<unsigned> columns = weightOperand == 1 ? dims.n : dims.m;
  if (columns.size() != 1 || dims.k.size() != 1)
    return miss(reason,
                "requires one dimension of output channels and one of "
                "input channels, got ",
                columns.size(), " and ", dims.k.size());
  // More dimensions would have to be merged first, which is a reshape.
  if (dims.batch.size() > 1 || rows.size() > (dims.batch.empty() ? 2 : 1))
    return miss(reason,
                "requires one batch and one row dimension, or none and "
                "up to two, got ",
                dims.batch.size(), " and ", rows.size());
  Roles roles;
  roles.batch.assign(dims.batch.begin(), dims.batch.end());
  roles.rows.assign(rows.begin(), rows.end());
  roles.columns = columns.front();
  roles.common = dims.k.front();
  if (failed(checkRoles(op, roles, weightOperand, reason)))
    return failure();

  Site site;
  site.op = op;
  // Without looking through views: rows keep their shape.
  site.data = op.getDpsInputs()[1 - weightOperand];
  SmallVector<int64_t> loopSizes = op.getStaticLoopRanges();
  describeKind(site, roles, loopSizes);
  // The size of each dimension of the weight in symbols.
  SmallVector<std::string, 3> weightSizes;
  for (AffineExpr expr :
       op.getIndexingMapsArray()[weightOperand].getResults()) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    weightSizes.push_back(loop == roles.columns  ? site.kind.outputSizes.back()
                          : loop == roles.common ? site.kind.inputSizes.back()
                                                 : site.kind.primaries.front());
  }
  if (failed(setWeight(site, op.getDpsInputs()[weightOperand], weightSizes,
                       reason)))
    return failure();
  // All loops.
  site.macs = 1;
  for (int64_t size : loopSizes)
    site.macs *= size;
  return site;
}
