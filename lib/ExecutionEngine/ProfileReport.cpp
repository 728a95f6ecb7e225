//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Profiles as tables, as JSON, and as traces.
//
// Tables are for terminals, JSON for scripts, traces for viewers of the Trace
// Event Format (Perfetto, chrome://tracing).
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Profile.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include <numeric>

using namespace kas;
using namespace kas::execution;
namespace json = llvm::json;

namespace {
/// All runs of one pass.
struct PassSum {
  std::string name;
  double milliseconds = 0;
  int64_t runs = 0;
};
} // namespace

/// The longest first.
static std::vector<PassSum> sumPasses(llvm::ArrayRef<PassRun> runs) {
  // A pass runs on each function, and some several times in the pipeline.
  llvm::MapVector<llvm::StringRef, PassSum> sums;
  for (const PassRun &run : runs) {
    PassSum &sum = sums[run.name];
    sum.name = run.name;
    sum.milliseconds += (run.end - run.begin) * 1e3;
    ++sum.runs;
  }
  std::vector<PassSum> sorted;
  for (auto &entry : sums)
    sorted.push_back(entry.second);
  llvm::sort(sorted, [](const PassSum &a, const PassSum &b) {
    // Names break ties, so that reports are deterministic.
    return std::tie(b.milliseconds, a.name) < std::tie(a.milliseconds, b.name);
  });
  return sorted;
}

/// Per second and in units of 10^9, of `amount` in `milliseconds`.
static double getRate(double amount, double milliseconds) {
  return milliseconds > 0 ? amount / milliseconds * 1e-6 : 0;
}

/// Milliseconds of all rows; less than the whole by the call itself.
static double getSum(const Profile &profile) {
  double sum = 0;
  for (const ProfiledOperation &row : profile.operations)
    sum += row.milliseconds;
  return sum;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// `text` with its end left out where it is longer than `width`.
static std::string fit(llvm::StringRef text, size_t width) {
  if (text.size() <= width)
    return text.str();
  return (text.take_front(width - 3) + "...").str();
}

/// What a row is called: its kind, and how much is fused into it.
static std::string describe(const ProfiledOperation &row) {
  // The column of the table.
  constexpr size_t width = 40;
  if (row.fused.empty())
    return fit(row.kind, width);
  std::string more = " + " + std::to_string(row.fused.size());
  return fit(row.kind, width - more.size()) + more;
}

/// Without the folder, which would take most of the line.
static std::string describeLocation(const ProfiledOperation &row) {
  return llvm::sys::path::filename(row.location).str();
}

static void printOperations(llvm::raw_ostream &stream, const Profile &profile,
                            size_t maxRows) {
  // Rows are in the order of the program; the table has the slowest first.
  std::vector<size_t> order(profile.operations.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::pair(-profile.operations[a].milliseconds, a) <
           std::pair(-profile.operations[b].milliseconds, b);
  });
  // Shares are of the operations, without the call; never a division by zero.
  double sum = std::max(getSum(profile), 1e-9);
  stream << "        ms     least      %  calls     MFLOP  GFLOP/s        MB  "
            "roof %  "
            "operation                                 "
            "layer                         strategy        location\n";
  // What is beyond `maxRows` is summed up in one line.
  double left = 0;
  for (auto [index, number] : llvm::enumerate(order)) {
    const ProfiledOperation *row = &profile.operations[number];
    if (index >= maxRows) {
      left += row->milliseconds;
      continue;
    }
    stream << llvm::format("%10.4f %9.4f %6.2f %6u ", row->milliseconds,
                           row->minMilliseconds, 100 * row->milliseconds / sum,
                           row->calls)
           << llvm::format("%9.2f ", static_cast<double>(row->flops) * 1e-6)
           << llvm::format(
                  "%8.2f %9.3f %7.1f  ",
                  getRate(static_cast<double>(row->flops), row->milliseconds),
                  static_cast<double>(row->bytes) * 1e-6, 100 * row->roofShare)
           << llvm::left_justify(describe(*row), 40) << "  "
           << llvm::left_justify(fit(row->layer, 28), 28) << "  "
           << llvm::left_justify(fit(row->strategy.name, 14), 14) << "  "
           << describeLocation(*row);
    // Why an operation has no register tiles is what a reader can act on.
    if (row->strategy.name == "loops" && !row->strategy.reason.empty())
      stream << "  (" << row->strategy.reason << ")";
    stream << "\n";
  }
  if (order.size() > maxRows)
    stream << llvm::format("%10.4f           %6.2f ", left, 100 * left / sum)
           << order.size() - maxRows << " others\n";
  stream << llvm::format("%10.4f        the call itself, and interruptions\n",
                         profile.milliseconds - getSum(profile));
}

