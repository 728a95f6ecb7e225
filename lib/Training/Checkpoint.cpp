//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checkpoints of trainings: .npz archives with counters, written at once and
// verified when read.
// A checkpoint is `checkpoint.json` (version, network, counters) and an array
// `NAME.npy` for each parameter and state of the optimizer, so NumPy reads it,
// too. All of an archive is checked before the first buffer is written to: a
// failure leaves the trainer as it was.
//
//===----------------------------------------------------------------------===//
#include "kas/Training/Checkpoint.h"
#include "DataFiles.h"
#include "kas/ExecutionEngine/Npy.h"
#include "kas/ExecutionEngine/Tensor.h"
#include "kas/ExecutionEngine/Zip.h"
#include "kas/Support/OutputFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace kas;
using namespace kas::training;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

/// The member that makes a .npz file a checkpoint.
static constexpr StringRef description = "checkpoint.json";
/// Counts up with every change that older versions cannot read.
static constexpr int64_t version = 1;

static int64_t countElements(const NamedBuffer &buffer) {
  return llvm::cantFail(execution::numElements(buffer.shape));
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// The text of `checkpoint.json`. Counters are the epoch and whatever else must
/// go on where it was.
static std::string describe(StringRef network, const Counters &counters) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  json::OStream json(stream, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("kas-checkpoint", version);
    json.attribute("network", network);
    json.attributeObject("counters", [&] {
      for (auto &[name, value] : counters)
        json.attribute(name, value);
    });
  });
  stream << "\n";
  return text;
}

/// Two buffers of one name would overwrite each other when read back.
static Error checkNames(StringRef network, const Counters &counters,
                        ArrayRef<NamedBuffer> buffers) {
  llvm::StringMap<bool> seen;
  for (const NamedBuffer &buffer : buffers)
    if (!seen.insert({buffer.name, true}).second)
      return createStringError("requires different names of buffers, got '" +
                               buffer.name + "' twice");
  auto isText = [](StringRef name) { return json::isUTF8(name); };
  if (isText(network) && llvm::all_of(llvm::make_first_range(counters), isText))
    return Error::success();
  return createStringError("requires UTF-8 in the names of a checkpoint");
}

