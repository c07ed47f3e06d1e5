#include "client/scripted_worker.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "shm/fd_passing.h"

namespace datasystem::client {
namespace {

using proto::SessionMessage;

bool ReadAll(int socket, void* to, size_t size) {
  return size == 0 || ::recv(socket, to, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

std::string Frame(SessionMessage type, uint64_t request_id, const std::string& body,
                  const std::string& payload) {
  const auto header = session::EncodeFrameHeader({.type = static_cast<uint16_t>(type),
                                                  .request_id = request_id,
                                                  .body_size = static_cast<uint32_t>(body.size()),
                                                  .payload_size = payload.size()});
  return std::string(reinterpret_cast<const char*>(header.data()), header.size()) + body + payload;
}

}  // namespace

void ScriptedRequest::Answer(SessionMessage answer, std::string answer_body,
                             std::string answer_payload) const {
  AnswerRaw(Frame(answer, request_id, answer_body, answer_payload));
}

void ScriptedRequest::AnswerRaw(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

void ScriptedRequest::HangUp() const { ::shutdown(socket, SHUT_RDWR); }

ScriptedWorker::ScriptedWorker(Options options) : options_(options), port_(options.port) {
  char directory[] = "/tmp/scripted_worker_XXXXXX";
  CHECK(::mkdtemp(directory) != nullptr);
  directory_ = directory;
  socket_path_ = directory_ + "/socket";
  segment_ = UniqueFd(::memfd_create("scripted_worker", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  CHECK(::ftruncate(segment_.get(), kSegmentBytes) == 0);
  CHECK(::fcntl(segment_.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  void* memory =
      ::mmap(nullptr, kSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment_.get(), 0);
  CHECK(memory != MAP_FAILED);
  memory_ = {static_cast<std::byte*>(memory), kSegmentBytes};
  Listen();
}

void ScriptedWorker::Listen() {
  tcp_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(tcp_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  v4.sin_port = htons(port_);
  socklen_t length = sizeof(v4);
  CHECK(::bind(tcp_.get(), reinterpret_cast<sockaddr*>(&v4), sizeof(v4)) == 0);
  CHECK(::listen(tcp_.get(), 256) == 0);
  CHECK(::getsockname(tcp_.get(), reinterpret_cast<sockaddr*>(&v4), &length) == 0);
  port_ = ntohs(v4.sin_port);

  unix_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  socket_path_.copy(local.sun_path, sizeof(local.sun_path) - 1);
  CHECK(::bind(unix_.get(), reinterpret_cast<sockaddr*>(&local), sizeof(local)) == 0);
  CHECK(::listen(unix_.get(), 256) == 0);

  std::lock_guard lock(mutex_);
  threads_.emplace_back([this] { Accept(tcp_.get(), false); });
  threads_.emplace_back([this] { Accept(unix_.get(), true); });
}

void ScriptedWorker::Stop() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    ::shutdown(tcp_.get(), SHUT_RDWR);
    ::shutdown(unix_.get(), SHUT_RDWR);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  tcp_.reset();
  unix_.reset();
  ::munmap(memory_.data(), memory_.size());
  ::unlink(socket_path_.c_str());
  ::rmdir(directory_.c_str());
}

void ScriptedWorker::Accept(int listener, bool over_unix) {
  for (;;) {
    UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    std::lock_guard lock(mutex_);
    if (!socket.valid() || stopping_) return;
    sockets_.insert(socket.get());
    ++state_.connections_open;
    ++state_.connections_seen;
    state_.unix_connections_seen += over_unix ? 1 : 0;
    changed_.notify_all();
    threads_.emplace_back(
        [this, over_unix, fd = socket.release()] { Serve(UniqueFd(fd), over_unix); });
  }
}

void ScriptedWorker::Serve(UniqueFd socket, bool over_unix) {
  std::array<std::byte, session::kFrameHeaderSize> bytes;
  while (ReadAll(socket.get(), bytes.data(), bytes.size())) {
    const auto header = session::DecodeFrameHeader(bytes);
    CHECK(header.ok());
    ScriptedRequest request{.type = static_cast<SessionMessage>(header->type),
                            .request_id = header->request_id,
                            .body = std::string(header->body_size, 0),
                            .payload = std::string(header->payload_size, 0),
                            .socket = socket.get(),
                            .over_unix = over_unix};
    if (!ReadAll(socket.get(), request.body.data(), request.body.size())) break;
    if (!ReadAll(socket.get(), request.payload.data(), request.payload.size())) break;
    std::lock_guard lock(mutex_);
    state_.requests.push_back(request);
    if (script_ == nullptr || !script_(request)) Handle(request);
    changed_.notify_all();
  }
  std::lock_guard lock(mutex_);
  sockets_.erase(socket.get());
  --state_.connections_open;
  changed_.notify_all();
}

void ScriptedWorker::SetScript(Script script) {
  std::lock_guard lock(mutex_);
  script_ = std::move(script);
}

void ScriptedWorker::SetGreetingScript(GreetingScript script) {
  std::lock_guard lock(mutex_);
  greeting_script_ = std::move(script);
}

size_t ScriptedWorker::Count(SessionMessage type) {
  std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const ScriptedRequest& request : state_.requests) count += request.type == type ? 1 : 0;
  return count;
}

bool ScriptedWorker::Eventually(const std::function<bool(const State&)>& done) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return done(state_); });
}

ScriptedWorker::State ScriptedWorker::state() {
  std::lock_guard lock(mutex_);
  return state_;
}

void ScriptedWorker::Greet(const ScriptedRequest& request) {
  const auto hello = proto::Hello::Decode(request.body);
  CHECK(hello.ok());
  const bool joins = hello->session_id != 0;
  proto::HelloReply reply{.protocol = proto::kSessionProtocolMax,
                          .worker_version = "scripted",
                          .worker_incarnation = 77,
                          .session_id = joins ? hello->session_id : next_id_++,
                          .session_token = 4711,
                          .unix_socket_path = options_.shared_memory ? socket_path_ : "",
                          .inline_threshold_bytes = options_.inline_threshold_bytes};
  if (joins && hello->session_token != 4711) reply.status = Status(K_NOT_AUTHORIZED, "wrong token");
  std::vector<int> fds;
  if (hello->want_segments) {
    reply.segments.push_back({.id = kSegmentId, .size_bytes = kSegmentBytes});
    fds.push_back(segment_.get());
  }
  if (greeting_script_ != nullptr) greeting_script_(request.over_unix, reply, fds);
  const std::string frame =
      Frame(SessionMessage::kHelloReply, request.request_id, reply.Encode(), "");
  // Fails when the client has not waited for it.
  (void)shm::SendWithDescriptors(request.socket, std::as_bytes(std::span(frame)), fds);
}

proto::Location ScriptedWorker::Store(std::string_view bytes, uint64_t size) {
  const proto::Location location{.segment = kSegmentId, .offset = memory_used_, .size = size};
  CHECK(memory_used_ + size <= kSegmentBytes);
  memory_used_ += (size + 63) / 64 * 64;
  std::memcpy(memory_.data() + location.offset, bytes.data(), bytes.size());
  return location;
}

proto::Location ScriptedWorker::Place(std::string_view bytes) {
  std::lock_guard lock(mutex_);
  return Store(bytes, bytes.size());
}

void ScriptedWorker::AnswerCreate(const ScriptedRequest& request) {
  proto::CreateReply reply;
  const auto create = proto::CreateRequest::Decode(request.body);
  CHECK(create.ok());
  for (const uint64_t size : create->sizes) {
    proto::CreateItem& item = reply.items.emplace_back();
    item.buffer_id = next_id_++;
    item.location = Store("", size);
    buffers_[item.buffer_id] = item.location;
    state_.unpublished.insert(item.buffer_id);
  }
  request.Answer(SessionMessage::kCreateReply, reply.Encode());
}

void ScriptedWorker::AnswerSet(const ScriptedRequest& request) {
  const auto set = proto::SetRequest::Decode(request.body);
  CHECK(set.ok());
  const auto exists = [&](const proto::SetItem& item) {
    return set->param.existence != 0 && values_.contains(item.key);
  };
  const bool none = set->all_or_nothing && std::ranges::any_of(set->items, exists);
  proto::SetReply reply;
  std::string_view payload = request.payload;
  for (const proto::SetItem& item : set->items) {
    const std::string_view value = payload.substr(0, item.buffer_id == 0 ? item.size : 0);
    payload.remove_prefix(value.size());
    if (none || exists(item)) {
      reply.items.push_back(Status(K_OC_KEY_ALREADY_EXIST, "key " + item.key + " exists"));
      continue;
    }
    reply.items.push_back(Status::OK());
    if (item.buffer_id == 0) {
      values_[item.key] = Store(value, item.size);
    } else {
      CHECK(state_.unpublished.erase(item.buffer_id) == 1);
      values_[item.key] = buffers_[item.buffer_id];
      values_[item.key].size = item.size;
    }
  }
  CHECK(payload.empty());
  request.Answer(SessionMessage::kSetReply, reply.Encode());
}

void ScriptedWorker::AnswerGet(const ScriptedRequest& request) {
  const auto get = proto::GetRequest::Decode(request.body);
  CHECK(get.ok());
  proto::GetReply reply;
  std::string payload;
  for (size_t i = 0; i < get->keys.size(); ++i) {
    proto::GetItem& item = reply.items.emplace_back();
    const auto found = values_.find(get->keys[i]);
    if (found == values_.end()) {
      item.status = Status(K_NOT_FOUND, "no object " + get->keys[i]);
      continue;
    }
    proto::Location location = found->second;
    if (!get->offsets.empty()) {
      if (get->offsets[i] >= location.size) {
        item.status = Status(K_OUT_OF_RANGE, "beyond the end");
        continue;
      }
      location.offset += get->offsets[i];
      location.size -= get->offsets[i];
      if (get->sizes[i] != 0) location.size = std::min(location.size, get->sizes[i]);
    }
    item.size = location.size;
    if (request.over_unix && item.size >= options_.inline_threshold_bytes) {
      item.pin_id = next_id_++;
      item.location = location;
      state_.pins.insert(item.pin_id);
    } else {
      payload.append(reinterpret_cast<const char*>(memory_.data()) + location.offset, item.size);
    }
  }
  request.Answer(SessionMessage::kGetReply, reply.Encode(), payload);
}

void ScriptedWorker::Handle(const ScriptedRequest& request) {
  switch (request.type) {
    case SessionMessage::kHello:
      return Greet(request);
    case SessionMessage::kSet:
      return AnswerSet(request);
    case SessionMessage::kCreate:
      return AnswerCreate(request);
    case SessionMessage::kAbandon: {
      const auto abandon = proto::AbandonRequest::Decode(request.body);
      for (const uint64_t id : abandon->buffer_ids) CHECK(state_.unpublished.erase(id) == 1);
      return;
    }
    case SessionMessage::kGet:
      return AnswerGet(request);
    case SessionMessage::kRelease: {
      const auto release = proto::ReleaseRequest::Decode(request.body);
      for (const uint64_t id : release->pin_ids) CHECK(state_.pins.erase(id) == 1);
      return;
    }
    case SessionMessage::kDelete: {
      const auto request_keys = proto::DeleteRequest::Decode(request.body);
      proto::DeleteReply reply;
      for (const std::string& key : request_keys->keys) {
        values_.erase(key);
        reply.items.push_back(key == "stubborn" ? Status(K_TRY_AGAIN, "not now") : Status::OK());
      }
      return request.Answer(SessionMessage::kDeleteReply, reply.Encode());
    }
    case SessionMessage::kExist: {
      const auto request_keys = proto::ExistRequest::Decode(request.body);
      proto::ExistReply reply;
      for (const std::string& key : request_keys->keys) {
        reply.exists.push_back(values_.contains(key));
      }
      return request.Answer(SessionMessage::kExistReply, reply.Encode());
    }
    case SessionMessage::kExpire: {
      const auto expire = proto::ExpireRequest::Decode(request.body);
      proto::ExpireReply reply;
      for (const std::string& key : expire->keys) {
        reply.items.push_back(values_.contains(key) ? Status::OK()
                                                    : Status(K_NOT_FOUND, "no object " + key));
      }
      return request.Answer(SessionMessage::kExpireReply, reply.Encode());
    }
    case SessionMessage::kSizes: {
      const auto sizes = proto::SizesRequest::Decode(request.body);
      proto::SizesReply reply;
      for (const std::string& key : sizes->keys) {
        proto::SizeItem& item = reply.items.emplace_back();
        const auto found = values_.find(key);
        if (found == values_.end()) {
          item.status = Status(K_NOT_FOUND, "no object " + key);
        } else {
          item.size = found->second.size;
        }
      }
      return request.Answer(SessionMessage::kSizesReply, reply.Encode());
    }
    case SessionMessage::kHealth:
      return request.Answer(SessionMessage::kStatusReply, proto::StatusReply{}.Encode());
    case SessionMessage::kReport:
      return request.Answer(SessionMessage::kReportReply,
                            proto::ReportReply{.json = R"({"version":"scripted"})"}.Encode());
    default:
      request.HangUp();
  }
}

}  // namespace datasystem::client
