//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled functions as files, with or without their weights, and the keys of
// those that are cached.
//
// The description of a file says what a call takes; of its parts the first ones
// are objects, the others the weights that calls read, in the order of the
// arguments, and all weights as they are prepacked. Weights that calls do not
// read any more, as they were prepacked, are left out.
//
//===----------------------------------------------------------------------===//

#include "LLVMModule.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Support/OutputFile.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "llvm/Target/TargetMachine.h"

using namespace kas;
using namespace kas::execution;
using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::MemoryBuffer;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

static llvm::json::Object describe(const TensorSignature &tensor) {
  return llvm::json::Object{{"name", tensor.name},
                            {"shape", llvm::json::Array(tensor.shape)},
                            {"type", tensor.type},
                            {"data", tensor.isData}};
}

static llvm::json::Array describe(llvm::ArrayRef<TensorSignature> tensors) {
  llvm::json::Array array;
  for (const TensorSignature &tensor : tensors)
    array.push_back(describe(tensor));
  return array;
}

namespace kas::execution {

/// Found by its type.
static bool fromJSON(const llvm::json::Value &value, TensorSignature &tensor,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper mapper(value, path);
  std::vector<int64_t> shape;
  if (!mapper || !mapper.map("name", tensor.name) ||
      !mapper.map("shape", shape) || !mapper.map("type", tensor.type) ||
      !mapper.map("data", tensor.isData))
    return false;
  tensor.shape.assign(shape.begin(), shape.end());
  return true;
}

} // namespace kas::execution

namespace {
/// The function of a file.
struct Description {
  std::string function;
  std::vector<TensorSignature> arguments, results;
  /// Whether calls read an argument.
  std::vector<int64_t> areRead;
  int64_t numPrepacked = 0;
  bool anyBatch = false, hasWeights = false;
  /// The first parts.
  unsigned numObjects = 0;
};
} // namespace

