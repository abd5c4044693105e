#!/usr/bin/env bash
# Builds gpuperf on a machine with a GPU and runs what needs one, stage by stage; nothing is lost when a step fails.
#
#   tools/gpu_session.sh OUTDIR STAGE…   STAGE: build | test | overhead | stress | gpt2 | tail | bench | all (all but tail)
#
#   build      the wheel into the Python in use ($PYTHON, default python3), the benchmarks, the test programs
#   test       tests/gpu                                        -> OUTDIR/gpu-tests.json
#   stress     step time with nothing, the baseline, gpuperf, torch.profiler; memory; a real trace -> OUTDIR/stress.json
#   gpt2       the same step times of the other workload        -> OUTDIR/gpt2.json
#   overhead   both
#   tail       p99.9 of 10,000 gpt2 steps (about 8 minutes)      -> OUTDIR/tail.json
#   bench      what needs no GPU, on this machine                -> OUTDIR/bench.json
#
# All output goes to OUTDIR/session.log; the page of all results so far is OUTDIR/verification.md. A step that fails is
# said, and the next one runs. Exit code: 0 all steps done, 1 one failed, 2 usage.
#
# Needs: a C++17 compiler, CMake, Ninja, a CUDA toolkit (nvcc), Python with torch, transformers, numpy, pytest, rich,
# pybind11 and scikit-build-core. No network: Abseil and protozero are taken from third_party/abseil and
# third_party/protozero where these folders exist, else from the system. GPUPERF_TREE names the tree where there is no
# git. STEP_SECONDS limits each step (default 560), OVERHEAD_ARGS and PYTEST_ARGS are passed on.
set -uo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '4,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
python=${PYTHON:-python3}
limit=${STEP_SECONDS:-560}
jobs=$(nproc)
export PYTHONUNBUFFERED=1
export BENCH_BUILD_DIR=$PWD/build/gpu
export GPU_TEST_PROGRAMS=$PWD/build/gpu-programs
failed=()
log=$out/session.log
touch "$log"

# step NAME COMMAND…: runs it into the log, says how it went in one line, and how it failed in some more.
step() {
  local name=$1 began=$SECONDS mark status
  shift
  mark=$(wc -l <"$log")
  { echo; echo "=== $stage: $name: $*"; } >>"$log"
  timeout --kill-after=10 "$limit" "$@" >>"$log" 2>&1
  status=$?
  if [ $status -eq 0 ]; then
    echo "$stage: $name: done, $((SECONDS - began)) s"
  else
    echo "$stage: $name: FAILED ($status), $((SECONDS - began)) s"
    tail -n +"$((mark + 3))" "$log" | tail -n "${tail_lines:-25}" | cut -c1-400 | sed 's/^/    /'
    failed+=("$stage: $name")
  fi
  return $status
}

stage_build() {
  local defines=() config=() folder
  for folder in abseil protozero; do
    if [ -d "third_party/$folder" ]; then
      defines+=("-DGPUPERF_${folder^^}_SOURCE_DIR=$PWD/third_party/$folder")
      config+=(-C "cmake.define.GPUPERF_${folder^^}_SOURCE_DIR=$PWD/third_party/$folder")
    fi
  done
  step "test programs" make -j"$jobs" -C tests/gpu/programs "OUT=$GPU_TEST_PROGRAMS"
  step "gpuperf into $($python -c 'import sys; print(sys.prefix)')" env CMAKE_BUILD_PARALLEL_LEVEL="$jobs" \
    "$python" -m pip install --no-build-isolation --no-index --no-deps --force-reinstall -C build-dir=build/gpu-wheel \
    ${config[@]+"${config[@]}"} .
  step "configure" cmake -S . -B "$BENCH_BUILD_DIR" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGPUPERF_BENCHMARKS=ON -DGPUPERF_TESTS=ON \
    ${defines[@]+"${defines[@]}"} ${CMAKE_ARGS:-}
  local target
  for target in gpuperf_baseline ring_bench collector_bench callback_bench reader_bench gpuperf-replay; do
    step "$target" cmake --build "$BENCH_BUILD_DIR" --target "$target" -j "$jobs"
  done
  step "what is here" "$python" -m gpuperf doctor
}

stage_test() {
  # shellcheck disable=SC2086
  tail_lines=80 step "GPU suite" env COLUMNS=240 "$python" -m pytest tests/gpu -q -m 'gpu or not gpu' -p no:cacheprovider -W default --tb=short \
    --gpu-json "$out/gpu-tests.json" ${PYTEST_ARGS:-} && tail -n 1 "$log"
}

# measure ARGUMENTS…: run.py with them, and its table.
measure() {
  echo "${GPUPERF_TREE:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}" >"$out/$stage.tree"
  tail_lines=80 step "$*" env -u GPUPERF_TREE "$python" benchmarks/run.py "$@" --json "$out/$stage.json" --keep "$out" &&
    tac "$log" | sed '/^figure /q' | tac
}

# shellcheck disable=SC2086
stage_stress() { measure memory real_trace overhead --workload stress ${OVERHEAD_ARGS:-}; }
# shellcheck disable=SC2086
stage_gpt2() { measure overhead --workload gpt2 ${OVERHEAD_ARGS:-}; }
stage_tail() { measure tail --time-limit "$((limit - 60))"; }
stage_bench() { measure ring collector callback import_time trace_size reader; }

write_page() {
  local benches=() file
  for file in bench stress gpt2 tail; do
    [ -s "$out/$file.json" ] && benches+=("$out/$file.json")
  done
  [ -s "$out/gpu-tests.json" ] || return 0
  "$python" tools/write_verification.py --out "$out/verification.md" "$out/gpu-tests.json" ${benches[@]+"${benches[@]}"}
}

stages=("$@")
[ "${stages[*]}" != all ] || stages=(build test stress gpt2 bench)
[ "${stages[*]}" != overhead ] || stages=(stress gpt2)
for stage in "${stages[@]}"; do
  case $stage in build | test | stress | gpt2 | tail | bench) ;; *) usage ;; esac
done
for stage in "${stages[@]}"; do
  "stage_$stage"
  write_page
done

echo
if [ ${#failed[@]} -eq 0 ]; then
  echo "all steps done; results in $out"
else
  printf 'failed: %s\n' "${failed[@]}"
  echo "everything that was said: $log"
  exit 1
fi
