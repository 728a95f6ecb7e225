//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All watches of a process share one userfaultfd. Who reads the mark of a page
// takes it away: what is read for one watch is reported to all that have the
// page.
// Compiled functions ask before each call whether weights that they have packed
// are still the same (`prepare`); comparing all weights would take longer than
// a small network. Memory that no page mark can tell about is hashed instead,
// so the answer never depends on the version of the kernel.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/WriteWatch.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <fcntl.h>
#include <mutex>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace kas;

namespace {

/// Bytes from `begin` on, up to `end`.
struct Interval {
  uintptr_t begin, end;

  bool overlaps(const Interval &other) const {
    return begin < other.end && other.begin < end;
  }
};

//===----------------------------------------------------------------------===//
// The kernel's interface
//===----------------------------------------------------------------------===//
//
// As it is in Linux 6.7 and later, written down here because the headers of
// Debian 12 are older. Numbers and layouts are part of the ABI of x86-64 and
// AArch64 alike.

/// `struct uffdio_api`, `uffdio_register`, `uffdio_range`, `page_region` and
/// `pm_scan_arg` of the kernel, in this order.
struct ApiRequest {
  uint64_t api, features, ioctls;
};
struct RegisterRequest {
  uint64_t start, length, mode, ioctls;
};
struct UnregisterRequest {
  uint64_t start, length;
};
/// Pages whose categories are those that were requested.
struct PageRegion {
  uint64_t start, end, categories;
};
struct ScanRequest {
  uint64_t size, flags, start, end, walkEnd, regions, numRegions, maxPages;
  uint64_t inverted, mask, anyOf, returned;
};

constexpr uint64_t faultApi = 0xAA;
/// UFFD_USER_MODE_ONLY needs no privileges; writes by system calls are marked
/// anyway, since marks are made without a handler.
constexpr unsigned userModeOnly = 1;
/// Protection of pages that are not there yet, and without messages.
/// UFFD_FEATURE_WP_UNPOPULATED and UFFD_FEATURE_WP_ASYNC.
constexpr uint64_t features = (1u << 13) | (1u << 15);
constexpr uint64_t modeWriteProtect = 1u << 1;
const unsigned long requestApi = _IOWR(0xAA, 0x3F, ApiRequest);
const unsigned long requestRegister = _IOWR(0xAA, 0x00, RegisterRequest);
const unsigned long requestUnregister = _IOR(0xAA, 0x01, UnregisterRequest);
const unsigned long requestScan = _IOWR('f', 16, ScanRequest);
/// Protects what was found again; fails where pages are not registered.
/// PM_SCAN_WP_MATCHING and PM_SCAN_CHECK_WPASYNC.
constexpr uint64_t protectAndCheck = 1 | 2;
/// PAGE_IS_WRITTEN.
constexpr uint64_t pageIsWritten = 1u << 1;

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

/// Who hears of pages that were written.
struct PageUser {
  /// Whole pages; other users may have the same.
  llvm::SmallVector<Interval> pages;
  /// Since the last `fetch`, as found by anybody's scan.
  bool isWritten = false;
};

/// The pages that this process watches.
class PageTracker {
public:
  /// That of this process, which is never destroyed: watches may live as long
  /// as the process.
  static PageTracker &get() {
    static PageTracker *tracker = new PageTracker;
    return *tracker;
  }

  /// Protects pages for `user`; those that cannot be watched are given back.
  llvm::SmallVector<Interval> add(PageUser &user,
                                  llvm::ArrayRef<Interval> pages);
  void remove(PageUser &user);
  /// Whether pages were written since the last call. Gives those of `user` that
  /// cannot be watched any longer to `lost`.
  bool fetch(PageUser &user, llvm::SmallVectorImpl<Interval> &lost);

private:
  PageTracker() {
    open();
    // A lock that another thread holds would stay locked in the child.
    pthread_atfork([] { get().mutex.lock(); }, [] { get().mutex.unlock(); },
                   [] {
                     get().restart();
                     get().mutex.unlock();
                   });
  }

  void open();
  /// The child of a fork has the pages, but not their protection.
  void restart();
  /// Registers pages and protects them for the first time; false where the
  /// kernel refuses, as for memory of files or without support.
  bool watch(const Interval &pages);
  /// Tells all users which of the pages were written; false if they cannot be
  /// read.
  bool scan(const Interval &pages);

