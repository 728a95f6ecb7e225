//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls versions of a function for parts of a batch of any size. The versions
// are those of `-kas-batch-versions`, lowered to the LLVM dialect; made for
// each of them is
//
//     ptr NAME(ptr data, weights..., results..., [ptr prepacked,] i64 samples)
//       left = samples, done = 0
//       while left != 0:
//         version, count = plan[min(left, most) - 1]
//         call version for `count` parts from sample `done` on
//         left -= count * size, done += count * size
//       return null, or the first message of an assertion
//
// The plan is a constant table, computed by `planBatch`
// (Strategy/BatchParts.cpp) for all numbers of samples up to that of the
// largest version. docs/internals/code-generation.md, "Batches".
//
//===----------------------------------------------------------------------===//

#include "../Strategy/BatchParts.h"
#include "BatchCalls.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/OpenMP/OpenMPDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASDISPATCHBATCHPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

/// A version with what prepacks its weights.
struct Version {
  LLVM::LLVMFuncOp part;
  BatchVersionAttr attr;
  /// Null where no weights are prepacked.
  LLVM::LLVMFuncOp prepack = {}, prepackedElements = {};
  /// How many f32 are prepacked, and where they begin among all.
  int64_t numPrepacked = 0, firstPrepacked = 0;

  bool isSerial() const { return part->hasAttr(KasCPUDialect::serialName); }
};

/// The function that a batch of any size is given to.
class Dispatcher {
public:
  Dispatcher(ModuleOp module, StringRef name, ArrayRef<Version> versions,
             int64_t threads)
      : symbols(module), name(name), versions(versions), threads(threads),
        b(Version(versions.front()).part.getLoc(), module.getContext()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())),
        most(versions.front().attr.getMost()) {}

  void emit();
  /// What prepacks the weights of all versions.
  void emitPrepack();

private:
  Value makeInt(int64_t value) {
    return LLVM::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }
  /// Makes `@NAME` + `suffix` after the versions.
  LLVM::LLVMFuncOp createFunction(const Twine &suffix, Type result,
                                  ArrayRef<Type> arguments);
  /// Makes an internal constant before the versions.
  LLVM::GlobalOp createGlobal(StringRef suffix, Type type, Attribute value);
  /// `base` and so many bytes more.
  Value emitOffset(Value base, Value bytes) {
    return LLVM::GEPOp::create(b, pointer, b.getI8Type(), base, bytes);
  }
  /// Where the prepacked weights of a version begin among all of them.
  Value emitPacked(Value all, const Version &version) {
    return emitOffset(all, makeInt(version.firstPrepacked *
                                   static_cast<int64_t>(sizeof(float))));
  }
  void emitRefusal(Value numSamples, Block *next);
  void emitChoice(LLVM::GlobalOp plan, Value left, ArrayRef<Block *> targets,
                  Block *finish);
  void emitVersion(const Version &version, Block *block, Value messages,
                   Block *loop);
  LLVM::GlobalOp createPlan(int64_t &mostCalls);

  /// Versions are sorted as `chooseBatchVersions` has them, the largest first;
  /// `most` is the number of samples of the original function.
  SymbolTable symbols;
  StringRef name;
  ArrayRef<Version> versions;
  int64_t threads;
  ImplicitLocOpBuilder b;
  Type pointer;
  int64_t most;
  LLVM::LLVMFuncOp function;
};

} // namespace

LLVM::LLVMFuncOp Dispatcher::createFunction(const Twine &suffix, Type result,
                                            ArrayRef<Type> arguments) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(versions.back().part);
  auto created = LLVM::LLVMFuncOp::create(
      b, (name + suffix).str(), LLVM::LLVMFunctionType::get(result, arguments));
  // It is in place already, and gets another name where it must.
  created->remove();
  symbols.insert(created, std::next(versions.back().part->getIterator()));
  return created;
}

LLVM::GlobalOp Dispatcher::createGlobal(StringRef suffix, Type type,
                                        Attribute value) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(versions.front().part);
  auto global = LLVM::GlobalOp::create(b, type, /*isConstant=*/true,
                                       LLVM::Linkage::Internal,
                                       (name + suffix).str(), value);
  global->remove();
  symbols.insert(global, versions.front().part->getIterator());
  return global;
}

