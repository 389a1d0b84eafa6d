// The loop that runs steps.
#include <cmath>
#include <cstring>
#include <memory>

#include "core/base/error.h"
#include "core/kernel/half.h"
#include "core/kernel/machine.h"

namespace cuvil::kernel {
namespace {

template <class T>
T& as(unsigned char* p) {
  return *reinterpret_cast<T*>(p);
}

void broadcast(unsigned char* to, const unsigned char* from, int64_t size, uint32_t lanes) {
  if (size == 4) {
    uint32_t v;
    std::memcpy(&v, from, 4);
    for (uint32_t i = 0; i < lanes; ++i) std::memcpy(to + 4 * size_t{i}, &v, 4);
    return;
  }
  for (uint32_t i = 0; i < lanes; ++i) std::memcpy(to + i * static_cast<size_t>(size), from, static_cast<size_t>(size));
}

void shuffle(const Machine& m, const Step& s) {
  const auto size = static_cast<size_t>(s.imm >> 32);
  const auto lanes = static_cast<int>(s.imm & 0xffffffff);
  const std::vector<int>& picks = m.code->shuffles[s.c];
  for (size_t i = 0; i < picks.size(); ++i) {
    const unsigned char* from = m.frame + (picks[i] < lanes ? s.a : s.b);
    std::memcpy(m.frame + s.dst + i * size, from + static_cast<size_t>(picks[i] % lanes) * size, size);
  }
}

void reduce(const Machine& m, const Step& s) {
  alignas(8) unsigned char lanes[8 * kMaxLanes];
  const auto dtype = static_cast<DType>(s.imm & 0xff);
  const auto size = static_cast<size_t>(size_of(dtype));
  std::memcpy(lanes, m.frame + s.a, size * s.count);
  reduce_lanes(static_cast<Op>(s.imm >> 8), dtype, lanes, static_cast<int>(s.count));
  std::memcpy(m.frame + s.dst, lanes, size);
}

void dot_i8(const Machine& m, const Step& s) {
  const bool is_unsigned = s.imm != 0;
  for (uint32_t i = 0; i < s.count; ++i) {
    auto sum = static_cast<uint32_t>(as<int32_t>(m.frame + s.a + 4 * size_t{i}));
    for (uint32_t j = 4 * i; j < 4 * i + 4; ++j) {
      const int a = is_unsigned ? m.frame[s.b + j] : static_cast<int8_t>(m.frame[s.b + j]);
      sum += static_cast<uint32_t>(a * static_cast<int8_t>(m.frame[s.c + j]));
    }
    as<int32_t>(m.frame + s.dst + 4 * size_t{i}) = static_cast<int32_t>(sum);
  }
}

void dot_bf16(const Machine& m, const Step& s) {
  for (uint32_t i = 0; i < s.count; ++i) {
    float sum = as<float>(m.frame + s.a + 4 * size_t{i});
    for (uint32_t j = 2 * i; j < 2 * i + 2; ++j)
      sum = std::fma(as<BFloat>(m.frame + s.b + 2 * size_t{j}).value(),
                     as<BFloat>(m.frame + s.c + 2 * size_t{j}).value(), sum);
    as<float>(m.frame + s.dst + 4 * size_t{i}) = sum;
  }
}

/// Offset of the element that scalar indices name. The rank is a constant: this is where an interpreted kernel spends
/// its time.
template <uint32_t kRank>
int64_t element_of(const Machine& m, const AccessPlan& a, const BufferState& b) {
  int64_t offset = 0;
  const uint32_t* place = a.indices;
#pragma GCC unroll 4
  for (uint32_t d = 0; d < kRank; ++d) {
    const int64_t i = as<int64_t>(m.frame + place[d]);
    if (static_cast<uint64_t>(i) >= static_cast<uint64_t>(b.extents[d])) [[unlikely]]
      report_index(m, a, d, i);
    offset += i * b.strides[d];
  }
  return offset;
}
int64_t element(const Machine& m, const AccessPlan& a, const BufferState& b) {
  switch (b.rank) {
    case 1:
      return element_of<1>(m, a, b);
    case 2:
      return element_of<2>(m, a, b);
    case 3:
      return element_of<3>(m, a, b);
    case 4:
      return element_of<4>(m, a, b);
    default:
      break;
  }
  int64_t offset = 0;
  for (uint32_t d = 0; d < b.rank; ++d) {
    const int64_t i = as<int64_t>(m.frame + a.indices[d]);
    if (i < 0 || i >= b.extents[d]) report_index(m, a, d, i);
    offset += i * b.strides[d];
  }
  return offset;
}

void move(unsigned char* to, const unsigned char* from, uint32_t bytes) {
  switch (bytes) {
    case 4:
      std::memcpy(to, from, 4);
      break;
    case 1:
      *to = *from;
      break;
    case 8:
      std::memcpy(to, from, 8);
      break;
    default:
      std::memcpy(to, from, 2);
      break;
  }
}

/// One thread of a nest: its own frame and its own reg buffers.
struct Thread {
  std::vector<unsigned char> frame;
  std::vector<BufferState> buffers;
  std::vector<std::unique_ptr<unsigned char[]>> memory;
  std::vector<std::vector<uint32_t>> stamps;
  Machine machine;
  const Step* next = nullptr;

