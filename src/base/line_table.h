// A hash table of 32-bit ids that never stops to rehash: it grows one cache line at a time (linear hashing,
// Litwin 1980), so a table of ten million ids has no pause and its fill is always the same.
//
// A line holds up to 12 ids, a byte of each one's hash, and the number of an overflow line. A lookup reads one
// line, sometimes two. The ids name things elsewhere that have keys; the table asks for the key of an id.
//
// Memory: the caller's, zeroed, and as large as it may ever become; untouched pages cost nothing when it is a
//   sparse mapping. A line for every 8 ids and an overflow line for every 12 are always enough; in use are about
//   10 bytes an id.
// Threads: one writer. Other threads, and other processes that map the memory, may read at any time through
//   LineTableView, with two things to know:
//   - It may miss an id that is moving at this moment. It never finds one that is not, or was not, in the table.
//   - An id that was read can be gone the next moment. Place::Holds() asks again. Id words are sequentially
//     consistent, which is what hazard pointers (shm/index_reader.h) build on.
//   Lines are never used for anything else, so a reader that lags behind reads ids that are or were ids.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"

namespace datasystem {

constexpr size_t kIdsPerLine = 12;

struct alignas(64) TableLine {
  std::array<std::atomic<uint32_t>, kIdsPerLine> ids;  // 0: free
  std::array<std::atomic<uint8_t>, kIdsPerLine> tags;  // hints: a reader may see one that is late
  std::atomic<uint32_t> next;                          // overflow line, counted from 1; 0: none
};
static_assert(sizeof(TableLine) == 64);

// Where a table is. All of it may be shared memory.
struct TableMemory {
  std::span<TableLine> lines;
  std::span<TableLine> overflow;
  std::atomic<uint32_t>* line_count = nullptr;  // of `lines`, in use; 0 in a table that is new
};

namespace table_detail {

inline uint8_t TagOf(uint64_t hash) { return static_cast<uint8_t>(hash >> 56); }

// Linear hashing: with n lines, those that have been split already use one bit more of the hash.
inline uint32_t HomeOf(uint64_t hash, uint32_t lines) {
  const uint32_t low = static_cast<uint32_t>(hash);
  const uint32_t ceiling = std::bit_ceil(lines);
  const uint32_t home = low & (ceiling - 1);
  return home < lines ? home : low & (ceiling / 2 - 1);
}

// No chain is longer: keys that were chosen to have one hash are refused beyond, and a reader of damaged memory
// ends there.
constexpr int kChainMax = 64;

}  // namespace table_detail

// Reads a table, also one that somebody else is changing. Checks every index, believes nothing.
class LineTableView {
 public:
  LineTableView(std::span<const TableLine> lines, std::span<const TableLine> overflow,
                const std::atomic<uint32_t>* line_count)
      : lines_(lines), overflow_(overflow), line_count_(line_count) {}

  // A word of the table that held `id` when it was read.
  class Place {
   public:
    Place(const std::atomic<uint32_t>* word, uint32_t id) : word_(word), id_(id) {}
    uint32_t id() const { return id_; }
    bool Holds() const { return word_->load(std::memory_order_seq_cst) == id_; }

   private:
    const std::atomic<uint32_t>* word_;
    uint32_t id_;
  };

  // Calls `visit(Place)` for the ids that may have this hash until it returns true; whether it did.
  template <typename Visit>
  bool Find(uint64_t hash, Visit visit) const {
    const uint32_t count = line_count_->load(std::memory_order_acquire);
    if (count == 0 || count > lines_.size()) return false;
    const TableLine* line = &lines_[table_detail::HomeOf(hash, count)];
    const uint8_t tag = table_detail::TagOf(hash);
    for (int length = 0; length < table_detail::kChainMax; ++length) {
      for (size_t i = 0; i < kIdsPerLine; ++i) {
        if (line->tags[i].load(std::memory_order_relaxed) != tag) continue;
        const uint32_t id = line->ids[i].load(std::memory_order_seq_cst);
        if (id != 0 && visit(Place(&line->ids[i], id))) return true;
      }
      const uint32_t next = line->next.load(std::memory_order_acquire);
      if (next == 0 || next > overflow_.size()) return false;
      line = &overflow_[next - 1];
    }
    return false;
  }