/// For each number of samples the number of the version to call first, and how
/// often. Row `n - 1` is for `n` samples left. `mostCalls` becomes the largest
/// number of calls of one version, for each of which a message needs room.
LLVM::GlobalOp Dispatcher::createPlan(int64_t &mostCalls) {
  SmallVector<BatchVersion> parts;
  for (Version version : versions)
    parts.push_back({version.attr.getSamples(), version.isSerial(),
                     version.attr.getCycles()});
  SmallVector<int32_t> numbers;
  mostCalls = 1;
  for (BatchCall call : planBatch(parts, most, threads)) {
    numbers.push_back(static_cast<int32_t>(call.version));
    numbers.push_back(static_cast<int32_t>(call.count));
    mostCalls = std::max(mostCalls, call.count);
  }
  auto type = RankedTensorType::get({most, 2}, b.getI32Type());
  return createGlobal("_batch_plan",
                      LLVM::LLVMArrayType::get(
                          LLVM::LLVMArrayType::get(b.getI32Type(), 2), most),
                      DenseElementsAttr::get(type, ArrayRef<int32_t>(numbers)));
}

/// A negative number of samples is the caller's mistake.
void Dispatcher::emitRefusal(Value numSamples, Block *next) {
  // Passed a negative number, the loop would run until it wraps around.
  Block *refuse = b.createBlock(next);
  b.setInsertionPointToEnd(&function.getBody().front());
  Value isNegative =
      LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::slt, numSamples, makeInt(0));
  LLVM::CondBrOp::create(b, isNegative, refuse, ValueRange(), next,
                         ValueRange({numSamples, makeInt(0)}));
  b.setInsertionPointToStart(refuse);
  std::string text = "requires a batch of at least 0 samples";
  text.push_back('\0');
  LLVM::GlobalOp message = createGlobal(
      "_batch_message", LLVM::LLVMArrayType::get(b.getI8Type(), text.size()),
      b.getStringAttr(text));
  Value address = LLVM::AddressOfOp::create(b, message);
  LLVM::ReturnOp::create(b, address);
}

/// Branches to the version that is next with how often it is called.
void Dispatcher::emitChoice(LLVM::GlobalOp plan, Value left,
                            ArrayRef<Block *> targets, Block *finish) {
  Block *choose = b.createBlock(targets.front());
  b.setInsertionPointToEnd(cast<BlockArgument>(left).getOwner());
  Value isDone =
      LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, left, makeInt(0));
  Value none = LLVM::ZeroOp::create(b, pointer);
  LLVM::CondBrOp::create(b, isDone, finish, none, choose, ValueRange());
  b.setInsertionPointToStart(choose);
  // A batch larger than the plan begins with the calls for the largest number
  // it has.
  Value samples = LLVM::SMinOp::create(b, left, makeInt(most));
  Value row = LLVM::SubOp::create(b, samples, makeInt(1));
  Value table = LLVM::AddressOfOp::create(b, plan);
  auto read = [&](int32_t column) -> Value {
    Value place = LLVM::GEPOp::create(b, pointer, plan.getType(), table,
                                      ArrayRef<LLVM::GEPArg>{0, row, column});
    return LLVM::LoadOp::create(b, b.getI32Type(), place);
  };
  Value version = read(0);
  Value count = LLVM::SExtOp::create(b, b.getI64Type(), read(1));
  // The translation to LLVM IR takes no switch without cases.
  if (targets.size() == 1) {
    LLVM::BrOp::create(b, count, targets.front());
    return;
  }
  // Version 0 is the default of the switch.
  SmallVector<int32_t> numbers;
  for (unsigned number = 1; number < targets.size(); ++number)
    numbers.push_back(static_cast<int32_t>(number));
  SmallVector<ValueRange> operands(numbers.size(), count);
  LLVM::SwitchOp::create(b, version, targets.front(), count, numbers,
                         targets.drop_front(), operands);
}

/// Calls a version as often as the block's argument says, and goes on with the
/// samples that are left then. `block` is where the version is called,
/// `messages` room for those of all calls, `loop` where to go on.
void Dispatcher::emitVersion(const Version &version, Block *block,
                             Value messages, Block *loop) {
  b.setInsertionPointToStart(block);
  Value count = block->getArgument(0);
  Value left = loop->getArgument(0), done = loop->getArgument(1);
  int64_t size = version.attr.getSamples();
  // One thread, unless threads share the calls: a version that is not serial
  // uses them itself, one call after the other.
  PartCalls calls{version.part, {}, version.attr.getBytes(),
                  count,        1,  messages};
  if (version.isSerial())
    calls.threads = threads;
  for (auto [bytes, argument] :
       llvm::zip(version.attr.getBytes(), function.getArguments()))
    calls.arguments.push_back(
        bytes == 0 ? Value(argument)
                   : emitOffset(argument, LLVM::MulOp::create(
                                              b, done, makeInt(bytes / size))));
  if (version.prepack)
    calls.arguments.push_back(emitPacked(
        function.getArgument(version.attr.getBytes().size()), version));
  Value message = calls.emit(b);
  Value computed = LLVM::MulOp::create(b, count, makeInt(size));
  SmallVector<Value> next = {LLVM::SubOp::create(b, left, computed),
                             LLVM::AddOp::create(b, done, computed)};
  if (!message) {
    LLVM::BrOp::create(b, next, loop);
    return;
  }
  Block *finish = &function.getBody().back();
  Value none = LLVM::ZeroOp::create(b, pointer);
  Value isFine =
      LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, message, none);
  LLVM::CondBrOp::create(b, isFine, loop, next, finish, ValueRange(message));
}

