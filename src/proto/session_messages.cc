// Fields that hold their default are not written, as protobuf prescribes. Reading is strict where the
// official library is lenient: a known field with a wrong wire type is refused, not skipped, because
// nobody sends it on purpose.
#include "proto/session_messages.h"

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

namespace datasystem::proto {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;

// Above the largest batch (session/key_rules.h). A hostile body of empty items would otherwise grow
// forty-fold in memory.
constexpr size_t kRepeatedMax = 16384;

struct Refused {
  std::string reason;
};

void Expect(const pbf_reader& reader, pbf_wire_type type) {
  if (reader.wire_type() != type) {
    throw Refused{fmt::format("field {} has wire type {}", reader.tag(),
                              static_cast<uint32_t>(reader.wire_type()))};
  }
}

void Read(pbf_reader& reader, uint64_t& out) {
  Expect(reader, pbf_wire_type::varint);
  out = reader.get_uint64();
}

void Read(pbf_reader& reader, uint32_t& out) {
  Expect(reader, pbf_wire_type::varint);
  out = static_cast<uint32_t>(reader.get_uint64());
}

// Not get_bool(): it asserts that the number has one byte.
void Read(pbf_reader& reader, bool& out) {
  Expect(reader, pbf_wire_type::varint);
  out = reader.get_uint64() != 0;
}

void Read(pbf_reader& reader, std::string& out) {
  Expect(reader, pbf_wire_type::length_delimited);
  const auto view = reader.get_view();
  out.assign(view.data(), view.size());
}

template <typename T>
void Append(std::vector<T>& out, T value) {
  if (out.size() == kRepeatedMax) {
    throw Refused{fmt::format("more than {} items", kRepeatedMax)};
  }
  out.push_back(std::move(value));
}

void ReadRepeated(pbf_reader& reader, std::vector<std::string>& out) {
  std::string item;
  Read(reader, item);
  Append(out, std::move(item));
}

// Numbers come packed or one by one; a reader must take both.
template <typename T>
void ReadRepeatedNumber(pbf_reader& reader, std::vector<T>& out) {
  if (reader.wire_type() == pbf_wire_type::varint) {
    Append(out, static_cast<T>(reader.get_uint64()));
    return;
  }
  Expect(reader, pbf_wire_type::length_delimited);
  const auto view = reader.get_view();
  const char* at = view.data();
  const char* const end = at + view.size();
  while (at != end) Append(out, static_cast<T>(protozero::decode_varint(&at, end)));
}

template <typename ReadField>
void ReadMessage(pbf_reader& reader, ReadField read) {
  Expect(reader, pbf_wire_type::length_delimited);
  pbf_reader inner = reader.get_message();
  while (inner.next()) read(inner);
}

// Runs `read(reader, message)` for each field; it skips what it does not know.
template <typename Message, typename ReadField>
Result<Message> DecodeFields(std::string_view body, const char* name, ReadField read,
                             Message message = {}) {
  std::string reason;
  try {
    pbf_reader reader(body.data(), body.size());
    while (reader.next()) read(reader, message);
    return message;
  } catch (const protozero::exception& error) {
    reason = error.what();
  } catch (const Refused& refused) {
    reason = refused.reason;
  }
  return errors::Invalid("malformed {} message of {} bytes: {}", name, body.size(), reason);
}

// The two fields that every reply begins with, in wire form.
struct WireStatus {
  uint32_t code = 0;
  std::string message;

