//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cases as text, with values of all types, through kas's pipeline and
// upstream's loops.
//
//===----------------------------------------------------------------------===//

#include "OperationCase.h"
#include "kas/ExecutionEngine/JIT.h"
#include "kas/Pipelines/CPU.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>

using namespace kas;
using namespace kas::pipelines;
using namespace mlir;

int64_t kas::pipelines::draw(std::mt19937_64 &random, int64_t first,
                             int64_t last) {
  return first + static_cast<int64_t>(random() % uint64_t(last - first + 1));
}

std::set<std::string> kas::pipelines::getOperationNames(MLIRContext &context,
                                                        StringRef dialect) {
  context.getOrLoadDialect(dialect);
  std::set<std::string> names;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.getDialectNamespace() == dialect)
      names.insert(name.getStringRef().str());
  return names;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static bool isShaped(StringRef type) { return type.contains('x'); }

static StringRef getElement(StringRef type) {
  type.consume_front("*");
  // "index" has an x of its own.
  if (type.ends_with("index"))
    return "index";
  return isShaped(type) ? type.rsplit('x').second : type;
}

static SmallVector<int64_t> getShape(StringRef type) {
  SmallVector<int64_t> shape;
  type.consume_front("*");
  StringRef rest = type.drop_back(getElement(type).size());
  while (!rest.empty()) {
    auto [size, next] = rest.split('x');
    int64_t value = 0;
    size.getAsInteger(10, value);
    shape.push_back(value);
    rest = next;
  }
  return shape;
}

static int64_t getCount(StringRef type) {
  int64_t count = 1;
  for (int64_t size : getShape(type))
    count *= size;
  return count;
}

static bool isDynamic(const OperationCase &operation, StringRef type,
                      size_t dim) {
  return !operation.hasOnlyBatch ||
         (dim == 0 && getShape(type)[0] == getShape(operation.types[0])[0]);
}

static std::string getDynamic(const OperationCase &operation, StringRef type) {
  std::string text;
  for (auto [i, size] : llvm::enumerate(getShape(type)))
    text += isDynamic(operation, type, i) ? "?x" : std::to_string(size) + "x";
  return text + getElement(type).str();
}

static bool isScalar(StringRef type) {
  return getShape(type).empty() && !type.starts_with("*");
}

/// As MLIR writes it.
static std::string getSpelling(StringRef type) {
  return type.drop_while([](char c) { return c == '*'; }).str();
}

/// Bytes of an element in memory.
static size_t getWidth(StringRef element) {
  if (element == "index")
    return 8;
  if (element == "bf16")
    return 2;
  unsigned bits = 0;
  element.drop_front().getAsInteger(10, bits);
  return bits <= 8 ? 1 : bits / 8;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static double readFloat(StringRef element, const char *from) {
  auto read = [&](auto value) {
    std::memcpy(&value, from, sizeof(value));
    return value;
  };
  if (element == "f32")
    return double(read(float()));
  if (element == "f64")
    return read(double());
  uint16_t bits = read(uint16_t());
  const llvm::fltSemantics &semantics =
      element == "f16" ? APFloat::IEEEhalf() : APFloat::BFloat();
  APFloat value(semantics, APInt(16, bits));
  bool loses = false;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
  return value.convertToDouble();
}

static void write(StringRef element, double number, char *to) {
  auto store = [&](auto value) { std::memcpy(to, &value, sizeof(value)); };
  if (element == "f32")
    return store(float(number));
  if (element == "f64")
    return store(number);
  if (element == "f16" || element == "bf16") {
    APFloat value(number);
    bool loses = false;
    value.convert(element == "f16" ? APFloat::IEEEhalf() : APFloat::BFloat(),
                  APFloat::rmNearestTiesToEven, &loses);
    return store(static_cast<uint16_t>(value.bitcastToAPInt().getZExtValue()));
  }
  auto whole = static_cast<int64_t>(number);
  if (element == "i1")
    whole &= 1;
  std::memcpy(to, &whole, getWidth(element));
}

static bool isFloat(StringRef element) {
  return element.starts_with("f") || element == "bf16";
}

static double drawNumber(std::mt19937_64 &random, Fill fill, StringRef element,
                         int64_t limit) {
  double fraction = double(draw(random, -4096, 4096)) / 2048;
  switch (fill) {
  case Fill::Small:
    return double(draw(random, -4, 4));
  case Fill::NonZero:
    return double(draw(random, 1, 4) * (draw(random, 0, 1) ? 1 : -1));
  case Fill::Indices:
    return double(draw(random, 0, limit - 1));
  case Fill::Fractions:
    return isFloat(element) ? fraction : double(draw(random, 1, 4));
  case Fill::Special:
    break;
  }
  if (!isFloat(element))
    return double(draw(random, -100, 100));
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double special[] = {0.0,       -0.0,         infinity,
                            -infinity, std::nan(""), 0x1p-149,
                            -0x1p-149, 1.0,          -1.0};
  int64_t place = draw(random, 0, 2 * int64_t(std::size(special)));
  return place < int64_t(std::size(special)) ? special[place] : fraction;
}

static std::vector<char> makeBuffer(std::mt19937_64 &random, Fill fill,
                                    StringRef type, int64_t limit) {
  StringRef element = getElement(type);
  size_t width = getWidth(element);
  // Never empty, so that there is an address.
  std::vector<char> bytes(getCount(type) * width + width);
  for (int64_t i = 0; i < getCount(type); ++i)
    write(element, drawNumber(random, fill, element, limit),
          bytes.data() + i * width);
  return bytes;
}

static double getTolerance(StringRef element) {
  return element == "f64"    ? 1e-9
         : element == "f32"  ? 2e-5
         : element == "bf16" ? 2e-2
                             : 2e-3;
}

static bool areEqual(StringRef element, const char *x, const char *y,
                     Match match, double scale) {
  if (std::memcmp(x, y, getWidth(element)) == 0)
    return true;
  if (!isFloat(element))
    return false;
  double a = readFloat(element, x), b = readFloat(element, y);
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b);
  if (match == Match::Bits || a == b)
    return match != Match::Bits;
  return match == Match::Rounding && std::isfinite(a) && std::isfinite(b) &&
         std::abs(a - b) <= getTolerance(element) * scale;
}

