// The whole public interface.
#pragma once

#include "datasystem/context/context.h"
#include "datasystem/kv_client.h"