  // False if the field is neither of the two.
  bool ReadField(pbf_reader& reader) {
    if (reader.tag() == 1) return Read(reader, code), true;
    if (reader.tag() == 2) return Read(reader, message), true;
    return false;
  }
  Status ToStatus() && { return Status(static_cast<StatusCode>(code), std::move(message)); }
};

// As DecodeFields, for messages whose fields 1 and 2 are the status.
template <typename Message, typename ReadField>
Result<Message> DecodeReply(std::string_view body, const char* name, ReadField read) {
  WireStatus status;
  auto message = DecodeFields<Message>(body, name, [&](pbf_reader& reader, Message& out) {
    if (!status.ReadField(reader)) read(reader, out);
  });
  if (message.ok()) message->status = std::move(status).ToStatus();
  return message;
}

void Write(pbf_writer& writer, uint32_t field, uint64_t value) {
  if (value != 0) writer.add_uint64(field, value);
}

void Write(pbf_writer& writer, uint32_t field, const std::string& value) {
  if (!value.empty()) writer.add_string(field, value);
}

void Write(pbf_writer& writer, const Status& status) {
  Write(writer, 1, status.GetCode());
  Write(writer, 2, status.GetMsg());
}

void Write(pbf_writer& writer, uint32_t field, const Location& location) {
  if (location.segment == 0 && location.offset == 0 && location.size == 0) return;
  pbf_writer inner(writer, field);
  Write(inner, 1, location.segment);
  Write(inner, 2, location.offset);
  Write(inner, 3, location.size);
}

void Write(pbf_writer& writer, uint32_t field, const SetParam& param) {
  if (param.write_mode == 0 && param.ttl_second == 0 && param.existence == 0) return;
  pbf_writer inner(writer, field);
  Write(inner, 1, param.write_mode);
  Write(inner, 2, param.ttl_second);
  Write(inner, 3, param.existence);
}

void Write(pbf_writer& writer, uint32_t field, const std::vector<std::string>& values) {
  for (const std::string& value : values) writer.add_string(field, value);
}

void Write(pbf_writer& writer, uint32_t field, const std::vector<uint64_t>& values) {
  if (!values.empty()) writer.add_packed_uint64(field, values.begin(), values.end());
}

// An item of a repeated field. Not pbf_writer(parent, field): that drops an item without fields.
template <typename Fill>
void WriteItem(pbf_writer& writer, uint32_t field, Fill fill) {
  std::string bytes;
  pbf_writer inner(bytes);
  fill(inner);
  writer.add_message(field, bytes);
}

void Read(pbf_reader& reader, Location& out) {
  ReadMessage(reader, [&out](pbf_reader& inner) {
    switch (inner.tag()) {
      case 1: Read(inner, out.segment); break;
      case 2: Read(inner, out.offset); break;
      case 3: Read(inner, out.size); break;
      default: inner.skip();
    }
  });
}

void Read(pbf_reader& reader, SetParam& out) {
  ReadMessage(reader, [&out](pbf_reader& inner) {
    switch (inner.tag()) {
      case 1: Read(inner, out.write_mode); break;
      case 2: Read(inner, out.ttl_second); break;
      case 3: Read(inner, out.existence); break;
      default: inner.skip();
    }
  });
}

void Read(pbf_reader& reader, SegmentInfo& out) {
  ReadMessage(reader, [&out](pbf_reader& inner) {
    switch (inner.tag()) {
      case 1: Read(inner, out.id); break;
      case 2: Read(inner, out.size_bytes); break;
      case 3: {
        uint32_t kind = 0;
        Read(inner, kind);
        out.kind = static_cast<SegmentKind>(kind);
        break;
      }
      default: inner.skip();
    }
  });
}

void Read(pbf_reader& reader, CreateItem& out) {
  WireStatus status;
  ReadMessage(reader, [&](pbf_reader& inner) {
    if (status.ReadField(inner)) return;
    switch (inner.tag()) {
      case 3: Read(inner, out.buffer_id); break;
      case 4: Read(inner, out.location); break;
      default: inner.skip();
    }
  });
  out.status = std::move(status).ToStatus();
}

void Read(pbf_reader& reader, SetItem& out) {
  ReadMessage(reader, [&out](pbf_reader& inner) {
    switch (inner.tag()) {
      case 1: Read(inner, out.key); break;
      case 2: Read(inner, out.size); break;
      case 3: Read(inner, out.buffer_id); break;
      default: inner.skip();
    }
  });
}

void Read(pbf_reader& reader, Lease& out) {
  ReadMessage(reader, [&out](pbf_reader& inner) {
    switch (inner.tag()) {
      case 1: Read(inner, out.slot); break;
      case 2: Read(inner, out.buffer_id); break;
      case 3: Read(inner, out.location); break;
      default: inner.skip();
    }
  });
}

void Read(pbf_reader& reader, SizeItem& out) {
  WireStatus status;
  ReadMessage(reader, [&](pbf_reader& inner) {
    if (status.ReadField(inner)) return;
    if (inner.tag() == 3) return Read(inner, out.size);
    inner.skip();
  });
  out.status = std::move(status).ToStatus();
}

void Read(pbf_reader& reader, GetItem& out) {
  WireStatus status;
  ReadMessage(reader, [&](pbf_reader& inner) {
    if (status.ReadField(inner)) return;
    switch (inner.tag()) {
      case 3: Read(inner, out.size); break;
      case 4: Read(inner, out.pin_id); break;
      case 5: Read(inner, out.location); break;
      case 6: Read(inner, out.here); break;
      default: inner.skip();
    }
  });
  out.status = std::move(status).ToStatus();
}

void Read(pbf_reader& reader, Status& out) {
  WireStatus status;
  ReadMessage(reader, [&](pbf_reader& inner) {
    if (!status.ReadField(inner)) inner.skip();
  });
  out = std::move(status).ToStatus();
}

// Delete, Exist and Sizes requests have the same fields.
template <typename Message>
std::string EncodeKeys(const Message& message) {
  std::string out;
  pbf_writer writer(out);
  Write(writer, 1, message.keys);
  Write(writer, 2, message.timeout_ms);
  return out;
}

template <typename Message>
Result<Message> DecodeKeys(std::string_view body, const char* name) {
  return DecodeFields<Message>(body, name, [](pbf_reader& reader, Message& out) {
    switch (reader.tag()) {
      case 1: ReadRepeated(reader, out.keys); break;
      case 2: Read(reader, out.timeout_ms); break;
      default: reader.skip();
    }
  });
}

// Delete, Expire and Set replies are a status, and one for each item.
template <typename Message>
std::string EncodeStatuses(const Message& message) {
  std::string out;
  pbf_writer writer(out);
  Write(writer, message.status);
  for (const Status& item : message.items) {
    WriteItem(writer, 3, [&item](pbf_writer& inner) { Write(inner, item); });
  }
  return out;
}

template <typename Message>
void ReadStatusItem(pbf_reader& reader, Message& out) {
  Status item;
  Read(reader, item);
  Append(out.items, std::move(item));
}

template <typename Message>
Result<Message> DecodeStatuses(std::string_view body, const char* name) {
  return DecodeReply<Message>(body, name, [](pbf_reader& reader, Message& out) {
    if (reader.tag() == 3) return ReadStatusItem(reader, out);
    reader.skip();
  });
}

// So have Abandon and Release.
std::string EncodeIds(const std::vector<uint64_t>& ids) {
  std::string out;
  pbf_writer writer(out);
  Write(writer, 1, ids);
  return out;
}

template <typename Message>
Result<Message> DecodeIds(std::string_view body, const char* name,
                          std::vector<uint64_t> Message::*ids) {
  return DecodeFields<Message>(body, name, [ids](pbf_reader& reader, Message& out) {
    if (reader.tag() == 1) return ReadRepeatedNumber(reader, out.*ids);
    reader.skip();
  });
}

}  // namespace

