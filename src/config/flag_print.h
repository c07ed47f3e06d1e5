// What the worker prints when asked for information: --help, --version, --print_flags.
#pragma once

#include <optional>
#include <string>

#include "config/flags.h"

namespace datasystem::config {

// The text to print instead of starting, or nothing. `columns` is the width of the terminal.
std::optional<std::string> InformationAsked(const FlagValues& values, std::string_view version,
                                            size_t columns);

// Of standard output; 80 where it is no terminal.
size_t TerminalColumns();

}  // namespace datasystem::config