/// The passes and steps of LLVM that took longest. With several threads their
/// sum may exceed the time of the compilation.
static void printPasses(llvm::raw_ostream &stream, const Profile &profile,
                        size_t maxRows) {
  std::vector<PassSum> sums = sumPasses(profile.passes);
  double whole = 0;
  for (const PassSum &sum : sums)
    whole += sum.milliseconds;
  whole = std::max(whole, 1e-9);
  stream << llvm::format("compiled in %.1f ms\n", profile.compileMilliseconds)
         << "        ms      %   runs  pass\n";
  double left = 0;
  for (auto [index, sum] : llvm::enumerate(sums)) {
    if (index >= maxRows) {
      left += sum.milliseconds;
      continue;
    }
    stream << llvm::format("%10.1f %6.2f %6lld  ", sum.milliseconds,
                           100 * sum.milliseconds / whole,
                           static_cast<long long>(sum.runs))
           << sum.name << "\n";
  }
  if (sums.size() > maxRows)
    stream << llvm::format("%10.1f %6.2f ", left, 100 * left / whole)
           << sums.size() - maxRows << " others\n";
}

void Profile::print(llvm::raw_ostream &stream, size_t maxRows) const {
  stream << "profile of " << function << " on " << threads << " thread"
         << (threads == 1 ? "" : "s")
         << llvm::format(": %.4f ms, %.4f ms at least, ", milliseconds,
                         fastestMilliseconds)
         << "medians of " << runs << " runs\n";
  stream << llvm::format("roofs: %.1f GFLOP/s", roof.peakGflops);
  for (const MachineRoof::Copy &copy : roof.copies)
    stream << llvm::format(", %.1f GB/s of ", copy.gigabytesPerSecond)
           << copy.bytes / 1024 << " KiB";
  stream << "\n";
  printOperations(stream, *this, maxRows);
  printPasses(stream, *this, maxRows);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

/// Keys are an interface of scripts: they may be added, not renamed.
static json::Object toJSON(const ProfiledOperation &row) {
  json::Object object{
      {"operation", row.kind},
      {"layer", row.layer},
      {"location", row.location},
      {"fused", json::Array(row.fused)},
      {"strategy", row.strategy.name},
      {"reason", row.strategy.reason},
      {"calls", row.calls},
      {"ms", row.milliseconds},
      {"min_ms", row.minMilliseconds},
      {"flops", row.flops},
      {"bytes", row.bytes},
      {"gflops", getRate(static_cast<double>(row.flops), row.milliseconds)},
      {"roof", row.roofShare},
  };
  return object;
}

json::Object Profile::toJSON() const {
  json::Array rows, copies, sums;
  for (const ProfiledOperation &row : operations)
    rows.push_back(::toJSON(row));
  for (const MachineRoof::Copy &copy : roof.copies)
    copies.push_back(json::Object{{"bytes", copy.bytes},
                                  {"gb_per_s", copy.gigabytesPerSecond}});
  for (const PassSum &sum : sumPasses(passes))
    sums.push_back(json::Object{
        {"pass", sum.name}, {"ms", sum.milliseconds}, {"runs", sum.runs}});
  return json::Object{
      {"function", function},
      {"threads", threads},
      {"runs", runs},
      {"ms", milliseconds},
      {"min_ms", fastestMilliseconds},
      {"outside_ms", milliseconds - getSum(*this)},
      {"peak_gflops", roof.peakGflops},
      {"copies", std::move(copies)},
      {"operations", std::move(rows)},
      {"compile_ms", compileMilliseconds},
      {"passes", std::move(sums)},
  };
}

/// A complete event ("ph": "X") from `begin` on; both times in microseconds, as
/// traces have them.
static json::Object makeEvent(llvm::StringRef name, int process, int thread,
                              double begin, double duration) {
  return json::Object{{"name", name.str()}, {"ph", "X"},   {"pid", process},
                      {"tid", thread},      {"ts", begin}, {"dur", duration}};
}

/// A metadata event ("ph": "M"): a group of lines in the viewer.
static json::Object nameProcess(int process, llvm::StringRef name) {
  return json::Object{{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", process},
                      {"args", json::Object{{"name", name.str()}}}};
}

/// Adds the passes; those that run at the same time are on several lines.
static void addPasses(json::Array &events, llvm::ArrayRef<PassRun> passes) {
  if (passes.empty())
    return;
  // Traces begin at 0.
  double origin = passes.front().begin;
  // When each line of the viewer is free again; a pass takes the first free
  // one.
  std::vector<double> ends;
  for (const PassRun &run : passes) {
    size_t line = 0;
    while (line < ends.size() && ends[line] > run.begin)
      ++line;
    if (line == ends.size())
      ends.push_back(0);
    ends[line] = run.end;
    events.push_back(makeEvent(run.name, 1, static_cast<int>(line),
                               (run.begin - origin) * 1e6,
                               (run.end - run.begin) * 1e6));
  }
}

void Profile::writeTrace(llvm::raw_ostream &stream) const {
  json::Array events;
  // Two groups, each with a time axis of its own.
  events.push_back(nameProcess(1, "compilation"));
  events.push_back(nameProcess(2, function));
  addPasses(events, passes);
  for (const Interval &interval : intervals) {
    const ProfiledOperation &row = operations[interval.operation];
    std::string name =
        row.layer.empty() ? row.kind : row.layer + ": " + row.kind;
    json::Object event = makeEvent(name, 2, 0, interval.beginMilliseconds * 1e3,
                                   interval.milliseconds * 1e3);
    // What a viewer shows of a selected event.
    event["args"] = ::toJSON(row);
    events.push_back(std::move(event));
  }
  stream << json::Value(json::Object{{"traceEvents", std::move(events)},
                                     {"displayTimeUnit", "ms"}})
         << "\n";
}
