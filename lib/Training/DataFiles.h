//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the readers of data files share: bytes of a file, arrays of numbers in
// them, and what examples and labels are made of.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_TRAINING_DATAFILES_H
#define KAS_LIB_TRAINING_DATAFILES_H

#include "kas/Training/Dataset.h"

namespace kas::training {

/// The bytes of a file, decompressed where it is a gzip file.
struct DataFile {
  llvm::StringRef bytes;
  std::shared_ptr<const void> storage;
};

/// Maps or decompresses a file; errors name it.
llvm::Expected<DataFile> openDataFile(llvm::StringRef path);

/// An error of this file.
llvm::Error inFile(llvm::StringRef path, llvm::Error error);

enum class NumberType { I8, U8, I16, U16, I32, U32, I64, U64, F32, F64 };

/// `u8`, `f32`, ...
llvm::StringRef getName(NumberType type);
/// Bytes of a number.
size_t getSize(NumberType type);

/// An array of numbers as it lies in a file, of any alignment.
struct DataArray {
  NumberType type = NumberType::U8;
  bool bigEndian = false;
  /// Whether the first dimension is the contiguous one.
  bool fortranOrder = false;
  llvm::SmallVector<int64_t> shape;
  DataFile data;
};

/// Checks that the bytes of `array` are those of its shape.
llvm::Error checkSize(const DataArray &array);

/// Whether channels of images are before or after their height and width.
enum class Layout { NCHW, NHWC };

/// Examples of an array of rank 2 or more of u8, f32 or f64. Those of u8 and
/// f32 stay where they are if order, byte order and alignment allow it.
llvm::Expected<Examples> makeExamples(const DataArray &array, Layout layout);

/// The labels of an array of integers, of rank 1, or of rank 2 with one column.
llvm::Expected<std::vector<int64_t>> makeLabels(const DataArray &array);

/// Reads the array of an idx file.
llvm::Expected<DataArray> parseIdx(const DataFile &file);

/// Reads the array of a .npy file.
llvm::Expected<DataArray> parseNpyArray(const DataFile &file);

/// The arrays that examples and labels are made of.
struct ArrayPair {
  DataArray examples, labels;
};

/// Reads the two arrays of a part of a .npz file.
llvm::Expected<ArrayPair> readNpzPair(const DataFile &file, DatasetPart part);

/// Appends the records of a file of CIFAR's binary format, which have this many
/// bytes for labels, of which the last counts. The caller keeps the file.
llvm::Error appendCifar(const DataFile &file, int64_t labelBytes,
                        Examples &examples, std::vector<int64_t> &labels);

} // namespace kas::training

#endif // KAS_LIB_TRAINING_DATAFILES_H
