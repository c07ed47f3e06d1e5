#include "proto/peer_messages.h"

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

namespace datasystem::proto {
namespace {

using protozero::pbf_reader;
using protozero::pbf_writer;
using protozero::pbf_wire_type;

constexpr uint32_t Tag(uint32_t field, pbf_wire_type type) {
  return protozero::tag_and_type(field, type);
}
constexpr uint32_t Number(uint32_t field) { return Tag(field, pbf_wire_type::varint); }
constexpr uint32_t Bytes(uint32_t field) { return Tag(field, pbf_wire_type::length_delimited); }

// Booleans are read as numbers: get_bool looks at the first byte of a varint only.

// Runs `read(reader, out)` for each field; it returns false for a field that it does not know.
// A known field number with another wire type is unknown too, and skipped.
template <typename Message, typename ReadField>
Result<Message> DecodeFields(std::string_view body, const char* name, ReadField read) {
  Message message;
  try {
    pbf_reader reader(body.data(), body.size());
    while (reader.next()) {
      if (!read(reader, message)) reader.skip();
    }
  } catch (const protozero::exception& error) {
    return errors::Invalid("malformed {} message of {} bytes: {}", name, body.size(), error.what());
  }
  return message;
}

PeerEntry DecodeEntry(pbf_reader reader) {
  PeerEntry entry;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Bytes(1): entry.key = reader.get_string(); break;
      case Number(2): entry.version = reader.get_uint64(); break;
      case Number(3): entry.size = reader.get_uint64(); break;
      case Number(4): entry.primary = reader.get_uint64() != 0; break;
      case Number(5): entry.ttl_remaining_ms = reader.get_uint64(); break;
      case Number(6): entry.withdrawn = reader.get_uint64() != 0; break;
      default: reader.skip();
    }
  }
  return entry;
}

PeerGetMany::Item DecodeWanted(pbf_reader reader) {
  PeerGetMany::Item item;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Bytes(1): item.key = reader.get_string(); break;
      case Number(2): item.version = reader.get_uint64(); break;
      case Number(3): item.keep_copy = reader.get_uint64() != 0; break;
      default: reader.skip();
    }
  }
  return item;
}

PeerGetManyAnswer::Item DecodeObtained(pbf_reader reader) {
  using Outcome = PeerGetManyAnswer::Outcome;
  PeerGetManyAnswer::Item item;
  item.outcome = Outcome::kValue;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Number(1): {
        const uint64_t outcome = reader.get_uint64();
        const bool known = outcome <= static_cast<uint64_t>(Outcome::kLater);
        item.outcome = known ? static_cast<Outcome>(outcome) : Outcome::kAlone;
        break;
      }
      case Number(2): item.version = reader.get_uint64(); break;
      case Number(3): item.ttl_remaining_ms = reader.get_uint64(); break;
      case Number(4): item.listed = reader.get_uint64() != 0; break;
      case Number(5): item.evictable = reader.get_uint64() != 0; break;
      case Number(6): item.size = reader.get_uint64(); break;
      case Number(7): item.owner = reader.get_uint64(); break;
      default: reader.skip();
    }
  }
  return item;
}

}  // namespace

std::string PeerGet::Encode() const {
  std::string out;
  pbf_writer writer(out);
  writer.add_uint64(1, epoch);
  writer.add_string(2, key);
  writer.add_uint32(3, wait_ms);
  writer.add_bool(4, keep_copy);
  writer.add_uint32(5, timeout_ms);
  writer.add_bool(6, size_only);
  return out;
}

Result<PeerGet> PeerGet::Decode(std::string_view body) {
  return DecodeFields<PeerGet>(body, "peer get", [](pbf_reader& reader, PeerGet& out) {
    switch (reader.tag_and_type()) {
      case Number(1): out.epoch = reader.get_uint64(); return true;
      case Bytes(2): out.key = reader.get_string(); return true;
      case Number(3): out.wait_ms = reader.get_uint32(); return true;
      case Number(4): out.keep_copy = reader.get_uint64() != 0; return true;
      case Number(5): out.timeout_ms = reader.get_uint32(); return true;
      case Number(6): out.size_only = reader.get_uint64() != 0; return true;
      default: return false;
    }
  });
}