std::string Hello::Encode() const {
  std::string out;
  pbf_writer writer(out);
  Write(writer, 1, protocol_min);
  Write(writer, 2, protocol_max);
  Write(writer, 3, client_version);
  Write(writer, 4, process_id);
  Write(writer, 5, session_id);
  Write(writer, 6, session_token);
  Write(writer, 7, want_segments);
  Write(writer, 8, want_channel);
  return out;
}

Result<Hello> Hello::Decode(std::string_view body) {
  // What the sender leaves out is 0 on the wire, whatever the struct starts with.
  Hello empty;
  empty.protocol_min = empty.protocol_max = 0;
  const auto read = [](pbf_reader& reader, Hello& out) {
    switch (reader.tag()) {
      case 1: Read(reader, out.protocol_min); break;
      case 2: Read(reader, out.protocol_max); break;
      case 3: Read(reader, out.client_version); break;
      case 4: Read(reader, out.process_id); break;
      case 5: Read(reader, out.session_id); break;
      case 6: Read(reader, out.session_token); break;
      case 7: Read(reader, out.want_segments); break;
      case 8: Read(reader, out.want_channel); break;
      default: reader.skip();
    }
  };
  return DecodeFields<Hello>(body, "hello", read, std::move(empty));
}

std::string HelloReply::Encode() const {
  std::string out;
  pbf_writer writer(out);
  Write(writer, status);
  Write(writer, 3, protocol);
  Write(writer, 4, worker_version);
  Write(writer, 5, worker_incarnation);
  Write(writer, 6, session_id);
  Write(writer, 7, session_token);
  Write(writer, 8, unix_socket_path);
  Write(writer, 9, inline_threshold_bytes);
  for (const SegmentInfo& segment : segments) {
    WriteItem(writer, 10, [&segment](pbf_writer& inner) {
      Write(inner, 1, segment.id);
      Write(inner, 2, segment.size_bytes);
      Write(inner, 3, static_cast<uint32_t>(segment.kind));
    });
  }
  Write(writer, 11, channel);
  return out;
}

