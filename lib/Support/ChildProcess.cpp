//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Worker processes: started by the shell or forked, with limits of memory and
// time, and killed with all that they started.
// Two kinds share one class: a command that answers line by line (`start`,
// `write`, `readLine`), and a function that runs in a forked copy of this
// process (`fork`, `readAll`, `runForked`) because compiled candidates may
// crash or never end. Each child leads a process group, so that its own
// children die with it.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/ChildProcess.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace kas;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using Clock = ChildProcess::Clock;

static Error getSystemError(const llvm::Twine &what, int code) {
  return createStringError(what + ": " + std::generic_category().message(code));
}

/// The environment with KAS_WORKER set.
/// A worker reads from it which of several it is, to choose a core or a device.
static std::vector<std::string> getEnvironment(unsigned index) {
  std::vector<std::string> result;
  for (char **entry = environ; *entry; ++entry)
    if (!llvm::StringRef(*entry).starts_with("KAS_WORKER="))
      result.push_back(*entry);
  result.push_back("KAS_WORKER=" + std::to_string(index));
  return result;
}

/// Starts `command` by the shell with `input` and `output` as its standard
/// streams. Returns an error code of the system, or 0. `posix_spawn` and not
/// fork: it does not copy the page tables of a large process.
static int spawn(pid_t &pid, const std::string &command, unsigned index,
                 int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // What is ignored here would stay ignored there.
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  // A process group of its own, whose id is that of the shell.
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  // `posix_spawn` takes pointers to characters that it may change, so all text
  // has to live in strings of ours.
  std::string shell = "/bin/sh", flag = "-c", text = command;
  char *arguments[] = {shell.data(), flag.data(), text.data(), nullptr};
  std::vector<std::string> environment = getEnvironment(index);
  std::vector<char *> pointers;
  for (std::string &entry : environment)
    pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  int code = posix_spawn(&pid, shell.c_str(), &actions, &attributes, arguments,
                         pointers.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return code;
}

Expected<std::unique_ptr<ChildProcess>>
ChildProcess::start(const ChildCommand &given) {
  std::unique_ptr<ChildProcess> worker(new ChildProcess());
  // A socket, because writing to a pipe whose reader is gone raises a signal.
  // No other child may inherit these, or the end of one would go unnoticed.
  int input[2], output[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input))
    return getSystemError("cannot start a worker", errno);
  if (::pipe2(output, O_CLOEXEC)) {
    int code = errno;
    ::close(input[0]);
    ::close(input[1]);
    return getSystemError("cannot start a worker", code);
  }
  // The shell sets the limit, for it is inherited; `ulimit -v` counts KiB,
  // `memoryLimit` MiB.
  std::string command = given.command;
  if (given.memoryLimit)
    command = "ulimit -v " + std::to_string(given.memoryLimit * 1024) + " && " +
              command;
  int code = spawn(worker->pid, command, given.index, input[1], output[1]);
  // The ends of the child: as long as they are open here, too, reading would
  // never see the end of its output.
  ::close(input[1]);
  ::close(output[1]);
  worker->input = input[0];
  worker->output = output[0];
  if (code) {
    worker->pid = -1;
    return getSystemError("cannot start a worker", code);
  }
  // Deadlines need calls that return at once; `waitFor` does the waiting.
  ::fcntl(worker->input, F_SETFL, O_NONBLOCK);
  ::fcntl(worker->output, F_SETFL, O_NONBLOCK);
  return worker;
}

