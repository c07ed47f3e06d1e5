// monitor_config_file: flags that change while the worker runs.
//
// The file holds --name=value words, separated by white space, of flags that are marked live. What it
// says counts before the command line; a flag that it does not name has the value of the command line,
// also when it was named before. So the worker always runs as it would after a restart. A file that
// does not exist names nothing. One that cannot be read (a folder, a pipe, no permission, more than
// 1 MiB) changes nothing. A word that is wrong is reported and left out, the others are taken; if the
// result breaks a rule between flags, nothing of it is.
// Threads: one at a time. Look() may wait for the file system, so not the event loop's.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "config/flags.h"

namespace datasystem::config {

class LiveFile {
 public:
  LiveFile(std::string path, FlagValues command_line);

  struct News {
    FlagValues values;                  // to be in force from now on
    std::vector<std::string> changes;   // "name=value" of flags that differ from before
    std::vector<std::string> mistakes;  // a sentence each; never with text that could be a secret
  };
  // Compares the file with the one that was last looked at (a link that leads elsewhere is another
  // file) and reads it if it is another. Nothing: all stays as it is.
  std::optional<News> Look();

  const std::string& path() const { return path_; }

 private:
  // What tells one state of the file from another.
  struct State {
    int error = 0;  // errno of stat; ENOENT: no file
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    int64_t modified_ns = 0;
    int64_t changed_ns = 0;
    bool operator==(const State&) const = default;
  };
  static State StateOf(const std::string& path);

  const std::string path_;
  const FlagValues command_line_;
  FlagValues in_force_;
  std::optional<State> seen_;
};

}  // namespace datasystem::config