/// Empty, or where they differ first.
static std::string compare(StringRef type, const std::vector<char> &got,
                           const std::vector<char> &expected, Match match) {
  StringRef element = getElement(type);
  size_t width = getWidth(element);
  // Sums that cancel are as exact as what they are of.
  double scale = 1;
  for (int64_t i = 0; isFloat(element) && i < getCount(type); ++i)
    if (double b = std::abs(readFloat(element, expected.data() + i * width));
        std::isfinite(b))
      scale = std::max(scale, b);
  for (int64_t i = 0; i < getCount(type); ++i) {
    const char *x = got.data() + i * width, *y = expected.data() + i * width;
    if (areEqual(element, x, y, match, scale))
      continue;
    auto print = [&](const char *at) {
      if (isFloat(element))
        return std::to_string(readFloat(element, at));
      int64_t value = 0;
      std::memcpy(&value, at, width);
      return std::to_string(value);
    };
    return "element " + std::to_string(i) + " of " + type.str() + " is " +
           print(x) + ", not " + print(y);
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string replaceTypes(StringRef body, ArrayRef<std::string> types) {
  std::string text;
  while (true) {
    auto [before, after] = body.split('$');
    text += before;
    if (after.empty())
      return text;
    unsigned index = 0;
    after.consumeInteger(10, index);
    text += types[index];
    body = after;
  }
}

/// On buffers, whatever `body` is on.
static std::string getBufferSource(const OperationCase &operation,
                                   bool isReference, bool isOnBuffers) {
  std::string head, before, after;
  std::vector<std::string> types;
  for (auto [i, type] : llvm::enumerate(operation.types)) {
    std::string n = std::to_string(i),
                buffer = "memref<" + getSpelling(type) + ">";
    types.push_back(isScalar(type) && i < operation.numArguments ? type
                    : isOnBuffers ? buffer
                                  : "tensor<" + getSpelling(type) + ">");
    if (i >= operation.numArguments)
      continue;
    bool isPlain = isOnBuffers && !isScalar(type);
    head += (head.empty() ? "" : ", ") +
            ("%" + std::string(isPlain ? "a" : "b")) + n + ": " + buffer;
    if (isScalar(type))
      before += "  %a" + n + " = memref.load %b" + n + "[] : " + buffer + "\n";
    else if (!isOnBuffers)
      before += "  %a" + n + " = bufferization.to_tensor %b" + n +
                " restrict : " + buffer + " to " + types.back() + "\n";
  }
  if (!isOnBuffers)
    for (auto [i, index] : llvm::enumerate(operation.results)) {
      std::string n = std::to_string(i),
                  buffer =
                      "memref<" + getSpelling(operation.types[index]) + ">";
      head += (head.empty() ? "%o" : ", %o") + n + ": " + buffer;
      after += "  bufferization.materialize_in_destination %r" +
               (operation.results.size() > 1 ? n : "") +
               " in restrict writable %o" + n + " : (" + types[index] + ", " +
               buffer + ") -> ()\n";
    }
  const std::string &body = isOnBuffers ? operation.buffers
                            : isReference && !operation.reference.empty()
                                ? operation.reference
                                : operation.body;
  return operation.globals + "\nfunc.func @f(" + head + ") {\n" + before +
         replaceTypes(body, types) + "\n" + after + "  return\n}\n";
}

static std::string getTensorSource(const OperationCase &operation,
                                   bool isDynamic) {
  std::string head, before, values, results;
  std::vector<std::string> types;
  for (auto [i, type] : llvm::enumerate(operation.types)) {
    std::string n = std::to_string(i),
                tensor = "tensor<" +
                         (isDynamic ? getDynamic(operation, type)
                                    : getSpelling(type)) +
                         ">";
    bool isArgument = i < operation.numArguments;
    types.push_back(isScalar(type) && isArgument ? type : tensor);
    if (!isArgument)
      continue;
    head += (head.empty() ? "" : ", ") + ((isScalar(type) ? "%b" : "%a") + n) +
            ": " + tensor;
    if (isScalar(type))
      before +=
          "  %a" + n + " = tensor.extract %b" + n + "[] : " + tensor + "\n";
  }
  for (auto [i, index] : llvm::enumerate(operation.results)) {
    values += (i ? ", %r" : "%r") +
              (operation.results.size() > 1 ? std::to_string(i) : "");
    results += (i ? ", " : "") + types[index];
  }
  return operation.globals + "\nfunc.func @f(" + head + ") -> (" + results +
         ") {\n" + before + replaceTypes(operation.body, types) +
         "\n  return " + values + " : " + results + "\n}\n";
}

std::string OperationRunner::getSource(const OperationCase &operation,
                                       Form form, bool isReference) {
  return isReference || form == Form::Buffers
             ? getBufferSource(operation, isReference, form == Form::Buffers)
             : getTensorSource(operation, form == Form::Dynamic);
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// Nothing of kas: loops as they are written.
static constexpr llvm::StringLiteral referencePipeline =
    "func.func(tosa-to-scf,tosa-optional-decompositions,"
    "tosa-make-broadcastable,tosa-to-linalg-named,"
    "tosa-layerwise-constant-fold,tosa-make-broadcastable,tosa-to-linalg,"
    "tosa-to-arith{include-apply-rescale=true},tosa-to-tensor,"
    "convert-elementwise-to-linalg),canonicalize,"
    "one-shot-bufferize{allow-return-allocs-from-loops=true},"
    "func.func(convert-linalg-to-loops),"
    "convert-bufferization-to-memref,expand-realloc,"
    "func.func(convert-scf-to-cf),memref-expand,expand-strided-metadata,"
    "lower-affine,func.func(convert-scf-to-cf),"
    "convert-complex-to-standard,convert-math-to-funcs,"
    "func.func(math-expand-ops{ops=clampf},convert-math-to-llvm),"
    "convert-math-to-libm,convert-complex-to-llvm,arith-expand,"
    "convert-ub-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},"
    "convert-arith-to-llvm,convert-cf-to-llvm,convert-index-to-llvm,"
    "reconcile-unrealized-casts";

OperationRunner::OperationRunner(uint64_t seed) : random(seed) {
  static std::once_flag once;
  std::call_once(once, [] { mlir::registerAllPasses(); });
  DialectRegistry registry;
  registerCPUPipelineDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  context.disableMultithreading();
}

bool OperationRunner::isValid(const OperationCase &operation, Form form,
                              std::string *errors) {
  if (form == Form::Buffers && operation.buffers.empty())
    return false;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) {
    if (errors)
      *errors += d.str() + "\n";
  });
  return bool(
      parseSourceString<ModuleOp>(getSource(operation, form, false), &context));
}

namespace {
/// Of upstream's loops, whose copies of strided buffers are calls.
struct UnrankedBuffer {
  int64_t rank;
  int64_t *descriptor;
};
} // namespace

/// Base and aligned pointer, offset, sizes, strides.
static void copyStrided(int64_t width, UnrankedBuffer *from,
                        UnrankedBuffer *to) {
  int64_t rank = from->rank;
  const int64_t *sizes = from->descriptor + 3;
  auto locate = [&](UnrankedBuffer *buffer, ArrayRef<int64_t> place) {
    int64_t element = buffer->descriptor[2];
    for (int64_t i = 0; i < rank; ++i)
      element += place[i] * buffer->descriptor[3 + rank + i];
    return reinterpret_cast<char *>(buffer->descriptor[1]) + element * width;
  };
  if (llvm::is_contained(ArrayRef(sizes, rank), 0))
    return;
  SmallVector<int64_t> place(rank, 0);
  while (true) {
    std::memcpy(locate(to, place), locate(from, place), width);
    int64_t dim = rank - 1;
    for (; dim >= 0 && ++place[dim] == sizes[dim]; --dim)
      place[dim] = 0;
    if (dim < 0)
      return;
  }
}

/// Lowers by `build` and calls `@f`; empty, or the error.
static std::string
execute(MLIRContext &context, const std::string &source,
        llvm::function_ref<LogicalResult(OpPassManager &)> build,
        std::vector<void *> &arguments, bool isReference) {
  std::string errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) {
    if (d.getSeverity() == DiagnosticSeverity::Error)
      errors += d.str() + "\n";
  });
  auto module = parseSourceString<ModuleOp>(source, &context);
  if (!module)
    return "parser: " + errors;
  PassManager manager(&context);
  if (failed(build(manager)))
    return "no such pipeline: " + errors;
  if (failed(manager.run(*module)))
    return errors.empty() ? "failed without a diagnostic" : errors;
  execution::JITOptions options;
  options.optLevel = 1;
  if (isReference)
    options.symbols.emplace_back("memrefCopy",
                                 reinterpret_cast<void *>(&copyStrided));
  auto compiled = execution::CompiledModule::compile(*module, options);
  if (!compiled)
    return "jit: " + llvm::toString(compiled.takeError());
  auto function = (*compiled)->lookup("f");
  if (!function)
    return "jit: " + llvm::toString(function.takeError());
  if (auto error = execution::call(*function, arguments.data()))
    return "call: " + llvm::toString(std::move(error));
  return "";
}

