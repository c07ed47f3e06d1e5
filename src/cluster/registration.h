// What a worker writes into the cluster store about itself: JSON, so that `etcdctl get --prefix` is
// readable. One key a worker, <prefix><worker_address>:
//
//   {"format": 1, "address": "10.0.0.7:31501", "incarnation": "9f3c5a7d01e2b846", "protocol": [1,
//   3],
//    "version": "0.1.0", "endpoint": "0a1b2c"}
//
// incarnation: 16 hexadecimal digits (JSON numbers are too short in many readers); endpoint: the
// transport endpoint's bytes in hexadecimal; protocol: lowest and highest version of the protocol
// between workers. Readers ignore members of the object that they do not know; `format` changes
// only when that is not enough.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/view.h"

namespace datasystem::cluster {

// Of the keys of one cluster; an empty name is the cluster "default".
std::string RegistrationPrefix(std::string_view cluster_name);

// kInvalid names the field that could not be read back.
Result<std::string> EncodeRegistration(const Member& member);

// `address` is what the key says. Others wrote the text: kInvalid names what is wrong with it.
Result<Member> DecodeRegistration(std::string_view address, std::string_view text);

}  // namespace datasystem::cluster
