//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The transforms of Winograd's F(4x4, 3x3), after Lavin and Gray, "Fast
// Algorithms for Convolutional Neural Networks", CVPR 2016, section 4.3, and
// what emitters that use them have in common.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_CODEGEN_CPU_EMIT_WINOGRADTRANSFORMS_H
#define LIB_CODEGEN_CPU_EMIT_WINOGRADTRANSFORMS_H

#include "../Strategy/WinogradMatch.h"
#include "LoopEmitter.h"
#include "llvm/Support/MathExtras.h"

namespace kas::codegen {

class WinogradTransforms : protected LoopEmitter {
protected:
  WinogradTransforms(mlir::OpBuilder &builder, mlir::Location loc, bool hasFMA)
      : LoopEmitter(builder, loc), hasFMA(hasFMA) {}

  using Vectors = llvm::SmallVector<mlir::Value>;

  /// Outputs and inputs of a tile along one axis, and places of the window.
  static constexpr int64_t tileOut = winogradTile, window = winogradWindow;
  static constexpr int64_t tileIn = tileOut + window - 1;
  static constexpr int64_t numPoints = tileIn * tileIn;

  /// By rows: of the data (B^T), of the windows (G), back (A^T); the last two
  /// transposed, for the gradient by the windows.
  static constexpr float dataTransform[tileIn][tileIn] = {
      {4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
      {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
  static constexpr float windowTransform[tileIn][window] = {
      {1.0 / 4, 0, 0},
      {-1.0 / 6, -1.0 / 6, -1.0 / 6},
      {-1.0 / 6, 1.0 / 6, -1.0 / 6},
      {1.0 / 24, 1.0 / 12, 1.0 / 6},
      {1.0 / 24, -1.0 / 12, 1.0 / 6},
      {0, 0, 1}};
  static constexpr float outputTransform[tileOut][tileIn] = {
      {1, 1, 1, 1, 1, 0},
      {0, 1, -1, 2, -2, 0},
      {0, 1, 1, 4, 4, 0},
      {0, 1, -1, 8, -8, 1}};
  static constexpr float outputGradient[tileIn][tileOut] = {
      {1, 0, 0, 0}, {1, 1, 1, 1},   {1, -1, 1, -1},
      {1, 2, 4, 8}, {1, -2, 4, -8}, {0, 0, 0, 1}};
  static constexpr float windowGradient[window][tileIn] = {
      {1.0 / 4, -1.0 / 6, -1.0 / 6, 1.0 / 24, 1.0 / 24, 0},
      {0, -1.0 / 6, 1.0 / 6, 1.0 / 12, -1.0 / 12, 0},
      {0, -1.0 / 6, -1.0 / 6, 1.0 / 6, 1.0 / 6, 1}};

  /// `matrix` times `values`, which are numbers or vectors.
  template <size_t rows, size_t columns>
  Vectors transform(const float (&matrix)[rows][columns],
                    mlir::ValueRange values) {
    Vectors results;
    for (const auto &row : matrix)
      results.push_back(combine(row, values));
    return results;
  }

  /// `matrix` times the tile whose elements `at` gives times the transposed
  /// matrix, line by line. `at` gives vectors, each of one element of several
  /// tiles; `body` gets the results row by row, so that few of them are in
  /// registers.
  template <size_t rows, size_t size>
  void transformTile(
      const float (&matrix)[rows][size],
      llvm::function_ref<mlir::Value(int64_t line, int64_t column)> at,
      llvm::function_ref<void(int64_t line, mlir::ValueRange)> body) {
    llvm::SmallVector<Vectors> columns;
    for (size_t j = 0; j < size; ++j) {
      Vectors column;
      for (size_t i = 0; i < size; ++i)
        column.push_back(at(i, j));
      columns.push_back(transform(matrix, column));
    }
    for (size_t i = 0; i < rows; ++i) {
      Vectors line;
      for (const Vectors &values : columns)
        line.push_back(values[i]);
      body(static_cast<int64_t>(i), transform(matrix, line));
    }
  }

  /// Elements from the matrix of one point to that of the next, each of at
  /// least `elements`. What is computed of one tile is at the same place of all
  /// 36 matrices; an odd number of cache lines lies between them, else they
  /// would all be in one set of the cache, which has 8 to 16 lines.
  static int64_t getLineStride(int64_t elements) {
    constexpr int64_t line = 16;
    return (llvm::divideCeil(elements, line) | 1) * line;
  }

  /// Of indices.
  mlir::Value add(mlir::Value a, mlir::Value b) {
    return mlir::arith::AddIOp::create(builder, loc, a, b);
  }
  mlir::Value add(mlir::Value a, int64_t b) {
    return b ? add(a, constant(b)) : a;
  }
  mlir::Value scaled(mlir::Value a, int64_t scale) {
    return mlir::arith::MulIOp::create(builder, loc, a, constant(scale));
  }
  mlir::Value makeBuffer(llvm::ArrayRef<int64_t> shape);
  mlir::Value flatten(mlir::Value buffer);
  /// The buffer of a tensor that is read only.
  mlir::Value toBuffer(mlir::Value tensor);
  /// True in each lane where `exists` is.
  mlir::Value getMask(llvm::ArrayRef<bool> exists);

private:
  /// The sum of `values`, each times its factor.
  mlir::Value combine(llvm::ArrayRef<float> factors, mlir::ValueRange values);

  bool hasFMA;
};

} // namespace kas::codegen

#endif // LIB_CODEGEN_CPU_EMIT_WINOGRADTRANSFORMS_H