void Dispatcher::emit() {
  // Data, weights and results; then all prepacked weights, if there are any;
  // then the number of samples.
  SmallVector<Type> types(versions.front().attr.getBytes().size(), pointer);
  if (llvm::any_of(versions, [](const Version &v) { return v.prepack; }))
    types.push_back(pointer);
  types.push_back(b.getI64Type());
  function = createFunction("", pointer, types);
  Value numSamples = function.addEntryBlock(b)->getArguments().back();
  Region &body = function.getBody();
  Location loc = b.getLoc();
  int64_t mostCalls = 1;
  LLVM::GlobalOp plan = createPlan(mostCalls);
  b.setInsertionPointToStart(&body.front());
  Value messages;
  if (llvm::any_of(versions,
                   [](const Version &v) { return hasMessages(v.part); }))
    // In the entry block, so that the stack grows once.
    messages = LLVM::AllocaOp::create(b, pointer, pointer, makeInt(mostCalls));
  // What is left, and what is done.
  Block *loop = b.createBlock(&body, body.end(),
                              {b.getI64Type(), b.getI64Type()}, {loc, loc});
  SmallVector<Block *> targets;
  for (size_t number = 0; number < versions.size(); ++number)
    targets.push_back(
        b.createBlock(&body, body.end(), {b.getI64Type()}, {loc}));
  Block *finish = b.createBlock(&body, body.end(), {pointer}, {loc});
  LLVM::ReturnOp::create(b, finish->getArgument(0));
  emitRefusal(numSamples, loop);
  emitChoice(plan, loop->getArgument(0), targets, finish);
  for (auto [version, target] : llvm::zip_equal(versions, targets))
    emitVersion(version, target, messages, loop);
}

/// `@NAME_prepack` takes the weights and one buffer, of
/// `@NAME_prepacked_elements` f32, in which each version has its own part. Its
/// message is the first of those of the versions.
void Dispatcher::emitPrepack() {
  int64_t numPrepacked = 0;
  LLVM::LLVMFuncOp first;
  for (Version version : versions) {
    if (version.prepack)
      numPrepacked = version.firstPrepacked + version.numPrepacked;
    if (version.prepack && !first)
      first = version.prepack;
  }
  if (!first)
    return;
  LLVM::LLVMFuncOp prepack =
      createFunction("_prepack", pointer, first.getArgumentTypes());
  b.setInsertionPointToStart(prepack.addEntryBlock(b));
  SmallVector<Value> weights(prepack.getArguments().drop_back());
  for (Version version : versions) {
    if (!version.prepack)
      continue;
    SmallVector<Value> arguments = weights;
    arguments.push_back(emitPacked(prepack.getArguments().back(), version));
    auto call = LLVM::CallOp::create(b, version.prepack, arguments);
    if (!hasMessages(version.prepack))
      continue;
    // A message ends it before the other versions.
    Block *stop = b.createBlock(&prepack.getBody(), prepack.getBody().end());
    LLVM::ReturnOp::create(b, call.getResult());
    Block *next = b.createBlock(&prepack.getBody(), prepack.getBody().end());
    b.setInsertionPointAfter(call);
    Value none = LLVM::ZeroOp::create(b, pointer);
    Value isFine = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq,
                                        call.getResult(), none);
    LLVM::CondBrOp::create(b, isFine, next, stop);
    b.setInsertionPointToStart(next);
  }
  Value none = LLVM::ZeroOp::create(b, pointer);
  LLVM::ReturnOp::create(b, none);
  LLVM::LLVMFuncOp count =
      createFunction("_prepacked_elements", b.getI64Type(), {});
  b.setInsertionPointToStart(count.addEntryBlock(b));
  LLVM::ReturnOp::create(b, makeInt(numPrepacked));
}