Result<HelloReply> HelloReply::Decode(std::string_view body) {
  return DecodeReply<HelloReply>(body, "hello reply", [](pbf_reader& reader, HelloReply& out) {
    switch (reader.tag()) {
      case 3: Read(reader, out.protocol); break;
      case 4: Read(reader, out.worker_version); break;
      case 5: Read(reader, out.worker_incarnation); break;
      case 6: Read(reader, out.session_id); break;
      case 7: Read(reader, out.session_token); break;
      case 8: Read(reader, out.unix_socket_path); break;
      case 9: Read(reader, out.inline_threshold_bytes); break;
      case 11: Read(reader, out.channel); break;
      case 10: {
        SegmentInfo segment;
        Read(reader, segment);
        Append(out.segments, segment);
        break;
      }
      default: reader.skip();
    }
  });
}

std::string StatusReply::Encode() const {
  std::string out;
  pbf_writer writer(out);
  Write(writer, status);
  return out;
}

Result<StatusReply> StatusReply::Decode(std::string_view body) {
  return DecodeReply<StatusReply>(body, "status reply",
                                  [](pbf_reader& reader, StatusReply&) { reader.skip(); });
}

std::string CreateRequest::Encode() const {
  std::string out;
  pbf_writer writer(out);
  Write(writer, 1, sizes);
  return out;
}

Result<CreateRequest> CreateRequest::Decode(std::string_view body) {
  return DecodeFields<CreateRequest>(body, "create", [](pbf_reader& reader, CreateRequest& out) {
    if (reader.tag() == 1) return ReadRepeatedNumber(reader, out.sizes);
    reader.skip();
  });
}

std::string CreateReply::Encode() const {
  std::string out;
  pbf_writer writer(out);
  Write(writer, status);
  for (const CreateItem& item : items) {
    WriteItem(writer, 3, [&item](pbf_writer& inner) {
      Write(inner, item.status);
      Write(inner, 3, item.buffer_id);
      Write(inner, 4, item.location);
    });
  }
  return out;
}

Result<CreateReply> CreateReply::Decode(std::string_view body) {
  return DecodeReply<CreateReply>(body, "create reply", [](pbf_reader& reader, CreateReply& out) {
    if (reader.tag() != 3) return reader.skip();
    CreateItem item;
    Read(reader, item);
    Append(out.items, std::move(item));
  });
}

