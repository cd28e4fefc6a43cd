// SPDX-License-Identifier: Apache-2.0
#include "bind.h"

namespace etvk_guard::bind {

namespace {

// A Repair and the program that its overlay points into. It is a Reader too, so that a repaired program can be opened in place.
struct OwnedRepair final : public Reader {
  std::shared_ptr<OwnedProgram> owner;
  Repair repair;

  uint64_t size() const override { return repair.overlay.size(); }
  bool read(uint64_t offset, void* into, size_t count) const override { return repair.overlay.read(offset, into, count); }
  const uint8_t* view(uint64_t offset, size_t count) const override { return repair.overlay.view(offset, count); }
};

std::shared_ptr<OwnedRepair> repair_program(const std::shared_ptr<OwnedProgram>& owner) {
  auto made = std::make_shared<OwnedRepair>();
  made->owner = owner;
  Error error;
  {
    const py::gil_scoped_release release;
    error = repair(owner->program, &made->repair);
  }
  raise_if(std::move(error));
  return made;
}

void write_repair(const OwnedRepair& repair, const py::bytes& path, const std::optional<py::bytes>& input) {
  const std::string to = path;
  const std::string from = input ? std::string(*input) : std::string();
  Error error;
  {
    const py::gil_scoped_release release;
    error = write_file(repair.repair.overlay, to.c_str(), input ? from.c_str() : nullptr);
  }
  raise_if(std::move(error));
}

// start, length, whether it is the original's, offset there.
std::vector<std::tuple<uint64_t, uint64_t, bool, uint64_t>> extents(const OwnedRepair& repair) {
  std::vector<std::tuple<uint64_t, uint64_t, bool, uint64_t>> rows;
  for (const Overlay::Extent& extent : repair.repair.overlay.extents()) {
    rows.emplace_back(extent.start, extent.length, extent.buffer < 0, extent.source);
  }
  return rows;
}

}  // namespace

void bind_repair(py::module_& module) {
  py::class_<OwnedRepair, Reader, std::shared_ptr<OwnedRepair>>(module, "Repair", "A repaired program, as an overlay.")
      .def_property_readonly("changed", [](const OwnedRepair& self) { return self.repair.changed; })
      .def_property_readonly("repaired", [](const OwnedRepair& self) { return finding_rows(self.repair.repaired); })
      .def_property_readonly("remaining", [](const OwnedRepair& self) { return finding_rows(self.repair.remaining); })
      .def_property_readonly("added_activation_bytes",
                             [](const OwnedRepair& self) { return self.repair.added_activation_bytes; })
      .def_property_readonly("extents", &extents, "(start, length, from the original, offset there) of each run of bytes.")
      .def("write", &write_repair, py::arg("path"), py::arg("input"),
           "Streams the overlay to `path` and renames it into place; `input` is the file that must not be overwritten.");
  module.def("repair", &repair_program, py::arg("program"), "Rewrites each fixable site.");
}

}  // namespace etvk_guard::bind