  Thread(const Machine& m, const ThreadNest& nest, int64_t number, const Step* first)
      : frame(m.frame, m.frame + m.code->frame.size()), buffers(m.buffers, m.buffers + m.code->buffers.size()) {
    for (size_t d = nest.extents.size(); d-- > 0; number /= nest.extents[d]) {
      const int64_t index = number % nest.extents[d];
      std::memcpy(frame.data() + nest.variables[d], &index, 8);
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (!m.code->buffers[i].per_thread) continue;
      BufferState& b = buffers[i];
      const auto scalars = static_cast<size_t>(b.elements) * b.lanes;
      memory.emplace_back(new unsigned char[scalars * b.scalar_bytes + 64]());
      b.data = memory.back().get();
      stamps.emplace_back(scalars);
      b.stamps = stamps.back().data();
      b.generation = 0;
    }
    machine = {m.code, frame.data(), buffers.data()};
    next = first;
  }
};

/// All threads of a nest from barrier to barrier.
Stop run_threads(const Machine& m, const ThreadNest& nest, const Step* first) {
  int64_t count = 1;
  for (int64_t extent : nest.extents) count = extent > 0 && count > 0 ? count * extent : 0;
  CUVIL_CHECK(count <= 1 << 16, "kernel " + m.code->kernel + ": too many threads around a barrier");
  std::vector<std::unique_ptr<Thread>> threads;
  for (int64_t i = 0; i < count; ++i) threads.push_back(std::make_unique<Thread>(m, nest, i, first));
  for (bool running = count > 0; running;) {
    for (auto& t : threads) {
      const Stop stop = run_steps(t->machine, t->next);
      if (stop.failed) return stop;
      t->next = stop.next;
    }
    running = threads[0]->next != nullptr;
    for (const auto& t : threads)
      CUVIL_CHECK((t->next != nullptr) == running,
                  "kernel " + m.code->kernel + ": a barrier some threads do not reach");
  }
  return {};
}

}  // namespace

Stop run_steps(Machine& m, const Step* step) {
  unsigned char* const frame = m.frame;
  const AccessPlan* const accesses = m.code->accesses.data();
  BufferState* const buffers = m.buffers;
  for (;;) {
    const Step& s = *step;
    switch (s.code) {
      case Code::lanes:
        s.function(frame + s.dst, frame + s.a, frame + s.b, frame + s.c, static_cast<int>(s.count));
        break;
      case Code::add_i64:
        as<uint64_t>(frame + s.dst) = as<uint64_t>(frame + s.a) + as<uint64_t>(frame + s.b);
        break;
      case Code::mul_i64:
        as<uint64_t>(frame + s.dst) = as<uint64_t>(frame + s.a) * as<uint64_t>(frame + s.b);
        break;
      case Code::lt_i64:
        frame[s.dst] = as<int64_t>(frame + s.a) < as<int64_t>(frame + s.b);
        break;
      case Code::and_bool:
        frame[s.dst] = frame[s.a] && frame[s.b];
        break;
      case Code::add_f32:
        as<float>(frame + s.dst) = as<float>(frame + s.a) + as<float>(frame + s.b);
        break;
      case Code::mul_f32:
        as<float>(frame + s.dst) = as<float>(frame + s.a) * as<float>(frame + s.b);
        break;
      case Code::fma_f32:
        as<float>(frame + s.dst) = std::fma(as<float>(frame + s.a), as<float>(frame + s.b), as<float>(frame + s.c));
        break;
      case Code::broadcast:
        broadcast(frame + s.dst, frame + s.a, s.imm, s.count);
        break;
      case Code::ramp:
        for (uint32_t i = 0; i < s.count; ++i)
          as<uint64_t>(frame + s.dst + 8 * size_t{i}) = as<uint64_t>(frame + s.a) + i * as<uint64_t>(frame + s.b);
        break;
      case Code::shuffle:
        shuffle(m, s);
        break;
      case Code::reduce:
        reduce(m, s);
        break;
      case Code::dot_i8:
        dot_i8(m, s);
        break;
      case Code::dot_bf16:
        dot_bf16(m, s);
        break;
      case Code::load: {
        const AccessPlan& a = accesses[s.a];
        const BufferState& b = buffers[a.buffer];
        const int64_t i = element(m, a, b);
        if (b.stamps && b.stamps[i] != b.generation) report_unwritten(m, a, i);
        move(frame + s.dst, b.data + i * s.count, s.count);
        break;
      }
      case Code::load_lanes:
        load_lanes(m, accesses[s.a], frame + s.dst);
        break;
      case Code::store: {
        const AccessPlan& a = accesses[s.a];
        const BufferState& b = buffers[a.buffer];
        const int64_t i = element(m, a, b);
        if (b.stamps) b.stamps[i] = b.generation;
        move(b.data + i * s.count, frame + s.b, s.count);
        break;
      }
      case Code::store_lanes:
        store_lanes(m, accesses[s.a], frame + s.b);
        break;
      case Code::alloc:
        begin_generation(buffers[s.a]);
        break;
      case Code::loop_enter:
        as<int64_t>(frame + s.dst) = as<int64_t>(frame + s.a);
        if (as<int64_t>(frame + s.a) >= as<int64_t>(frame + s.b)) {
          step += s.imm;
          continue;
        }
        break;
      case Code::loop_next: {
        int64_t next;
        if (__builtin_add_overflow(as<int64_t>(frame + s.dst), s.imm, &next)) break;  // past any end
        as<int64_t>(frame + s.dst) = next;
        if (next < as<int64_t>(frame + s.b)) {
          step -= s.c;
          continue;
        }
        break;
      }
      case Code::jump:
        step += s.imm;
        continue;
      case Code::jump_unless:
        if (!frame[s.a]) {
          step += s.imm;
          continue;
        }
        break;
      case Code::threads: {
        const Stop stop = run_threads(m, m.code->nests[s.a], step + 1);
        if (stop.failed) return stop;
        step += s.imm;
        break;
      }
      case Code::barrier:
        return {false, 0, step + 1};
      case Code::fail:
        return {true, static_cast<int32_t>(s.imm), nullptr};
      case Code::end:
        return {};
    }
    ++step;
  }
}

}  // namespace cuvil::kernel
