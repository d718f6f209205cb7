package main

import (
	"context"
	"log"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// node keeps one runningPod for each pod that the scheduler has bound to it, by UID.
type node struct {
	client  kubernetes.Interface
	name    string
	address string
	network *podNetwork
	images  map[string]string // Name without registry and tag → program.
	folder  string

	lock sync.Mutex
	pods map[string]*runningPod
}

// register creates the Node, ready, with the address and port at which the API server finds exec and logs.
func (n *node) register(ctx context.Context) error {
	nodes := n.client.CoreV1().Nodes()
	node, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: n.name,
		Labels: map[string]string{
			corev1.LabelHostname: n.name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods:   resource.MustParse("200"),
	}
	node.Status = corev1.NodeStatus{
		Capacity:    capacity,
		Allocatable: capacity,
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: n.address},
			{Type: corev1.NodeHostName, Address: n.name},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: streamPort}},
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}},
	}
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// follow starts the pods that are bound to this node, and ends them when they are deleted.
func (n *node) follow(ctx context.Context) {
	factory := informers.NewSharedInformerFactoryWithOptions(n.client, 0,
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", n.name).String()
		}))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.seen(ctx, object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { n.seen(ctx, object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if last, isTombstone := object.(cache.DeletedFinalStateUnknown); isTombstone {
				object = last.Obj
			}
			if running := n.find(object.(*corev1.Pod)); running != nil {
				running.end(0)
			}
		},
	})
	check(err)
	factory.Start(ctx.Done())
	log.Printf("%s is ready at %s", n.name, n.address)
}

func (n *node) seen(ctx context.Context, pod *corev1.Pod) {
	running := n.find(pod)
	isOver := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case running != nil && pod.DeletionTimestamp != nil:
		running.end(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	case running == nil && pod.DeletionTimestamp != nil:
		n.forget(ctx, pod)
	case running == nil && !isOver:
		n.start(ctx, pod)
	}
}

func (n *node) start(ctx context.Context, pod *corev1.Pod) {
	running := newRunningPod(n, pod.DeepCopy())
	n.lock.Lock()
	n.pods[string(pod.UID)] = running
	n.lock.Unlock()
	go func() {
		running.run(ctx)
		n.lock.Lock()
		delete(n.pods, string(pod.UID))
		n.lock.Unlock()
		if running.isDeleted() {
			n.forget(ctx, pod)
		}
	}()
}

// forget lets the API server remove a pod whose processes have ended.
func (n *node) forget(ctx context.Context, pod *corev1.Pod) {
	now, uid := int64(0), pod.UID
	err := n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if err != nil && !errors.IsNotFound(err) && !errors.IsConflict(err) {
		log.Printf("%s/%s: cannot delete the pod: %v", pod.Namespace, pod.Name, err)
	}
}

func (n *node) find(pod *corev1.Pod) *runningPod {
	n.lock.Lock()
	defer n.lock.Unlock()
	return n.pods[string(pod.UID)]
}

// named finds the pod that an exec or a request for logs means.
func (n *node) named(namespace, name string) *runningPod {
	n.lock.Lock()
	defer n.lock.Unlock()
	for _, running := range n.pods {
		if running.pod.Namespace == namespace && running.pod.Name == name {
			return running
		}
	}
	return nil
}
