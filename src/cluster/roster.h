// The members as the entries under the registrations' prefix say, brought forward change by change.
//
// Entries that are no registrations are left out, each with one complaint for the log; a change of
// theirs still is a change of the epoch, so that all workers agree about it. Threads: none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/lease_store.h"
#include "cluster/view.h"

namespace datasystem::cluster {

class Roster {
 public:
  explicit Roster(std::string prefix) : prefix_(std::move(prefix)) {}

  // Return complaints.
  std::vector<std::string> Reset(const StoreSnapshot& snapshot);
  std::vector<std::string> Apply(const std::vector<StoreChange>& changes);

  uint64_t epoch() const { return epoch_; }
  View ToView() const;

 private:
  void ApplyPut(const StoreEntry& entry, std::vector<std::string>& complaints);

  std::string prefix_;
  uint64_t epoch_ = 0;
  std::map<std::string, Member> members_;      // by address
  std::map<std::string, uint64_t> malformed_;  // complained about: mod_revision by key
};

}  // namespace datasystem::cluster
