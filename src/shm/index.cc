#include "shm/index.h"

#include <cerrno>
#include <cstring>
#include <new>

#include "shm/memory_file.h"
#include "shm/record_heap.h"

namespace datasystem::shm {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kRecordSizeMin = 64;  // with the shortest key
constexpr uint64_t kIdsALine = 8;        // LineTable's fill

uint64_t ToPages(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Status LockForLife(pthread_mutex_t& life) {
  pthread_mutexattr_t kind;
  ::pthread_mutexattr_init(&kind);
  ::pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  int error = ::pthread_mutex_init(&life, &kind);
  ::pthread_mutexattr_destroy(&kind);
  if (error == 0) error = ::pthread_mutex_lock(&life);
  return error == 0 ? Status::OK() : errors::Runtime("no robust mutex in shared memory: {}", std::strerror(error));
}

}  // namespace

struct Index::Memory {
  Memory(MemoryFile index_file, MemoryFile marks_file, IndexHeader& index_header)
      : index(std::move(index_file)),
        marks(std::move(marks_file)),
        header(index_header),
        records(index.bytes().subspan(header.records_offset, header.records_bytes)),
        heap(records) {}
  ~Memory() {
    header.valid_until_ns.store(0, std::memory_order_seq_cst);
    // Of a thread that has ended it is the kernel's, which has told everybody.
    if (::pthread_equal(::pthread_self(), owner)) ::pthread_mutex_unlock(&header.life);
  }

  TableMemory table() const {
    std::byte* const base = index.bytes().data();
    return {.lines = {reinterpret_cast<TableLine*>(base + header.lines_offset), header.lines_bytes / sizeof(TableLine)},
            .overflow = {reinterpret_cast<TableLine*>(base + header.overflow_offset),
                         header.overflow_bytes / sizeof(TableLine)},
            .line_count = &header.line_count};
  }
  std::atomic<uint64_t>& MarkWord(RecordId id) const {
    return reinterpret_cast<std::atomic<uint64_t>*>(marks.bytes().data())[id / 64];
  }

  MemoryFile index;
  MemoryFile marks;
  IndexHeader& header;
  const pthread_t owner = ::pthread_self();  // of the mutex `life`
  const std::span<std::byte> records;
  RecordHeap heap;
};

Result<std::unique_ptr<Index>> Index::Create(const IndexOptions& options) {
  // Ids have 32 bits.
  const uint64_t records_bytes = ToPages(std::min(options.bytes_max, kRecordUnit << 32));
  const uint64_t ids_max = records_bytes / kRecordSizeMin;
  const uint64_t lines_bytes = ToPages((ids_max / kIdsALine + 1) * sizeof(TableLine));
  const uint64_t overflow_bytes = ToPages((ids_max / kIdsPerLine + 2) * sizeof(TableLine));
  const uint64_t size_bytes = kPage + lines_bytes + overflow_bytes + records_bytes;
  ASSIGN_OR_RETURN(MemoryFile index, MemoryFile::Create("datasystem-index", size_bytes, MemoryFile::Others::kRead));
  ASSIGN_OR_RETURN(MemoryFile marks, MemoryFile::Create("datasystem-marks", ToPages(records_bytes / kRecordUnit / 8),
                                                        MemoryFile::Others::kWrite));
  static_assert(sizeof(IndexHeader) <= kPage);
  auto* header = new (index.bytes().data()) IndexHeader;
  header->layout = kIndexLayout;
  header->record_unit = kRecordUnit;
  header->incarnation = options.incarnation;
  header->lines_offset = kPage;
  header->lines_bytes = lines_bytes;
  header->overflow_offset = header->lines_offset + lines_bytes;
  header->overflow_bytes = overflow_bytes;
  header->records_offset = header->overflow_offset + overflow_bytes;
  header->records_bytes = records_bytes;
  RETURN_IF_ERROR(LockForLife(header->life));
  header->magic = kIndexMagic;
  return std::unique_ptr<Index>(
      new Index(std::make_unique<Memory>(std::move(index), std::move(marks), *header)));
}

Index::Index(std::unique_ptr<Memory> memory)
    : memory_(std::move(memory)),
      records_(memory_->records),
      table_(memory_->table(), HashOfRecord{records_.data()}) {}

Index::~Index() { CHECK(memory_->heap.allocated_bytes() == 0); }

void* Index::Allocate(size_t key_size) { return memory_->heap.Allocate(sizeof(Record) + key_size); }

void Index::Free(Record* record) {
  memory_->heap.Free(record, sizeof(Record) + record->key().size());
}

Record* Index::Find(std::string_view key) const {
  const RecordId id = table_.Find(HashKey(key), [&](RecordId candidate) { return At(candidate)->key() == key; });
  return id == 0 ? nullptr : At(id);
}

bool Index::Link(Record* record, Record* old) {
  const uint64_t hash = HashKey(record->key());
  TakeMark(record);  // one that is left from what was here before
  if (old == nullptr) return table_.Insert(hash, IdOf(record));
  DCHECK(old->key() == record->key());
  table_.Replace(hash, IdOf(old), IdOf(record));
  return true;
}

void Index::Unlink(Record* record) { table_.Erase(HashKey(record->key()), IdOf(record)); }

void Index::Mark(const Record* record) {
  const RecordId id = IdOf(record);
  memory_->MarkWord(id).fetch_or(uint64_t{1} << (id % 64), std::memory_order_relaxed);
}

bool Index::TakeMark(const Record* record) {
  const RecordId id = IdOf(record);
  const uint64_t bit = uint64_t{1} << (id % 64);
  std::atomic<uint64_t>& word = memory_->MarkWord(id);
  if ((word.load(std::memory_order_relaxed) & bit) == 0) return false;
  word.fetch_and(~bit, std::memory_order_relaxed);
  return true;
}

void Index::set_valid_until(TimePoint until) {
  const int64_t at = until == TimePoint::min() ? 0 : ToMonotonicNs(until);
  memory_->header.valid_until_ns.store(at, std::memory_order_seq_cst);
}

SegmentHandle Index::index_segment() const {
  return {.fd = memory_->index.fd(), .size_bytes = memory_->index.bytes().size()};
}

SegmentHandle Index::marks_segment() const {
  return {.fd = memory_->marks.fd(), .size_bytes = memory_->marks.bytes().size()};
}

std::span<std::byte> Index::index_bytes() const { return memory_->index.bytes(); }
std::span<std::byte> Index::marks_bytes() const { return memory_->marks.bytes(); }

IndexUsage Index::usage() const {
  return {.bytes_max = memory_->heap.size_bytes(),
          .record_bytes = memory_->heap.allocated_bytes(),
          .table_bytes = uint64_t{table_.lines()} * sizeof(TableLine)};
}

}  // namespace datasystem::shm