std::string SetRequest::Encode() const {
  std::string out;
  pbf_writer writer(out);
  for (const SetItem& item : items) {
    WriteItem(writer, 1, [&item](pbf_writer& inner) {
      Write(inner, 1, item.key);
      Write(inner, 2, item.size);
      Write(inner, 3, item.buffer_id);
    });
  }
  Write(writer, 2, param);
  Write(writer, 3, timeout_ms);
  Write(writer, 4, all_or_nothing);
  Write(writer, 5, lease_size);
  return out;
}

Result<SetRequest> SetRequest::Decode(std::string_view body) {
  return DecodeFields<SetRequest>(body, "set", [](pbf_reader& reader, SetRequest& out) {
    switch (reader.tag()) {
      case 1: {
        SetItem item;
        Read(reader, item);
        Append(out.items, std::move(item));
        break;
      }
      case 2: Read(reader, out.param); break;
      case 3: Read(reader, out.timeout_ms); break;
      case 4: Read(reader, out.all_or_nothing); break;
      case 5: Read(reader, out.lease_size); break;
      default: reader.skip();
    }
  });
}

std::string SetReply::Encode() const {
  std::string out = EncodeStatuses(*this);
  if (lease.buffer_id == 0) return out;
  pbf_writer writer(out);
  WriteItem(writer, 4, [this](pbf_writer& inner) {
    Write(inner, 1, lease.slot);
    Write(inner, 2, lease.buffer_id);
    Write(inner, 3, lease.location);
  });
  return out;
}

Result<SetReply> SetReply::Decode(std::string_view body) {
  return DecodeReply<SetReply>(body, "set reply", [](pbf_reader& reader, SetReply& out) {
    switch (reader.tag()) {
      case 3: ReadStatusItem(reader, out); break;
      case 4: Read(reader, out.lease); break;
      default: reader.skip();
    }
  });
}

std::string AbandonRequest::Encode() const { return EncodeIds(buffer_ids); }

Result<AbandonRequest> AbandonRequest::Decode(std::string_view body) {
  return DecodeIds(body, "abandon", &AbandonRequest::buffer_ids);
}

std::string GetRequest::Encode() const {
  std::string out;
  pbf_writer writer(out);
  Write(writer, 1, keys);
  Write(writer, 2, timeout_ms);
  Write(writer, 3, sub_timeout_ms);
  Write(writer, 4, offsets);
  Write(writer, 5, sizes);
  Write(writer, 6, reads_index);
  return out;
}

Result<GetRequest> GetRequest::Decode(std::string_view body) {
  auto request = DecodeFields<GetRequest>(body, "get", [](pbf_reader& reader, GetRequest& out) {
    switch (reader.tag()) {
      case 1: ReadRepeated(reader, out.keys); break;
      case 2: Read(reader, out.timeout_ms); break;
      case 3: Read(reader, out.sub_timeout_ms); break;
      case 4: ReadRepeatedNumber(reader, out.offsets); break;
      case 5: ReadRepeatedNumber(reader, out.sizes); break;
      case 6: Read(reader, out.reads_index); break;
      default: reader.skip();
    }
  });
  if (request.ok() && (request->offsets.size() != request->sizes.size() ||
                       (!request->sizes.empty() && request->sizes.size() != request->keys.size()))) {
    return errors::Invalid("malformed get message of {} bytes: {} offsets and {} sizes for {} keys", body.size(),
                           request->offsets.size(), request->sizes.size(), request->keys.size());
  }
  return request;
}

std::string GetReply::Encode() const {
  std::string out;
  pbf_writer writer(out);
  Write(writer, status);
  for (const GetItem& item : items) {
    WriteItem(writer, 3, [&item](pbf_writer& inner) {
      Write(inner, item.status);
      Write(inner, 3, item.size);
      Write(inner, 4, item.pin_id);
      Write(inner, 5, item.location);
      Write(inner, 6, item.here);
    });
  }
  return out;
}

