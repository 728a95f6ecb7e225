//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The format of files of compiled code.
//
//   magic            16 bytes, with the number of the format
//   check sum        16 bytes, of the header
//   header's size     8 bytes
//   header           JSON: versions, target, description, sizes and check
//                    sums of the parts
//   parts            each from a multiple of 64 bytes on
//
// Numbers are little endian. Nothing is taken from the header before its check
// sum is right, and no part before its own is. Check sums find damage; they are
// no protection from whoever makes a file on purpose, which is code to be run.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/CompiledFile.h"
#include "kas/Support/Version.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::MemoryBuffer;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

/// Whether LLVM chooses instructions of a processor's feature by itself. Others
/// only run what is written as such, by an operating system for instance: a
/// virtual machine that hides them runs the same code.
static bool isUsed(const llvm::Triple &triple, StringRef feature) {
  static constexpr StringRef used[] = {
      "amx",       "avx",  "bmi",   "ccmp",  "cmov", "cx",  "egpr",   "f16c",
      "fma",       "gfni", "lzcnt", "movbe", "ndd",  "nf",  "popcnt", "ppx",
      "push2pop2", "sahf", "sse",   "ssse",  "tbm",  "xop", "zu"};
  return !triple.isX86() || llvm::any_of(used, [&](StringRef name) {
    return feature.starts_with(name);
  });
}

CodeTarget CodeTarget::get(const llvm::TargetMachine &machine) {
  CodeTarget target{machine.getTargetTriple().str(), {}};
  // LLVM's other features say what is fast, and hold anywhere.
  auto known = llvm::sys::getHostCPUFeatures();
  for (const llvm::SubtargetFeatureKV &feature :
       machine.getMCSubtargetInfo()->getEnabledProcessorFeatures())
    if (known.contains(feature.Key) &&
        isUsed(machine.getTargetTriple(), feature.Key))
      target.features.push_back(feature.Key);
  llvm::sort(target.features);
  return target;
}

Error CodeTarget::checkRunsHere() const {
  llvm::Triple wanted(triple), host(llvm::sys::getProcessTriple());
  if (wanted.getArch() != host.getArch() || wanted.getOS() != host.getOS())
    return createStringError("expected code for this machine, '" + host.str() +
                             "', got '" + triple + "'");
  static const auto has = llvm::sys::getHostCPUFeatures();
  std::vector<StringRef> missing;
  for (const std::string &feature : features)
    if (!has.lookup(feature))
      missing.push_back(feature);
  if (missing.empty())
    return Error::success();
  return createStringError(
      "expected code for this processor, got code for one with " +
      llvm::join(missing, ", "));
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// The last number is that of the format.
static constexpr StringRef magic("kas compiled 1\n\0", 16);
static constexpr uint64_t sumBytes = 16;
static constexpr uint64_t headerOffset = magic.size() + sumBytes + 8;

static std::string getCheckSum(StringRef bytes) {
  auto hash = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(bytes));
  std::string sum(sumBytes, '\0');
  llvm::support::endian::write64le(sum.data(), hash.low64);
  llvm::support::endian::write64le(sum.data() + 8, hash.high64);
  return sum;
}

static void pad(llvm::raw_ostream &stream, uint64_t size) {
  stream.write_zeros(
      llvm::offsetToAlignment(size, llvm::Align(CompiledFile::alignment)));
}