/// `network` describes what the checkpoint belongs to; reading compares it.
Error kas::training::writeCheckpoint(StringRef path, StringRef network,
                                     const Counters &counters,
                                     ArrayRef<NamedBuffer> buffers) {
  auto fail = [&](Error error) {
    return createStringError("cannot write '" + path +
                             "': " + llvm::toString(std::move(error)));
  };
  if (Error error = checkNames(network, counters, buffers))
    return fail(std::move(error));
  return writeFile(path, [&](llvm::raw_ostream &stream) -> Error {
    execution::ZipWriter writer(stream);
    if (Error error = writer.add(description, describe(network, counters)))
      return fail(std::move(error));
    for (const NamedBuffer &buffer : buffers) {
      // Arrays are stored as they are in memory: f32 in C order.
      std::string bytes = execution::formatNpyHeader(buffer.shape);
      bytes.append(reinterpret_cast<const char *>(buffer.data),
                   countElements(buffer) * sizeof(float));
      if (Error error = writer.add(buffer.name + ".npy", bytes))
        return fail(std::move(error));
    }
    writer.finish();
    return Error::success();
  });
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Parses `checkpoint.json`.
/// The counters, after version and network were compared.
static Expected<Counters> parseDescription(StringRef text, StringRef network) {
  auto malformed = [](const Twine &what) {
    return createStringError("malformed " + description + ": " + what);
  };
  // The parser calls itself for each level.
  constexpr int64_t mostBrackets = 1000;
  // A file of a million brackets would overflow the stack.
  if (llvm::count_if(text, [](char c) { return c == '{' || c == '['; }) >
      mostBrackets)
    return malformed("requires at most " + Twine(mostBrackets) + " brackets");
  auto value = json::parse(text);
  if (!value)
    return malformed(llvm::toString(value.takeError()));
  const json::Object *object = value->getAsObject();
  auto found = object ? object->getInteger("kas-checkpoint") : std::nullopt;
  if (!found)
    return malformed("requires the version of the format");
  if (*found != version)
    return createStringError("requires version " + Twine(version) +
                             " of the format, got " + Twine(*found));
  auto actual = object->getString("network");
  const json::Object *values = object->getObject("counters");
  if (!actual || !values)
    return malformed("requires 'network' and 'counters'");
  // Shapes alone may agree with those of another network.
  if (*actual != network)
    return createStringError("requires a checkpoint of the network '" +
                             network + "', got one of '" + *actual + "'");
  Counters counters;
  for (auto &[name, number] : *values) {
    // Seeds use all 64 bits.
    auto counter = number.getAsUINT64();
    if (!counter)
      return malformed("requires an integer of 64 bits for '" +
                       StringRef(name) + "'");
    counters[name.str()] = *counter;
  }
  return counters;
}

/// The data of a member, if it is an array of the shape of `buffer`.
static Expected<StringRef> findData(StringRef bytes,
                                    const NamedBuffer &buffer) {
  auto view = execution::viewNpy(bytes);
  if (!view)
    return view.takeError();
  // `writeCheckpoint` writes no other type; other tools may have changed a
  // member.
  if (view->dtype != "<f4" || view->fortranOrder)
    return createStringError("requires f32 in C order ('<f4'), got '" +
                             view->dtype + "'" +
                             (view->fortranOrder ? " in Fortran order" : ""));
  if (ArrayRef(view->shape) != ArrayRef(buffer.shape))
    return createStringError("requires shape " +
                             execution::shapeToString(buffer.shape) + ", got " +
                             execution::shapeToString(view->shape));
  uint64_t expected = countElements(buffer) * sizeof(float);
  if (view->data.size() != expected)
    return createStringError("requires " + Twine(expected) +
                             " bytes of data, got " + Twine(view->data.size()));
  return view->data;
}

namespace {

/// What a checkpoint holds, all checked; nothing is copied yet.
struct CheckedCheckpoint {
  Counters counters;
  /// Keeps decompressed members alive.
  llvm::SmallVector<execution::ZipContent> contents;
  /// For each buffer.
  llvm::SmallVector<StringRef> data;
};

} // namespace

/// Every buffer must have its member, and every member its buffer.
static Expected<CheckedCheckpoint>
checkArchive(const execution::ZipArchive &archive, StringRef network,
             ArrayRef<NamedBuffer> buffers) {
  CheckedCheckpoint checked;
  llvm::StringMap<const execution::ZipMember *> members;
  for (const execution::ZipMember &member : archive.getMembers())
    if (!members.insert({member.name, &member}).second)
      return createStringError("member '" + member.name +
                               "' is twice in the archive");
  // Uncompressed members are views into the file, others are decompressed.
  auto read = [&](StringRef name) -> Expected<StringRef> {
    auto content = archive.read(*members.lookup(name));
    if (!content)
      return createStringError("member '" + name +
                               "': " + llvm::toString(content.takeError()));
    checked.contents.push_back(std::move(*content));
    return checked.contents.back().bytes;
  };
  if (!members.contains(description))
    return createStringError("not a checkpoint: requires a member '" +
                             description + "'");
  auto text = read(description);
  if (!text)
    return text.takeError();
  auto counters = parseDescription(*text, network);
  if (!counters)
    return counters.takeError();
  checked.counters = std::move(*counters);

  for (const NamedBuffer &buffer : buffers) {
    std::string name = buffer.name + ".npy";
    if (!members.contains(name))
      return createStringError("requires a tensor '" + buffer.name +
                               "', got none");
    auto bytes = read(name);
    if (!bytes)
      return bytes.takeError();
    auto data = findData(*bytes, buffer);
    if (!data)
      return createStringError("tensor '" + buffer.name +
                               "': " + llvm::toString(data.takeError()));
    checked.data.push_back(*data);
  }
  // All buffers were found, so any further member is one too many.
  if (members.size() != buffers.size() + 1)
    return createStringError("requires " + Twine(buffers.size()) +
                             " tensors, got " + Twine(members.size() - 1));
  return checked;
}

Expected<Counters>
kas::training::readCheckpoint(StringRef path, StringRef network,
                              ArrayRef<NamedBuffer> buffers) {
  // Mapped: members are read where they are.
  auto file = openDataFile(path);
  if (!file)
    return file.takeError();
  auto archive = execution::ZipArchive::open(file->bytes);
  if (!archive)
    return inFile(path, archive.takeError());
  auto checked = checkArchive(*archive, network, buffers);
  if (!checked)
    return inFile(path, checked.takeError());
  // Nothing can fail from here on.
  for (auto [buffer, data] : llvm::zip_equal(buffers, checked->data))
    if (!data.empty())
      std::memcpy(buffer.data, data.data(), data.size());
  return std::move(checked->counters);
}
