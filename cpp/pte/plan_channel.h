// SPDX-License-Identifier: Apache-2.0
//
// The planner's part for norms over channels; reached through plan_norm().
#pragma once

#include <etvk_guard/plan.h>

namespace etvk_guard {

// `site.kind` must be NormKind::kGroup or kBatch. Total otherwise.
NormPlan plan_channel_norm(const NormSite& site, Target target);

}  // namespace etvk_guard