  /// Guards all that follows. Marks are taken away by reading, so reading and
  /// telling the users is one step.
  std::mutex mutex;
  /// The userfaultfd and /proc/self/pagemap, or -1 where the kernel has no such
  /// thing; everything is compared by content then.
  int faults = -1, pageMap = -1;
  std::vector<PageUser *> users;
};

} // namespace

void PageTracker::open() {
  faults = static_cast<int>(
      syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | userModeOnly));
  ApiRequest api = {faultApi, features, 0};
  // An old kernel knows the call but not the features, and fails here.
  if (faults >= 0 && ioctl(faults, requestApi, &api) == 0)
    pageMap = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

void PageTracker::restart() {
  // Both descriptors are of the parent's memory.
  if (faults >= 0)
    close(faults);
  if (pageMap >= 0)
    close(pageMap);
  faults = pageMap = -1;
  // Nobody has called open() for the child: what is watched from now on may
  // be, what was watched before is compared by its content.
  open();
  for (PageUser *user : users)
    // "Changed" once is a safe answer: weights are packed again.
    user->isWritten = true;
}

bool PageTracker::watch(const Interval &pages) {
  // The first scan protects: pages that were never protected count as written.
  RegisterRequest request = {pages.begin, pages.end - pages.begin,
                             modeWriteProtect, 0};
  return pageMap >= 0 && ioctl(faults, requestRegister, &request) == 0 &&
         scan(pages);
}

bool PageTracker::scan(const Interval &pages) {
  // Neighbouring pages come as one region, so a few hundred bytes suffice for
  // most scans; the loop continues where the kernel stopped.
  std::array<PageRegion, 64> regions;
  ScanRequest request = {};
  request.size = sizeof(request);
  request.flags = protectAndCheck;
  request.start = pages.begin;
  request.end = pages.end;
  request.regions = reinterpret_cast<uintptr_t>(regions.data());
  request.numRegions = regions.size();
  // Returns and protects pages that were written, in one call of the kernel: no
  // write is lost between reading a mark and protecting again.
  request.mask = request.returned = pageIsWritten;
  do {
    long count = ioctl(pageMap, requestScan, &request);
    if (count < 0)
      return false;
    for (const PageRegion &region :
         llvm::ArrayRef(regions).take_front(static_cast<size_t>(count)))
      for (PageUser *user : users)
        user->isWritten |=
            llvm::any_of(user->pages, [&](const Interval &other) {
              return other.overlaps({region.start, region.end});
            });
    request.start = request.walkEnd;
  } while (request.start < pages.end);
  return true;
}

llvm::SmallVector<Interval> PageTracker::add(PageUser &user,
                                             llvm::ArrayRef<Interval> pages) {
  std::lock_guard<std::mutex> lock(mutex);
  llvm::SmallVector<Interval> others;
  for (const Interval &interval : pages)
    // The scan within `watch` tells other users of the same pages.
    (watch(interval) ? user.pages : others).push_back(interval);
  // Earlier writes are part of the state that is watched.
  user.isWritten = false;
  users.push_back(&user);
  return others;
}

void PageTracker::remove(PageUser &user) {
  std::lock_guard<std::mutex> lock(mutex);
  llvm::erase(users, &user);
  for (const Interval &interval : user.pages) {
    // What nobody else watches.
    // `interval` without all pages of others: each of theirs cuts the parts
    // into at most two.
    llvm::SmallVector<Interval> rest = {interval};
    for (PageUser *other : users)
      for (const Interval &kept : other->pages) {
        llvm::SmallVector<Interval> next;
        for (const Interval &part : rest) {
          if (!part.overlaps(kept)) {
            next.push_back(part);
            continue;
          }
          if (part.begin < kept.begin)
            next.push_back({part.begin, kept.begin});
          if (kept.end < part.end)
            next.push_back({kept.end, part.end});
        }
        rest = next;
      }
    for (const Interval &part : rest) {
      UnregisterRequest request = {part.begin, part.end - part.begin};
      // It may be unmapped already.
      (void)ioctl(faults, requestUnregister, &request);
    }
  }
}

bool PageTracker::fetch(PageUser &user, llvm::SmallVectorImpl<Interval> &lost) {
  std::lock_guard<std::mutex> lock(mutex);
  llvm::erase_if(user.pages, [&](const Interval &pages) {
    // A scan fails where the pages were unmapped, or mapped again without
    // protection; the watch compares their content from now on.
    bool isThere = scan(pages);
    if (!isThere)
      lost.push_back(pages);
    return !isThere;
  });
  return std::exchange(user.isWritten, false) || !lost.empty();
}