void CompiledFile::write(llvm::raw_ostream &stream, const CodeTarget &target,
                         llvm::json::Object description,
                         llvm::ArrayRef<StringRef> parts) {
  llvm::json::Array sizes, sums;
  for (StringRef part : parts) {
    sizes.push_back(part.size());
    sums.push_back(llvm::toHex(getCheckSum(part)));
  }
  std::string header;
  llvm::raw_string_ostream(header) << llvm::json::Value(
      llvm::json::Object{{"kas", getVersion()},
                         {"triple", target.triple},
                         {"features", llvm::json::Array(target.features)},
                         {"description", std::move(description)},
                         {"sizes", std::move(sizes)},
                         {"sums", std::move(sums)}});
  char size[8];
  llvm::support::endian::write64le(size, header.size());
  stream << magic << getCheckSum(header) << StringRef(size, sizeof(size))
         << header;
  pad(stream, headerOffset + header.size());
  for (StringRef part : parts) {
    stream << part;
    pad(stream, part.size());
  }
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static Error isDamaged(const llvm::Twine &where) {
  return createStringError("the file of compiled code is damaged: " + where);
}

/// Takes the parts out of `content`, which begins after the header.
static Error takeParts(StringRef content, const llvm::json::Object &header,
                       CompiledFile &file) {
  const llvm::json::Array *sizes = header.getArray("sizes"),
                          *sums = header.getArray("sums");
  if (!sizes || !sums || sizes->size() != sums->size())
    return isDamaged("expected as many sizes as check sums");
  for (auto [value, sum] : llvm::zip_equal(*sizes, *sums)) {
    std::optional<uint64_t> size = value.getAsUINT64();
    // Compared before it is rounded up, so that nothing overflows.
    if (!size || *size > content.size() ||
        llvm::alignTo(*size, CompiledFile::alignment) > content.size())
      return isDamaged("it ends too early");
    StringRef part = content.take_front(*size);
    if (sum.getAsString() != StringRef(llvm::toHex(getCheckSum(part))))
      return isDamaged("a check sum is wrong");
    file.parts.push_back(part);
    content = content.drop_front(llvm::alignTo(*size, CompiledFile::alignment));
  }
  return content.empty() ? Error::success() : isDamaged("it is too long");
}

/// What an earlier or later version of kas wrote may call functions that this
/// one does not have.
static Error checkVersion(const llvm::json::Object &header) {
  std::optional<StringRef> version = header.getString("kas");
  if (version == StringRef(getVersion()))
    return Error::success();
  return createStringError("expected code compiled by kas " +
                           llvm::Twine(getVersion()) + ", got that of kas " +
                           version.value_or("of no version"));
}

static Expected<CodeTarget> readTarget(const llvm::json::Object &header) {
  std::optional<StringRef> triple = header.getString("triple");
  const llvm::json::Array *features = header.getArray("features");
  if (!triple || !features)
    return isDamaged("it names no target");
  CodeTarget target{triple->str(), {}};
  for (const llvm::json::Value &feature : *features)
    target.features.push_back(feature.getAsString().value_or("").str());
  if (Error error = target.checkRunsHere())
    return error;
  return target;
}

Expected<CompiledFile>
CompiledFile::read(std::unique_ptr<MemoryBuffer> memory) {
  StringRef content = memory->getBuffer();
  StringRef begin = content.take_front(magic.size());
  if (begin != magic)
    return createStringError(
        begin.starts_with("kas compiled ")
            ? "expected a file of compiled code of format 1, got another one"
            : "expected a file of compiled code, got something else");
  if (content.size() < headerOffset)
    return isDamaged("it ends too early");
  StringRef sum = content.substr(magic.size(), sumBytes);
  uint64_t size =
      llvm::support::endian::read64le(content.data() + magic.size() + sumBytes);
  content = content.drop_front(headerOffset);
  if (size > content.size() ||
      llvm::alignTo(headerOffset + size, alignment) - headerOffset >
          content.size())
    return isDamaged("it ends too early");
  StringRef text = content.take_front(size);
  if (getCheckSum(text) != sum)
    return isDamaged("the check sum of the header is wrong");
  auto header = llvm::json::parse(text);
  if (!header)
    return header.takeError();
  llvm::json::Object *object = header->getAsObject();
  if (!object)
    return isDamaged("the header is no object");
  // Before the parts, which may be of another form there.
  if (Error error = checkVersion(*object))
    return error;
  CompiledFile file;
  auto target = readTarget(*object);
  if (!target)
    return target.takeError();
  file.target = std::move(*target);
  content = content.drop_front(llvm::alignTo(headerOffset + size, alignment) -
                               headerOffset);
  if (Error error = takeParts(content, *object, file))
    return error;
  if (llvm::json::Object *description = object->getObject("description"))
    file.description = std::move(*description);
  file.memory = std::move(memory);
  return file;
}

Expected<CompiledFile> CompiledFile::read(StringRef path) {
  auto memory = MemoryBuffer::getFile(path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!memory)
    return createStringError(memory.getError(),
                             "cannot read '" + path +
                                 "': " + memory.getError().message());
  auto file = read(std::move(*memory));
  if (!file)
    return createStringError("'" + path +
                             "': " + llvm::toString(file.takeError()));
  return file;
}
