#include "analysis/ranges.h"

#include <algorithm>

#include "analysis/arithmetic.h"

namespace gpuperf::analysis {
namespace {

constexpr uint32_t kOutside = 1;  // the stack of a call in no range

bool PutsWorkOnDevice(v1::CallKind kind) {
  return kind == v1::CALL_KIND_LAUNCH || kind == v1::CALL_KIND_GRAPH_LAUNCH || kind == v1::CALL_KIND_COPY ||
         kind == v1::CALL_KIND_MEMSET;
}

// The part of [begin, end) in the set, from its first to its last moment there; absent: none.
std::optional<Interval> Clip(const Intervals& set, int64_t begin, int64_t end) {
  const Intervals inside = Intersection(set, Union({{begin, end}}));
  if (!inside.empty()) return Interval{inside.front().begin, inside.back().end};
  if (begin == end && Overlap(set, begin, end)) return Interval{begin, end};
  return std::nullopt;
}

}  // namespace

void RangeProjection::SetRegion(Intervals host, Intervals device) {
  region_ = std::move(host);
  device_region_ = std::move(device);
}

template <class Row>
uint32_t RangeProjection::GroupOf(const Row& row) {
  const bool domain_lost = row.row.nvtx().domain_iid() != 0 && row.domain == nullptr;
  const GroupKey key{row.row.source(), row.domain == nullptr ? "" : *row.domain, domain_lost, row.name != nullptr,
                     row.name == nullptr ? "" : *row.name};
  const auto [place, is_new] = group_by_key_.try_emplace(key, static_cast<uint32_t>(groups_.size()));
  if (is_new) {
    RangeFigures& figures = groups_.emplace_back();
    figures.source = row.row.source();
    if (row.domain != nullptr) figures.domain = *row.domain;
    figures.domain_lost = domain_lost;
    if (row.name != nullptr) figures.name = *row.name;
  }
  return place->second;
}

// Tells the nests of a thread apart.
template <class Row>
static uint64_t NestOf(const Row& row) {
  enum : uint64_t { kDefaultDomain, kLostDomain, kNotNvtx };  // no string's addresses
  if (row.row.source() == v1::MARKER_SOURCE_GPUPERF) return kNotNvtx;
  if (row.domain == nullptr) return row.row.nvtx().domain_iid() == 0 ? kDefaultDomain : kLostDomain;
  return reinterpret_cast<uintptr_t>(row.domain);
}

template <class Row>
void RangeProjection::Add(const Row& row, uint32_t group, int64_t begin, int64_t end) {
  const auto index = static_cast<uint32_t>(instances_.size());
  if (row.row.source() == v1::MARKER_SOURCE_NVTX_START_END) {
    process_.instances.push_back(index);
  } else if (row.thread->known) {
    threads_[row.thread->definition.tid()][NestOf(row)].instances.push_back(index);
  } else {
    return;  // nobody can tell what it is around
  }
  instances_.push_back({begin, end, group});
}

void RangeProjection::AddInstance(const reader::AnnotationRow& row) {
  const auto begin = static_cast<int64_t>(row.row.begin_host_ns());
  const int64_t end = begin + static_cast<int64_t>(row.row.duration_ns());
  const std::optional<int64_t> ns = region_ ? Overlap(*region_, begin, end) : end - begin;
  if (!ns) return;
  const uint32_t group = GroupOf(row);
  RangeFigures& figures = groups_[group];
  ++figures.count;
  figures.total_ns = AddSaturated(figures.total_ns, *ns);
  figures.max_ns = std::max(figures.max_ns, *ns);
  Add(row, group, begin, end);
}

void RangeProjection::AddOpen(const reader::OpenAnnotationRow& row) {
  const auto begin = static_cast<int64_t>(row.row.begin_host_ns());
  if (region_ && (region_->empty() || region_->back().end <= begin)) return;
  const uint32_t group = GroupOf(row);
  ++groups_[group].open;
  Add(row, group, begin, INT64_MAX);
}

void RangeProjection::Prepare(int64_t span_end) {
  for (Instance& instance : instances_) {
    if (instance.end == INT64_MAX) instance.end = std::max(instance.begin, span_end);
  }
  for (auto& [tid, nests] : threads_) {
    for (auto& [key, nest] : nests) MakeLanes(&nest);
  }
  MakeLanes(&process_);
}

void RangeProjection::MakeLanes(Nest* nest) {
  // Of two that begin at once the outer one first.
  std::stable_sort(nest->instances.begin(), nest->instances.end(), [this](uint32_t a, uint32_t b) {
    const Instance& left = instances_[a];
    const Instance& right = instances_[b];
    return left.begin != right.begin ? left.begin < right.begin : left.end > right.end;
  });
  for (const uint32_t index : nest->instances) {
    Instance& instance = instances_[index];
    const auto fits = [&](Lane& lane) {
      while (!lane.open.empty() && instances_[lane.open.back()].end <= instance.begin) lane.open.pop_back();
      return lane.open.empty() || instances_[lane.open.back()].end >= instance.end;
    };
    auto lane = std::find_if(nest->lanes.begin(), nest->lanes.end(), fits);
    if (lane == nest->lanes.end()) {
      if (nest->lanes.size() == kMostDepth) {
        complete_ = false;
        continue;
      }
      lane = nest->lanes.emplace(nest->lanes.end());
    }
    if (!lane->open.empty()) instance.outer = lane->open.back();
    lane->open.push_back(index);
    lane->instances.push_back(index);
  }
  for (Lane& lane : nest->lanes) lane.open = {};
  nest->instances = {};
}

// Adds those that are around this moment.
void RangeProjection::CollectAround(Nest* nest, int64_t host_ns) {
  for (Lane& lane : nest->lanes) {
    const std::vector<uint32_t>& all = lane.instances;
    const auto begun = [&](size_t at) { return instances_[all[at]].begin <= host_ns; };
    if (!begun(lane.last) || host_ns < lane.host_ns || (lane.last + 1 < all.size() && begun(lane.last + 1))) {
      const auto behind = std::upper_bound(all.begin(), all.end(), host_ns, [this](int64_t time, uint32_t index) {
        return time < instances_[index].begin;
      });
      if (behind == all.begin()) continue;
      lane.last = static_cast<size_t>(behind - all.begin()) - 1;
      lane.innermost = all[lane.last];
    }
    lane.host_ns = host_ns;
    const auto is_over = [&](uint32_t index) { return instances_[index].end <= host_ns; };
    while (lane.innermost != kNone && is_over(lane.innermost)) lane.innermost = instances_[lane.innermost].outer;
    size_t depth = 0;
    for (uint32_t index = lane.innermost; index != kNone; index = instances_[index].outer) {
      if (++depth > kMostDepth) {
        complete_ = false;
        break;
      }
      around_.push_back(index);
    }
  }
}

// The stack of around_. Most calls have that of the call before.
uint32_t RangeProjection::Intern() {
  if (around_.empty()) return kOutside;
  const size_t last = stack_begins_.size() - 2;
  if (std::equal(stack_items_.begin() + static_cast<ptrdiff_t>(stack_begins_[last]), stack_items_.end(),
                 around_.begin(), around_.end())) {
    return static_cast<uint32_t>(last);
  }
  stack_items_.insert(stack_items_.end(), around_.begin(), around_.end());
  stack_begins_.push_back(stack_items_.size());
  return static_cast<uint32_t>(stack_begins_.size() - 2);
}

void RangeProjection::OnCall(const reader::CallRow& row) {
  if (!PutsWorkOnDevice(row.site->definition.kind())) return;
  around_.clear();
  if (row.thread->known) {
    const auto nests = threads_.find(row.thread->definition.tid());
    if (nests != threads_.end()) {
      for (auto& [key, nest] : nests->second) CollectAround(&nest, row.enter_host_ns);
    }
  }
  CollectAround(&process_, row.enter_host_ns);
  const uint32_t stack = Intern();
  stacks_[row.correlation] = stack;
  if (region_ && !Overlap(*region_, row.enter_host_ns, row.exit_host_ns)) return;
  // A group counts a call once, however often its name is around it.
  std::vector<uint32_t>& groups = around_;
  for (uint32_t& item : groups) item = instances_[item].group;
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  for (const uint32_t group : groups) ++groups_[group].launches;
}

void RangeProjection::OnWork(const reader::DeviceRow& row) {
  Work work{std::nullopt, row.begin_device_ns, row.end_device_ns, row.correlation};
  if (row.stream->known) work.device = row.stream->definition.device();
  if (region_) {
    const std::optional<Interval> inside = Clip(device_region_, work.begin, work.end);
    if (!inside) return;
    work.begin = inside->begin;
    work.end = inside->end;
  }
  busy_[work.device].Add(work.begin, work.end);
  const uint32_t stack = stacks_.Find(row.correlation);
  if (stack == 0) {
    early_.push_back(work);
  } else {
    Assign(work, stack);
  }
}

void RangeProjection::Assign(const Work& work, uint32_t stack) {
  if (stack <= kOutside) return;
  auto slot = std::find(devices_.begin(), devices_.end(), work.device);
  if (slot == devices_.end()) slot = devices_.insert(slot, work.device);
  const auto device = static_cast<uint32_t>(slot - devices_.begin());
  std::vector<uint32_t>& groups = around_;
  groups.clear();
  for (size_t at = stack_begins_[stack]; at < stack_begins_[stack + 1]; ++at) {
    const uint32_t index = stack_items_[at];
    const auto [place, is_new] = extents_.try_emplace({index, device}, Interval{work.begin, work.end});
    if (!is_new) {
      place->second.begin = std::min(place->second.begin, work.begin);
      place->second.end = std::max(place->second.end, work.end);
    }
    groups.push_back(instances_[index].group);
  }
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  for (const uint32_t group : groups) {
    ++groups_[group].operations;
    work_[{group, work.device}].Add(work.begin, work.end);
  }
}

std::vector<RangeFigures> RangeProjection::Finish() {
  for (const Work& work : early_) Assign(work, stacks_.Find(work.correlation));
  std::map<std::optional<uint32_t>, Intervals> busy;
  for (auto& [device, intervals] : busy_) busy[device] = intervals.Take();
  for (auto& [key, intervals] : work_) {
    RangeFigures& figures = groups_[key.first];
    figures.gpu_ns = AddSaturated(figures.gpu_ns, Length(intervals.Take()));
  }
  std::map<std::pair<uint32_t, uint32_t>, Intervals> extents;  // by group and device slot
  for (const auto& [key, extent] : extents_) extents[{instances_[key.first].group, key.second}].push_back(extent);
  for (auto& [key, intervals] : extents) {
    Intervals extent = Union(std::move(intervals));
    if (region_) extent = Intersection(extent, device_region_);
    RangeFigures& figures = groups_[key.first];
    figures.gpu_idle_ns = AddSaturated(figures.gpu_idle_ns, Length(Difference(extent, busy[devices_[key.second]])));
  }
  std::stable_sort(groups_.begin(), groups_.end(),
                   [](const RangeFigures& a, const RangeFigures& b) { return a.total_ns > b.total_ns; });
  return std::move(groups_);
}

}  // namespace gpuperf::analysis
