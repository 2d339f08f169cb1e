// SPDX-License-Identifier: MIT
//
// The Lua face of the fault points: batch.core.fault_points, on which batch.testing builds.

#ifndef BATCH_LFAULT_H
#define BATCH_LFAULT_H

#include "compat.h"

// Pushes the table.
void lfault_open(lua_State *L);

#endif
