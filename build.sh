#!/usr/bin/env bash
# Builds the datasystem and packs it into output/. `bash build.sh -h` explains the options.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/progress.sh

usage() {
  cat <<'USAGE'
Usage: bash build.sh [options]        build, then pack wheel and tarball
       bash build.sh clean            remove everything that builds have made

What to build
  -A on|off     RDMA between workers (UCX; needs libibverbs and librdmacm). Default off:
                a worker of such a build refuses to start with enable_rdma=true
  -X on|off     heterogeneous (NPU, GPU) objects. Not given: only where a toolkit is found
  -P on|off|dir Python package; a folder names the Python installation to build for. Default on
  -J on|off     Java client. Default off
  -G on|off     Go client. Default off
  -M on|off     URMA transport. Default off
  -D on|off     download what URMA needs. Default off
  -v version    write this version into the file VERSION (letters, digits, dots)

How to build
  -r | -d       release (default) or debug
  -B dir        build tree. Default ./build
  -o dir        output tree. Default ./output
  -i on|off     incremental: keep both trees. Default off: they are wiped first
  -j number     compile jobs. Default: one per processor, at most 8
  -n on|off     Ninja instead of make. Not given: Ninja where it is installed
  -s on|off     strip binaries, symbols go to DATASYSTEM_SYM in the tarball. Default on
  -S off|address|thread|undefined (or a comma list)
                build with sanitizers, into a tree of its own; nothing is packed
  -c off|on|html  build for coverage. html: also write a report after -t run (needs gcovr)
  -p, -x on|off accepted: this build has no performance points and no jemalloc profiling switch

Tests
  -t off|build|run|run_cases|run_cpp|run_python|run_java|run_example|run_except_cpp
                build the tests, or build and run them. Default off
  -l regex      only C++ tests with such a label. Default: all
  -u number     tests at the same time. Default: one per processor, at most 8
  -m seconds    time limit of one test. Default 80

  -h            this text

Examples
  bash build.sh -A on -X off                 the usual build, with RDMA
  bash build.sh -A on -X off -i on -t run    build again what changed, run all tests
  bash build.sh -S address,undefined -t run_cpp
USAGE
}

refuse() {
  echo "build.sh: $*" >&2
  usage >&2
  exit 1
}

# need VALUE LETTER WORD...: the value of an option is one of the words.
need() {
  local value=$1 letter=$2 words word
  shift 2
  for word in "$@"; do [[ "$value" == "$word" ]] && return; done
  words="$*"
  refuse "invalid value '$value' for option -$letter: expected ${words// /, }"
}

need_number() {
  [[ "$1" =~ ^[1-9][0-9]{0,4}$ ]] || refuse "invalid value '$1' for option -$2: expected a number from 1 to 99999"
}

processors() { local n; n=$(nproc); echo $((n < 8 ? n : 8)); }

rdma=off hetero=auto python=on version=${DS_VERSION:-} build_type=Release build_dir=build output_dir=output
incremental=off jobs=$(processors) ninja=auto strip=on sanitize=off coverage=off tests=off
label='' test_jobs=$(processors) test_timeout=80

if [[ "${1:-}" == clean ]]; then
  rm -rf build build-* output
  echo "build.sh: removed build trees and output"
  exit 0
fi

