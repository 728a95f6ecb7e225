//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bundle.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace kas;
using namespace kas::gpusession;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
namespace json = llvm::json;

PackedCase::PackedCase(StringRef name, StringRef kind)
    : object{{"name", name.str()}, {"kind", kind.str()}} {}

int64_t PackedCase::addBytes(StringRef added) {
  bytes.resize(llvm::alignTo(bytes.size(), 16));
  int64_t offset = static_cast<int64_t>(bytes.size());
  bytes += added;
  return offset;
}

int64_t PackedCase::addValues(ArrayRef<float> values) {
  return addBytes({reinterpret_cast<const char *>(values.data()),
                   values.size() * sizeof(float)});
}

void PackedCase::addArgument(ArrayRef<int64_t> shape, ArrayRef<float> values) {
  arguments.push_back(
      json::Object{{"shape", json::Array(shape)}, {"data", addValues(values)}});
}

void PackedCase::addArgument(const execution::TensorSignature &argument,
                             uint64_t seed) {
  using Kind = Initializer::Kind;
  Initializer initializer = argument.initializer;
  if (initializer.kind == Kind::Kaiming) {
    double fanIn = initializer.parameter;
    if (fanIn == 0) {
      fanIn = 1;
      for (int64_t size : ArrayRef(argument.shape).drop_front())
        fanIn *= static_cast<double>(size);
    }
    initializer = {Kind::Normal, std::sqrt(2 / fanIn)};
  }
  StringRef kind = initializer.kind == Kind::Constant  ? "constant"
                   : initializer.kind == Kind::Uniform ? "uniform"
                   : initializer.kind == Kind::Normal  ? "normal"
                                                       : "positive";
  arguments.push_back(json::Object{{"shape", json::Array(argument.shape)},
                                   {"kind", kind},
                                   {"factor", initializer.parameter},
                                   {"seed", seed},
                                   {"name", argument.name}});
}

void PackedCase::setExpected(ArrayRef<int64_t> shape, ArrayRef<float> values,
                             double tolerance, double scale) {
  object["expected"] = json::Object{{"shape", json::Array(shape)},
                                    {"data", addValues(values)},
                                    {"tolerance", tolerance},
                                    {"scale", scale}};
}

void PackedCase::setExpectedAt(ArrayRef<int64_t> shape,
                               ArrayRef<uint32_t> positions,
                               ArrayRef<float> values, double tolerance,
                               double scale) {
  setExpected(shape, values, tolerance, scale);
  json::Object &expected = *object.getObject("expected");
  expected["positions"] =
      addBytes({reinterpret_cast<const char *>(positions.data()),
                positions.size() * sizeof(uint32_t)});
  expected["count"] = static_cast<int64_t>(positions.size());
}

json::Object PackedCase::makeProgram(StringRef chip,
                                     const execution::GPUProgram &program) {
  return json::Object{
      {"chip", chip.str()},
      {"offset", addBytes(program.binary)},
      {"bytes", static_cast<int64_t>(program.binary.size())},
      {"manifest", llvm::cantFail(json::parse(program.manifest))}};
}

void PackedCase::addProgram(StringRef chip, StringRef schedule,
                            const execution::GPUProgram &program) {
  json::Object object = makeProgram(chip, program);
  object["schedule"] = schedule.str();
  programs.push_back(std::move(object));
}

void PackedCase::addLibraryProgram(StringRef chip,
                                   const execution::GPUProgram &program) {
  json::Object object = makeProgram(chip, program);
  object["libraries"] = true;
  programs.push_back(std::move(object));
}

Expected<std::unique_ptr<BundleWriter>> BundleWriter::create(StringRef folder) {
  std::unique_ptr<BundleWriter> writer(new BundleWriter);
  if (std::error_code code = llvm::sys::fs::create_directories(folder))
    return llvm::createFileError(folder, code);
  auto open = [&](StringRef name,
                  std::unique_ptr<llvm::raw_fd_ostream> &stream) -> Error {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    std::error_code code;
    stream = std::make_unique<llvm::raw_fd_ostream>(path, code);
    return code ? llvm::createFileError(path, code) : Error::success();
  };
  if (Error error = open("cases.jsonl", writer->cases))
    return error;
  if (Error error = open("data.bin", writer->data))
    return error;
  return writer;
}

void BundleWriter::add(PackedCase &&packed) {
  packed.object["base"] = static_cast<int64_t>(data->tell());
  packed.object["arguments"] = std::move(packed.arguments);
  packed.object["programs"] = std::move(packed.programs);
  *cases << json::Value(std::move(packed.object)) << "\n";
  packed.bytes.resize(llvm::alignTo(packed.bytes.size(), 16));
  *data << packed.bytes;
}

Error BundleWriter::close() {
  for (auto *stream : {cases.get(), data.get()}) {
    stream->close();
    if (std::error_code code = stream->error()) {
      stream->clear_error();
      return llvm::createStringError(code, "cannot write the bundle");
    }
  }
  return Error::success();
}