Expected<std::unique_ptr<ChildProcess>>
ChildProcess::fork(llvm::function_ref<void(int)> work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC))
    return getSystemError("cannot start a worker", errno);
  pid_t pid = ::fork();
  // The number is kept before anything else can change it.
  int code = errno;
  if (pid == 0) {
    ::setpgid(0, 0);
    // The kernel kills the child when the parent dies without destructors.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ends[0]);
    // `_exit` and not `exit` below: destructors and buffers of streams belong
    // to the parent.
    work(ends[1]);
    ::_exit(0);
  }
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return getSystemError("cannot start a worker", code);
  }
  // Parent and child both ask for the group, since either may run first, and
  // the destructor kills by group.
  ::setpgid(pid, pid);
  std::unique_ptr<ChildProcess> child(new ChildProcess());
  child->pid = pid;
  child->output = ends[0];
  ::fcntl(child->output, F_SETFL, O_NONBLOCK);
  return child;
}

ChildProcess::~ChildProcess() {
  for (int descriptor : {input, output})
    if (descriptor >= 0)
      ::close(descriptor);
  if (pid < 0)
    return;
  // The group, with all that the worker has started.
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);
  // Reaped, so that no zombie is left.
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR)
    ;
}

/// Waits until `descriptor` is ready; false when `deadline` comes first.
static bool waitFor(int descriptor, short events, Clock::time_point deadline) {
  for (;;) {
    // Rounded up, so that `poll` does not spin for the last millisecond.
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() < 0)
      return false;
    pollfd request = {descriptor, events, 0};
    // `poll` takes an int of milliseconds: long waits are cut into minutes.
    int timeout = static_cast<int>(
        std::min<std::chrono::milliseconds::rep>(left.count(), 60000));
    int ready = ::poll(&request, 1, timeout);
    if (ready > 0)
      return true;
    if (ready < 0 && errno != EINTR)
      return true; // The call that follows says what is wrong.
  }
}

Error ChildProcess::write(llvm::StringRef text, Clock::time_point deadline) {
  while (!text.empty()) {
    // Without a signal when the child is gone, and without blocking when its
    // buffer is full: a child that does not read counts as hung.
    ssize_t count =
        ::send(input, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      text = text.drop_front(static_cast<size_t>(count));
      continue;
    }
    if (errno == EINTR)
      continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
      return createStringError("the worker " + describeEnd());
    if (!waitFor(input, POLLOUT, deadline))
      return createStringError("the worker does not read what it is sent");
  }
  return Error::success();
}

/// One system call's worth of output; `End` when the child has closed it.
Expected<ChildProcess::Reading> ChildProcess::read(Clock::time_point deadline) {
  for (;;) {
    char block[65536];
    // Reads first and waits only when there is nothing yet, which saves a call
    // when answers come fast.
    ssize_t count = ::read(output, block, sizeof(block));
    if (count > 0) {
      buffer.append(block, static_cast<size_t>(count));
      return Reading::Some;
    }
    if (count == 0)
      return Reading::End;
    if (errno == EINTR)
      continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
      return getSystemError("cannot read from the worker", errno);
    if (!waitFor(output, POLLIN, deadline))
      return Reading::Late;
  }
}

Expected<std::string> ChildProcess::readLine(Clock::time_point deadline) {
  // A worker that has gone wild must not fill the memory of the search.
  constexpr size_t longest = 16 << 20;
  for (;;) {
    if (size_t end = buffer.find('\n'); end != std::string::npos) {
      std::string line = buffer.substr(0, end);
      buffer.erase(0, end + 1);
      // Workers may be written with tools that end lines as Windows does.
      if (!line.empty() && line.back() == '\r')
        line.pop_back();
      return line;
    }
    if (buffer.size() > longest)
      return createStringError("the worker writes a line without end");
    Expected<Reading> reading = read(deadline);
    if (!reading)
      return reading.takeError();
    if (*reading == Reading::End)
      return createStringError("the worker " + describeEnd());
    if (*reading == Reading::Late)
      return createStringError("the worker does not answer in time");
  }
}

Expected<std::optional<std::string>>
ChildProcess::readAll(Clock::time_point deadline) {
  // Output without end does not count as an answer in time.
  while (Clock::now() < deadline) {
    Expected<Reading> reading = read(deadline);
    if (!reading)
      return reading.takeError();
    if (*reading == Reading::End)
      return std::exchange(buffer, {});
    if (*reading == Reading::Late)
      break;
  }
  return std::nullopt;
}

