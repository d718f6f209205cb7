package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

const restartPause = time.Second

// outputPause is for output that a program's children still hold when it has ended.
const outputPause = time.Second

// container runs its program again when it ends, as the pod's restartPolicy says, until it is stopped.
type container struct {
	pod  *runningPod
	spec *corev1.Container

	lock      sync.Mutex
	cmd       *exec.Cmd // Nil while no program runs.
	startedAt metav1.Time
	restarts  int32
	exit      *corev1.ContainerStateTerminated // The program's last end.
	isReady   bool
	isStopped bool
	gone      chan struct{} // Closed when the container runs no more.
}

func newContainer(pod *runningPod, spec *corev1.Container) *container {
	return &container{pod: pod, spec: spec, gone: make(chan struct{})}
}

func (c *container) run() {
	defer c.pod.change()
	defer close(c.gone)
	for {
		code, isStopped := c.runOnce()
		if isStopped {
			return
		}
		policy := c.pod.pod.Spec.RestartPolicy
		if policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure && code == 0 {
			return
		}
		time.Sleep(restartPause)
	}
}

// runOnce runs the program to its end. A container that is stopped must not run again.
func (c *container) runOnce() (code int, isStopped bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := c.pod.command(ctx, c, c.words())
	output, err := os.OpenFile(c.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	check(err)
	defer output.Close()
	stamped := &stampedLog{file: output}
	cmd.Stdout, cmd.Stderr = stamped, stamped
	cmd.WaitDelay = outputPause
	// The program's children end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	c.lock.Lock()
	if c.isStopped {
		c.lock.Unlock()
		return 0, true
	}
	if err := c.imageFault(); err != nil {
		log.Printf("%s: container %s: %v", c.pod, c.spec.Name, err)
		fmt.Fprintln(stamped, err)
		c.exit = &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: err.Error()}
		c.lock.Unlock()
		c.pod.change()
		return 128, false
	}
	check(cmd.Start())
	if c.exit != nil {
		c.restarts++
	}
	c.cmd, c.startedAt, c.isReady = cmd, metav1.Now(), c.spec.ReadinessProbe == nil
	c.lock.Unlock()
	c.pod.change()
	if c.spec.ReadinessProbe != nil {
		go c.probe(ctx, c.spec.ReadinessProbe, c.setReady)
	}
	if c.spec.LivenessProbe != nil {
		go c.probe(ctx, c.spec.LivenessProbe, func(isAlive bool) {
			if !isAlive {
				c.signal(syscall.SIGKILL)
			}
		})
	}

	_ = cmd.Wait()
	code = cmd.ProcessState.ExitCode()
	if code < 0 { // A signal ended it.
		code = 137
	}
	c.lock.Lock()
	c.cmd, c.isReady = nil, false
	c.exit = &corev1.ContainerStateTerminated{
		ExitCode: int32(code), Reason: "Completed", StartedAt: c.startedAt, FinishedAt: metav1.Now(),
	}
	if code != 0 {
		c.exit.Reason = "Error"
	}
	isStopped = c.isStopped
	c.lock.Unlock()
	c.pod.change()
	return code, isStopped
}

// stop runs the preStop command, sends SIGTERM, and SIGKILL when the grace is over.
func (c *container) stop(grace time.Duration) {
	c.lock.Lock()
	wasStopped := c.isStopped
	c.isStopped = true
	c.lock.Unlock()
	deadline, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if !wasStopped && grace > 0 {
		if hook := c.spec.Lifecycle; hook != nil && hook.PreStop != nil && hook.PreStop.Exec != nil {
			_ = c.pod.command(deadline, c, hook.PreStop.Exec.Command).Run()
		}
		c.signal(syscall.SIGTERM)
	}
	select {
	case <-c.gone:
	case <-deadline.Done():
		c.signal(syscall.SIGKILL)
	}
}

func (c *container) signal(signal syscall.Signal) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.cmd != nil {
		_ = syscall.Kill(-c.cmd.Process.Pid, signal)
	}
}

func (c *container) setReady(isReady bool) {
	c.lock.Lock()
	hasChanged := c.cmd != nil && c.isReady != isReady
	if hasChanged {
		c.isReady = isReady
	}
	c.lock.Unlock()
	if hasChanged {
		c.pod.change()
	}
}

func (c *container) status() corev1.ContainerStatus {
	c.lock.Lock()
	defer c.lock.Unlock()
	isRunning := c.cmd != nil
	status := corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, ImageID: c.spec.Image,
		Ready: c.isReady, Started: &isRunning, RestartCount: c.restarts,
	}
	switch {
	case isRunning:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: c.startedAt}
	case c.exit == nil:
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	case c.runsNoMore():
		status.State.Terminated = c.exit
	default:
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: c.exit.Message}
		status.LastTerminationState.Terminated = c.exit
	}
	return status
}

func (c *container) runsNoMore() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

func (c *container) imageFault() error {
	if _, isKnown := c.pod.node.images[c.image()]; !isKnown {
		return fmt.Errorf("cannot run image %q: it has no program here", c.spec.Image)
	}
	return nil
}

// image is the name of the image without registry and tag.
func (c *container) image() string {
	name, _, _ := strings.Cut(path.Base(c.spec.Image), ":")
	return name
}

// imageArguments are those of the images that have some.
var imageArguments = map[string][]string{"agnhost": {"pause"}, "pause": {"pause"}}

// words is the image's entry point with its arguments, unless the container names a command.
func (c *container) words() []string {
	command, arguments := c.spec.Command, c.spec.Args
	if len(command) == 0 {
		command = []string{"/" + c.image()}
		if len(arguments) == 0 {
			arguments = imageArguments[c.image()]
		}
	}
	variables := expansion.MappingFuncFor(c.variables())
	words := []string{}
	for _, word := range append(append([]string{}, command...), arguments...) {
		words = append(words, expansion.Expand(word, variables))
	}
	return words
}

func (c *container) environment() []string {
	environment := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"}
	for name, value := range c.variables() {
		environment = append(environment, name+"="+value)
	}
	return environment
}

func (c *container) variables() map[string]string {
	pod, node, address := c.pod.pod, c.pod.node, c.pod.address.String()
	fields := map[string]string{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "metadata.uid": string(pod.UID),
		"spec.nodeName": node.name, "status.hostIP": node.address, "status.hostIPs": node.address,
		"status.podIP": address, "status.podIPs": address,
	}
	variables := map[string]string{}
	for _, variable := range c.spec.Env {
		variables[variable.Name] = variable.Value
		if variable.ValueFrom != nil && variable.ValueFrom.FieldRef != nil {
			variables[variable.Name] = fields[variable.ValueFrom.FieldRef.FieldPath]
		}
	}
	return variables
}

func (c *container) logFile() string {
	return filepath.Join(c.pod.node.folder, fmt.Sprintf("%s-%s.log", c.pod.pod.UID, c.spec.Name))
}