static bool fromJSON(const llvm::json::Value &value, Description &description,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper mapper(value, path);
  return mapper && mapper.map("function", description.function) &&
         mapper.map("arguments", description.arguments) &&
         mapper.map("results", description.results) &&
         mapper.map("read", description.areRead) &&
         mapper.map("prepacked", description.numPrepacked) &&
         mapper.map("any batch", description.anyBatch) &&
         mapper.map("weights", description.hasWeights) &&
         mapper.map("objects", description.numObjects);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::string CompiledFunction::makeFile(const CompiledCode &code) const {
  llvm::SmallVector<StringRef> parts;
  for (const auto &object : code.objects)
    parts.push_back(object->getBuffer());
  llvm::json::Object description{
      {"function", signature.name},
      {"arguments", describe(signature.arguments)},
      {"results", describe(signature.results)},
      {"read",
       llvm::json::Array(std::vector<int64_t>(areRead.begin(), areRead.end()))},
      {"prepacked", numPrepacked},
      {"any batch", anyBatch},
      {"weights", false},
      {"objects", static_cast<int64_t>(parts.size())}};
  std::string content;
  llvm::raw_string_ostream stream(content);
  CompiledFile::write(stream, code.target, std::move(description), parts);
  return content;
}

Error CompiledFunction::save(StringRef path, llvm::ArrayRef<float *> weights) {
  if (!file)
    return createStringError(
        "requires a function whose machine code was kept, got another one");
  auto numGiven = llvm::count_if(weights, [](float *data) { return data; });
  for (auto [argument, data] : llvm::zip_equal(signature.arguments, weights)) {
    if (data && argument.isData)
      return createStringError("requires weights, got the data '" +
                               argument.name + "'");
    if (numGiven && numPrepacked && !data && !argument.isData)
      return createStringError("requires all weights, as they are prepacked, "
                               "got none for '" +
                               argument.name + "'");
  }
  auto read = CompiledFile::read(MemoryBuffer::getMemBuffer(
      file->getMemBufferRef(), /*RequiresNullTerminator=*/false));
  if (!read)
    return read.takeError();
  if (numGiven && numPrepacked)
    if (const char *message = prepack(weights))
      return createStringError(message);
  auto getBytes = [](const void *data, uint64_t size) {
    return StringRef(static_cast<const char *>(data), size);
  };
  llvm::SmallVector<StringRef> &parts = read->parts;
  llvm::json::Array given;
  for (auto [argument, data, isRead] :
       llvm::zip_equal(signature.arguments, weights, areRead)) {
    given.push_back(data != nullptr);
    if (data && isRead)
      parts.push_back(getBytes(data, argument.getNumBytes()));
  }
  if (numGiven && numPrepacked)
    parts.push_back(getBytes(packed.data(), numPrepacked * sizeof(float)));
  read->description["weights"] = numGiven > 0;
  read->description["given"] = std::move(given);
  return writeFile(path, [&](llvm::raw_ostream &stream) {
    CompiledFile::write(stream, read->target, std::move(read->description),
                        parts);
    return Error::success();
  });
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// The types that elements have in a signature, with their sizes checked.
static bool isValid(const TensorSignature &tensor) {
  static constexpr StringRef types[] = {"f16",  "bf16", "f32", "f64", "i1",
                                        "i8",   "i16",  "i32", "i64", "ui8",
                                        "ui16", "ui32", "ui64"};
  if (!llvm::is_contained(types, tensor.type))
    return false;
  auto count = numElements(tensor.shape);
  if (count)
    return true;
  llvm::consumeError(count.takeError());
  return false;
}

/// The description of a file, which fits its parts and itself.
static Expected<Description> readDescription(const CompiledFile &file) {
  Description description;
  llvm::json::Value value(llvm::json::Object(file.description));
  llvm::json::Path::Root root("description");
  if (!fromJSON(value, description, root))
    return createStringError("expected a file of a compiled function, got one "
                             "of something else");
  if (description.areRead.size() != description.arguments.size() ||
      description.numObjects > file.parts.size() ||
      description.numPrepacked < 0 || description.arguments.empty() ||
      !llvm::all_of(description.arguments, isValid) ||
      !llvm::all_of(description.results, isValid))
    return createStringError("the description of the function is damaged");
  return description;
}

/// The machine code in a file, copied: a file may take much more.
static CompiledCode takeCode(const CompiledFile &file, unsigned numObjects) {
  CompiledCode code;
  code.target = file.target;
  for (StringRef part : llvm::ArrayRef(file.parts).take_front(numObjects))
    code.objects.push_back(MemoryBuffer::getMemBufferCopy(part, "code"));
  code.times.cached = true;
  return code;
}

/// The weights of a file, which are arguments of calls no more.
Error CompiledFunction::takeWeights(CompiledFile &file, unsigned numObjects) {
  auto isDamaged = [] {
    return createStringError("the weights of the function are damaged");
  };
  const llvm::json::Array *given = file.description.getArray("given");
  if (!given || given->size() != signature.arguments.size())
    return isDamaged();
  auto parts = llvm::ArrayRef(file.parts).drop_front(numObjects);
  // The next part, which has as many bytes.
  auto take = [&](uint64_t size) -> float * {
    if (parts.empty() || parts.front().size() != size)
      return nullptr;
    const char *data = parts.front().data();
    parts = parts.drop_front();
    // Compiled code takes all pointers alike, and writes none of its arguments.
    return reinterpret_cast<float *>(const_cast<char *>(data));
  };
  SmallVector<TensorSignature> left;
  for (auto [argument, isGiven, isRead] :
       llvm::zip_equal(signature.arguments, *given, areRead)) {
    if (!isGiven.getAsBoolean().value_or(false)) {
      left.push_back(argument);
      weights.push_back(std::nullopt);
      continue;
    }
    float *data = isRead ? take(argument.getNumBytes()) : nullptr;
    if (isRead && !data)
      return isDamaged();
    weights.push_back(data);
  }
  if (numPrepacked) {
    packedWeights = take(numPrepacked * sizeof(float));
    if (!packedWeights)
      return isDamaged();
  }
  if (!parts.empty() || left.empty())
    return isDamaged();
  signature.arguments = std::move(left);
  prepackFunction = nullptr;
  memory = std::move(file.memory);
  return Error::success();
}

Expected<CompiledFunction> CompiledFunction::fromFile(CompiledFile file,
                                                      const JITOptions &jit) {
  auto description = readDescription(file);
  if (!description)
    return description.takeError();
  CompiledFunction compiled;
  FunctionSignature &signature = compiled.signature;
  signature.name = std::move(description->function);
  llvm::append_range(signature.arguments, description->arguments);
  llvm::append_range(signature.results, description->results);
  llvm::append_range(compiled.areRead, description->areRead);
  compiled.numPrepacked = description->numPrepacked;
  compiled.anyBatch = description->anyBatch;
  unsigned numObjects = description->numObjects;
  if (Error error = compiled.link(takeCode(file, numObjects), jit))
    return error;
  if (description->hasWeights) {
    if (Error error = compiled.takeWeights(file, numObjects))
      return error;
  } else if (jit.keepCode) {
    compiled.file = std::move(file.memory);
  }
  return compiled;
}

Expected<CompiledFunction> CompiledFunction::load(StringRef path,
                                                  const JITOptions &jit) {
  auto file = CompiledFile::read(path);
  if (!file)
    return file.takeError();
  auto compiled = fromFile(std::move(*file), jit);
  if (!compiled)
    return createStringError("'" + path +
                             "': " + llvm::toString(compiled.takeError()));
  return compiled;
}

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

/// All options, as text. A new one that is not named here is no valid C++.
static std::string getText(const CPUPipelineOptions &options) {
  const auto &[threads, sharesShortLoops, target, vectorBits, packOperators,
               prepackWeights, anyBatch, workspace, splitBatch, registerTiles,
               algorithm, precision, roundAll, minKernels, verifyLowering] =
      options;
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (unsigned number :
       {threads, unsigned(sharesShortLoops), vectorBits,
        unsigned(packOperators), unsigned(prepackWeights), unsigned(anyBatch),
        unsigned(workspace), unsigned(splitBatch), unsigned(registerTiles),
        unsigned(algorithm), unsigned(precision), unsigned(roundAll),
        minKernels, unsigned(verifyLowering)})
    stream << number << ' ';
  stream << target.cpu << ' ' << target.triple << ' ' << target.features;
  return text;
}

/// The numbers of a target, which the choice of tiles depends on.
static std::string getText(const Target &target) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (int64_t number :
       {target.vectorBits, target.arithmeticBits, target.vectorRegisters,
        int64_t(target.hasFMA), target.byteDotBits, target.bfloatDotBits,
        target.shortDotBits, target.l1Bytes, target.l2Bytes})
    stream << number << ' ';
  return text;
}

std::optional<std::string>
kas::execution::getFunctionKey(ModuleOp module, StringRef name,
                               const CPUPipelineOptions &pipeline,
                               const JITOptions &jit) {
  // What is wrong with a target is reported by whoever compiles for it.
  auto target = pipeline.target.cpu.empty() && pipeline.target.triple.empty()
                    ? chooseTarget(module)
                    : getTarget(pipeline.target);
  if (!target) {
    llvm::consumeError(target.takeError());
    return std::nullopt;
  }
  auto machine = createTargetMachine(*target, jit.optLevel, /*jit=*/true);
  if (!machine) {
    llvm::consumeError(machine.takeError());
    return std::nullopt;
  }
  // With locations, which assertions print.
  llvm::SmallString<0> bytecode;
  llvm::raw_svector_ostream stream(bytecode);
  if (failed(writeBytecodeToFile(module, stream)))
    return std::nullopt;
  return computeKey(
      {"function", bytecode, name, getText(pipeline), getText(*target)},
      **machine, jit);
}