 private:
  const std::span<const TableLine> lines_;
  const std::span<const TableLine> overflow_;
  const std::atomic<uint32_t>* const line_count_;
};

// The writer. HashOf: uint64_t(uint32_t id), the hash of the key of an id that is in the table.
template <typename HashOf>
class LineTable {
 public:
  LineTable(const TableMemory& memory, HashOf hash_of)
      : memory_(memory), view_(memory.lines, memory.overflow, memory.line_count), hash_of_(std::move(hash_of)) {
    CHECK(!memory_.lines.empty() && memory_.line_count->load() == 0);
    memory_.line_count->store(1, std::memory_order_release);
  }

  size_t size() const { return size_; }
  const LineTableView& view() const { return view_; }

  // The first id with this hash for which `matches(id)` is true; 0 if there is none.
  template <typename Matches>
  uint32_t Find(uint64_t hash, Matches matches) const {
    uint32_t found = 0;
    view_.Find(hash, [&](const LineTableView::Place& place) {
      if (!matches(place.id())) return false;
      found = place.id();
      return true;
    });
    return found;
  }

  // False, and nothing changed, when the overflow lines are used up, or hundreds of ids have about this hash.
  // `id` is not 0 and not in the table.
  bool Insert(uint64_t hash, uint32_t id) {
    if (!Put(Home(hash), table_detail::TagOf(hash), id)) return false;
    ++size_;
    // One line a time keeps up with one id a time. Past the last line the chains just grow longer.
    if (size_ > uint64_t{Count()} * kFill && Count() < memory_.lines.size()) SplitNext();
    return true;
  }

  // In one step: who looks finds the one or the other. Both have this hash; `old_id` is in the table.
  void Replace(uint64_t hash, uint32_t old_id, uint32_t new_id) {
    Slot(hash, old_id)->store(new_id, std::memory_order_seq_cst);
  }

  // `id` is in the table.
  void Erase(uint64_t hash, uint32_t id) {
    Take(Home(hash), Slot(hash, id));
    --size_;
  }

  // `visit(id)` must not change the table.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (uint32_t i = 0; i < Count(); ++i) ForEachInLine(i, visit);
  }
  // For walks in pieces: the ids of one of lines() lines, with those of its overflow. Between pieces the table
  // may change; an id that moves to a new line comes up twice at worst.
  template <typename Visit>
  void ForEachInLine(uint32_t number, Visit visit) const {
    for (const TableLine* line = &memory_.lines[number]; line != nullptr; line = Next(*line)) {
      for (const auto& word : line->ids) {
        const uint32_t id = word.load(std::memory_order_relaxed);
        if (id != 0) visit(id);
      }
    }
  }
  uint32_t lines() const { return Count(); }

 private:
  // Ids a line on average. Lines that wait for their split hold up to twice that, so more would mean long chains.
  static constexpr uint64_t kFill = 8;

  uint32_t Count() const { return memory_.line_count->load(std::memory_order_relaxed); }
  TableLine& Home(uint64_t hash) const { return memory_.lines[table_detail::HomeOf(hash, Count())]; }
  TableLine* Next(const TableLine& line) const {
    const uint32_t next = line.next.load(std::memory_order_relaxed);
    return next == 0 ? nullptr : &memory_.overflow[next - 1];
  }

  std::atomic<uint32_t>* Slot(uint64_t hash, uint32_t id) const {
    for (TableLine* line = &Home(hash); line != nullptr; line = Next(*line)) {
      for (auto& word : line->ids) {
        if (word.load(std::memory_order_relaxed) == id) return &word;
      }
    }
    CHECK(false);
    return nullptr;
  }

  // Chains are compact: only the last line has free places.
  bool Put(TableLine& home, uint8_t tag, uint32_t id) {
    TableLine* last = &home;
    int length = 1;
    for (TableLine* next = Next(home); next != nullptr; next = Next(*last)) {
      last = next;
      ++length;
    }
    for (size_t i = 0; i < kIdsPerLine; ++i) {
      if (last->ids[i].load(std::memory_order_relaxed) != 0) continue;
      last->tags[i].store(tag, std::memory_order_relaxed);
      last->ids[i].store(id, std::memory_order_seq_cst);
      return true;
    }
    if (length == table_detail::kChainMax) return false;
    const uint32_t number = TakeOverflow();
    if (number == 0) return false;
    TableLine& line = memory_.overflow[number - 1];
    line.tags[0].store(tag, std::memory_order_relaxed);
    line.ids[0].store(id, std::memory_order_seq_cst);
    last->next.store(number, std::memory_order_release);
    return true;
  }

