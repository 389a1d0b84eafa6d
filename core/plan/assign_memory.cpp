// Lifetimes and offsets. Sharing (views, concat, in-place) is decided before, in make_plan.cpp; what is left here is
// interval packing, by the algorithm that the runtime uses too (core/abi/place.h).
#include <algorithm>
#include <cstdio>

#include "core/abi/place.h"
#include "core/base/error.h"
#include "core/plan/memory.h"

namespace cuvil::plan {

int root_of(const Plan& plan, int buffer) {
  while (plan.buffers[buffer].view_of >= 0) buffer = plan.buffers[buffer].view_of;
  return buffer;
}

void assign_memory(Plan& plan) {
  std::vector<bool> touched(plan.buffers.size(), false);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    for (const Argument& a : plan.steps[s].arguments) {
      const int root = root_of(plan, a.buffer);
      Buffer& b = plan.buffers[root];
      if (!touched[root]) b.first_step = static_cast<int>(s);
      touched[root] = true;
      b.last_step = static_cast<int>(s);
    }
  }
  // What an iteration leaves for the next, or reads of what was before, lives as long as the loop.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      Buffer& b = plan.buffers[i];
      if (!touched[i]) continue;
      for (const Repeated& loop : plan.loops) {
        const bool apart = b.last_step < loop.first_step || b.first_step > loop.last_step;
        const bool inside = b.first_step >= loop.first_step && b.last_step <= loop.last_step;
        const bool whole = b.first_step <= loop.first_step && b.last_step >= loop.last_step;
        if (apart || inside || whole) continue;
        b.first_step = std::min(b.first_step, loop.first_step);
        b.last_step = std::max(b.last_step, loop.last_step);
        changed = true;
      }
    }
  }
  std::vector<PlaceItem> items;
  std::vector<size_t> owner;
  bool is_static = true;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& b = plan.buffers[i];
    if (b.kind != BufferKind::arena || b.view_of >= 0) continue;
    is_static = is_static && b.bytes.is_const();
    if (!is_static) return;
    items.push_back({b.bytes.value(), static_cast<uint32_t>(b.first_step), static_cast<uint32_t>(b.last_step)});
    owner.push_back(i);
  }
  const size_t n = items.size(), steps = plan.steps.size();
  std::vector<int64_t> offsets(n);
  std::vector<uint32_t> work_u32(place_work_u32(n));
  std::vector<int64_t> work_i64(place_work_i64(n, steps));
  const Placement placement = place(items.data(), n, steps, offsets.data(), work_u32.data(), work_i64.data());
  for (size_t k = 0; k < n; ++k) plan.buffers[owner[k]].offset = offsets[k];
  plan.arena_bytes = placement.arena_bytes;
  plan.lower_bound_bytes = placement.lower_bound;
}

namespace {

std::string kib(const Dim& bytes) {
  if (!bytes.is_const()) return bytes.str();
  char text[32];
  std::snprintf(text, sizeof text, "%.1f KiB", static_cast<double>(bytes.value()) / 1024.0);
  return text;
}

std::string pad(std::string text, size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

}  // namespace

std::string print_memory(const Plan& plan) {
  std::string out = pad("buffer", 40) + pad("size", 16) + pad("steps", 12) + "offset\n";
  for (const Buffer& b : plan.buffers) {
    if (b.kind != BufferKind::arena || b.view_of >= 0) continue;
    out += pad(b.name, 39) + " " + pad(kib(b.bytes), 16) +
           pad(std::to_string(b.first_step) + ".." + std::to_string(b.last_step), 12) +
           (b.offset >= 0 ? std::to_string(b.offset) : "at run time") + "\n";
  }
  Dim scratch = 0;
  for (const Step& s : plan.steps) scratch = max(scratch, s.scratch_bytes);
  if (plan.lower_bound_bytes > 0) {
    char line[160];
    std::snprintf(line, sizeof line, "arena %.1f KiB, lower bound %.1f KiB (%.1f %% above it)\n",
                  static_cast<double>(plan.arena_bytes) / 1024.0, static_cast<double>(plan.lower_bound_bytes) / 1024.0,
                  100.0 * (static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.lower_bound_bytes) - 1.0));
    out += line;
  } else {
    out += "arena placed at run time: sizes depend on the inputs' shapes\n";
  }
  out += "scratch " + kib(scratch) + " per thread, apart from the arena\n";
  return out;
}

std::string print(const Plan& plan) {
  std::string out = pad("step", 6) + pad("name", 40) + pad("schedule", 24) + pad("tasks", 24) + "writes\n";
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& s = plan.steps[i];
    std::string tasks;
    for (const Dim& t : s.tasks) tasks += (tasks.empty() ? "" : " + ") + t.str();
    Dim written = 0;
    for (size_t a = static_cast<size_t>(s.inputs); a < s.arguments.size(); ++a)
      written = written + plan.buffers[s.arguments[a].buffer].bytes;
    out +=
        pad(std::to_string(i), 6) + pad(s.name, 39) + " " + pad(s.schedule, 24) + pad(tasks, 24) + kib(written) + "\n";
  }
  return out;
}

}  // namespace cuvil::plan