/// The child stays a zombie (`WNOWAIT`): its id is not given to another process
/// before the destructor has killed the group by it.
bool ChildProcess::endsUntil(Clock::time_point deadline) {
  siginfo_t information = {};
  do {
    if (::waitid(P_PID, static_cast<id_t>(pid), &information,
                 WEXITED | WNOHANG | WNOWAIT) == 0 &&
        information.si_pid == pid)
      return true;
    // There is no wait with a time limit but through signals, which belong to
    // the program that uses this library.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (Clock::now() < deadline);
  return false;
}

std::string ChildProcess::describeEnd() {
  // It may have closed its output a little before its end.
  if (!endsUntil(Clock::now() + std::chrono::milliseconds(500)))
    return "has closed its output";
  siginfo_t information = {};
  ::waitid(P_PID, static_cast<id_t>(pid), &information,
           WEXITED | WNOHANG | WNOWAIT);
  if (information.si_code == CLD_EXITED)
    return "ended with code " + std::to_string(information.si_status);
  return std::string("died: ") + ::strsignal(information.si_status);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Writes all of `text`, or gives up: the parent then finds no complete answer
/// and says so.
static void writeAll(int output, llvm::StringRef text) {
  while (!text.empty()) {
    ssize_t count = ::write(output, text.data(), text.size());
    if (count < 0 && errno != EINTR)
      return;
    if (count > 0)
      text = text.drop_front(static_cast<size_t>(count));
  }
}

/// What a forked process does before its work.
static void limitProcess(uint64_t memoryLimit) {
  // Stack traces and messages of candidates are of no use to anybody.
  for (int stream : {STDOUT_FILENO, STDERR_FILENO})
    if (int null = ::open("/dev/null", O_WRONLY); null >= 0)
      ::dup2(null, stream);
  // LLVM's handlers print a stack trace, which takes long and may fail under
  // the limit of memory; a crash is to end the process at once.
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP})
    ::signal(number, SIG_DFL);
  rlimit none = {0, 0};
  // A core file of each failed candidate would fill the disk.
  ::setrlimit(RLIMIT_CORE, &none);
  if (memoryLimit) {
    rlimit memory = {memoryLimit, memoryLimit};
    ::setrlimit(RLIMIT_AS, &memory);
  }
}

/// The answer goes through a pipe as `+` and its bytes, or as `-` and the text
/// of the error.
Expected<std::string>
kas::runForked(llvm::function_ref<Expected<std::string>()> work,
               const ProcessLimits &limits) {
  auto child = ChildProcess::fork([&](int output) {
    limitProcess(limits.memory);
    // The first byte tells answers and errors apart.
    Expected<std::string> answer = work();
    writeAll(output,
             answer ? "+" + *answer : "-" + llvm::toString(answer.takeError()));
  });
  if (!child)
    return child.takeError();
  auto deadline =
      Clock::now() +
      std::chrono::milliseconds(static_cast<int64_t>(limits.seconds * 1e3));
  // The destructor of `child` kills it on each way out.
  Expected<std::optional<std::string>> text = (*child)->readAll(deadline);
  if (!text)
    return text.takeError();
  if (!*text)
    return createStringError(llvm::formatv(
        "expected an end within {0} s, got none", limits.seconds));
  llvm::StringRef answer = **text;
  if (answer.consume_front("-"))
    return createStringError(answer.trim());
  // The child may have died in a destructor after it answered: memory that it
  // has overwritten makes the answer worthless, too.
  std::string end = (*child)->describeEnd();
  if (llvm::StringRef(end).starts_with("died"))
    return createStringError("the worker " + end);
  if (answer.consume_front("+"))
    return answer.str();
  return createStringError("the worker ended without an answer");
}
