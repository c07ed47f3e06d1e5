// The table of flags for programs: `datasystem_worker --print_flags=table`.
//
// A JSON list with an object for each setting, in the table's order:
//   name, type, group, description
//   default, dscli_default   of the binary and of worker_config.json; JSON values of the flag's type
//   minimum, maximum         of numbers, where there is a limit
//   choices                  the texts that are allowed, where only some are
//   allowed                  what is allowed, in words; absent: everything of the type
//   live                     monitor_config_file may change it
//   secret                   never shown
//   effect                   "used", "accepted" (checked, does nothing) or "refused" (any value but the default)
//   reason                   why it is not used
#pragma once

#include <string>

namespace datasystem::config {

std::string TableAsJson();

}  // namespace datasystem::config
