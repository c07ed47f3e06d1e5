#include "cluster/etcd_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/unique_fd.h"
#include "cluster/etcd_store.h"

namespace datasystem::cluster {
namespace {

constexpr std::chrono::seconds kStartTimeout{20};
// Another process may take a free port before etcd does.
constexpr int kStartAttemptsMax = 3;

Result<std::string> FreeAddress() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return errors::FromErrno(errno, "no free port");
  }
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

// Runs a program with its output going to `output`. Only calls that are safe between fork and exec.
pid_t Spawn(std::vector<std::string> words, int output) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

std::string ReadFile(const std::string& path, size_t tail_size) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  return all.substr(all.size() - std::min(all.size(), tail_size));
}

}  // namespace

Result<std::unique_ptr<EtcdProcess>> EtcdProcess::Start() {
  Status status;
  for (int attempt = 0; attempt < kStartAttemptsMax; ++attempt) {
    std::unique_ptr<EtcdProcess> etcd(new EtcdProcess);
    std::string folder = (std::filesystem::temp_directory_path() / "etcd-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) return errors::FromErrno(errno, folder);
    etcd->folder_ = folder;
    ASSIGN_OR_RETURN(etcd->first_address_, FreeAddress());
    etcd->address_ = etcd->first_address_;
    ASSIGN_OR_RETURN(etcd->peer_address_, FreeAddress());
    status = etcd->Launch();
    if (status.IsOk()) return etcd;
  }
  return status;
}

EtcdProcess::~EtcdProcess() {
  Kill();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Status EtcdProcess::Launch() {
  const std::string log = folder_ + "/log";
  const UniqueFd output(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!output.valid()) return errors::FromErrno(errno, log);
  const std::string client_url = "http://" + address_, peer_url = "http://" + peer_address_;
  pid_ = Spawn(
      {"etcd", "--name=one", "--data-dir=" + folder_ + "/data", "--unsafe-no-fsync",
       "--heartbeat-interval=20", "--election-timeout=200", "--listen-client-urls=" + client_url,
       "--advertise-client-urls=" + client_url, "--listen-peer-urls=" + peer_url,
       "--initial-advertise-peer-urls=" + peer_url, "--initial-cluster=one=" + peer_url},
      output.get());
  if (pid_ < 0) return errors::FromErrno(errno, "fork");
  const Status answered = AwaitAnswer();
  if (answered.IsOk()) return answered;
  return errors::Runtime("etcd did not start: {}\n{}", answered.GetMsg(), ReadFile(log, 2000));
}

Status EtcdProcess::AwaitAnswer() {
  ASSIGN_OR_RETURN(const auto store, ConnectEtcd({.endpoints = address_}));
  const TimePoint give_up = Clock::Steady().Now() + kStartTimeout;
  while (true) {
    const TimePoint round = Clock::Steady().Now() + std::chrono::milliseconds(500);
    const auto answer = store->RangePrefix("x", 0, {.deadline = std::min(round, give_up)});
    if (answer.ok() || Clock::Steady().Now() >= give_up) return answer.status();
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return errors::Runtime("it ended by itself");
    }
  }
}

void EtcdProcess::Kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

Status EtcdProcess::Restart() {
  Kill();
  address_ = first_address_;
  return Launch();
}

Status EtcdProcess::RestartElsewhere() {
  Kill();
  ASSIGN_OR_RETURN(address_, FreeAddress());
  return Launch();
}

void EtcdProcess::Pause() {
  ::kill(pid_, SIGSTOP);
  ::waitpid(pid_, nullptr, WUNTRACED);
}

void EtcdProcess::Resume() { ::kill(pid_, SIGCONT); }

Result<std::string> EtcdProcess::Ctl(const std::vector<std::string>& arguments) const {
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return errors::FromErrno(errno, "pipe");
  const UniqueFd reader(pipe_fds[0]);
  UniqueFd writer(pipe_fds[1]);
  std::vector<std::string> words{"etcdctl", "--endpoints=" + address_};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const pid_t pid = Spawn(std::move(words), writer.get());
  if (pid < 0) return errors::FromErrno(errno, "fork");
  writer.reset();
  std::string printed;
  char buffer[4096];
  for (ssize_t size; (size = ::read(reader.get(), buffer, sizeof(buffer))) > 0;) {
    printed.append(buffer, static_cast<size_t>(size));
  }
  int exit = 0;
  ::waitpid(pid, &exit, 0);
  if (exit != 0) return errors::Runtime("etcdctl {} failed: {}", arguments.front(), printed);
  return printed;
}

}  // namespace datasystem::cluster
