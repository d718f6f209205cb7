#!/bin/sh
# Boots the systemd of a root filesystem in its own namespaces, like a container without a container manager:
# boot-machine.sh ROOT, in the machine's network namespace. Ends with the machine and leaves nothing mounted. If the script
# is killed, the machine ends as after a power failure. ROOT/run/machine.pid has the host's pid of its first process.
set -eu

root=$1 step=${2:-begin}
group=headgate-machine.$(basename "$root")

case $step in
  # The mount namespace hides the following mounts from the host.
  begin)
    exec unshare --mount --propagation private sh "$0" "$root" host
    ;;
  # This process creates and removes the machine's control group from outside.
  host)
    mount --bind "$root" "$root"
    mount -t cgroup2 cgroup2 "$root/mnt"
    # Control groups of machines whose test was killed.
    find "$root/mnt" -mindepth 1 -maxdepth 1 -name 'headgate-machine.*' -exec find '{}' -depth -type d -exec rmdir '{}' + ';' 2>/dev/null || :
    group=$root/mnt/$group
    mkdir -p "$group"
    unshare --pid --uts --ipc --mount --propagation private --fork --kill-child sh "$0" "$root" enter &
    machine=$!
    trap 'kill -KILL $machine' TERM INT
    wait $machine || :
    trap - TERM INT
    # Killed processes end after a moment.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
      ! find "$group" -depth -type d -exec rmdir '{}' + 2>/dev/null || break
      sleep 0.1
    done
    ;;
  # The machine's first process; /proc is still the host's.
  enter)
    read -r pid _ </proc/self/stat
    echo "$pid" >"$root/machine.pid"
    echo 0 >"$root/mnt/$group/cgroup.procs"
    umount "$root/mnt"
    exec unshare --cgroup sh "$0" "$root" mount
    ;;
  mount)
    cd "$root"
    # Some archives lack the mount points.
    mkdir -p proc sys dev run
    mount -t proc -o nosuid,nodev,noexec proc proc
    # The machine may set only the parameters of its network.
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
      # A child of systemd mounts credentials, as on a host.
      mount --make-rshared /
      exec setpriv --bounding-set=-sys_module,-sys_time,-sys_rawio,-syslog /sbin/init'
    ;;
esac
