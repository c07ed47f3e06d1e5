// Which worker holds the directory shard of a key: consistent hashing over the members' addresses.
//
// A pure function of the set of addresses: every worker with the same view computes the same ring, and a
// worker that joins takes about 1/(N+1) of the keys, from all others alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace datasystem::cluster {

class HashRing {
 public:
  HashRing() = default;
  explicit HashRing(std::vector<std::string> addresses);

  bool empty() const { return addresses_.empty(); }
  const std::vector<std::string>& addresses() const { return addresses_; }
  // The address of the shard's worker. The ring must not be empty.
  const std::string& OwnerOf(std::string_view key) const { return OwnerOfHash(Place(key)); }
  const std::string& OwnerOfHash(uint64_t hash) const;
  static uint64_t Place(std::string_view key);

 private:
  struct Token {
    uint64_t end;     // owns the hashes up to here, from the token before
    uint32_t member;  // index into addresses_
  };
  std::vector<std::string> addresses_;
  std::vector<Token> tokens_;  // sorted by end
};

}  // namespace datasystem::cluster
