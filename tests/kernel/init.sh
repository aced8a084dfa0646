#!/bin/sh
# The first process of the kernel that machine.py starts; its command line sets SHARED and FOLDER.
PATH=/run/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
HOME=/root
export PATH HOME SHARED

# The machine's folder $1 at $2, writable: the option's name is newer than Linux 6.1.
host_folder() {
    mount -t hostfs -o "hostfs=$1" hostfs "$2" 2>/dev/null || mount -t hostfs -o "$1" hostfs "$2"
}

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev 2>/dev/null
mount -t tmpfs tmpfs /run
mkdir -p /run/lock /run/netns /run/tmp /run/bin /run/kernel/lib/modules
mkdir -p /dev/pts /dev/shm
mount -t devpts -o ptmxmode=666 devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
# The modules below are those of the older iptables.
ln -s /usr/sbin/iptables-legacy /run/bin/iptables
ln -s /proc/self/fd /dev/fd
# Open vSwitch makes files in /tmp.
mount -t tmpfs tmpfs /tmp
# The folder of the command may be in one of the folders that are now empty.
if ! [ -d "$FOLDER" ]; then
    mkdir -p "$FOLDER"
    host_folder "$FOLDER" "$FOLDER"
    mount -o remount,ro "$FOLDER"
fi
mkdir -p "$SHARED"
host_folder "$SHARED" "$SHARED"
export TMPDIR=/run/tmp

# Modules are asked for by name: what loads them on demand would look where this machine's are.
host_folder /usr/lib/uml/modules /run/kernel/lib/modules
for module in bridge 8021q veth openvswitch sch_netem sch_ingress cls_flower act_vlan \
    ip_tables iptable_filter nfnetlink_queue xt_NFQUEUE tun; do
    modprobe -d /run/kernel "$module" || echo "no module $module"
done

ip link set lo up
sh "$SHARED/command" >"$SHARED/output" 2>&1 </dev/null
echo $? >"$SHARED/status"
# Power off.
python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