static LogicalResult buildReference(OpPassManager &manager) {
  return parsePassPipeline(referencePipeline, manager);
}

namespace {
/// Of one call.
struct Values {
  std::vector<std::vector<char>> inputs, results;

  std::vector<void *> getPointers() {
    std::vector<void *> pointers;
    for (auto *buffers : {&inputs, &results})
      for (std::vector<char> &bytes : *buffers)
        pointers.push_back(bytes.data());
    return pointers;
  }
};
} // namespace

/// Dynamic sizes follow the pointers.
static void addSizes(const OperationCase &operation,
                     std::vector<void *> &pointers) {
  auto add = [&](StringRef type) {
    for (auto [i, size] : llvm::enumerate(getShape(type)))
      if (isDynamic(operation, type, i))
        pointers.push_back(reinterpret_cast<void *>(size));
  };
  for (unsigned i = 0; i < operation.numArguments; ++i)
    add(operation.types[i]);
  for (unsigned index : operation.results)
    add(operation.types[index]);
}

/// Arguments stay as they are, but those of a form on buffers.
static std::string compareAll(const OperationCase &operation,
                              const Values &expected, const Values &got,
                              Form form) {
  std::set<unsigned> written;
  for (auto [i, index] : llvm::enumerate(operation.results)) {
    bool isInput = form == Form::Buffers;
    std::string difference = compare(
        operation.types[index], isInput ? got.inputs[index] : got.results[i],
        isInput ? expected.inputs[index] : expected.results[i],
        operation.match);
    if (!difference.empty())
      return "result " + std::to_string(i) + ": " + difference;
    if (isInput)
      written.insert(index);
  }
  for (unsigned i = 0; i < operation.numArguments; ++i)
    if (!written.count(i) && got.inputs[i] != expected.inputs[i])
      return "argument " + std::to_string(i) + " was written to";
  return "";
}