Result<GetReply> GetReply::Decode(std::string_view body) {
  return DecodeReply<GetReply>(body, "get reply", [](pbf_reader& reader, GetReply& out) {
    if (reader.tag() != 3) return reader.skip();
    GetItem item;
    Read(reader, item);
    Append(out.items, std::move(item));
  });
}

std::string ReleaseRequest::Encode() const { return EncodeIds(pin_ids); }

Result<ReleaseRequest> ReleaseRequest::Decode(std::string_view body) {
  return DecodeIds(body, "release", &ReleaseRequest::pin_ids);
}

std::string DeleteRequest::Encode() const { return EncodeKeys(*this); }

Result<DeleteRequest> DeleteRequest::Decode(std::string_view body) {
  return DecodeKeys<DeleteRequest>(body, "delete");
}

std::string DeleteReply::Encode() const { return EncodeStatuses(*this); }

Result<DeleteReply> DeleteReply::Decode(std::string_view body) {
  return DecodeStatuses<DeleteReply>(body, "delete reply");
}

std::string ExistRequest::Encode() const { return EncodeKeys(*this); }

Result<ExistRequest> ExistRequest::Decode(std::string_view body) {
  return DecodeKeys<ExistRequest>(body, "exist");
}

std::string ExistReply::Encode() const {
  std::string out;
  pbf_writer writer(out);
  Write(writer, status);
  if (!exists.empty()) writer.add_packed_bool(3, exists.begin(), exists.end());
  return out;
}

Result<ExistReply> ExistReply::Decode(std::string_view body) {
  return DecodeReply<ExistReply>(body, "exist reply", [](pbf_reader& reader, ExistReply& out) {
    if (reader.tag() != 3) return reader.skip();
    ReadRepeatedNumber(reader, out.exists);
  });
}

std::string ExpireRequest::Encode() const {
  std::string out;
  pbf_writer writer(out);
  Write(writer, 1, keys);
  Write(writer, 2, ttl_second);
  Write(writer, 3, timeout_ms);
  return out;
}

Result<ExpireRequest> ExpireRequest::Decode(std::string_view body) {
  return DecodeFields<ExpireRequest>(body, "expire", [](pbf_reader& reader, ExpireRequest& out) {
    switch (reader.tag()) {
      case 1: ReadRepeated(reader, out.keys); break;
      case 2: Read(reader, out.ttl_second); break;
      case 3: Read(reader, out.timeout_ms); break;
      default: reader.skip();
    }
  });
}

std::string ExpireReply::Encode() const { return EncodeStatuses(*this); }

Result<ExpireReply> ExpireReply::Decode(std::string_view body) {
  return DecodeStatuses<ExpireReply>(body, "expire reply");
}

std::string SizesRequest::Encode() const { return EncodeKeys(*this); }

Result<SizesRequest> SizesRequest::Decode(std::string_view body) {
  return DecodeKeys<SizesRequest>(body, "sizes");
}

std::string SizesReply::Encode() const {
  std::string out;
  pbf_writer writer(out);
  Write(writer, status);
  for (const SizeItem& item : items) {
    WriteItem(writer, 3, [&item](pbf_writer& inner) {
      Write(inner, item.status);
      Write(inner, 3, item.size);
    });
  }
  return out;
}

Result<SizesReply> SizesReply::Decode(std::string_view body) {
  return DecodeReply<SizesReply>(body, "sizes reply", [](pbf_reader& reader, SizesReply& out) {
    if (reader.tag() != 3) return reader.skip();
    SizeItem item;
    Read(reader, item);
    Append(out.items, std::move(item));
  });
}

std::string ReportReply::Encode() const {
  std::string out;
  pbf_writer writer(out);
  Write(writer, status);
  Write(writer, 3, json);
  return out;
}

Result<ReportReply> ReportReply::Decode(std::string_view body) {
  return DecodeReply<ReportReply>(body, "report reply", [](pbf_reader& reader, ReportReply& out) {
    if (reader.tag() == 3) return Read(reader, out.json);
    reader.skip();
  });
}

}  // namespace datasystem::proto
