// The entries of a directory shard: key, version, expiry, and who holds the version.
//
// There are as many as there are objects in the cluster, divided by its workers, so they are
// packed: 12 bytes, an expiry only where there is one, and the key, in blocks of whole 16 bytes;
// found through base/line_table.h, which takes some 10 bytes more. A key of 16 bytes costs 32 + 10
// bytes. The second holder of a version, and further ones, are kept aside.
//
// Memory: grows as entries come; blocks of erased entries serve new ones of the same size.
// Threads: the event loop's.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/line_table.h"
#include "directory/growing_memory.h"

namespace datasystem::directory {

// A worker that holds copies, named by the incarnation it registered with.
using HolderId = uint64_t;

class EntryTable {
 public:
  // Names an entry until it is erased or gets a new expiry. 0: none.
  using Id = uint32_t;
  static constexpr size_t kKeyMax = 4096;

  EntryTable();

  Id Find(std::string_view key) const;
  // An entry of a key that has none, with one holder, who is the owner. 0 if there is no room, or
  // the key is longer than kKeyMax.
  Id Insert(std::string_view key, uint64_t version, TimePoint expires_at, HolderId holder);
  void Erase(Id id);
  void Clear();
  size_t size() const { return table_->size(); }

  // `visit(Id)` may erase the entry that it is given, and insert none.
  template <typename Visit>
  void ForEach(Visit visit);

  std::string_view KeyOf(Id id) const;
  uint64_t VersionOf(Id id) const;
  void SetVersion(Id id, uint64_t version);
  TimePoint ExpiryOf(Id id) const;
  // Returns the entry's new id. Where there is no room for an expiry, the entry lives for ever.
  Id SetExpiry(Id id, TimePoint expires_at);
  // Whether the owner knows that its copy must stay.
  bool HasPrimary(Id id) const { return At(id).has_primary; }
  void SetHasPrimary(Id id, bool has) { At(id).has_primary = has; }

  // There is always one, and the first is the owner.
  HolderId OwnerOf(Id id) const { return holders_[At(id).owner]; }
  std::vector<HolderId> HoldersOf(Id id) const;
  bool IsShared(Id id) const { return At(id).is_shared; }  // there is more than one
  bool Holds(Id id, HolderId holder) const;
  void SetOnlyHolder(Id id, HolderId holder);
  // At the end, if it is none yet.
  void AddHolder(Id id, HolderId holder);
  // At the front, also if it is one already.
  void MakeOwner(Id id, HolderId holder);
  // False, and nothing changed, if there is no other: the entry must be erased then.
  bool RemoveHolder(Id id, HolderId holder);
  // Of these no entry speaks any more, or `keep(holder)` is true.
  template <typename Keep>
  void ForgetHoldersBut(Keep keep);

 private:
  // In front of a block; the expiry, if there is one, and the key follow.
  struct Head {
    uint32_t version_low;
    uint32_t version_high;
    uint16_t owner;  // an index into holders_
    uint16_t key_size : 13;
    uint16_t has_primary : 1;
    uint16_t has_expiry : 1;
    uint16_t is_shared : 1;  // there are more holders in others_
  };
  static_assert(sizeof(Head) == 12);
  using HolderIndex = uint16_t;
  static constexpr size_t kUnit = 16;  // bytes; ids count them
  static constexpr size_t kUnitsMax =
      (sizeof(Head) + sizeof(int64_t) + kKeyMax + kUnit - 1) / kUnit;

  struct HashOf {
    const EntryTable* entries;
    uint64_t operator()(uint32_t id) const;
  };

  static size_t UnitsFor(size_t key_size, bool has_expiry);
  Head& At(Id id) const { return *reinterpret_cast<Head*>(blocks_.data() + id * kUnit); }
  char* Behind(Id id) const {
    return reinterpret_cast<char*>(blocks_.data() + id * kUnit + sizeof(Head));
  }
  void NewTable();
  Id TakeBlock(size_t units);
  void GiveBackBlock(Id id, size_t units);
  void SetHead(Id id, size_t key_size, TimePoint expires_at);
  void WriteExpiry(Id id, TimePoint expires_at);
  bool MakeRoomInTable();
  HolderIndex IndexOf(HolderId holder);
  void DropOthers(Id id);

  GrowingMemory blocks_;
  uint32_t units_used_ = 1;  // 0 names no block
  // Free blocks of so many units; each begins with the id of the next one.
  std::array<Id, kUnitsMax + 1> free_{};

  GrowingMemory lines_;
  GrowingMemory overflow_;
  std::atomic<uint32_t> line_count_{0};
  std::optional<LineTable<HashOf>> table_;

  std::vector<HolderId> holders_;  // 0: free
  std::unordered_map<HolderId, HolderIndex> indices_;
  std::unordered_map<Id, std::vector<HolderIndex>> others_;  // all holders but the owner
};

template <typename Visit>
void EntryTable::ForEach(Visit visit) {
  std::vector<Id> ids;  // erasing one moves others of its line
  for (uint32_t line = 0; line < table_->lines(); ++line) {
    ids.clear();
    table_->ForEachInLine(line, [&](Id id) { ids.push_back(id); });
    for (const Id id : ids) visit(id);
  }
}

template <typename Keep>
void EntryTable::ForgetHoldersBut(Keep keep) {
  for (HolderId& holder : holders_) {
    if (holder == 0 || keep(holder)) continue;
    indices_.erase(holder);
    holder = 0;
  }
}

}  // namespace datasystem::directory
