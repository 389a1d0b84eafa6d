#include "core/schedules/conv_problem.h"

#include <algorithm>

#include "core/schedules/tile.h"

namespace cuvil::schedules {

namespace {
std::optional<std::string> number(const Dim& dim, const char* what, int64_t& value) {
  const std::optional<int64_t> v = dim.as_const();
  if (!v) return std::string(what) + " is symbolic (" + dim.str() + ")";
  value = *v;
  return {};
}

std::optional<std::string> read(const ops::Group& group, ConvProblem& p) {
  const ir::Node& node = *group.anchor;
  const ir::Type& x = node.input(0)->type;
  const ir::Type& w = node.input(1)->type;
  if (x.rank() != 4) return "the image has rank " + std::to_string(x.rank()) + ", not 4";
  if (x.dtype != DType::f32 || w.dtype != DType::f32) return "only f32 is scheduled";
  read_window(node, p);
  if (auto r = number(x.shape[1], "the number of input channels", p.ic)) return r;
  if (auto r = number(node.output()->type.shape[1], "the number of output channels", p.oc)) return r;
  if (auto r = number(w.shape[2], "the kernel's height", p.kh)) return r;
  if (auto r = number(w.shape[3], "the kernel's width", p.kw)) return r;
  p.groups = node.attr<int64_t>("groups");
  p.gic = p.ic / p.groups, p.goc = p.oc / p.groups;
  return {};
}

std::optional<std::string> refuse_layout(const ir::Type& type, const char* what, Image image,
                                         const TargetInfo& target) {
  const ir::Layout blocked = ir::Layout::nchwc(4, target.lanes_f32());
  if (image == Image::plain && !type.layout.is_plain()) return std::string(what) + " is not in plain layout";
  if (image == Image::blocked && type.layout != blocked)
    return std::string(what) + " is not blocked as " + blocked.str(4);
  return {};
}
}  // namespace

void read_window(const ir::Node& node, ConvProblem& p) {
  const Shape &x = node.input(0)->type.shape, &y = node.output()->type.shape;
  p.n = x[0], p.h = x[2], p.w = x[3], p.oh = y[2], p.ow = y[3];
  const auto& strides = node.attr<std::vector<int64_t>>("strides");
  const auto& dilations = node.attr<std::vector<int64_t>>("dilations");
  const auto& pads = node.attr<std::vector<int64_t>>("pads");
  p.sh = strides[0], p.sw = strides[1], p.dh = dilations[0], p.dw = dilations[1];
  p.pt = pads[0], p.pl = pads[1], p.pb = pads[2], p.pr = pads[3];
}

std::optional<std::string> read_conv(const ops::Group& group, ConvProblem& p) {
  if (!group.anchor || group.anchor->op != "Conv2D") return "not a convolution";
  return read(group, p);
}

std::optional<std::string> read_conv_transpose(const ops::Group& group, ConvProblem& p) {
  if (!group.anchor || group.anchor->op != "ConvTranspose2D") return "not a transposed convolution";
  return read(group, p);
}

bool reads_memory(const ops::Group& group, size_t input) {
  const ir::Value* value = group.anchor->input(input);
  return std::find(group.prologue.begin(), group.prologue.end(), value->producer) == group.prologue.end();
}

bool is_constant(const ops::Group& group, size_t input) {
  const ir::Value* value = group.anchor->input(input);
  if (ir::constant_of(value)) return true;
  if (group.node == group.anchor || group.node->regions.empty()) return false;
  const ir::Region& region = group.node->regions[0];
  for (size_t i = 0; i < region.params.size(); ++i)
    if (region.params[i].get() == value) return ir::constant_of(group.node->input(i)) != nullptr;
  return false;
}

const ir::Type& stored_type(const ops::Group& group) { return group.node->output()->type; }

std::optional<std::string> refuse_images(const ops::Group& group, const TargetInfo& target, Image in, Image out) {
  if (auto r = refuse_layout(group.anchor->input(0)->type, "the input", in, target)) return r;
  if (auto r = refuse_layout(stored_type(group), "the output", out, target)) return r;
  if (!reads_memory(group, 0) || (group.anchor->input(1) && !reads_memory(group, 1)))
    return "a producer is fused in front of it";
  return {};
}

std::optional<std::string> refuse_weight(const ops::Group& group, size_t input, const ir::Layout& wanted) {
  const ir::Type& type = group.anchor->input(input)->type;
  if (type.layout == wanted) return {};
  if (type.layout.is_plain() && is_constant(group, input)) return {};
  return "the weight is neither constant nor packed as " + wanted.str(type.rank());
}

namespace {
void for_each_task(LowerContext& c, const ConvProblem& p, int64_t rows, std::optional<int> lanes,
                   const std::function<void(const RowTask&)>& body) {
  Builder& b = c.b();
  const Expr oh = c.dim(p.oh), chunks = kernel::ceildiv(oh, Expr(rows));
  const Expr blocks = lanes ? Expr((p.oc + *lanes - 1) / *lanes) : Expr();
  const Expr images = lanes ? c.dim(p.n) * blocks : c.dim(p.n);
  b.phase(images * chunks, [&](Expr task) {
    RowTask t;
    const Expr chunk = b.let("chunk", task % chunks);
    if (lanes) {
      const Expr rest = b.let("rest", kernel::floordiv(task, chunks));
      t.block = b.let("block", rest % blocks);
      t.n = b.let("n", kernel::floordiv(rest, blocks));
    } else {
      t.n = b.let("n", kernel::floordiv(task, chunks));
    }
    t.begin = b.let("row_begin", chunk * Expr(rows));
    t.end = b.let("row_end", kernel::min(oh, t.begin + Expr(rows)));
    if (lanes && p.oc % *lanes != 0)
      t.mask = b.let("mask", kernel::lane_mask(t.block * Expr(*lanes), Expr(p.oc), *lanes));
    body(t);
  });
}
}  // namespace

void for_each_rows(LowerContext& c, const ConvProblem& p, int64_t rows,
                   const std::function<void(const RowTask&)>& body) {
  for_each_task(c, p, rows, {}, body);
}

void for_each_block_rows(LowerContext& c, const ConvProblem& p, int64_t rows, int lanes,
                         const std::function<void(const RowTask&)>& body) {
  for_each_task(c, p, rows, lanes, body);
}

std::vector<ColumnRun> column_runs(const ConvProblem& p, int64_t w, int64_t ow, int width) {
  std::vector<ColumnRun> runs;
  for (int64_t begin = 0; begin < ow; begin += width) {
    ColumnRun run;
    run.begin = begin;
    run.width = static_cast<int>(std::min<int64_t>(width, ow - begin));
    bool inside = true;
    for (int64_t kw = 0; kw < p.kw; ++kw) {
      std::vector<bool> taps;
      for (int x = 0; x < run.width; ++x) {
        const int64_t iw = (begin + x) * p.sw + kw * p.dw - p.pl;
        taps.push_back(iw >= 0 && iw < w);
        inside = inside && taps.back();
      }
      run.taps.push_back(std::move(taps));
    }
    if (inside) run.taps.clear();
    if (!runs.empty() && runs.back().width == run.width && runs.back().taps == run.taps)
      ++runs.back().count;
    else
      runs.push_back(std::move(run));
  }
  return runs;
}

void cover_row(LowerContext& c, const ConvProblem& p, int width,
               const std::function<void(const Expr& ow, int width, const Taps* taps)>& body) {
  Builder& b = c.b();
  if (p.ow.is_const() && p.w.is_const()) {
    for (const ColumnRun& run : column_runs(p, p.w.value(), p.ow.value(), width)) {
      if (run.count == 1) {
        body(Expr(run.begin), run.width, &run.taps);
        continue;
      }
      b.loop("column", Expr(run.count),
             [&](Expr i) { body(b.let("ow", Expr(run.begin) + i * Expr(run.width)), run.width, &run.taps); });
    }
    return;
  }
  const Expr ow = c.dim(p.ow);
  const auto [first, end] = interior(c.dim(p.w), ow, p.sw, p.dw, p.pl, p.kw);
  const Taps all;
  std::function<void(const Expr&)> border;
  if (!never_clipped(p.w, p.ow, p.sw, p.dw, p.pl, p.kw)) border = [&](const Expr& at) { body(at, 1, nullptr); };
  cover_between(b, "ow", first, end, ow, width, [&](const Expr& at, int tile) { body(at, tile, &all); }, border);
}

void cover_between(Builder& b, const std::string& name, Expr first, Expr end, const Expr& extent, int width,
                   const std::function<void(const Expr& at, int width)>& tile,
                   const std::function<void(const Expr& at)>& border) {
  first = b.let("first", first);
  end = b.let("end", end);
  cover(b, first, end, width, tile);
  const Expr count = first + (extent - end);
  if (!border || count.is_const_int(0)) return;
  // One loop over both borders keeps one copy of the code.
  b.loop("border", count, [&](Expr i) { border(b.let(name, kernel::select(i < first, i, i - first + end))); });
}

std::vector<TapOfColumn> taps_of_column(const ConvProblem& p, int width, int64_t at) {
  std::vector<TapOfColumn> taps;
  for (int64_t kw = 0; kw < p.kw; ++kw) {
    const int64_t offset = at - kw * p.dw;
    if (offset >= 0 && offset % p.sw == 0 && offset / p.sw < width)
      taps.push_back({kw, static_cast<int>(offset / p.sw)});
  }
  return taps;
}

int64_t columns_read(const ConvProblem& p, int width) { return (width - 1) * p.sw + (p.kw - 1) * p.dw + 1; }

std::pair<Expr, Expr> tap_range(const Expr& out, int64_t stride, int64_t dilation, int64_t pad, int64_t taps,
                                const Expr& extent) {
  // 0 <= out * stride + k * dilation - pad < extent
  const Expr first = out * Expr(stride) - Expr(pad);
  const Expr begin = kernel::max(Expr(0), kernel::ceildiv(-first, Expr(dilation)));
  const Expr end = kernel::min(Expr(taps), kernel::ceildiv(extent - first, Expr(dilation)));
  return {begin, end};
}

bool never_clipped(const Dim& in, const Dim& out, int64_t stride, int64_t dilation, int64_t pad, int64_t taps) {
  if (pad > 0) return false;
  const auto slack = (in - ((out - 1) * stride + (taps - 1) * dilation - pad + 1)).lower_bound();
  if (slack && *slack >= 0) return true;
  // Without padding every output was computed from taps inside by the shape rule, unless the end was padded.
  return pad == 0 && taps == 1 && stride == 1 && in == out;
}

std::pair<Expr, Expr> interior(const Expr& in, const Expr& out, int64_t stride, int64_t dilation, int64_t pad,
                               int64_t taps) {
  // First output whose tap 0 is at or after 0; last whose last tap is before `in`.
  const Expr first = kernel::min(out, Expr(pad > 0 ? (pad + stride - 1) / stride : 0));
  const Expr end = kernel::floordiv(in - Expr((taps - 1) * dilation - pad + 1), Expr(stride)) + Expr(1);
  return {first, kernel::max(first, kernel::min(out, end))};
}

}  // namespace cuvil::schedules
