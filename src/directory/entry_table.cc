#include "directory/entry_table.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"

namespace datasystem::directory {
namespace {

// Far more than a worker that holds objects has memory for; only address space is taken.
constexpr size_t kEntriesMax = size_t{1} << 28;
constexpr size_t kBlockBytesMax = size_t{12} << 30;
// A chain of n ids has n / 12 overflow lines, and for a moment twice as many while it is split.
constexpr size_t kIdsPerOverflowLine = 6;
constexpr size_t kSpareLines = 128;
constexpr size_t kIdsPerHomeLine = 8;

}  // namespace

EntryTable::EntryTable()
    : blocks_(kBlockBytesMax),
      lines_((kEntriesMax / kIdsPerHomeLine + kSpareLines) * sizeof(TableLine)),
      overflow_((kEntriesMax / kIdsPerOverflowLine + kSpareLines) * sizeof(TableLine)) {
  NewTable();
}

void EntryTable::NewTable() {
  table_.reset();
  line_count_ = 0;
  CHECK(lines_.Extend(kSpareLines * sizeof(TableLine)));
  TableMemory memory;
  memory.lines = {reinterpret_cast<TableLine*>(lines_.data()),
                  lines_.limit_bytes() / sizeof(TableLine)};
  memory.overflow = {reinterpret_cast<TableLine*>(overflow_.data()),
                     overflow_.limit_bytes() / sizeof(TableLine)};
  memory.line_count = &line_count_;
  table_.emplace(memory, HashOf{this});
}

void EntryTable::Clear() {
  blocks_.Clear();
  lines_.Clear();
  overflow_.Clear();
  units_used_ = 1;
  free_.fill(0);
  holders_.clear();
  indices_.clear();
  others_.clear();
  NewTable();
}

uint64_t EntryTable::HashOf::operator()(uint32_t id) const { return HashKey(entries->KeyOf(id)); }

size_t EntryTable::UnitsFor(size_t key_size, bool has_expiry) {
  return (sizeof(Head) + (has_expiry ? sizeof(int64_t) : 0) + key_size + kUnit - 1) / kUnit;
}

EntryTable::Id EntryTable::TakeBlock(size_t units) {
  if (const Id id = free_[units]; id != 0) {
    std::memcpy(&free_[units], &At(id), sizeof(Id));
    return id;
  }
  if (units_used_ + units > blocks_.limit_bytes() / kUnit ||
      !blocks_.Extend((units_used_ + units) * kUnit)) {
    return 0;
  }
  const Id id = units_used_;
  units_used_ += static_cast<uint32_t>(units);
  return id;
}

void EntryTable::GiveBackBlock(Id id, size_t units) {
  std::memcpy(static_cast<void*>(&At(id)), &free_[units], sizeof(Id));
  free_[units] = id;
}

// What an insertion may touch: a line more, and overflow lines.
bool EntryTable::MakeRoomInTable() {
  const size_t ids = table_->size() + 1;
  return ids <= kEntriesMax &&
         lines_.Extend((ids / kIdsPerHomeLine + kSpareLines) * sizeof(TableLine)) &&
         overflow_.Extend((ids / kIdsPerOverflowLine + kSpareLines) * sizeof(TableLine));
}

EntryTable::Id EntryTable::Find(std::string_view key) const {
  return table_->Find(HashKey(key), [&](Id id) { return KeyOf(id) == key; });
}

EntryTable::Id EntryTable::Insert(std::string_view key, uint64_t version, TimePoint expires_at,
                                  HolderId holder) {
  if (key.size() > kKeyMax || !MakeRoomInTable()) return 0;
  const size_t units = UnitsFor(key.size(), expires_at != TimePoint::max());
  const Id id = TakeBlock(units);
  if (id == 0) return 0;
  At(id) = {};
  At(id).owner = IndexOf(holder);
  SetHead(id, key.size(), expires_at);
  SetVersion(id, version);
  std::copy(key.begin(), key.end(), const_cast<char*>(KeyOf(id).data()));
  if (table_->Insert(HashKey(key), id)) return id;
  GiveBackBlock(id, units);
  return 0;
}

void EntryTable::Erase(Id id) {
  DropOthers(id);
  const std::string_view key = KeyOf(id);
  table_->Erase(HashKey(key), id);
  GiveBackBlock(id, UnitsFor(key.size(), At(id).has_expiry));
}

std::string_view EntryTable::KeyOf(Id id) const {
  const Head& head = At(id);
  return {Behind(id) + (head.has_expiry ? sizeof(int64_t) : 0), head.key_size};
}

uint64_t EntryTable::VersionOf(Id id) const {
  return uint64_t{At(id).version_high} << 32 | At(id).version_low;
}

void EntryTable::SetVersion(Id id, uint64_t version) {
  At(id).version_low = static_cast<uint32_t>(version);
  At(id).version_high = static_cast<uint32_t>(version >> 32);
}

TimePoint EntryTable::ExpiryOf(Id id) const {
  if (!At(id).has_expiry) return TimePoint::max();
  int64_t ticks = 0;
  std::memcpy(&ticks, Behind(id), sizeof(ticks));
  return TimePoint(Duration(ticks));
}

void EntryTable::SetHead(Id id, size_t key_size, TimePoint expires_at) {
  At(id).key_size = static_cast<uint16_t>(key_size);
  At(id).has_expiry = expires_at != TimePoint::max();
  if (At(id).has_expiry) WriteExpiry(id, expires_at);
}

void EntryTable::WriteExpiry(Id id, TimePoint expires_at) {
  const int64_t ticks = expires_at.time_since_epoch().count();
  std::memcpy(Behind(id), &ticks, sizeof(ticks));
}

EntryTable::Id EntryTable::SetExpiry(Id id, TimePoint expires_at) {
  const bool had_expiry = At(id).has_expiry;
  const bool will_have = expires_at != TimePoint::max();
  if (had_expiry == will_have) {
    if (will_have) WriteExpiry(id, expires_at);
    return id;
  }
  const size_t key_size = At(id).key_size;
  const Id moved = TakeBlock(UnitsFor(key_size, will_have));
  if (moved == 0) {
    // Only an expiry that is new needs a larger block; for one that goes, there is always another
    // way.
    if (had_expiry) WriteExpiry(id, TimePoint::max());
    return id;
  }
  const std::string_view key = KeyOf(id);
  At(moved) = At(id);
  SetHead(moved, key_size, expires_at);
  std::copy(key.begin(), key.end(), const_cast<char*>(KeyOf(moved).data()));
  if (auto others = others_.extract(id)) {
    others.key() = moved;
    others_.insert(std::move(others));
  }
  table_->Replace(HashKey(key), id, moved);
  GiveBackBlock(id, UnitsFor(key_size, had_expiry));
  return moved;
}

EntryTable::HolderIndex EntryTable::IndexOf(HolderId holder) {
  if (const auto known = indices_.find(holder); known != indices_.end()) return known->second;
  size_t index =
      static_cast<size_t>(std::find(holders_.begin(), holders_.end(), 0) - holders_.begin());
  if (index == holders_.size()) holders_.push_back(0);
  CHECK(index <= UINT16_MAX);  // they are members of the cluster
  holders_[index] = holder;
  indices_[holder] = static_cast<HolderIndex>(index);
  return static_cast<HolderIndex>(index);
}

std::vector<HolderId> EntryTable::HoldersOf(Id id) const {
  std::vector<HolderId> all(1, OwnerOf(id));
  if (At(id).is_shared) {
    for (const HolderIndex index : others_.at(id)) all.push_back(holders_[index]);
  }
  return all;
}

bool EntryTable::Holds(Id id, HolderId holder) const {
  const auto known = indices_.find(holder);
  if (known == indices_.end()) return false;
  if (At(id).owner == known->second) return true;
  if (!At(id).is_shared) return false;
  const std::vector<HolderIndex>& others = others_.at(id);
  return std::find(others.begin(), others.end(), known->second) != others.end();
}

void EntryTable::DropOthers(Id id) {
  if (!At(id).is_shared) return;
  others_.erase(id);
  At(id).is_shared = false;
}

void EntryTable::SetOnlyHolder(Id id, HolderId holder) {
  DropOthers(id);
  At(id).owner = IndexOf(holder);
}

void EntryTable::AddHolder(Id id, HolderId holder) {
  if (Holds(id, holder)) return;
  others_[id].push_back(IndexOf(holder));
  At(id).is_shared = true;
}

void EntryTable::MakeOwner(Id id, HolderId holder) {
  AddHolder(id, holder);
  const HolderIndex index = IndexOf(holder);
  if (At(id).owner == index) return;
  std::vector<HolderIndex>& others = others_.at(id);
  std::erase(others, index);
  others.insert(others.begin(), At(id).owner);
  At(id).owner = index;
}

bool EntryTable::RemoveHolder(Id id, HolderId holder) {
  if (!Holds(id, holder)) return true;
  if (!At(id).is_shared) return false;
  std::vector<HolderIndex>& others = others_.at(id);
  const HolderIndex index = IndexOf(holder);
  if (At(id).owner == index) {
    At(id).owner = others.front();
    others.erase(others.begin());
  } else {
    std::erase(others, index);
  }
  if (others.empty()) DropOthers(id);
  return true;
}

}  // namespace datasystem::directory
