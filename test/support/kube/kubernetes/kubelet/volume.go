package main

import (
	"context"
	"log"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumes writes the files of the pod's Secrets and ConfigMaps into a folder, at the paths that they have in the pod. It waits
// for objects that are missing, and is not ok if the pod ends meanwhile.
func (p *runningPod) volumes(ctx context.Context) (folder string, ok bool) {
	folder = filepath.Join(p.node.folder, string(p.pod.UID)+"-volumes")
	check(os.MkdirAll(folder, 0o755))
	for hasFailed := false; ; hasFailed = true {
		err := p.writeVolumes(ctx, folder)
		if err == nil {
			return folder, true
		}
		if !hasFailed {
			log.Printf("%s: cannot write the volumes: %v", p, err)
			p.report(ctx, corev1.PodStatus{Phase: corev1.PodPending, Message: err.Error()})
		}
		select {
		case <-p.ended:
			_ = os.RemoveAll(folder)
			return "", false
		case <-time.After(retryPause):
		}
	}
}

func (p *runningPod) writeVolumes(ctx context.Context, folder string) error {
	for _, volume := range p.pod.Spec.Volumes {
		files, err := p.files(ctx, &volume)
		if err != nil {
			return err
		}
		for _, container := range p.pod.Spec.Containers {
			for _, mount := range container.VolumeMounts {
				if mount.Name != volume.Name {
					continue
				}
				for name, content := range files {
					// The slash keeps ".." inside the folder.
					path := filepath.Join(folder, filepath.Join("/", mount.MountPath, name))
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						return err
					}
					if err := os.WriteFile(path, content, 0o644); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// files are the path and content of each file of a volume; none, if it is neither a Secret nor a ConfigMap.
func (p *runningPod) files(ctx context.Context, volume *corev1.Volume) (map[string][]byte, error) {
	core := p.node.client.CoreV1()
	switch {
	case volume.Secret != nil:
		secret, err := core.Secrets(p.pod.Namespace).Get(ctx, volume.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return chosen(secret.Data, volume.Secret.Items), nil
	case volume.ConfigMap != nil:
		config, err := core.ConfigMaps(p.pod.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		data := map[string][]byte{}
		for key, text := range config.Data {
			data[key] = []byte(text)
		}
		return chosen(data, volume.ConfigMap.Items), nil
	}
	return nil, nil
}

// chosen are the keys that items name, under the items' paths; without items all.
func chosen(data map[string][]byte, items []corev1.KeyToPath) map[string][]byte {
	if len(items) == 0 {
		return data
	}
	files := map[string][]byte{}
	for _, item := range items {
		files[item.Path] = data[item.Key]
	}
	return files
}
