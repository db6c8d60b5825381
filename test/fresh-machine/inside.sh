#!/bin/sh
# In the fresh system: one command to a running pod, the second one quick, down and reset without a trace. Then all tests,
# with nothing in /tmp, in the home directory and in the caches.
set -u
cd /opt/kubelet-ts
failures=0
say() { echo "== $*"; }
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

processes() { for p in /proc/[0-9]*; do tr '\0' ' ' <"$p/cmdline" 2>/dev/null; echo; done | grep -v -E '^(tr|sh|grep|sort|npm) |^$' | sort; }
mounts() { cut -d' ' -f5 /proc/self/mountinfo | sort; }
links() { ls /sys/class/net | sort; }
cgroups() { find /sys/fs/cgroup -type d | sort; }
# Before the packages are there, there is no program to ask: no rules then.
rules() { { iptables-save 2>/dev/null || true; } | grep -E '^-A|^:[^ ]+ - ' | sort; }
# Not what belongs to packages, to dpkg and apt themselves, to npm, or to this clone.
files() {
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp/state -o -path /opt/kubelet-ts/node_modules -o -path /opt/kubelet-ts/.git \
    -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache -o -path /var/log -o -path /root/.npm -o -path /etc/alternatives \) -prune -o -print
  find /var/log -mindepth 1 ! -path '/var/log/apt*' ! -name dpkg.log ! -name alternatives.log
} 
unpackaged() { files | sort >/tmp/state/all; cat /var/lib/dpkg/info/*.list | sed -E 's,^/(bin|sbin|lib|lib64)/,/usr/\1/,' | sort -u >/tmp/state/packaged; comm -23 /tmp/state/all /tmp/state/packaged; }
keep() { for what in processes mounts links cgroups rules unpackaged; do $what >"/tmp/state/$what.$1"; done; }
same() { # state-before state-after what…
  before=$1; after=$2; shift 2
  for what in "$@"; do
    if diff "/tmp/state/$what.$before" "/tmp/state/$what.$after" >/tmp/state/diff; then say "$what as before"
    else fail "$what changed:"; sed -n '1,60p' /tmp/state/diff; fi
  done
}
milliseconds() { echo $(($(date +%s%N) / 1000000)); }

mkdir /tmp/state
keep start
command -v containerd runc iptables && fail 'this machine is not fresh'

say 'npm start'
npm start >/tmp/state/up 2>&1 || fail "npm start ended with $?"
cat /tmp/state/up
grep -q 'example pod is Running' /tmp/state/up || fail 'no running example pod'

say 'npm start, again'
begun=$(milliseconds)
npm start >/tmp/state/again 2>&1 || fail "the second npm start ended with $?"
took=$(($(milliseconds) - begun))
say "took $took ms"
[ "$took" -lt 3000 ] || fail "the second npm start took $took ms"
bin/kubelet-dev status >/tmp/state/status || { fail 'not healthy'; cat /tmp/state/status; }

say 'down'
bin/kubelet-dev down || fail "down ended with $?"
keep down
same start down processes mounts links cgroups rules

say 'npm start, then reset'
npm start >/tmp/state/third 2>&1 || fail "the third npm start ended with $?"
bin/kubelet-dev reset >/tmp/state/reset || fail "reset ended with $?"
cat /tmp/state/reset
keep reset
same start reset processes mounts links cgroups rules
purge=$(sed -n 's/.*remove them with: //p' /tmp/state/reset)
case "$purge" in *containerd*) ;; *) fail 'reset does not say which packages it had installed' ;; esac
DEBIAN_FRONTEND=noninteractive $purge libatomic1 -qq -y >/tmp/state/purge 2>&1 || fail "$purge ended with $?"
unpackaged >/tmp/state/unpackaged.reset
same start reset unpackaged

if [ "${TESTS:-}" != none ]; then
  say 'npm test'
  find /tmp /root -xdev -mindepth 1 ! -path '/tmp/state*' -delete
  # A whole run installs what the tests need; a run of some files does not.
  if [ -n "${TESTS:-}" ]; then
    apt-get -qq install -y libatomic1 >/dev/null 2>&1
    node_modules/node-linux-*/bin/node -e 'import("./scripts/system-packages.ts").then((m) => m.ensurePackages())' || fail 'no packages for the tests'
  fi
  # shellcheck disable=SC2086 # TESTS is a list of files
  npm test ${TESTS:+-- $TESTS} >/tmp/state/test 2>&1 || fail "npm test ended with $?"
  tail -n 40 /tmp/state/test
  left=$(find /tmp -mindepth 1 ! -path '/tmp/state*')
  [ -z "$left" ] || fail "npm test left in /tmp: $left"
fi

[ "$failures" = 0 ] && say 'all well' || say "$failures failures"
exit "$failures"
