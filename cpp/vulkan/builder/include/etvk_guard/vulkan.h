/* SPDX-License-Identifier: Apache-2.0
 *
 * The patched op builder: makes the Vulkan delegate in this process take a norm weight of any kind. It replaces the builders of
 * RMS, layer, group and batch norms in the delegate's operator registry.
 *
 * Loading the library (or linking it in) installs it, unless the environment variable ETVK_GUARD is "off". Programs loaded
 * afterwards are built by it; those that are loaded already stay as they are. All functions may be called from any thread.
 * The first installation writes to the delegate's registry: no other thread may be loading a program at that moment.
 */
#ifndef ETVK_GUARD_VULKAN_H
#define ETVK_GUARD_VULKAN_H

#include <stddef.h>

#if defined(_WIN32)
#define ETVK_GUARD_VULKAN_API __declspec(dllexport)
#else
#define ETVK_GUARD_VULKAN_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum etvk_guard_vulkan_state {
  ETVK_GUARD_VULKAN_ACTIVE = 0,    /* programs loaded from now on are built by us */
  ETVK_GUARD_VULKAN_INACTIVE = 1,  /* removed again, or never installed: stock builds them */
  ETVK_GUARD_VULKAN_DISABLED = 2,  /* ETVK_GUARD=off */
  ETVK_GUARD_VULKAN_REFUSED = 3    /* the delegate is not the one this library was built for: see "message" of the status */
};

/* Installs the builder and checks that the registry now answers with it. Returns the state; repeating it changes nothing.
 * Also undoes etvk_guard_vulkan_uninstall(), and installs where ETVK_GUARD=off kept it from being installed at load. */
ETVK_GUARD_VULKAN_API int etvk_guard_vulkan_install(void);

/* Hands the ops back to the delegate's own builders. Returns the state. */
ETVK_GUARD_VULKAN_API int etvk_guard_vulkan_uninstall(void);

/* Writes a JSON object into buffer (at most size bytes, always terminated if size > 0) and returns the length it has in
 * full, without the terminator:
 *   state     "active" | "inactive" | "disabled" | "refused"
 *   message   one line, what happened
 *   built     {"executorch": version of the headers, "event_tracer": bool, "compute_graph_bytes": int}
 *   kernels   how many kernels are built in
 *   sites     norms built so far, by path: {"stock", "fused_row", "fused_batch", "fused_full", "unit", "unit_then_ops", "moved", "refused"}
 *   ops       {name: whether the registry answers with our builder, asked now} */
ETVK_GUARD_VULKAN_API size_t etvk_guard_vulkan_status(char* buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* ETVK_GUARD_VULKAN_H */
