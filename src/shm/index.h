// The worker's end of the index: the table, keys and records that clients read (shm/index_reader.h).
//
// Ownership: the memory of records. A record is made, linked, unlinked, and freed by its user when no reference
//   and no pin is left (store/object_store.h).
// Threads: the event loop's, while clients read.
// Bound: bytes_max for records and keys together; what the table needs beside them is an eighth of that at most.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/hash.h"
#include "base/result.h"
#include "shm/cache_memory.h"
#include "shm/index_layout.h"
#include "shm/pins.h"

namespace datasystem::shm {

struct IndexOptions {
  uint64_t bytes_max = 0;
  uint64_t incarnation = 0;
};

struct IndexUsage {
  uint64_t bytes_max = 0;
  uint64_t record_bytes = 0;  // taken for records and keys
  uint64_t table_bytes = 0;   // lines in use
};

class Index {
 public:
  // The calling thread must live as long as the worker: its end is what tells clients that the worker is dead.
  // kRuntimeError with cause and remedy.
  static Result<std::unique_ptr<Index>> Create(const IndexOptions& options);
  // Every record must be unlinked and freed.
  ~Index();

  // Memory for a Record (or what derives from it) with a key of this size; null when the index is full.
  void* Allocate(size_t key_size);
  // What Allocate gave. Its record is unlinked, and nobody reads it any more.
  void Free(Record* record);

  Record* Find(std::string_view key) const;
  // Makes the record visible. In place of `old`, which has the same key and is linked, if that is given; else no
  // record of the key is linked. False, and nothing has changed, if the table is full (only without `old`).
  bool Link(Record* record, Record* old);
  void Unlink(Record* record);
  size_t size() const { return table_.size(); }
  // `visit` must not link or unlink.
  template <typename Visit>
  void ForEach(Visit visit) const {
    table_.ForEach([&](RecordId id) { visit(*At(id)); });
  }

  RecordId IdOf(const Record* record) const {
    return static_cast<RecordId>((reinterpret_cast<const std::byte*>(record) - records_.data()) / kRecordUnit);
  }
  Record* At(RecordId id) const { return reinterpret_cast<Record*>(records_.data() + uint64_t{id} * kRecordUnit); }

  // Readers leave a mark at what they read; so does the worker when it reads for somebody.
  void Mark(const Record* record);
  // Whether there was one. It is gone then.
  bool TakeMark(const Record* record);

  // Until when clients may read without asking; TimePoint::min(): not at all.
  void set_valid_until(TimePoint until);

  // Descriptors to map the index with, for reading, and the marks.
  SegmentHandle index_segment() const;
  SegmentHandle marks_segment() const;
  // The worker's own mappings of them.
  std::span<std::byte> index_bytes() const;
  std::span<std::byte> marks_bytes() const;
  PinTables& pins() { return pins_; }
  IndexUsage usage() const;

 private:
  struct Memory;
  struct HashOfRecord {
    const std::byte* records;
    uint64_t operator()(RecordId id) const {
      return HashKey(reinterpret_cast<const Record*>(records + uint64_t{id} * kRecordUnit)->key());
    }
  };
  explicit Index(std::unique_ptr<Memory> memory);

  const std::unique_ptr<Memory> memory_;
  const std::span<std::byte> records_;
  LineTable<HashOfRecord> table_;
  PinTables pins_;
};

}  // namespace datasystem::shm