std::string PeerFetch::Encode() const {
  std::string out;
  pbf_writer writer(out);
  writer.add_uint64(1, epoch);
  writer.add_string(2, key);
  writer.add_uint64(3, version);
  writer.add_uint32(4, timeout_ms);
  writer.add_bool(5, keep_copy);
  writer.add_bool(6, size_only);
  return out;
}

Result<PeerFetch> PeerFetch::Decode(std::string_view body) {
  return DecodeFields<PeerFetch>(body, "peer fetch", [](pbf_reader& reader, PeerFetch& out) {
    switch (reader.tag_and_type()) {
      case Number(1): out.epoch = reader.get_uint64(); return true;
      case Bytes(2): out.key = reader.get_string(); return true;
      case Number(3): out.version = reader.get_uint64(); return true;
      case Number(4): out.timeout_ms = reader.get_uint32(); return true;
      case Number(5): out.keep_copy = reader.get_uint64() != 0; return true;
      case Number(6): out.size_only = reader.get_uint64() != 0; return true;
      default: return false;
    }
  });
}

std::string PeerGetAnswer::Encode() const {
  std::string out;
  pbf_writer writer(out);
  writer.add_uint64(1, version);
  writer.add_uint64(2, ttl_remaining_ms);
  writer.add_bool(3, listed);
  writer.add_bool(4, yours);
  writer.add_bool(5, evictable);
  writer.add_uint64(6, size);
  return out;
}

Result<PeerGetAnswer> PeerGetAnswer::Decode(std::string_view body) {
  return DecodeFields<PeerGetAnswer>(body, "peer get answer",
                                     [](pbf_reader& reader, PeerGetAnswer& out) {
    switch (reader.tag_and_type()) {
      case Number(1): out.version = reader.get_uint64(); return true;
      case Number(2): out.ttl_remaining_ms = reader.get_uint64(); return true;
      case Number(3): out.listed = reader.get_uint64() != 0; return true;
      case Number(4): out.yours = reader.get_uint64() != 0; return true;
      case Number(5): out.evictable = reader.get_uint64() != 0; return true;
      case Number(6): out.size = reader.get_uint64(); return true;
      default: return false;
    }
  });
}

std::string PeerGetMany::Encode() const {
  std::string out;
  pbf_writer writer(out);
  writer.add_uint64(1, epoch);
  for (const Item& item : items) {
    pbf_writer nested(writer, 2);
    nested.add_string(1, item.key);
    if (item.version != 0) nested.add_uint64(2, item.version);
    if (item.keep_copy) nested.add_bool(3, true);
  }
  return out;
}

Result<PeerGetMany> PeerGetMany::Decode(std::string_view body) {
  return DecodeFields<PeerGetMany>(body, "peer get many", [](pbf_reader& reader, PeerGetMany& out) {
    switch (reader.tag_and_type()) {
      case Number(1): out.epoch = reader.get_uint64(); return true;
      case Bytes(2): out.items.push_back(DecodeWanted(reader.get_message())); return true;
      default: return false;
    }
  });
}

std::string PeerGetManyAnswer::Encode() const {
  std::string out;
  pbf_writer writer(out);
  for (const Item& item : items) {
    pbf_writer nested(writer, 1);
    if (item.outcome != Outcome::kValue) nested.add_uint32(1, static_cast<uint32_t>(item.outcome));
    if (item.version != 0) nested.add_uint64(2, item.version);
    if (item.ttl_remaining_ms != 0) nested.add_uint64(3, item.ttl_remaining_ms);
    if (item.listed) nested.add_bool(4, true);
    if (item.evictable) nested.add_bool(5, true);
    if (item.size != 0) nested.add_uint64(6, item.size);
    if (item.owner != 0) nested.add_uint64(7, item.owner);
  }
  return out;
}

Result<PeerGetManyAnswer> PeerGetManyAnswer::Decode(std::string_view body) {
  return DecodeFields<PeerGetManyAnswer>(
      body, "peer get many answer", [](pbf_reader& reader, PeerGetManyAnswer& out) {
        if (reader.tag_and_type() != Bytes(1)) return false;
        out.items.push_back(DecodeObtained(reader.get_message()));
        return true;
      });
}

