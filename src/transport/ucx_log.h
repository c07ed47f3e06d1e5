// Where UCX's own log lines go.
//
// UCX prints to standard output. When the environment asks for its log (UCX_LOG_LEVEL or UCX_LOG_FILE),
// that works untouched; otherwise its lines become debug lines of ours.
#pragma once

#include <string>
#include <vector>

namespace datasystem::transport {

// Called before the first use of UCX. Repeated calls do nothing.
void RedirectUcxLog();

// UCX's warnings and errors on this thread while it lives: the cause for an error message.
class UcxComplaints {
 public:
  UcxComplaints();
  ~UcxComplaints();
  UcxComplaints(const UcxComplaints&) = delete;
  UcxComplaints& operator=(const UcxComplaints&) = delete;

  // Joined by "; ".
  std::string text() const;

 private:
  std::vector<std::string> lines_;
  std::vector<std::string>* outer_;
};

}  // namespace datasystem::transport
