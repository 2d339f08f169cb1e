// SPDX-License-Identifier: MIT
//
// batch.core.html.

#ifndef BATCH_LHTML_H
#define BATCH_LHTML_H

#include "compat.h"

// Pushes the table.
void lhtml_open(lua_State *L);

#endif
