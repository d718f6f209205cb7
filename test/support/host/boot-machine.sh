#!/bin/sh
# Boots the systemd of a root filesystem in namespaces of its own, like a container without a container manager:
# boot-machine.sh ROOT, in the network namespace that the machine is to have. Ends when the machine does, and leaves
# nothing mounted; ended itself, the machine is cut off as if by a power failure. ROOT/run/machine.pid names its first
# process as others see it.
set -eu

root=$1 step=${2:-begin}
group=headgate-machine.$(basename "$root")

case $step in
  # In a mount namespace of its own: the host sees nothing of what follows.
  begin)
    exec unshare --mount --propagation private sh "$0" "$root" host
    ;;
  # The machine's control group is made and removed by this one, which is outside of it.
  host)
    mount --bind "$root" "$root"
    mount -t cgroup2 cgroup2 "$root/mnt"
    # Of machines whose test was killed.
    find "$root/mnt" -mindepth 1 -maxdepth 1 -name 'headgate-machine.*' -exec find '{}' -depth -type d -exec rmdir '{}' + ';' 2>/dev/null || :
    group=$root/mnt/$group
    mkdir -p "$group"
    unshare --pid --uts --ipc --mount --propagation private --fork --kill-child sh "$0" "$root" enter &
    machine=$!
    trap 'kill -KILL $machine' TERM INT
    wait $machine || :
    trap - TERM INT
    # What was killed takes a moment to be gone.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
      ! find "$group" -depth -type d -exec rmdir '{}' + 2>/dev/null || break
      sleep 0.1
    done
    ;;
  # The first process of the machine: /proc is still that of the host.
  enter)
    read -r pid _ </proc/self/stat
    echo "$pid" >"$root/machine.pid"
    echo 0 >"$root/mnt/$group/cgroup.procs"
    umount "$root/mnt"
    exec unshare --cgroup sh "$0" "$root" mount
    ;;
  mount)
    cd "$root"
    # Some archives leave out what is mounted over.
    mkdir -p proc sys dev run
    mount -t proc -o nosuid,nodev,noexec proc proc
    # Only what belongs to the machine's network may be set.
    mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys
    mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 sys/fs/cgroup
    mount --bind proc/sys/net proc/sys/net
    mount --rbind proc/sys proc/sys
    mount -o remount,bind,ro proc/sys
    mount -t tmpfs -o mode=755,nosuid tmpfs dev
    mkdir dev/pts dev/shm
    mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
    ln -s pts/ptmx dev/ptmx
    ln -s /proc/self/fd dev/fd
    for device in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
      numbers=${device#*:}
      mknod -m 666 "dev/${device%%:*}" c "${numbers%:*}" "${numbers#*:}"
    done
    mount -t tmpfs -o mode=755,nosuid,nodev tmpfs run
    mkdir -p .host
    pivot_root . .host
    # shellcheck disable=SC2016 # is expanded inside
    exec env -i container=headgate PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -ec '
      umount -l /.host
      rmdir /.host
      # As systemd does itself on a host: credentials are mounted by a child of it.
      mount --make-rshared /
      exec setpriv --bounding-set=-sys_module,-sys_time,-sys_rawio,-syslog /sbin/init'
    ;;
esac
