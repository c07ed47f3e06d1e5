// What the calls of KVClient have in common: the session, deadlines, batches.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <unordered_map>

#include "client/buffer_impl.h"
#include "client/fetch.h"
#include "client/session_slots.h"
#include "client/settings.h"
#include "client/trace_id.h"
#include "datasystem/kv_client.h"
#include "session/key_rules.h"

namespace datasystem {

namespace client {

using View = std::shared_ptr<const ReadOnlyBuffer::Impl>;

struct Slice {
  uint64_t offset = 0;
  uint64_t size = 0;  // 0: to the end
};

}  // namespace client

// Hidden: it would else be exported with the class that it is nested in.
struct [[gnu::visibility("hidden")]] KVClient::Impl {
  ConnectOptions options;
  std::atomic<pid_t> process_id = 0;  // that called Init; 0: none yet
  std::mutex mutex;                   // of Init, ShutDown and Reopen
  client::Settings settings;          // does not change while there is a session
  client::SessionSlots current;
  std::condition_variable reopened;
  bool reopening = false;  // under mutex: one call does it for all

  Status CheckProcess() const;

  // The session, alive or not: for the index, which knows itself whether it may be read.
  Result<std::shared_ptr<client::Session>> Local();

  // What a message needs: the session, made anew if the worker has ended the last one.
  struct Context {
    std::shared_ptr<client::Session> session;
    client::Deadline deadline;
  };
  Result<Context> Remote(std::chrono::milliseconds extra_time = std::chrono::milliseconds(0));
  Result<std::shared_ptr<client::Session>> Reopen(const client::Deadline& deadline);
  Result<std::shared_ptr<client::Session>> OpenUntil(TimePoint until);

  // Runs one call of the public interface that always needs a message.
  template <typename Work>
  Status Run(Work work) {
    auto context = Remote();
    return client::WithTraceId(context.ok() ? work(*context) : context.status());
  }

  // One pointer a key; null where there is no value.
  using View = client::View;
  using Views = std::vector<View>;

  // A value of the index, or what the worker says.
  Status GetView(const std::string& key, View& view, int32_t sub_timeout_ms);
  // A value of the index. Null: ask the worker.
  View FindView(const std::string& key);
  bool FindString(const std::string& key, std::string& val);

  using Slice = client::Slice;
  // `slices`: one of each key, or none at all.
  Status GetViews(const std::vector<std::string>& keys, const std::vector<Slice>& slices,
                  Views& views, int32_t sub_timeout_ms);
  Status GetStrings(const std::vector<std::string>& keys, std::span<std::string> vals,
                    int32_t sub_timeout_ms);

 private:
  struct Missing;
  struct HowToFetch {
    bool reads_index;
    int32_t sub_timeout_ms;
    TimePoint wait_until;
  };
  // Asks the worker for what is missing.
  Status FetchMissing(Missing& missing, int32_t sub_timeout_ms);
  void FetchPart(const Context& context, Missing& missing, std::span<const size_t> part,
                 const HowToFetch& how, std::vector<size_t>& gone);
};

namespace client {

// Makes views of what a Fetch brings. Must stay where it is meanwhile.
class ViewCollector {
 public:
  explicit ViewCollector(std::vector<View>& views) : views_(views) {}

  // Memory for value `index`, which came in a message.
  std::span<std::byte> Place(size_t index, uint64_t size);
  void Take(size_t index, Fetched& item);

 private:
  std::vector<View>& views_;
  std::unordered_map<size_t, std::shared_ptr<ReadOnlyBuffer::Impl>> received_;
};

// A value of the index; null: it is not there, or the worker must be asked.
std::shared_ptr<ReadOnlyBuffer::Impl> FindIn(const std::shared_ptr<Session>& session,
                                             const std::string& key);
Optional<ReadOnlyBuffer> ToReadOnlyBuffer(View view);
Optional<Buffer> ToBuffer(View view);
Status CheckSubTimeout(int32_t sub_timeout_ms);

// The error of an illegal key; in a batch it names the key.
Status CheckKeyOf(const std::vector<std::string>& keys, size_t index);

// One outcome a key, OK for those that are legal. kInvalid: there are no keys.
Result<std::vector<Status>> CheckKeys(const std::vector<std::string>& keys);

// OK when at least one is, else the first.
Status AnySucceeded(const std::vector<Status>& outcomes);
// The same in the words that programs look for when nothing was found.
Status AnyObtained(const std::vector<Status>& outcomes);
std::vector<std::string> FailedOf(const std::vector<std::string>& keys,
                                  const std::vector<Status>& outcomes);
// The indices of those that are OK.
std::vector<size_t> LegalOf(const std::vector<Status>& outcomes);

// Sends the keys at `indices` in as many messages as needed. `encode(keys)` makes a request's body,
// `take(index, items, position)` takes a key's answer; a key without an answer gets the error as
// its outcome.
template <typename Reply, typename Items, typename Encode, typename Take>
void CallForKeys(Session& session, const std::vector<std::string>& keys,
                 std::span<const size_t> indices, proto::SessionMessage request,
                 proto::SessionMessage answer, Items Reply::*items, Encode encode, Take take,
                 std::vector<Status>& outcomes, const Deadline& deadline) {
  while (!indices.empty()) {
    const auto part = indices.first(std::min(indices.size(), session::kBatchMax));
    indices = indices.subspan(part.size());
    std::vector<std::string> asked;
    asked.reserve(part.size());
    for (const size_t index : part) asked.push_back(keys[index]);
    const auto reply =
        Call<Reply>(session, request, encode(std::move(asked)), {}, answer, deadline);
    Status status = reply.status();
    if (reply.ok() && ((*reply).*items).size() != part.size()) {
      status = errors::Runtime("the worker answered for {} of {} keys", ((*reply).*items).size(),
                               part.size());
    }
    for (size_t position = 0; position < part.size(); ++position) {
      if (status.IsError()) {
        outcomes[part[position]] = status;
      } else {
        take(part[position], (*reply).*items, position);
      }
    }
  }
}

}  // namespace client
}  // namespace datasystem
