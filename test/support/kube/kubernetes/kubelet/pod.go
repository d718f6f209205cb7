package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const retryPause = time.Second

// sandboxScript becomes the process that holds the pod's namespaces. The root is the host's /usr beside files of the pod's
// own, because the tests run nc, curl and a shell of the image of agnhost.
const sandboxScript = `
set -e
mount --make-rprivate /
mount -t tmpfs pod "$ROOT"
cd "$ROOT"
mkdir dev etc proc tmp usr
cp -r "$VOLUMES"/. .
for shared in dev proc usr; do mount --rbind /$shared $shared; done
ln -s usr/bin usr/sbin usr/lib usr/lib64 .
cp -r /etc/alternatives /etc/nsswitch.conf etc
printf "$RESOLV_CONF" >etc/resolv.conf
echo "127.0.0.1 localhost" >etc/hosts
echo "tries = 1" >etc/wgetrc # The image has the wget of busybox, which does not try again.
for image in $IMAGES; do
  touch "${image%%=*}"
  mount --bind "${image#*=}" "${image%%=*}"
done
hostname "$HOST_NAME"
exec chroot . sleep infinity
`

// runningPod is one pod from its sandbox to its end. run is its life; end and the probes change it from outside.
type runningPod struct {
	node    *node
	pod     *corev1.Pod
	address netip.Addr // Invalid while there is none.
	sandbox *exec.Cmd
	started metav1.Time

	containers []*container
	changed    chan struct{} // Has an entry while the status may differ from the reported one.

	lock  sync.Mutex
	grace *time.Duration // Nil until the pod is deleted.
	ended chan struct{}  // Closed with the first grace.
}

func newRunningPod(n *node, pod *corev1.Pod) *runningPod {
	p := &runningPod{
		node: n, pod: pod, started: metav1.Now(),
		changed: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	for i := range pod.Spec.Containers {
		p.containers = append(p.containers, newContainer(p, &pod.Spec.Containers[i]))
	}
	return p
}

// end lets the containers stop within the grace; a later, shorter grace counts.
func (p *runningPod) end(grace time.Duration) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.grace == nil {
		close(p.ended)
	}
	if p.grace == nil || grace < *p.grace {
		p.grace = &grace
		for _, c := range p.containers {
			go c.stop(grace)
		}
	}
}

func (p *runningPod) isDeleted() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.grace != nil
}

func (p *runningPod) run(ctx context.Context) {
	volumes, ok := p.volumes(ctx)
	if !ok {
		return
	}
	defer os.RemoveAll(volumes)
	if err := p.startSandbox(volumes); err != nil {
		log.Printf("%s: cannot start the sandbox: %v", p, err)
		p.report(ctx, corev1.PodStatus{Phase: corev1.PodPending, Message: err.Error()})
		<-p.ended
		return
	}
	defer p.stopSandbox()
	var containers sync.WaitGroup
	for _, c := range p.containers {
		containers.Go(c.run)
	}
	over := make(chan struct{})
	go func() {
		containers.Wait()
		close(over)
	}()
	for isOver := false; !isOver; {
		select {
		case <-over:
			isOver = true
		case <-p.changed:
		}
		p.report(ctx, p.status())
	}
}

func (p *runningPod) change() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *runningPod) startSandbox(volumes string) error {
	root := filepath.Join(p.node.folder, string(p.pod.UID))
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	hostName := p.pod.Spec.Hostname
	namespaces := uintptr(syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS)
	if p.pod.Spec.HostNetwork {
		hostName = p.node.name
		p.address = netip.MustParseAddr(p.node.address)
	} else {
		namespaces |= syscall.CLONE_NEWNET
		if hostName == "" {
			hostName = p.pod.Name
		}
		address, err := p.node.network.take()
		if err != nil {
			return err
		}
		p.address = address
	}
	p.sandbox = exec.Command("sh", "-c", sandboxScript)
	images := []string{}
	for name, program := range p.node.images {
		images = append(images, name+"="+program)
	}
	p.sandbox.Env = append(os.Environ(), "ROOT="+root, "VOLUMES="+volumes, "HOST_NAME="+hostName,
		"IMAGES="+strings.Join(images, " "),
		fmt.Sprintf(`RESOLV_CONF=nameserver %s\nsearch %s.svc.%s svc.%s\noptions ndots:5\n`,
			p.node.address, p.pod.Namespace, clusterDomain, clusterDomain))
	p.sandbox.Stderr = os.Stderr
	p.sandbox.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if err := p.sandbox.Start(); err != nil {
		p.node.network.release(p.address)
		return err
	}
	err := p.furnishSandbox()
	if err != nil {
		p.stopSandbox()
	}
	return err
}

