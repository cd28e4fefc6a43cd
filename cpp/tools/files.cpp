// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "text.h"

namespace etvk_guard::tool {
namespace {

bool is_folder(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool exists(const std::string& path, struct stat* status) { return ::lstat(path.c_str(), status) == 0; }

bool ends_with_pte(std::string_view name) { return name.size() >= 4 && name.substr(name.size() - 4) == ".pte"; }

std::string join(const std::string& folder, const std::string& name) {
  return folder + (folder.empty() || folder.back() == '/' ? "" : "/") + name;
}

// As Python sorts names.
void sort_names(std::vector<std::string>* names) {
  std::sort(names->begin(), names->end(),
            [](const std::string& a, const std::string& b) { return path_text(a) < path_text(b); });
}

class Expander {
 public:
  void expand(const std::string& name) {
    struct stat status{};
    if (is_folder(name)) {
      folder(name);
    } else if (exists(name, &status) || name.find_first_of("*?[") == std::string::npos) {
      add(name);  // also where there is no such file: opening it says so
    } else {
      pattern(name);
    }
  }
  std::vector<Item> take() { return std::move(items_); }

 private:
  void add(const std::string& path, const char* problem = "") {
    if (known_.insert(path).second) {
      items_.push_back({path, problem});
    }
  }

  void pattern(const std::string& name) {
    glob_t found{};
    std::vector<std::string> matches;
    if (::glob(name.c_str(), 0, nullptr, &found) == 0) {
      matches.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    ::globfree(&found);
    sort_names(&matches);
    for (const std::string& match : matches) {
      if (is_folder(match)) {
        folder(match);
      } else {
        add(match);
      }
    }
    if (matches.empty()) {
      add(name, "nothing matches this pattern");
    }
  }

  void folder(const std::string& name) {
    std::vector<Item> failures;
    bool empty = true;
    walk(name, &empty, &failures);
    for (const Item& failure : failures) {
      add(failure.path, failure.problem.c_str());
    }
    if (empty && failures.empty()) {
      add(name, "the folder holds no .pte file");
    }
  }

  // Files first, then folders, each sorted; links to folders are not followed. A stack, as depth is up to the folders.
  void walk(const std::string& top, bool* empty, std::vector<Item>* failures) {
    std::vector<std::string> waiting = {top};
    while (!waiting.empty()) {
      const std::string at = std::move(waiting.back());
      waiting.pop_back();
      std::vector<std::string> files, folders;
      if (!list(at, &files, &folders)) {
        failures->push_back({at, std::strerror(errno)});
        continue;
      }
      for (const std::string& file : files) {
        *empty = false;
        add(join(at, file));
      }
      for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
        waiting.push_back(join(at, *folder));
      }
    }
  }

  static bool list(const std::string& folder, std::vector<std::string>* files, std::vector<std::string>* folders) {
    DIR* open = ::opendir(folder.c_str());
    if (open == nullptr) {
      return false;
    }
    while (const dirent* entry = ::readdir(open)) {
      const std::string name = entry->d_name;
      struct stat status{};
      if (name == "." || name == "..") {
        continue;
      }
      if (exists(join(folder, name), &status) && S_ISDIR(status.st_mode)) {
        folders->push_back(name);
      } else if (ends_with_pte(name) && !is_folder(join(folder, name))) {
        files->push_back(name);
      }
    }
    ::closedir(open);
    sort_names(files);
    sort_names(folders);
    return true;
  }

  std::vector<Item> items_;
  std::unordered_set<std::string> known_;
};

}  // namespace

std::vector<Item> expand(const std::vector<std::string>& names) {
  Expander expander;
  for (const std::string& name : names) {
    expander.expand(name);
  }
  return expander.take();
}

}  // namespace etvk_guard::tool
