#!/bin/busybox sh
# The first process of the guest of run.sh. It loads soft-RoCE, runs the steps named on the
# kernel's command line (by default those of steps.sh) and prints a verdict.
# /bin comes first in PATH since busybox has an ip of its own.
/bin/busybox mkdir -p /sbin
/bin/busybox --install -s /sbin
export PATH=/bin:/sbin HOME=/tmp TMPDIR=/tmp
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
. /steps.sh

failed=

# run_step NAME runs a step in a shell of its own, so that the time limit ends all its processes.
run_step() {
	limit=$(limit_of "$1")
	echo "guest: === $1"
	begin=$(cut -d. -f1 /proc/uptime)
	timeout "$limit" sh -c '. /steps.sh; '"$1"
	rc=$?
	took=$(($(cut -d. -f1 /proc/uptime) - begin))
	if [ $rc = 0 ]; then
		echo "guest: --- $1 ok ($took s)"
	else
		echo "guest: --- $1 FAILED: exit $rc ($took s of at most $limit)"
		failed="$failed $1"
	fi
}

if prepare; then
	for s in ${*:-$steps}; do run_step "$s"; done
else
	failed=" prepare"
fi
if [ -z "$failed" ]; then echo "guest: VERDICT ok"; else echo "guest: VERDICT failed:$failed"; fi
sync
poweroff -f