// furnishSandbox connects the network, and waits until the shell has become sleep, which has the pod's root.
func (p *runningPod) furnishSandbox() error {
	pid := p.sandbox.Process.Pid
	if !p.pod.Spec.HostNetwork {
		if err := p.node.network.connect(pid, p.address); err != nil {
			return err
		}
	}
	for range 500 {
		if program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err != nil || strings.HasSuffix(program, "/sleep") {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("the sandbox has no root after 5 s")
}

func (p *runningPod) stopSandbox() {
	_ = p.sandbox.Process.Kill()
	_ = p.sandbox.Wait()
	_ = os.Remove(filepath.Join(p.node.folder, string(p.pod.UID)))
	p.node.network.release(p.address)
}

// command is a program inside the pod; nsenter becomes the program.
func (p *runningPod) command(ctx context.Context, container *container, words []string) *exec.Cmd {
	enter := []string{fmt.Sprintf("--target=%d", p.sandbox.Process.Pid), "--net", "--uts", "--mount", "--root", "--wd", "--"}
	cmd := exec.CommandContext(ctx, "nsenter", append(enter, words...)...)
	cmd.Env = container.environment()
	return cmd
}

func (p *runningPod) status() corev1.PodStatus {
	status := corev1.PodStatus{
		Phase:  corev1.PodRunning,
		HostIP: p.node.address, HostIPs: []corev1.HostIP{{IP: p.node.address}},
		PodIP: p.address.String(), PodIPs: []corev1.PodIP{{IP: p.address.String()}},
		StartTime: &p.started,
	}
	isReady, isOver, hasFailed := true, true, false
	for _, c := range p.containers {
		one := c.status()
		isReady = isReady && one.Ready
		isOver = isOver && one.State.Terminated != nil
		hasFailed = hasFailed || isOver && one.State.Terminated.ExitCode != 0
		status.ContainerStatuses = append(status.ContainerStatuses, one)
	}
	switch {
	case isOver && hasFailed:
		status.Phase = corev1.PodFailed
	case isOver:
		status.Phase = corev1.PodSucceeded
	}
	for kind, isTrue := range map[corev1.PodConditionType]bool{
		corev1.PodScheduled: true, corev1.PodInitialized: true,
		corev1.ContainersReady: isReady, corev1.PodReady: isReady,
	} {
		value := corev1.ConditionFalse
		if isTrue {
			value = corev1.ConditionTrue
		}
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: kind, Status: value, LastTransitionTime: metav1.Now(), ObservedGeneration: p.pod.Generation,
		})
	}
	return status
}

func (p *runningPod) report(ctx context.Context, status corev1.PodStatus) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.pod.UID}, "status": status})
	check(err)
	for ctx.Err() == nil {
		_, err = p.node.client.CoreV1().Pods(p.pod.Namespace).Patch(ctx, p.pod.Name,
			types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if err == nil || errors.IsNotFound(err) {
			return
		}
		log.Printf("%s: cannot write the status: %v", p, err)
		if errors.IsInvalid(err) { // Also if another pod has the name by now, because of the UID.
			return
		}
		time.Sleep(retryPause)
	}
}

func (p *runningPod) String() string { return p.pod.Namespace + "/" + p.pod.Name }
