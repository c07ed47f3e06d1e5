// The messages of session.proto as C++ structs. Encode appends nothing but the message; Decode accepts
// anything that came from the wire: unknown fields are skipped, malformed bytes give kInvalid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace datasystem::proto {

constexpr uint32_t kSessionProtocolMin = 2;
constexpr uint32_t kSessionProtocolMax = 2;

enum class SessionMessage : uint16_t {
  kHello = 1,
  kHelloReply = 2,
  kStatusReply = 3,
  kSet = 10,      // -> kSetReply
  kCreate = 11,   // -> kCreateReply
  kCreateReply = 12,
  kSetReply = 13,
  kAbandon = 14,  // no answer
  kGet = 20,      // -> kGetReply
  kGetReply = 21,
  kRelease = 22,  // no answer
  kDelete = 30,   // -> kDeleteReply
  kDeleteReply = 31,
  kExist = 32,    // -> kExistReply
  kExistReply = 33,
  kExpire = 34,   // -> kExpireReply
  kExpireReply = 35,
  kSizes = 36,    // -> kSizesReply
  kSizesReply = 37,
  kHealth = 40,   // -> kStatusReply; empty body
  kReport = 41,   // -> kReportReply; empty body
  kReportReply = 42,
};

// Every message has:  std::string Encode() const;  static Result<M> Decode(std::string_view body);
struct Hello {
  uint32_t protocol_min = kSessionProtocolMin;
  uint32_t protocol_max = kSessionProtocolMax;
  std::string client_version;
  uint64_t process_id = 0;
  uint64_t session_id = 0;
  uint64_t session_token = 0;
  bool want_segments = false;
  bool want_channel = false;

  std::string Encode() const;
  static Result<Hello> Decode(std::string_view body);
};

enum class SegmentKind : uint32_t { kData = 0, kIndex = 1, kMarks = 2, kControl = 3 };

struct SegmentInfo {
  uint32_t id = 0;
  uint64_t size_bytes = 0;
  SegmentKind kind = SegmentKind::kData;  // one that we do not know is refused
};

struct HelloReply {
  Status status;
  uint32_t protocol = 0;
  std::string worker_version;
  uint64_t worker_incarnation = 0;
  uint64_t session_id = 0;
  uint64_t session_token = 0;
  std::string unix_socket_path;
  uint64_t inline_threshold_bytes = 0;
  std::vector<SegmentInfo> segments;
  uint32_t channel = 0;  // its number plus 1

  std::string Encode() const;
  static Result<HelloReply> Decode(std::string_view body);
};

// The same as shm::Location, which this layer does not know.
struct Location {
  uint32_t segment = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct SetParam {
  uint32_t write_mode = 0;
  uint32_t ttl_second = 0;
  uint32_t existence = 0;
};

struct StatusReply {
  Status status;

  std::string Encode() const;
  static Result<StatusReply> Decode(std::string_view body);
};

struct CreateRequest {
  std::vector<uint64_t> sizes;

  std::string Encode() const;
  static Result<CreateRequest> Decode(std::string_view body);
};

struct CreateItem {
  Status status;
  uint64_t buffer_id = 0;
  Location location;
};

struct CreateReply {
  Status status;
  std::vector<CreateItem> items;

  std::string Encode() const;
  static Result<CreateReply> Decode(std::string_view body);
};

struct SetItem {
  std::string key;
  uint64_t size = 0;
  uint64_t buffer_id = 0;  // 0: the value is in the payload
};

struct SetRequest {
  std::vector<SetItem> items;
  SetParam param;
  uint32_t timeout_ms = 0;
  bool all_or_nothing = false;
  uint64_t lease_size = 0;

  std::string Encode() const;
  static Result<SetRequest> Decode(std::string_view body);
};

struct Lease {
  uint32_t slot = 0;
  uint64_t buffer_id = 0;  // 0: none
  Location location;
};

struct SetReply {
  Status status;
  std::vector<Status> items;
  Lease lease;

  std::string Encode() const;
  static Result<SetReply> Decode(std::string_view body);
};

struct AbandonRequest {
  std::vector<uint64_t> buffer_ids;

  std::string Encode() const;
  static Result<AbandonRequest> Decode(std::string_view body);
};

struct GetRequest {
  std::vector<std::string> keys;
  uint32_t timeout_ms = 0;
  uint32_t sub_timeout_ms = 0;
  // Slices: one of each per key, or none (Decode refuses anything else).
  std::vector<uint64_t> offsets;
  std::vector<uint64_t> sizes;
  bool reads_index = false;

  std::string Encode() const;
  static Result<GetRequest> Decode(std::string_view body);
};

struct GetItem {
  Status status;
  uint64_t size = 0;
  uint64_t pin_id = 0;  // 0: the value is in the payload, unless it is `here`
  Location location;
  bool here = false;
};

struct GetReply {
  Status status;
  std::vector<GetItem> items;

  std::string Encode() const;
  static Result<GetReply> Decode(std::string_view body);
};

struct ReleaseRequest {
  std::vector<uint64_t> pin_ids;

  std::string Encode() const;
  static Result<ReleaseRequest> Decode(std::string_view body);
};

struct DeleteRequest {
  std::vector<std::string> keys;
  uint32_t timeout_ms = 0;

  std::string Encode() const;
  static Result<DeleteRequest> Decode(std::string_view body);
};

struct DeleteReply {
  Status status;
  std::vector<Status> items;

  std::string Encode() const;
  static Result<DeleteReply> Decode(std::string_view body);
};

struct ExistRequest {
  std::vector<std::string> keys;
  uint32_t timeout_ms = 0;

  std::string Encode() const;
  static Result<ExistRequest> Decode(std::string_view body);
};

struct ExistReply {
  Status status;
  std::vector<bool> exists;

  std::string Encode() const;
  static Result<ExistReply> Decode(std::string_view body);
};

struct ExpireRequest {
  std::vector<std::string> keys;
  uint32_t ttl_second = 0;
  uint32_t timeout_ms = 0;

  std::string Encode() const;
  static Result<ExpireRequest> Decode(std::string_view body);
};

struct ExpireReply {
  Status status;
  std::vector<Status> items;

  std::string Encode() const;
  static Result<ExpireReply> Decode(std::string_view body);
};

struct SizesRequest {
  std::vector<std::string> keys;
  uint32_t timeout_ms = 0;

  std::string Encode() const;
  static Result<SizesRequest> Decode(std::string_view body);
};

struct SizeItem {
  Status status;
  uint64_t size = 0;
};

struct SizesReply {
  Status status;
  std::vector<SizeItem> items;

  std::string Encode() const;
  static Result<SizesReply> Decode(std::string_view body);
};

struct ReportReply {
  Status status;
  std::string json;

  std::string Encode() const;
  static Result<ReportReply> Decode(std::string_view body);
};

}  // namespace datasystem::proto
