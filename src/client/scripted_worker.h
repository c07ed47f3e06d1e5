// For tests: the worker's end of the session protocol on real sockets, in threads of the test
// process.
//
// It keeps values in a real memfd segment and answers as a worker does, and a script may answer
// otherwise: so it takes the client through what a real worker never says. What it was asked is on
// record.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "proto/session_messages.h"
#include "session/frame.h"

namespace datasystem::client {

struct ScriptedRequest {
  proto::SessionMessage type;
  uint64_t request_id = 0;
  std::string body;
  std::string payload;
  int socket = -1;
  bool over_unix = false;

  void Answer(proto::SessionMessage type, std::string body, std::string payload = "") const;
  // Bytes as they are.
  void AnswerRaw(std::string_view bytes) const;
  // Ends the connection.
  void HangUp() const;
};

struct ScriptedWorkerOptions {
  bool shared_memory = true;
  uint64_t inline_threshold_bytes = 1024;
  uint16_t port = 0;
};

class ScriptedWorker {
 public:
  using Options = ScriptedWorkerOptions;
  static constexpr uint64_t kSegmentBytes = 64 << 20;
  static constexpr uint32_t kSegmentId = 3;

  explicit ScriptedWorker(Options options = {});
  ~ScriptedWorker() { Stop(); }
  // Closes everything, as a killed process does.
  void Stop();

  uint16_t port() const { return port_; }
  std::string name() const { return "127.0.0.1:" + std::to_string(port_); }

  // True: the script has dealt with the request. Called by connection threads, one at a time.
  using Script = std::function<bool(const ScriptedRequest&)>;
  void SetScript(Script script);
  // Changes what a greeting says (after it has been filled in) and which descriptors go with it.
  using GreetingScript =
      std::function<void(bool over_unix, proto::HelloReply&, std::vector<int>& fds)>;
  void SetGreetingScript(GreetingScript script);

  // Puts bytes where the clients of the Unix socket see them.
  proto::Location Place(std::string_view bytes);

  // How many requests of a type came.
  size_t Count(proto::SessionMessage type);
  // Waits (10 s at most) until `done` is true of the state below; false if it does not become so.
  struct State {
    std::vector<ScriptedRequest> requests;
    std::set<uint64_t> pins;
    std::set<uint64_t> unpublished;
    size_t connections_open = 0;
    size_t connections_seen = 0;
    size_t unix_connections_seen = 0;
  };
  bool Eventually(const std::function<bool(const State&)>& done);
  State state();

 private:
  void Listen();
  void Accept(int listener, bool over_unix);
  void Serve(UniqueFd socket, bool over_unix);
  void Greet(const ScriptedRequest& request);
  // All below: under mutex_.
  void Handle(const ScriptedRequest& request);
  void AnswerGet(const ScriptedRequest& request);
  void AnswerCreate(const ScriptedRequest& request);
  void AnswerSet(const ScriptedRequest& request);
  proto::Location Store(std::string_view bytes, uint64_t size);

  const Options options_;
  std::string directory_;
  std::string socket_path_;
  uint16_t port_ = 0;
  UniqueFd tcp_;
  UniqueFd unix_;
  UniqueFd segment_;
  std::span<std::byte> memory_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Script script_;
  GreetingScript greeting_script_;
  State state_;
  std::map<std::string, proto::Location, std::less<>> values_;
  std::map<uint64_t, proto::Location> buffers_;
  uint64_t memory_used_ = 0;
  uint64_t next_id_ = 1;
  bool stopping_ = false;
  std::set<int> sockets_;
  std::vector<std::thread> threads_;
};

}  // namespace datasystem::client