  // Frees a word; the last id of the chain takes its place.
  void Take(TableLine& home, std::atomic<uint32_t>* word) {
    TableLine* before = nullptr;
    TableLine* last = &home;
    while (TableLine* next = Next(*last)) {
      before = last;
      last = next;
    }
    size_t used = 0;
    while (used < kIdsPerLine && last->ids[used].load(std::memory_order_relaxed) != 0) ++used;
    CHECK(used > 0);
    auto& filler = last->ids[used - 1];
    if (&filler != word) {
      // Both words hold the filler for a moment: a reader that missed the one finds the other.
      TagAt(home, word).store(last->tags[used - 1].load(std::memory_order_relaxed), std::memory_order_relaxed);
      word->store(filler.load(std::memory_order_relaxed), std::memory_order_seq_cst);
    }
    filler.store(0, std::memory_order_seq_cst);
    if (used == 1 && before != nullptr) {
      const uint32_t number = before->next.exchange(0, std::memory_order_acq_rel);
      GiveBackOverflow(number);
    }
  }

  std::atomic<uint8_t>& TagAt(TableLine& home, const std::atomic<uint32_t>* word) const {
    for (TableLine* line = &home; line != nullptr; line = Next(*line)) {
      if (word >= line->ids.data() && word < line->ids.data() + kIdsPerLine) {
        return line->tags[static_cast<size_t>(word - line->ids.data())];
      }
    }
    CHECK(false);
    return home.tags[0];
  }

  void SplitNext() {
    const uint32_t count = Count();
    TableLine& old_home = memory_.lines[count - std::bit_floor(count)];
    TableLine& new_home = memory_.lines[count];
    // For a while both chains may be as long as the old one.
    size_t spare = memory_.overflow.size() - overflow_used_ + free_overflow_count_;
    for (const TableLine* line = &old_home; line != nullptr; line = Next(*line)) {
      if (spare-- == 0) return;
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (TableLine* line = &old_home; line != nullptr && !moved; line = Next(*line)) {
        for (size_t i = 0; i < kIdsPerLine; ++i) {
          const uint32_t id = line->ids[i].load(std::memory_order_relaxed);
          if (id == 0) continue;
          const uint64_t hash = hash_of_(id);
          if (table_detail::HomeOf(hash, count + 1) != count) continue;
          CHECK(Put(new_home, line->tags[i].load(std::memory_order_relaxed), id));
          Take(old_home, &line->ids[i]);
          moved = true;  // the chain has changed under us: once more from its start
          break;
        }
      }
    }
    memory_.line_count->store(count + 1, std::memory_order_release);
  }

  uint32_t TakeOverflow() {
    if (free_overflow_ != 0) {
      const uint32_t number = free_overflow_;
      // A free line keeps the next free one in its tags, which no reader follows.
      TableLine& line = memory_.overflow[number - 1];
      free_overflow_ = FreeLink(line);
      --free_overflow_count_;
      return number;
    }
    if (overflow_used_ == memory_.overflow.size()) return 0;
    return ++overflow_used_;
  }

  void GiveBackOverflow(uint32_t number) {
    SetFreeLink(memory_.overflow[number - 1], free_overflow_);
    free_overflow_ = number;
    ++free_overflow_count_;
  }

  static uint32_t FreeLink(const TableLine& line) {
    uint32_t link = 0;
    for (int i = 0; i < 4; ++i) link |= uint32_t{line.tags[i].load(std::memory_order_relaxed)} << (8 * i);
    return link;
  }
  static void SetFreeLink(TableLine& line, uint32_t link) {
    for (int i = 0; i < 4; ++i) line.tags[i].store(static_cast<uint8_t>(link >> (8 * i)), std::memory_order_relaxed);
  }

  const TableMemory memory_;
  const LineTableView view_;
  const HashOf hash_of_;
  size_t size_ = 0;
  uint32_t overflow_used_ = 0;
  uint32_t free_overflow_ = 0;  // head of the list
  uint32_t free_overflow_count_ = 0;
};

}  // namespace datasystem
