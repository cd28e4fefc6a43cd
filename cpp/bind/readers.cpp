// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "views.h"

namespace etvk_guard::bind {

namespace {

// A bytes-like object, held by its buffer: it can be neither freed nor resized meanwhile. Only the bytes of a `bytes` object
// can be looked at in place, as nothing can change them; of anything else what is needed is copied, weights never.
class MemoryReader final : public Reader {
 public:
  explicit MemoryReader(const py::buffer& source) : fixed_(PyBytes_CheckExact(source.ptr())) {
    if (PyObject_GetBuffer(source.ptr(), &buffer_, PyBUF_SIMPLE) != 0) {
      throw py::error_already_set();
    }
    bytes_ = BytesReader(buffer_.buf, static_cast<size_t>(buffer_.len));
  }
  ~MemoryReader() override { PyBuffer_Release(&buffer_); }
  MemoryReader(const MemoryReader&) = delete;
  MemoryReader& operator=(const MemoryReader&) = delete;

  uint64_t size() const override { return bytes_.size(); }
  bool read(uint64_t offset, void* into, size_t count) const override { return bytes_.read(offset, into, count); }
  const uint8_t* view(uint64_t offset, size_t count) const override { return fixed_ ? bytes_.view(offset, count) : nullptr; }

 private:
  Py_buffer buffer_{};
  BytesReader bytes_;
  bool fixed_;
};

// Python's `read(offset, size) -> bytes`. What it raises ends in a failed read; the caller's side keeps the exception.
class CallbackReader final : public Reader {
 public:
  CallbackReader(uint64_t size, py::function read) : size_(size), read_(std::move(read)) {}

  uint64_t size() const override { return size_; }

  bool read(uint64_t offset, void* into, size_t count) const override {
    const py::gil_scoped_acquire gil;
    try {
      const py::bytes got = read_(offset, count);
      const std::string_view view = got;
      if (view.size() != count) {
        return false;
      }
      std::memcpy(into, view.data(), count);
      return true;
    } catch (const py::error_already_set&) {
      return false;
    } catch (const py::cast_error&) {
      return false;
    }
  }

 private:
  uint64_t size_;
  py::function read_;
};

std::shared_ptr<Reader> open_file(const py::bytes& path) {
  auto reader = std::make_shared<FileReader>();
  const std::string name = path;
  Error error;
  {
    const py::gil_scoped_release release;
    error = FileReader::open(name.c_str(), reader.get());
  }
  raise_if(std::move(error));
  return reader;
}

}  // namespace

py::bytes read_checked(const Reader& reader, uint64_t offset, uint64_t size) {
  if (!in_range(offset, size, reader.size())) {
    throw py::index_error(std::to_string(size) + " bytes at " + std::to_string(offset) + " are not in a file of " +
                          std::to_string(reader.size()));
  }
  PyObject* made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
  if (made == nullptr) {
    throw py::error_already_set();
  }
  const py::bytes bytes = py::reinterpret_steal<py::bytes>(made);
  char* into = PyBytes_AS_STRING(made);
  bool good = false;
  {
    const py::gil_scoped_release release;
    good = reader.read(offset, into, size);
  }
  if (!good) {
    throw Failure({ErrorCode::kIoError, "reading " + std::to_string(size) + " bytes failed", {{}, -1, -1, {}, {}, offset}});
  }
  return bytes;
}

void bind_readers(py::module_& module) {
  py::class_<Reader, std::shared_ptr<Reader>>(module, "Reader", "Random access to a file's bytes.")
      .def_static("file", &open_file, py::arg("path"), "A regular file, by its name in the file system's encoding.")
      .def_static(
          "memory", [](const py::buffer& source) -> std::shared_ptr<Reader> { return std::make_shared<MemoryReader>(source); },
          py::arg("source"), "A bytes-like object, not copied.")
      .def_static(
          "callback",
          [](uint64_t size, py::typing::Callable<py::bytes(uint64_t, uint64_t)> read) -> std::shared_ptr<Reader> {
            return std::make_shared<CallbackReader>(size, std::move(read));
          },
          py::arg("size"), py::arg("read"), "`read(offset, size)`, called from any thread, one call at a time for each thread.")
      .def_property_readonly("size", &Reader::size, "Bytes in all.")
      .def("read", &read_checked, py::arg("offset"), py::arg("size"), "Exactly `size` bytes from `offset`.");
}

}  // namespace etvk_guard::bind
