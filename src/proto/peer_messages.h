// The messages of peer.proto as C++ structs. Decode accepts anything that came from the wire: unknown
// fields are skipped, malformed bytes give kInvalid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace datasystem::proto {

// Two workers can talk when their ranges overlap; registered with the membership.
constexpr uint32_t kPeerProtocolMin = 2;
constexpr uint32_t kPeerProtocolMax = 2;

enum class PeerMessage : uint16_t {
  kGet = 1,
  kFetch = 2,
  kUpdate = 3,
  kInvalidate = 4,
  kPromote = 5,
  kDelete = 6,
  kExist = 7,
  kDropped = 8,
  kCollect = 9,
  kEntries = 10,
  kExpire = 11,
  kSetExpiry = 12,
  kGetMany = 13,
};

// In PeerGet etc. the prefix keeps them apart from the messages of session_messages.h.
struct PeerGet {
  uint64_t epoch = 0;
  std::string key;
  uint32_t wait_ms = 0;
  bool keep_copy = false;
  uint32_t timeout_ms = 0;
  bool size_only = false;

  std::string Encode() const;
  static Result<PeerGet> Decode(std::string_view body);
};

struct PeerFetch {
  uint64_t epoch = 0;
  std::string key;
  uint64_t version = 0;
  uint32_t timeout_ms = 0;
  bool keep_copy = false;
  bool size_only = false;

  std::string Encode() const;
  static Result<PeerFetch> Decode(std::string_view body);
};

struct PeerGetAnswer {
  uint64_t version = 0;
  uint64_t ttl_remaining_ms = 0;
  bool listed = false;
  bool yours = false;
  bool evictable = false;
  uint64_t size = 0;

  std::string Encode() const;
  static Result<PeerGetAnswer> Decode(std::string_view body);
};

struct PeerGetMany {
  struct Item {
    std::string key;
    uint64_t version = 0;
    bool keep_copy = false;
  };
  uint64_t epoch = 0;
  std::vector<Item> items;

  std::string Encode() const;
  static Result<PeerGetMany> Decode(std::string_view body);
};

struct PeerGetManyAnswer {
  enum class Outcome : uint32_t { kValue = 0, kElsewhere = 1, kAbsent = 2, kAlone = 3, kLater = 4 };
  struct Item {
    Outcome outcome = Outcome::kAlone;
    uint64_t version = 0;
    uint64_t ttl_remaining_ms = 0;
    bool listed = false;
    bool evictable = false;
    uint64_t size = 0;
    uint64_t owner = 0;
  };
  std::vector<Item> items;

  std::string Encode() const;
  // Outcomes of a later version are read as kAlone.
  static Result<PeerGetManyAnswer> Decode(std::string_view body);
};

struct PeerUpdate {
  uint64_t epoch = 0;
  std::string key;
  bool only_if_absent = false;
  uint64_t ttl_ms = 0;
  uint32_t timeout_ms = 0;
  uint64_t discarded = 0;

  std::string Encode() const;
  static Result<PeerUpdate> Decode(std::string_view body);
};

struct PeerUpdateAnswer {
  uint64_t version = 0;

  std::string Encode() const;
  static Result<PeerUpdateAnswer> Decode(std::string_view body);
};

// Body of kInvalidate and of kPromote.
struct PeerVersionedKey {
  uint64_t epoch = 0;
  std::string key;
  uint64_t version = 0;

  std::string Encode() const;
  static Result<PeerVersionedKey> Decode(std::string_view body);
};

struct PeerExpire {
  uint64_t epoch = 0;
  std::string key;
  uint64_t ttl_ms = 0;
  uint32_t timeout_ms = 0;

  std::string Encode() const;
  static Result<PeerExpire> Decode(std::string_view body);
};

struct PeerSetExpiry {
  uint64_t epoch = 0;
  std::string key;
  uint64_t version = 0;
  uint64_t ttl_ms = 0;

  std::string Encode() const;
  static Result<PeerSetExpiry> Decode(std::string_view body);
};

struct PeerDelete {
  uint64_t epoch = 0;
  std::string key;
  uint32_t timeout_ms = 0;

  std::string Encode() const;
  static Result<PeerDelete> Decode(std::string_view body);
};

struct PeerDeleteAnswer {
  bool existed = false;

  std::string Encode() const;
  static Result<PeerDeleteAnswer> Decode(std::string_view body);
};

struct PeerExist {
  uint64_t epoch = 0;
  std::vector<std::string> keys;
  uint32_t timeout_ms = 0;

  std::string Encode() const;
  static Result<PeerExist> Decode(std::string_view body);
};

struct PeerExistAnswer {
  std::vector<bool> exists;

  std::string Encode() const;
  static Result<PeerExistAnswer> Decode(std::string_view body);
};

struct PeerEntry {
  std::string key;
  uint64_t version = 0;
  uint64_t size = 0;
  bool primary = false;
  uint64_t ttl_remaining_ms = 0;  // 0 = lives until deleted
  bool withdrawn = false;
};

// Body of kDropped and of kEntries.
struct PeerEntries {
  uint64_t epoch = 0;
  std::vector<PeerEntry> entries;

  std::string Encode() const;
  static Result<PeerEntries> Decode(std::string_view body);
};

struct PeerCollect {
  uint64_t epoch = 0;

  std::string Encode() const;
  static Result<PeerCollect> Decode(std::string_view body);
};

}  // namespace datasystem::proto