/// The memory of this process that other processes may write to.
static llvm::SmallVector<Interval> findSharedMemory() {
  llvm::SmallVector<Interval> shared;
  std::FILE *file = std::fopen("/proc/self/maps", "re");
  if (!file)
    // Without the list anything may be shared: all is compared.
    return {{0, UINTPTR_MAX}};
  // A path has at most 4096 characters; the numbers before it fit in the rest.
  std::array<char, 4352> line;
  while (std::fgets(line.data(), line.size(), file)) {
    uintptr_t begin, end;
    std::array<char, 5> access;
    if (std::sscanf(line.data(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end,
                    access.data()) == 3 &&
        // `rw-s` is shared; `rw-p` is private to the process.
        access[3] == 's')
      shared.push_back({begin, end});
  }
  std::fclose(file);
  return shared;
}

//===----------------------------------------------------------------------===//
// Watches
//===----------------------------------------------------------------------===//

struct WriteWatch::Impl {
  /// Bytes that are compared.
  struct Content {
    Interval bytes;
    llvm::XXH128_hash_t hash;
  };

  PageUser user;
  llvm::SmallVector<Content> contents;

  void compare(const Interval &bytes) {
    if (bytes.begin < bytes.end)
      contents.push_back({bytes, hash(bytes)});
  }
  /// 128 bits: two contents that differ have the same hash with a chance of
  /// 2^-64 only after about 2^32 contents.
  static llvm::XXH128_hash_t hash(const Interval &bytes) {
    return llvm::xxh3_128bits(
        llvm::ArrayRef(reinterpret_cast<const uint8_t *>(bytes.begin),
                       bytes.end - bytes.begin));
  }
};

WriteWatch::WriteWatch(const std::vector<Range> &ranges, Mode mode)
    : impl(std::make_unique<Impl>()) {
  static const auto pageSize = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  // A look at a few pages takes as long as a look at their marks.
  const uintptr_t leastSize = 4 * pageSize;
  // Other processes write to shared memory without leaving a mark in ours.
  llvm::SmallVector<Interval> shared;
  if (mode == Mode::Pages)
    shared = findSharedMemory();
  llvm::SmallVector<Interval> pages;
  llvm::SmallVector<Interval> compared;
  for (auto [address, size] : ranges) {
    auto begin = reinterpret_cast<uintptr_t>(address);
    Interval all = {begin, begin + size};
    // The whole pages within: ends share their page with memory of others,
    // whose writes would be reported, too.
    Interval inner = {(begin + pageSize - 1) & -pageSize, all.end & -pageSize};
    bool isWatched =
        mode == Mode::Pages && inner.begin < inner.end &&
        inner.end - inner.begin >= leastSize &&
        llvm::none_of(
            shared, [&](const Interval &other) { return other.overlaps(all); });
    if (!isWatched) {
      compared.push_back(all);
      continue;
    }
    pages.push_back(inner);
    compared.push_back({all.begin, inner.begin});
    compared.push_back({inner.end, all.end});
  }
  // Pages that the kernel does not watch are compared like the rest.
  for (const Interval &bytes : PageTracker::get().add(impl->user, pages))
    compared.push_back(bytes);
  // After the protection: what is written between the two is found by the next
  // call, by its mark or by its hash.
  for (const Interval &bytes : compared)
    impl->compare(bytes);
}

WriteWatch::~WriteWatch() { PageTracker::get().remove(impl->user); }

bool WriteWatch::hasChanged() {
  llvm::SmallVector<Interval> lost;
  bool changed = PageTracker::get().fetch(impl->user, lost);
  // All are hashed again, also after a change was found: the next call compares
  // with what is there now.
  for (Impl::Content &content : impl->contents) {
    llvm::XXH128_hash_t hash = Impl::hash(content.bytes);
    changed |= !(hash == content.hash);
    content.hash = hash;
  }
  for (const Interval &bytes : lost)
    impl->compare(bytes);
  return changed;
}

size_t WriteWatch::getNumComparedBytes() const {
  size_t bytes = 0;
  for (const Impl::Content &content : impl->contents)
    bytes += content.bytes.end - content.bytes.begin;
  return bytes;
}
