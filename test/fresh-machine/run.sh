#!/bin/sh
# A machine that has nothing: Debian 12 (minbase with npm, git and netbase) in a folder, with its own processes, mounts,
# network, cgroups and hostname, and a fresh clone of HEAD. Runs inside.sh there. Needs root, debootstrap and the network;
# no part of `npm test`. The bare system is kept in ~/.cache/kubelet-ts; nothing else stays.
#   sh test/fresh-machine/run.sh                          everything, with all tests at the end
#   TESTS=none sh test/fresh-machine/run.sh               without the tests; TESTS='file file' runs some of them
set -eu
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
suite=${SUITE:-bookworm}
cache=${HOME:-/root}/.cache/kubelet-ts/fresh-$suite.tar
name=ktsfresh$$
work=/tmp/$name
octet=$((($$ % 200) + 20))
host_ip=10.127.$octet.1
guest_ip=10.127.$octet.2
[ "$(id -u)" = 0 ] || { echo "fresh-machine: must be root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "fresh-machine: apt-get install debootstrap" >&2; exit 1; }

if [ ! -f "$cache" ]; then
  echo "== making a bare $suite (kept in $cache)"
  mkdir -p "$(dirname "$cache")"
  bare=$(mktemp -d "$cache.XXXXXX")
  trap 'rm -rf --one-file-system "$bare"' EXIT
  trap 'exit 130' INT TERM
  mirror=http://deb.debian.org/debian
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$bare/root" "$mirror" >"$bare/log" 2>&1 || { tail -n 20 "$bare/log"; exit 1; }
  cp /etc/resolv.conf "$bare/root/etc/"
  unshare --mount --pid --fork --mount-proc="$bare/root/proc" chroot "$bare/root" sh -c \
    'apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends npm git netbase' >"$bare/log" 2>&1 || { tail -n 20 "$bare/log"; exit 1; }
  tar -C "$bare" -cf "$bare/tar" root
  mv "$bare/tar" "$cache"
  rm -rf --one-file-system "$bare"
fi

forward=$(cat /proc/sys/net/ipv4/ip_forward)
inner=
clean_up() {
  trap - EXIT INT TERM
  [ -z "$inner" ] || kill -9 "$inner" 2>/dev/null || true
  [ -z "$inner" ] || wait "$inner" 2>/dev/null || true
  iptables -t nat -D POSTROUTING -s "$guest_ip/32" -j MASQUERADE 2>/dev/null || true
  ip link del "$name" 2>/dev/null || true
  echo "$forward" >/proc/sys/net/ipv4/ip_forward
  for try in 1 2 3 4 5; do
    find /sys/fs/cgroup -depth -type d -path "*/$name*" -exec rmdir {} + 2>/dev/null || true
    find /sys/fs/cgroup -type d -name "$name" | grep -q . || break
    sleep 0.5
  done
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

mkdir -p "$work"
tar -C "$work" -xf "$cache"
cp /etc/resolv.conf "$work/root/etc/resolv.conf"
# What this machine trusts: it may sit behind a proxy with an authority of its own.
cp -L /etc/ssl/certs/ca-certificates.crt "$work/root/etc/ssl/certs/ca-certificates.crt"
git clone -q --no-hardlinks "$repo" "$work/root/opt/kubelet-ts"
cp "$here/inside.sh" "$work/root/inside.sh"

# Its own cgroup in every hierarchy: what is made inside is below it, and is all that is seen inside.
grep -E ' - cgroup2? ' /proc/self/mountinfo | while read -r _ _ _ _ point _; do
  mkdir "$point/$name"
  if [ -f "$point/$name/cpuset.mems" ]; then
    for file in cpuset.cpus cpuset.mems; do cat "$point/$file" >"$point/$name/$file"; done
  fi
done

mkfifo "$work/ready" "$work/go"
sh -c '
  for point in $(grep -E " - cgroup2? " /proc/self/mountinfo | cut -d" " -f5); do echo $$ >"$point/$1/cgroup.procs"; done
  exec unshare --mount --net --ipc --uts --pid --cgroup --fork --kill-child sh "$2" "$3"
' sh "$name" "$here/enter.sh" "$work" &
inner=$!
read -r _ <"$work/ready"
ip link add "$name" type veth peer name eth0 netns "$inner"
ip addr add "$host_ip/30" dev "$name"
ip link set "$name" up
echo 1 >/proc/sys/net/ipv4/ip_forward
iptables -t nat -A POSTROUTING -s "$guest_ip/32" -j MASQUERADE
in_guest() { nsenter --target "$inner" --net ip "$@"; }
in_guest link set lo up
in_guest addr add "$guest_ip/30" dev eth0
in_guest link set eth0 up
in_guest route add default via "$host_ip"
echo go >"$work/go"
status=0
wait "$inner" || status=$?
inner=
exit "$status"
