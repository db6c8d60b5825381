#!/bin/sh
# Between run.sh and inside.sh, already in the new namespaces: gives the fresh system its file systems and its network.
set -eu
work=$1
root=$work/root
points=$(awk '/ - cgroup2? /{ n = split($0, part, " - "); split(part[1], a, " "); split(part[2], b, " "); print a[5], b[1], b[3] }' /proc/self/mountinfo)
mount --make-rprivate /
# A file system of its own, as a disk is: containers need a mount point for their root.
mount --bind "$root" "$root"
mount --make-private "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
grep -q '/sys/fs/cgroup cgroup2 ' <<LIST || mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
$points
LIST
echo "$points" | while read -r point type options; do
  mkdir -p "$root$point"
  if [ "$type" = cgroup2 ]; then mount -t cgroup2 cgroup2 "$root$point"
  else mount -t cgroup -o "$(echo "$options" | sed 's/^rw,//')" cgroup "$root$point"; fi
done
hostname fresh
echo ready >"$work/ready"
read -r _ <"$work/go"
cd "$root"
pivot_root . mnt
umount -l /mnt
cd /
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TESTS="${TESTS:-}" \
  NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt sh /inside.sh
