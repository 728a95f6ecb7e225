//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arrays of NumPy: one in a .npy file, several in a .npz archive.
// Data sets are saved under several names: `readNpzPair` takes the first pair
// that an archive has, as Keras's `mnist.npz` and others name them.
//
//===----------------------------------------------------------------------===//

#include "DataFiles.h"
#include "kas/ExecutionEngine/Npy.h"
#include "kas/ExecutionEngine/Zip.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace kas;
using namespace kas::training;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// Types by NumPy's codes without the byte order: a letter and a number of
/// bytes.
static std::optional<NumberType> getNpyType(StringRef dtype) {
  return llvm::StringSwitch<std::optional<NumberType>>(dtype)
      .Case("i1", NumberType::I8)
      .Case("u1", NumberType::U8)
      .Case("i2", NumberType::I16)
      .Case("u2", NumberType::U16)
      .Case("i4", NumberType::I32)
      .Case("u4", NumberType::U32)
      .Case("i8", NumberType::I64)
      .Case("u8", NumberType::U64)
      .Case("f4", NumberType::F32)
      .Case("f8", NumberType::F64)
      .Default(std::nullopt);
}

/// `<f4` and so on; booleans, complex numbers and strings are refused.
Expected<DataArray> kas::training::parseNpyArray(const DataFile &file) {
  auto view = execution::viewNpy(file.bytes);
  if (!view)
    return view.takeError();
  StringRef dtype(view->dtype);
  DataArray array;
  // '>' big-endian, '<' little-endian, '|' types of one byte.
  array.bigEndian = dtype.consume_front(">");
  if (!array.bigEndian && !dtype.consume_front("<"))
    dtype.consume_front("|");
  auto type = getNpyType(dtype);
  if (!type)
    return createStringError("requires an array of integers, f32 or f64, got "
                             "dtype '" +
                             view->dtype + "'");
  array.type = *type;
  array.fortranOrder = view->fortranOrder;
  array.shape = view->shape;
  // The data stays where it is; the array keeps the file alive.
  array.data = {view->data, file.storage};
  return array;
}

/// Names of the examples and labels of a part, in the order of preference.
static llvm::ArrayRef<std::pair<StringRef, StringRef>>
getArrayNames(DatasetPart part) {
  static constexpr std::pair<StringRef, StringRef> train[] = {
      {"x_train", "y_train"},
      {"train_images", "train_labels"},
      {"images", "labels"},
      {"x", "y"}};
  static constexpr std::pair<StringRef, StringRef> test[] = {
      {"x_test", "y_test"}, {"test_images", "test_labels"}};
  if (part == DatasetPart::Train)
    return train;
  return test;
}

namespace {

/// An open archive of arrays.
class NpzFile {
public:
  /// Reads the directory of the archive; members are read when they are
  /// requested.
  static Expected<NpzFile> open(DataFile file) {
    auto archive = execution::ZipArchive::open(file.bytes);
    if (!archive)
      return archive.takeError();
    return NpzFile(std::move(file), std::move(*archive));
  }

  /// The only member of this name, or null.
  /// Twice would leave open which one NumPy takes.
  Expected<const execution::ZipMember *> find(StringRef name) const {
    const execution::ZipMember *found = nullptr;
    // Archives have a handful of members, so a search needs no index.
    for (const execution::ZipMember &member : archive.getMembers()) {
      if (getName(member) != name)
        continue;
      if (found)
        return createStringError("member '" + name +
                                 "' is twice in the "
                                 "archive");
      found = &member;
    }
    return found;
  }

  /// The array points into the file, or keeps its decompressed bytes alive.
  Expected<DataArray> read(const execution::ZipMember &member) const {
    auto fail = [&](Error error) {
      return createStringError("member '" + getName(member) +
                               "': " + llvm::toString(std::move(error)));
    };
    auto content = archive.read(member);
    if (!content)
      return fail(content.takeError());
    // Stored members are views into the file.
    std::shared_ptr<const void> storage = file.storage;
    if (content->decompressed)
      storage = content->decompressed;
    auto array = parseNpyArray({content->bytes, std::move(storage)});
    if (!array)
      return fail(array.takeError());
    return array;
  }

  std::string listNames() const {
    return llvm::join(llvm::map_range(archive.getMembers(), getName), ", ");
  }

private:
  NpzFile(DataFile file, execution::ZipArchive archive)
      : file(std::move(file)), archive(std::move(archive)) {}

  /// numpy.savez appends `.npy` to the names of arrays.
  static StringRef getName(const execution::ZipMember &member) {
    StringRef name(member.name);
    name.consume_back(".npy");
    return name;
  }

  DataFile file;
  execution::ZipArchive archive;
};

} // namespace

/// The part decides by names which arrays are meant: `x_train` or `x_test`.
Expected<ArrayPair> kas::training::readNpzPair(const DataFile &file,
                                               DatasetPart part) {
  auto npz = NpzFile::open(file);
  if (!npz)
    return npz.takeError();
  for (auto [examples, labels] : getArrayNames(part)) {
    auto exampleMember = npz->find(examples);
    if (!exampleMember)
      return exampleMember.takeError();
    auto labelMember = npz->find(labels);
    if (!labelMember)
      return labelMember.takeError();
    // One of a pair alone is of no use; another pair may be whole.
    if (!*exampleMember || !*labelMember)
      continue;
    auto exampleArray = npz->read(**exampleMember);
    if (!exampleArray)
      return exampleArray.takeError();
    auto labelArray = npz->read(**labelMember);
    if (!labelArray)
      return labelArray.takeError();
    return ArrayPair{std::move(*exampleArray), std::move(*labelArray)};
  }
  // All names that would have done, and those that there are.
  auto pairs = llvm::map_range(getArrayNames(part), [](auto names) {
    return ("'" + names.first + "' and '" + names.second + "'").str();
  });
  std::string message = "requires arrays " + llvm::join(pairs, ", or ") +
                        ", got " + npz->listNames();
  if (part == DatasetPart::Test)
    return llvm::make_error<NoTestPart>(message);
  return createStringError(message);
}