std::string PeerUpdate::Encode() const {
  std::string out;
  pbf_writer writer(out);
  writer.add_uint64(1, epoch);
  writer.add_string(2, key);
  writer.add_bool(4, only_if_absent);
  writer.add_uint64(5, ttl_ms);
  writer.add_uint32(6, timeout_ms);
  writer.add_uint64(7, discarded);
  return out;
}

Result<PeerUpdate> PeerUpdate::Decode(std::string_view body) {
  return DecodeFields<PeerUpdate>(body, "peer update", [](pbf_reader& reader, PeerUpdate& out) {
    switch (reader.tag_and_type()) {
      case Number(1): out.epoch = reader.get_uint64(); return true;
      case Bytes(2): out.key = reader.get_string(); return true;
      case Number(4): out.only_if_absent = reader.get_uint64() != 0; return true;
      case Number(5): out.ttl_ms = reader.get_uint64(); return true;
      case Number(6): out.timeout_ms = reader.get_uint32(); return true;
      case Number(7): out.discarded = reader.get_uint64(); return true;
      default: return false;
    }
  });
}

std::string PeerUpdateAnswer::Encode() const {
  std::string out;
  pbf_writer(out).add_uint64(1, version);
  return out;
}

Result<PeerUpdateAnswer> PeerUpdateAnswer::Decode(std::string_view body) {
  return DecodeFields<PeerUpdateAnswer>(body, "peer update answer",
                                        [](pbf_reader& reader, PeerUpdateAnswer& out) {
    if (reader.tag_and_type() != Number(1)) return false;
    out.version = reader.get_uint64();
    return true;
  });
}

std::string PeerVersionedKey::Encode() const {
  std::string out;
  pbf_writer writer(out);
  writer.add_uint64(1, epoch);
  writer.add_string(2, key);
  writer.add_uint64(3, version);
  return out;
}

Result<PeerVersionedKey> PeerVersionedKey::Decode(std::string_view body) {
  return DecodeFields<PeerVersionedKey>(body, "peer versioned key",
                                        [](pbf_reader& reader, PeerVersionedKey& out) {
    switch (reader.tag_and_type()) {
      case Number(1): out.epoch = reader.get_uint64(); return true;
      case Bytes(2): out.key = reader.get_string(); return true;
      case Number(3): out.version = reader.get_uint64(); return true;
      default: return false;
    }
  });
}

std::string PeerExpire::Encode() const {
  std::string out;
  pbf_writer writer(out);
  writer.add_uint64(1, epoch);
  writer.add_string(2, key);
  writer.add_uint64(3, ttl_ms);
  writer.add_uint32(4, timeout_ms);
  return out;
}

Result<PeerExpire> PeerExpire::Decode(std::string_view body) {
  return DecodeFields<PeerExpire>(body, "peer expire", [](pbf_reader& reader, PeerExpire& out) {
    switch (reader.tag_and_type()) {
      case Number(1): out.epoch = reader.get_uint64(); return true;
      case Bytes(2): out.key = reader.get_string(); return true;
      case Number(3): out.ttl_ms = reader.get_uint64(); return true;
      case Number(4): out.timeout_ms = reader.get_uint32(); return true;
      default: return false;
    }
  });
}

std::string PeerSetExpiry::Encode() const {
  std::string out;
  pbf_writer writer(out);
  writer.add_uint64(1, epoch);
  writer.add_string(2, key);
  writer.add_uint64(3, version);
  writer.add_uint64(4, ttl_ms);
  return out;
}

Result<PeerSetExpiry> PeerSetExpiry::Decode(std::string_view body) {
  return DecodeFields<PeerSetExpiry>(body, "peer set expiry", [](pbf_reader& reader, PeerSetExpiry& out) {
    switch (reader.tag_and_type()) {
      case Number(1): out.epoch = reader.get_uint64(); return true;
      case Bytes(2): out.key = reader.get_string(); return true;
      case Number(3): out.version = reader.get_uint64(); return true;
      case Number(4): out.ttl_ms = reader.get_uint64(); return true;
      default: return false;
    }
  });
}

