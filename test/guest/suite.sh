#!/bin/sh
# Runs in the guest, started by wait.sh: suite.sh <name>. Prints "check: <name> ok" or "check: <name> FAILED ..." and switches
# the machine off at the end.
suite=$1
say() { echo "guest: $(cut -d. -f1 /proc/uptime) s: $1"; }
pass() { echo "check: $1 ok"; say "$1"; }
fail() {
  echo "check: $1 FAILED $2"
  journalctl -u kubelet --no-pager -o cat | grep -v '"FLAG"' | tail -n 40
  journalctl -u containerd --no-pager -n 20 -o cat
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
  [ "$(cat "/sys/fs/cgroup$slice/cpu.max")" = '80000 100000' ] || fail 'limits' "cpu.max $(cat "/sys/fs/cgroup$slice/cpu.max")"
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

# "critical-guest 1, ordinary-guest 1": how often each container was restarted, as the kubelet tells.
restarts() {
  busybox wget -q -O - http://127.0.0.1:10255/pods | /usr/lib/kubelet-ts/bin/node -p '
    const { items } = JSON.parse(require("fs").readFileSync(0, "utf8"));
    const count = ({ status }) => (status.containerStatuses ?? []).map((c) => c.restartCount).join();
    items.map((pod) => `${pod.metadata.name} ${count(pod)}`).sort().join(", ")'
}
restarts_are() { [ "$(restarts)" = "critical-guest $1, ordinary-guest $1" ]; }
# back_again <name> <restarts>: the pods run in new containers, and those removed before do not.
back_again() {
  wait_for 240 "$1" healthy
  for pod in ordinary critical; do wait_for 240 "$1" running $pod; done
  wait_for 120 "$1" restarts_are "$2"
  gone leaving || fail "$1" 'the removed pod is back'
  pass "$1"
}

suite_reboot() {
  boots=$(($(cat /var/boots 2>/dev/null) + 1))
  echo $boots > /var/boots
  case $boots in
  1)
    comes_up
    rm /etc/kubernetes/manifests/leaving.yaml
    wait_for 120 'a removed pod ends' gone leaving
    wait_for 120 'no restarts' restarts_are 0
    shut_down reboot
    ;;
  2)
    [ "$(tr '\n' ' ' < /var/ends/log)" = 'ordinary asked ordinary ended critical asked critical ended ' ] ||
      fail 'reboot: pods ended in order before' "$(cat /var/ends/log)"
    pass 'reboot: pods ended in order before'
    back_again 'reboot: pods run again, restarted once' 1
    sync
    # As if the power failed.
    echo b > /proc/sysrq-trigger
    ;;
  3)
    back_again 'power failure: pods run again, restarted twice' 2
    systemctl --force --force poweroff
    ;;
  esac
}

# The same kubelet as a node of a cluster; an API server runs beside it.
suite_cluster() {
  /usr/lib/kubelet-ts/bin/node --disable-warning=ExperimentalWarning /root/suite/cluster-suite.mjs /var/cluster "$suite" "$(cat /root/release)"
  sync
  systemctl --force --force poweroff
}

say "suite $suite"
case $suite in
eviction | golden | memory | pods) suite_cluster ;;
*) "suite_$suite" ;;
esac
