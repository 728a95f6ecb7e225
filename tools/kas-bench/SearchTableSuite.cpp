//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Imitation.h"
#include "KasBench.h"
#include "SearchSpaces.h"
#include "SearchTable.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/GraphSearch/GraphState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <cmath>

using namespace kas;
using llvm::createStringError;
using llvm::Error;

llvm::Expected<std::shared_ptr<const SearchProblem>>
kas::parseSearchProblem(mlir::MLIRContext &context, llvm::StringRef text) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return createStringError("a space of the benchmark does not parse");
  SpaceOp space = *module->getOps<SpaceOp>().begin();
  return std::make_shared<const SearchProblem>(SearchProblem::get(space));
}

/// The share of the layer's variance that `graph` explains at the first
/// binding.
static llvm::Expected<double> judge(mlir::MLIRContext &context,
                                    const ImitatedLayer &layer,
                                    const SearchProblem &problem,
                                    const OperatorGraph &graph) {
  mlir::Location location = mlir::UnknownLoc::get(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(location);
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module->getBody());
  OperatorOp op = buildOperator(builder, location, "candidate", problem, graph);
  auto concrete = specialize(builder, op, problem.bindings.front(), "concrete",
                             [&] { return op.emitError(); });
  if (mlir::failed(concrete))
    return createStringError("a candidate has no legal sizes");
  return layer.getExplainedShare(*concrete);
}

Error kas::runSearchTableSuite(mlir::MLIRContext &context,
                               const BenchSettings &settings,
                               BenchReport &report) {
  auto problem = parseSearchProblem(context, tabulatedSpace);
  if (!problem)
    return problem.takeError();
  Enumerator enumerator(makeGraphState(*problem), {});
  std::vector<std::pair<Path, std::shared_ptr<const Solution>>> found;
  (void)enumerator.run({}, [&](llvm::ArrayRef<Move> path, const State &state) {
    found.emplace_back(Path(path.begin(), path.end()), state.getSolution());
  });
  ImitatedLayer layer(/*channels=*/8, /*extent=*/6, /*samples=*/4, /*seed=*/1);
  llvm::errs() << found.size() << " operators\n";
  SearchTable table;
  for (const auto &[path, solution] : found) {
    const auto &graph = static_cast<const OperatorGraph &>(*solution);
    auto reward = judge(context, layer, **problem, graph);
    if (!reward)
      return reward.takeError();
    SearchTable::Row row{path, *reward, {}};
    graph.getFeatures(row.features);
    table.rows.push_back(std::move(row));
  }
  llvm::outs()
      << "# All operators of spaces/tabulated.mlir, judged by `kas-bench "
         "search-table`; SearchTable.h says what the columns are.\n";
  table.print(llvm::outs());
  return Error::success();
}