while (($# > 0)); do
  if [[ "$1" == --help ]]; then usage; exit 0; fi
  [[ "$1" =~ ^-([A-Za-z])(.*)$ ]] || refuse "unexpected argument '$1'"
  letter=${BASH_REMATCH[1]} value=${BASH_REMATCH[2]}
  shift
  case $letter in
    h) usage; exit 0 ;;
    r) build_type=Release; continue ;;
    d) build_type=Debug; continue ;;
    [eROICF])  # of older build scripts; nothing is left for them to do
      if [[ -z "$value" && $# -gt 0 && "$1" != -* ]]; then shift; fi
      continue ;;
    [AXBojinPJGvMDpsSxctlumbTU]) ;;
    *) refuse "unknown option -$letter" ;;
  esac
  if [[ -z "$value" ]]; then
    (($# > 0)) || refuse "option -$letter needs a value"
    value=$1
    shift
  fi
  case $letter in
    A) need "$value" A on off; rdma=$value ;;
    X) need "$value" X on off gpu npu all; hetero=$value ;;
    P) [[ "$value" == on || "$value" == off || -d "$value" ]] ||
         refuse "invalid value '$value' for option -P: expected on, off or a folder with a Python installation"
       python=$value ;;
    v) version=$value ;;
    B) build_dir=$value ;;
    o) output_dir=$value ;;
    i) need "$value" i on off; incremental=$value ;;
    j) need_number "$value" j; jobs=$value ;;
    n) need "$value" n on off; ninja=$value ;;
    s) need "$value" s on off; strip=$value ;;
    S) [[ "$value" =~ ^(off|(address|thread|undefined)(,(address|thread|undefined))*)$ ]] ||
         refuse "invalid value '$value' for option -S: expected off, address, thread, undefined"
       sanitize=$value ;;
    c) need "$value" c off on html; coverage=$value ;;
    t) need "$value" t off build run run_cases run_cpp run_python run_java run_example run_except_cpp; tests=$value ;;
    l) label=$value ;;
    u) need_number "$value" u; test_jobs=$value ;;
    m) need_number "$value" m; test_timeout=$value ;;
    b) need "$value" b cmake ;;
    J | G | M | T | U)
       need "$value" "$letter" on off
       [[ "$value" == off ]] || refuse "option -$letter $value: not part of this version; leave it out or say -$letter off" ;;
    D) need "$value" D on off
       [[ "$value" == off ]] || refuse "option -D on: this build downloads nothing; leave it out or say -D off" ;;
    p | x) need "$value" "$letter" on off
       [[ "$value" == off ]] || echo "build.sh: -$letter on is accepted and has no effect" ;;
  esac
done

if [[ -n "$version" ]]; then
  [[ "$version" =~ ^[A-Za-z0-9.]+$ ]] || refuse "invalid value '$version' for option -v: expected letters, digits and dots"
  [[ "$(cat VERSION)" == "$version" ]] || echo "$version" >VERSION
fi
[[ "$tests" != run_java ]] || refuse "option -t run_java: there is no Java client in this version"
if [[ "$coverage" == html ]] && ! command -v gcovr >/dev/null; then
  refuse "option -c html needs gcovr, which is not installed (apt-get install gcovr); -c on needs nothing"
fi

# Heterogeneous objects need a vendor's toolkit, and this version has no code for them yet.
toolkit=''
for file in {"${ASCEND_HOME_PATH:-/none}",/usr/local/Ascend/ascend-toolkit/latest}/include/acl/acl.h \
            {"${CUDA_HOME:-/none}",/usr/local/cuda}/bin/nvcc; do
  if [[ -e "$file" ]]; then toolkit=$file; break; fi
done
case $hetero in
  off) ;;
  auto) if [[ -n "$toolkit" ]]; then
          echo "build.sh: heterogeneous support left out: this version has none (toolkit seen at $toolkit)"
        else
          echo "build.sh: heterogeneous support left out: no CANN or CUDA toolkit found"
        fi ;;
  *) if [[ -n "$toolkit" ]]; then
       refuse "option -X $hetero: this version has no heterogeneous objects yet; build with -X off"
     fi
     refuse "option -X $hetero: no CANN or CUDA toolkit found (ASCEND_HOME_PATH, CUDA_HOME, /usr/local); build with -X off" ;;
esac

[[ "$sanitize" == off ]] || build_dir+=-${sanitize//,/-}
mkdir -p "$(dirname "$build_dir")" "$(dirname "$output_dir")"
build_dir=$(realpath -m "$build_dir") output_dir=$(realpath -m "$output_dir")

# wipe DIR PATTERN: empties a tree of ours. A folder with something else in it is not ours.
wipe() {
  [[ -d "$1" ]] || return 0
  if [[ -n "$(ls -A "$1")" && ! -e "$1/.datasystem-build" ]]; then
    refuse "$1 was not made by this script: empty it yourself, or choose another folder (-B, -o), or use -i on"
  fi
  rm -rf "${1:?}"
}
if [[ "$incremental" == off ]]; then
  wipe "$build_dir"
  [[ "$sanitize" != off ]] || wipe "$output_dir"
fi
mkdir -p "$build_dir"
touch "$build_dir/.datasystem-build"

case $ninja in
  on) command -v ninja >/dev/null || refuse "option -n on: ninja is not installed (apt-get install ninja-build)" ;;
  auto) if command -v ninja >/dev/null; then ninja=on; else ninja=off; fi ;;