Outcome OperationRunner::run(const OperationCase &operation, Form form,
                             unsigned threads) {
  if ((operation.isStatic && form == Form::Dynamic) ||
      !isValid(operation, form))
    return {};
  Values expected;
  for (unsigned i = 0; i < operation.numArguments; ++i)
    expected.inputs.push_back(makeBuffer(
        random, i < operation.fills.size() ? operation.fills[i] : Fill::Small,
        operation.types[i], operation.limit));
  if (form != Form::Buffers)
    for (unsigned index : operation.results)
      expected.results.push_back(
          makeBuffer(random, Fill::Small, operation.types[index], 1));
  Values got = expected;
  // What is refused has no reference, perhaps.
  std::vector<void *> pointers = got.getPointers();
  if (form == Form::Dynamic)
    addSizes(operation, pointers);
  std::string source = getSource(operation, form, false);
  auto build = [&](OpPassManager &manager) {
    CPUPipelineOptions options;
    options.threads = threads;
    options.sharesShortLoops = true;
    buildCPUPipeline(manager, options);
    return success();
  };
  std::string error = execute(context, source, build, pointers, false);
  if (StringRef(error).starts_with("jit: ") ||
      StringRef(error).starts_with("call: "))
    return {Outcome::Wrong, error + source};
  if (!error.empty())
    return {Outcome::Refused, error};
  pointers = expected.getPointers();
  std::string reference = getSource(operation, form, true);
  error = execute(context, reference, buildReference, pointers, true);
  if (!error.empty())
    return {Outcome::Wrong, "the reference: " + error + reference};
  error = compareAll(operation, expected, got, form);
  if (!error.empty())
    return {Outcome::Wrong, error + "\n" + source};
  return {Outcome::Equal, ""};
}