namespace {

struct DispatchBatch
    : kas::codegen::impl::KasDispatchBatchPassBase<DispatchBatch> {
  using KasDispatchBatchPassBase::KasDispatchBatchPassBase;

  void runOnOperation() override {
    llvm::MapVector<StringRef, SmallVector<Version>> functions;
    for (auto part : getOperation().getOps<LLVM::LLVMFuncOp>())
      if (auto attr = part->getAttrOfType<BatchVersionAttr>(
              KasCPUDialect::batchVersionName)) {
        if (!isOnPointers(part)) {
          part.emitError("expected a function with a body that takes pointers "
                         "and returns nothing or a pointer, for ")
              << KasCPUDialect::batchVersionName << " of '@" << part.getName()
              << "' got " << part.getFunctionType();
          return signalPassFailure();
        }
        functions[attr.getOf()].push_back({part, attr});
      }
    for (auto &[name, versions] : functions)
      if (failed(dispatch(name, versions)))
        return signalPassFailure();
  }

private:
  LogicalResult dispatch(StringRef name, MutableArrayRef<Version> versions);
  LogicalResult check(StringRef name, ArrayRef<Version> versions);
  void findPrepack(Version &version, int64_t &numPrepacked);
};

} // namespace

/// Versions may come from a text: nothing about them is taken for granted.
LogicalResult DispatchBatch::check(StringRef name, ArrayRef<Version> versions) {
  // An operation is a handle, which is not const.
  LLVM::LLVMFuncOp first = versions.front().part;
  bool hasOne = false;
  for (Version version : versions) {
    // Without a version for one sample some batches have no plan.
    hasOne |= version.attr.getSamples() == 1;
    size_t count = version.attr.getBytes().size();
    if (version.attr.getMost() != versions.front().attr.getMost() ||
        count != versions.front().attr.getBytes().size() ||
        version.part.getNumArguments() < count ||
        version.part.getNumArguments() > count + 1)
      return version.part.emitError("expected versions of '@")
             << name << "' for as many samples, with as many pointers, got '@"
             << version.part.getName() << "'";
  }
  if (!hasOne)
    return first.emitError("expected a version of '@")
           << name << "' for 1 sample, got none";
  if (getOperation().lookupSymbol(name))
    return first.emitError("expected no other '@")
           << name << "' than its versions, got one";
  return success();
}

/// The functions that `-kas-prepack-weights` has made. `numPrepacked` counts
/// the elements of all versions so far. A version with as many arguments as
/// pointers has no prepacked weights; one whose functions are not found keeps
/// `prepack` null, which `dispatch` refuses.
void DispatchBatch::findPrepack(Version &version, int64_t &numPrepacked) {
  if (version.part.getNumArguments() == version.attr.getBytes().size())
    return;
  auto find = [&](StringRef suffix) {
    return getOperation().lookupSymbol<LLVM::LLVMFuncOp>(
        (version.part.getName() + suffix).str());
  };
  LLVM::LLVMFuncOp prepack = find("_prepack"),
                   count = find("_prepacked_elements");
  APInt number;
  if (!prepack || !count || count.isExternal() || !isOnPointers(prepack) ||
      // The number of elements must be a constant, since the parts of the
      // versions are laid out here.
      !matchPattern(count.getBody().front().getTerminator()->getOperand(0),
                    m_ConstantInt(&number)))
    return;
  version.prepack = prepack;
  version.prepackedElements = count;
  version.numPrepacked = number.getSExtValue();
  version.firstPrepacked = numPrepacked;
  // Each begins at a line of the cache.
  numPrepacked += llvm::alignTo(version.numPrepacked, 16);
}

LogicalResult DispatchBatch::dispatch(StringRef name,
                                      MutableArrayRef<Version> versions) {
  if (failed(check(name, versions)))
    return failure();
  int64_t numPrepacked = 0;
  for (Version &version : versions) {
    findPrepack(version, numPrepacked);
    size_t count = version.attr.getBytes().size() + (version.prepack ? 1 : 0);
    if (version.part.getNumArguments() != count)
      return version.part.emitError("expected a function that fills the last "
                                    "argument of '@")
             << version.part.getName() << "', got none";
  }
  Dispatcher dispatcher(getOperation(), name, versions, threads);
  dispatcher.emit();
  dispatcher.emitPrepack();
  for (Version &version : versions) {
    // What is left has no callers but those made here.
    if (version.prepackedElements)
      version.prepackedElements.erase();
    for (LLVM::LLVMFuncOp function : {version.part, version.prepack})
      if (function) {
        function.setLinkage(LLVM::Linkage::Internal);
        function.setPrivate();
        function->removeAttr(KasCPUDialect::batchVersionName);
        function->removeAttr(KasCPUDialect::serialName);
      }
  }
  return success();
}