esac
generator='Unix Makefiles'
[[ "$ninja" == off ]] || generator=Ninja

on_off() { if [[ "$1" == off ]]; then echo OFF; else echo ON; fi; }
# What is packed must not tell where it was built (assertions carry file names).
cxx_flags=-ffile-prefix-map=$PWD/=
[[ "$coverage" == off ]] || cxx_flags=--coverage
cmake_options=(-G "$generator" "-DCMAKE_BUILD_TYPE=$build_type" "-DDS_ENABLE_RDMA=$(on_off "$rdma")"
  "-DDS_BUILD_TESTS=$(on_off "$tests")" "-DDS_BUILD_PYTHON=$(on_off "$python")"
  "-DDS_SANITIZE=${sanitize/#off/}" "-DCMAKE_CXX_FLAGS=$cxx_flags")
# A sanitized module cannot be loaded by an ordinary interpreter.
[[ "$sanitize" == off ]] || cmake_options+=(-DDS_BUILD_PYTHON=OFF)
interpreter=/usr/bin/python3
if [[ "$python" != on && "$python" != off ]]; then
  interpreter=$python/bin/python3
  [[ -x "$interpreter" ]] || refuse "invalid value '$python' for option -P: there is no bin/python3 in it"
fi
cmake_options+=(-DPython3_EXECUTABLE="$interpreter")

step "configure ($build_type, rdma $rdma, $generator, $jobs jobs)"
log=$build_dir/configure.log
if ! cmake -S . -B "$build_dir" "${cmake_options[@]}" >"$log" 2>&1; then
  cat "$log" >&2
  echo "build.sh: configuring failed; if a package is missing, run: bash scripts/install_deps.sh" >&2
  exit 1
fi

step "compile"
NINJA_STATUS='[%f/%t %es] ' cmake --build "$build_dir" -j "$jobs"

if [[ "$sanitize" == off ]]; then
  step "pack"
  /usr/bin/python3 scripts/make_packages.py --build-dir "$build_dir" --output-dir "$output_dir" \
    --interpreter "$interpreter" --rdma "$rdma" --python "$(on_off "$python")" --strip "$strip"
  touch "$output_dir/.datasystem-build"
fi

run_cpp() {
  step "C++ tests"
  ctest --test-dir "$build_dir" --output-on-failure --repeat until-pass:2 -j "$test_jobs" --timeout "$test_timeout" \
    -E '^python/' ${label:+-L "$label"} "$@" --output-junit "$build_dir/ctest.xml"
}
run_python() {
  [[ "$python" != off && "$sanitize" == off ]] || return 0
  step "Python and end-to-end tests"
  DATASYSTEM_BUILD_DIR=$build_dir DATASYSTEM_OUTPUT_DIR=$output_dir PYTHONPATH=$build_dir/python \
    DATASYSTEM_WORKER_BINARY=$build_dir/src/worker/datasystem_worker \
    DATASYSTEM_WORKER_BINARY_NO_RDMA="$build_dir/src/worker/datasystem_worker_without_rdma" \
    "$interpreter" -m pytest -q --reruns 1 --junitxml="$build_dir/pytest.xml" python/tests cli/tests tests
}
# Tests of real processes share the machine with each other: one that fails is run once more, visibly.
# All suites run, whatever the first of them says.
status=0
case $tests in
  run | run_cases) run_cpp || status=1; run_python || status=1 ;;
  run_cpp) run_cpp || status=1 ;;
  run_example) run_cpp -R example || status=1 ;;
  run_python | run_except_cpp) run_python || status=1 ;;
esac
if [[ "$coverage" == html && "$tests" == run* ]]; then
  step "coverage report"
  mkdir -p "$build_dir/coverage"
  gcovr -r . --object-directory "$build_dir" -f src/ --html-details "$build_dir/coverage/index.html"
fi
finished
exit $status
