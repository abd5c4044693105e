#!/bin/sh
# Records what CUPTI delivers on this machine's GPU, for the stand-in libcupti to replay:
#
#   tools/recorder/record.sh OUT_FOLDER [stress] [mixed] [gpt2]
#
# Writes NAME.gpcap.gz and NAME.json (card, driver, versions, date, command, counts, SHA-256) for each workload.
# Needs g++, the CUPTI headers (CUDA toolkit, or PyPI's nvidia-cuda-cupti and nvidia-cuda-runtime beside PyTorch) and
# PyTorch. PYTHON names the interpreter, STRESS_STEPS and GPT2_STEPS the number of recorded steps.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${PYTHON:-python3}
[ $# -ge 1 ] || { echo "usage: $0 OUT_FOLDER [stress] [mixed] [gpt2]" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
[ $# -ge 1 ] || set -- stress mixed gpt2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Where the headers are: CUDA_HOME, nvcc's toolkit, the usual place, the wheels.
includes=""
nvcc=$(command -v nvcc || true)
wheels=$("$python" -c 'import sys, pathlib
print(" ".join(str(p) for d in sys.path for p in pathlib.Path(d or ".").glob("nvidia/*/include")))')
# shellcheck disable=SC2086
for folder in ${CUDA_HOME:+"$CUDA_HOME/include"} ${nvcc:+"$(dirname "$(readlink -f "$nvcc")")/../include"} \
              /usr/local/cuda/include /usr/local/cuda/extras/CUPTI/include $wheels; do
  if [ -d "$folder" ]; then includes="$includes -I$folder"; fi
done

# shellcheck disable=SC2086
${CXX:-g++} -std=c++17 -O2 -fPIC -shared -fvisibility=hidden -w -o "$work/libgpuperf_recorder.so" \
  "$here/recorder.cc" "$root/csrc/cupti/call_table.cc" -I"$root/csrc" $includes -ldl -lpthread

libcupti=$("$python" -c 'import sys, pathlib
found = [str(p) for d in sys.path for p in pathlib.Path(d or ".").glob("nvidia/*/lib/libcupti.so.1[23]")]
print(found[0] if found else "")')

given=$("$python" - <<'PYTHON'
import datetime, json, platform, subprocess
import torch
def smi(field):
    try:
        return subprocess.run(["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader"], capture_output=True,
                              text=True, check=True).stdout.splitlines()[0].strip()
    except (OSError, subprocess.CalledProcessError, IndexError):
        return ""
print(json.dumps({"card": smi("name"), "driver": smi("driver_version"), "torch": torch.__version__,
                  "cuda": torch.version.cuda, "python": platform.python_version(),
                  "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}))
PYTHON
)

status=0
for name in "$@"; do
  steps=0 skip=0 launches=0
  case $name in
    stress) steps=${STRESS_STEPS:-20}; skip=4000 ;;
    gpt2) steps=${GPT2_STEPS:-3}; skip=1500 ;;
    mixed) ;;
    *) echo "record.sh: unknown workload $name" >&2; exit 2 ;;
  esac
  capture="$work/$name.gpcap"
  echo "== $name"
  # Enough warm-up that `skip` launches are over before the first recorded step.
  if ! GPUPERF_RECORD="$capture" GPUPERF_RECORD_META="$given" GPUPERF_RECORD_SKIP_LAUNCHES=$skip \
    GPUPERF_RECORD_LAUNCHES=$launches GPUPERF_CUPTI="$libcupti" \
    CUDA_INJECTION64_PATH="$work/libgpuperf_recorder.so" \
    "$python" "$here/workloads.py" "$name" --steps "$steps" --warmup 5; then
    echo "record.sh: $name failed" >&2
    status=1
    continue
  fi
  gzip -9nc "$capture" > "$out/$name.gpcap.gz"
  "$python" "$here/describe.py" "$out/$name.gpcap.gz" --json "$out/$name.json" || status=1
  ls -l "$out/$name.gpcap.gz"
done
exit $status
