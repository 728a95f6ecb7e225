//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/InitAll.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::reference;
using namespace kas::test;
using namespace mlir;

static RankedTensorType getTensorType(MLIRContext *context,
                                      ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, Float32Type::get(context));
}

/// `func @name(data, weights...) { return kas.apply @op<binding>(...) }`.
static void addFunction(OpBuilder &builder, const RandomOperator &random,
                        const OperatorShapes &shapes, StringRef name) {
  MLIRContext *context = builder.getContext();
  OperatorOp op = random.op;
  Location loc = op.getLoc();
  SmallVector<Type> types = {getTensorType(context, shapes.data)};
  for (ArrayRef<int64_t> shape : shapes.weights)
    types.push_back(getTensorType(context, shape));
  Type resultType = getTensorType(context, shapes.output);
  auto function = func::FuncOp::create(
      builder, loc, name, builder.getFunctionType(types, resultType));
  SymbolSet symbols = op.getSymbolSet();
  SmallVector<std::pair<StringRef, int64_t>> entries;
  for (auto [index, value] : llvm::enumerate(random.binding))
    entries.emplace_back(symbols.getName(index), value);
  OpBuilder::InsertionGuard guard(builder);
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  auto apply = ApplyOp::create(
      builder, loc, resultType, FlatSymbolRefAttr::get(op.getSymNameAttr()),
      BindingAttr::getNormal(context, entries), body->getArgument(0),
      body->getArguments().drop_front());
  func::ReturnOp::create(builder, loc, apply.getResult());
}

static std::string getName(unsigned index) {
  return "run" + std::to_string(index);
}

Batch::Batch(MLIRContext *context, uint64_t first, unsigned count,
             const MakeOperatorFn &make)
    : first(first), module(ModuleOp::create(UnknownLoc::get(context))) {
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  for (unsigned i = 0; i < count; ++i) {
    RandomOperator random =
        make(builder, "operator" + std::to_string(i), first + i);
    operators.push_back(random);
    texts.push_back(describe(random));
    OperatorOp concrete = makeConcrete(random.op, random.binding);
    OperatorShapes shapes = getShapes(concrete);
    concrete.erase();
    addFunction(builder, random, shapes, getName(i));
  }
}

/// Packs the weights for the function `name`, if it wants that.
static std::vector<float> prepare(ModuleOp lowered, CompiledModule &compiled,
                                  const std::string &name, Inputs inputs) {
  std::vector<float> packed(getNumPrepackedElements(lowered, name));
  if (packed.empty())
    return packed;
  std::vector<void *> pointers;
  for (std::vector<float> &weight : inputs.weights)
    pointers.push_back(weight.data());
  pointers.push_back(packed.data());
  auto function = compiled.lookup(name + "_prepack");
  if (!function) {
    ADD_FAILURE() << llvm::toString(function.takeError());
    return packed;
  }
  llvm::cantFail(execution::call(*function, pointers.data()));
  return packed;
}

static std::vector<float> call(CompiledModule::Function function, Inputs inputs,
                               std::vector<float> packed) {
  std::vector<float> output(*getNumElements(inputs.shapes.output),
                            std::numeric_limits<float>::quiet_NaN());
  std::vector<void *> pointers = {inputs.data.data()};
  for (std::vector<float> &weight : inputs.weights)
    pointers.push_back(weight.data());
  pointers.push_back(output.data());
  pointers.push_back(packed.data());
  llvm::cantFail(execution::call(function, pointers.data()));
  return output;
}

void Batch::check(AddPassesFn strategy, const BatchOptions &options) {
  ASSERT_TRUE(succeeded(verify(*module)));
  OwningOpRef<ModuleOp> lowered = run([&](PassManager &manager) {
    strategy(manager);
    buildCPUPipeline(manager, options.pipeline);
    if (options.prepare)
      options.prepare(manager);
  });
  ASSERT_TRUE(lowered);
  auto compiled = CompiledModule::compile(*lowered, options.jit);
  ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
  compare(
      [&](unsigned i, const Inputs &inputs) {
        auto function = (*compiled)->lookup(getName(i));
        if (!function) {
          ADD_FAILURE() << llvm::toString(function.takeError());
          return std::vector<float>();
        }
        std::vector<float> packed =
            prepare(*lowered, **compiled, getName(i), inputs);
        return options.call ? options.call(*function, inputs, packed)
                            : call(*function, inputs, packed);
      },
      options.comparison);
}

void Batch::compare(
    llvm::function_ref<std::vector<float>(unsigned, const Inputs &)> run,
    const Comparison &comparison) {
  for (unsigned i = 0; i < operators.size(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(first + i) + "\n" + texts[i]);
    OperatorOp concrete = makeConcrete(operators[i].op, operators[i].binding);
    compareWithReference(concrete, first + i, comparison, counts,
                         [&](const Inputs &inputs) { return run(i, inputs); });
    concrete.erase();
  }
}

OwningOpRef<ModuleOp>
Batch::run(llvm::function_ref<void(PassManager &)> passes) {
  ScopedDiagnosticHandler handler(
      module->getContext(), [](Diagnostic &diagnostic) {
        return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark);
      });
  OwningOpRef<ModuleOp> result = module->clone();
  PassManager manager(module->getContext(), ModuleOp::getOperationName());
  passes(manager);
  if (failed(manager.run(*result)))
    return nullptr;
  return result;
}

void kas::test::forEachBatchOf(const MakeOperatorFn &make, unsigned count,
                               llvm::function_ref<void(Batch &)> body) {
  ComparisonCounts counts;
  DialectRegistry registry;
  registerAllDialects(registry);
  registerCPUPipelineDialects(registry);
  for (unsigned i = 0; i < count; i += batchSize) {
    MLIRContext context(registry);
    context.loadDialect<KasDialect, func::FuncDialect>();
    Batch batch(&context, getFirstSeed() + i, std::min(batchSize, count - i),
                make);
    body(batch);
    counts.all += batch.getCounts().all;
    counts.exact += batch.getCounts().exact;
    if (testing::Test::HasFailure())
      return;
  }
  counts.check();
}

void kas::test::forEachBatch(unsigned count,
                             const RandomOperatorOptions &options,
                             llvm::function_ref<void(Batch &)> body) {
  forEachBatchOf(
      [&](OpBuilder &builder, StringRef name, uint64_t seed) {
        return makeRandomOperator(builder, name, seed, options);
      },
      llvm::alignTo(count, batchSize), body);
}
