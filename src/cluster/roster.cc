#include "cluster/roster.h"

#include "cluster/registration.h"

namespace datasystem::cluster {

std::vector<std::string> Roster::Reset(const StoreSnapshot& snapshot) {
  std::vector<std::string> complaints;
  members_.clear();
  const std::map<std::string, uint64_t> before = std::exchange(malformed_, {});
  for (const StoreEntry& entry : snapshot.entries) {
    std::vector<std::string> about_entry;
    ApplyPut(entry, about_entry);
    const auto known = before.find(entry.key);
    if (known != before.end() && known->second == entry.mod_revision) continue;
    complaints.insert(complaints.end(), about_entry.begin(), about_entry.end());
  }
  epoch_ = snapshot.revision;
  return complaints;
}

std::vector<std::string> Roster::Apply(const std::vector<StoreChange>& changes) {
  std::vector<std::string> complaints;
  for (const StoreChange& change : changes) {
    if (!change.entry.key.starts_with(prefix_)) continue;
    if (change.deleted) {
      members_.erase(change.entry.key.substr(prefix_.size()));
      malformed_.erase(change.entry.key);
    } else {
      ApplyPut(change.entry, complaints);
    }
    epoch_ = change.entry.mod_revision;
  }
  return complaints;
}

void Roster::ApplyPut(const StoreEntry& entry, std::vector<std::string>& complaints) {
  const std::string address = entry.key.substr(prefix_.size());
  Result<Member> member = DecodeRegistration(address, entry.value);
  if (member.ok()) {
    malformed_.erase(entry.key);
    members_[address] = *std::move(member);
    return;
  }
  members_.erase(address);
  malformed_[entry.key] = entry.mod_revision;
  complaints.push_back(fmt::format("ignoring a malformed registration key={} cause='{}'", entry.key,
                                   member.status().GetMsg()));
}

View Roster::ToView() const {
  View view{.epoch = epoch_};
  for (const auto& [address, member] : members_) view.members.push_back(member);
  return view;
}

}  // namespace datasystem::cluster
