#!/bin/sh
# Runs in the guest, as a unit, after each boot; `guest.suite=<name>` on the kernel's command line says what to check. Prints
# "check: <name> ok" or "check: <name> FAILED ..." on the console and switches the machine off at the end.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec > /dev/ttyS0 2>&1
suite=$(sed -n 's/.*guest\.suite=\([a-z0-9]*\).*/\1/p' /proc/cmdline)
say() { echo "guest: $(cut -d. -f1 /proc/uptime) s: $1"; }
pass() { echo "check: $1 ok"; say "$1"; }
fail() {
  echo "check: $1 FAILED $2"
  journalctl -u kubelet --no-pager -n 60 -o cat
  systemctl --force --force poweroff
  exit 1
}
# wait_for <seconds> <name> <command...>
wait_for() {
  end=$(($(cut -d. -f1 /proc/uptime) + $1)) name=$2
  shift 2
  until "$@"; do
    [ "$(cut -d. -f1 /proc/uptime)" -lt $end ] || fail "$name" "timed out: $*"
    sleep 1
  done
}
healthy() { busybox wget -q -O - http://127.0.0.1:10248/healthz 2>/dev/null | grep -q ok; }
# The process id of a pod's container, known by the word in its command line.
process_of() { pgrep -o -f "^sh -c : $1;"; }
running() { [ -n "$(process_of "$1")" ]; }
gone() { ! running "$1"; }
main_pid() { systemctl show -p MainPID --value kubelet; }
# Told by the agent itself, once it has taken over the pods it found.
ready() { [ "$(systemctl show -p ActiveState --value kubelet)" = active ]; }
another_main() { new=$(main_pid); [ "$new" != 0 ] && [ "$new" != "$1" ]; }
slice_of() { sed -n 's,^0::\(.*\.slice\)/.*,\1,p' "/proc/$(process_of "$1")/cgroup"; }
inhibits() { systemd-inhibit --list | grep -q 'kubelet.*shutdown.*delay'; }
# The agent reads its manifests after it said that it is ready; a shutdown before that finds no pods to end.
knows_its_pods() { journalctl -q "_PID=$(main_pid)" | grep -q manifests/ordinary.yaml; }
# restarted <name> <old main pid>: another process is healthy, and the containers are the same ones.
restarted() {
  wait_for 180 "$1" another_main "$2"
  wait_for 180 "$1" ready
  wait_for 180 "$1" healthy
  [ "$(process_of ordinary) $(process_of critical)" = "$before" ] || fail "$1" "containers were restarted"
  pass "$1"
}
comes_up() {
  wait_for 240 'the kubelet is healthy' healthy
  pass 'the kubelet is healthy'
  for pod in ordinary critical leaving; do wait_for 240 'pods run' running $pod; done
  pass 'pods run'
}
# Whoever looks at the disk afterwards sees in which order the pods ended.
shut_down() {
  wait_for 60 'shutdowns are held up' inhibits
  wait_for 60 'manifests are read' knows_its_pods
  pass 'shutdowns are held up'
  sync
  systemctl "$1"
}

suite_slices() {
  comes_up
  slice=$(slice_of ordinary)
  unit=${slice##*/}
  echo "guest: the pod is in $slice"
  [ "$(systemctl is-active "$unit")" = active ] || fail 'the slice is a unit of systemd' "$unit"
  pass 'the slice is a unit of systemd'
  [ "$(cat "/sys/fs/cgroup$slice/memory.max")" = 67108864 ] || fail 'limits' "memory.max $(cat "/sys/fs/cgroup$slice/memory.max")"
  [ "$(cat "/sys/fs/cgroup$slice/cpu.max")" = '20000 100000' ] || fail 'limits' "cpu.max $(cat "/sys/fs/cgroup$slice/cpu.max")"
  [ "$(systemctl show -p MemoryMax --value "$unit")" = 67108864 ] || fail 'limits' "MemoryMax of $unit"
  pass 'limits are in the files and known to systemd'
  leaving=$(slice_of leaving)
  rm /etc/kubernetes/manifests/leaving.yaml
  wait_for 120 'a removed pod leaves no slice' gone leaving
  wait_for 120 'a removed pod leaves no slice' test ! -e "/sys/fs/cgroup$leaving"
  [ "$(systemctl is-active "${leaving##*/}")" = inactive ] || fail 'a removed pod leaves no slice' "$leaving"
  pass 'a removed pod leaves no slice'
  ps -e -o args | grep -E 'busctl|systemd-inhibit|systemctl' | grep -v grep && fail 'no helper programs' 'they run'
  pass 'no helper programs'
  shut_down poweroff
}

suite_restarts() {
  comes_up
  before="$(process_of ordinary) $(process_of critical)"
  old=$(main_pid)
  kill -9 "$old"
  restarted 'agent killed: pods go on' "$old"
  old=$(main_pid)
  kill -STOP "$old"
  restarted 'agent hung: the watchdog restarts it, pods go on' "$old"
  old=$(main_pid)
  dpkg --install /root/new/*.deb > /dev/null || fail 'package upgraded: pods go on' dpkg
  restarted 'package upgraded: pods go on' "$old"
  kubelet --version
  sync
  systemctl --force --force poweroff
}

suite_reboot() {
  if [ ! -e /var/rebooted ]; then
    comes_up
    rm /etc/kubernetes/manifests/leaving.yaml
    wait_for 120 'a removed pod ends' gone leaving
    touch /var/rebooted
    shut_down reboot
    return
  fi
  [ "$(tr '\n' ' ' < /var/ends/log)" = 'ordinary asked ordinary ended critical asked critical ended ' ] ||
    fail 'reboot: pods ended in order before' "$(cat /var/ends/log)"
  pass 'reboot: pods ended in order before'
  wait_for 240 'reboot: pods run again' healthy
  for pod in ordinary critical; do wait_for 240 'reboot: pods run again' running $pod; done
  pass 'reboot: pods run again'
  gone leaving || fail 'reboot: the removed pod stays away' leaving
  pass 'reboot: the removed pod stays away'
  systemctl --force --force poweroff
}

# The same kubelet as a node of a cluster; an API server runs beside it.
suite_cluster() {
  /usr/lib/kubelet-ts/bin/node --disable-warning=ExperimentalWarning /root/cluster/cluster-suite.mjs /var/cluster "$suite" "$(cat /root/release)"
  sync
  systemctl --force --force poweroff
}

say "suite $suite"
case $suite in
memory | pods) suite_cluster ;;
*) "suite_$suite" ;;
esac
