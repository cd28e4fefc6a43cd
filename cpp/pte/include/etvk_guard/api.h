// SPDX-License-Identifier: Apache-2.0
// Symbol visibility: every symbol is hidden but those marked ETVK_GUARD_API.
#pragma once

#if defined(__GNUC__) || defined(__clang__)
#define ETVK_GUARD_API __attribute__((visibility("default")))
#else
#define ETVK_GUARD_API
#endif