std::string PeerDelete::Encode() const {
  std::string out;
  pbf_writer writer(out);
  writer.add_uint64(1, epoch);
  writer.add_string(2, key);
  writer.add_uint32(3, timeout_ms);
  return out;
}

Result<PeerDelete> PeerDelete::Decode(std::string_view body) {
  return DecodeFields<PeerDelete>(body, "peer delete", [](pbf_reader& reader, PeerDelete& out) {
    switch (reader.tag_and_type()) {
      case Number(1): out.epoch = reader.get_uint64(); return true;
      case Bytes(2): out.key = reader.get_string(); return true;
      case Number(3): out.timeout_ms = reader.get_uint32(); return true;
      default: return false;
    }
  });
}

std::string PeerDeleteAnswer::Encode() const {
  std::string out;
  pbf_writer(out).add_bool(1, existed);
  return out;
}

Result<PeerDeleteAnswer> PeerDeleteAnswer::Decode(std::string_view body) {
  return DecodeFields<PeerDeleteAnswer>(body, "peer delete answer",
                                        [](pbf_reader& reader, PeerDeleteAnswer& out) {
    if (reader.tag_and_type() != Number(1)) return false;
    out.existed = reader.get_uint64() != 0;
    return true;
  });
}

std::string PeerExist::Encode() const {
  std::string out;
  pbf_writer writer(out);
  writer.add_uint64(1, epoch);
  for (const std::string& key : keys) writer.add_string(2, key);
  writer.add_uint32(3, timeout_ms);
  return out;
}

Result<PeerExist> PeerExist::Decode(std::string_view body) {
  return DecodeFields<PeerExist>(body, "peer exist", [](pbf_reader& reader, PeerExist& out) {
    switch (reader.tag_and_type()) {
      case Number(1): out.epoch = reader.get_uint64(); return true;
      case Bytes(2): out.keys.push_back(reader.get_string()); return true;
      case Number(3): out.timeout_ms = reader.get_uint32(); return true;
      default: return false;
    }
  });
}

std::string PeerExistAnswer::Encode() const {
  std::string out;
  pbf_writer(out).add_packed_bool(1, exists.begin(), exists.end());
  return out;
}

Result<PeerExistAnswer> PeerExistAnswer::Decode(std::string_view body) {
  return DecodeFields<PeerExistAnswer>(body, "peer exist answer",
                                       [](pbf_reader& reader, PeerExistAnswer& out) {
    switch (reader.tag_and_type()) {
      case Bytes(1):
        for (const bool exists : reader.get_packed_bool()) out.exists.push_back(exists);
        return true;
      case Number(1): out.exists.push_back(reader.get_uint64() != 0); return true;
      default: return false;
    }
  });
}

std::string PeerEntries::Encode() const {
  std::string out;
  pbf_writer writer(out);
  writer.add_uint64(1, epoch);
  for (const PeerEntry& entry : entries) {
    pbf_writer nested(writer, 2);
    nested.add_string(1, entry.key);
    nested.add_uint64(2, entry.version);
    nested.add_uint64(3, entry.size);
    nested.add_bool(4, entry.primary);
    nested.add_uint64(5, entry.ttl_remaining_ms);
    nested.add_bool(6, entry.withdrawn);
  }
  return out;
}

Result<PeerEntries> PeerEntries::Decode(std::string_view body) {
  return DecodeFields<PeerEntries>(body, "peer entries", [](pbf_reader& reader, PeerEntries& out) {
    switch (reader.tag_and_type()) {
      case Number(1): out.epoch = reader.get_uint64(); return true;
      case Bytes(2): out.entries.push_back(DecodeEntry(reader.get_message())); return true;
      default: return false;
    }
  });
}

std::string PeerCollect::Encode() const {
  std::string out;
  pbf_writer(out).add_uint64(1, epoch);
  return out;
}

Result<PeerCollect> PeerCollect::Decode(std::string_view body) {
  return DecodeFields<PeerCollect>(body, "peer collect", [](pbf_reader& reader, PeerCollect& out) {
    if (reader.tag_and_type() != Number(1)) return false;
    out.epoch = reader.get_uint64();
    return true;
  });
}

}  // namespace datasystem::proto
