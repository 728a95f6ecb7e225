//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether memory of somebody else has been written to.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_WRITEWATCH_H
#define KAS_SUPPORT_WRITEWATCH_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kas {

/// Watches memory, such as weights that were packed, for changes.
///
/// Whole pages are watched by the processor: they are protected against
/// writing, and the kernel lets each write through and keeps a mark
/// (userfaultfd with asynchronous write protection, Linux 6.7 and later).
/// Reading the marks takes a quarter of a microsecond for a megabyte, and no
/// way to write escapes them: not other threads, other libraries or system
/// calls. Everything else is compared by a hash of 128 bits of its content:
/// what is smaller, parts of pages at both ends, memory that other processes
/// share, and all memory where the kernel cannot watch.
///
/// Objects are independent of each other and may watch the same memory. One
/// object must not be used by two threads at once. The memory must stay mapped
/// as long as the object lives. In a process that was forked, everything has
/// changed once.
class WriteWatch {
public:
  /// An address and a number of bytes.
  using Range = std::pair<const void *, size_t>;
  enum class Mode {
    /// By pages where the kernel can, else by content.
    Pages,
    /// By content alone.
    Content
  };

  explicit WriteWatch(const std::vector<Range> &ranges,
                      Mode mode = Mode::Pages);
  ~WriteWatch();
  WriteWatch(const WriteWatch &) = delete;
  WriteWatch &operator=(const WriteWatch &) = delete;

  /// Whether the memory may be another one than at the last call, or at the
  /// construction before the first call. What is written after the call began
  /// is reported by the next one at the latest. May be true where the same
  /// values were written.
  bool hasChanged();

  /// How many bytes are compared by their content.
  size_t getNumComparedBytes() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace kas

#endif // KAS_SUPPORT_WRITEWATCH_H
