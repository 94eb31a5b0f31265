// The volume provisioner: a directory for each claim of its storage class, and no directory without a volume.
// All nodes share the file system of this machine, so a hostPath is good on each of them.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"path/filepath"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

type provisioner struct {
	client kubernetes.Interface
	class  string
	dir    string
}

func pending(claim *core.PersistentVolumeClaim, class string) bool {
	return claim.Spec.StorageClassName != nil && *claim.Spec.StorageClassName == class &&
		claim.Spec.VolumeName == "" && claim.DeletionTimestamp == nil
}

func (p *provisioner) provision(ctx context.Context, claim *core.PersistentVolumeClaim) error {
	if !pending(claim, p.class) {
		return nil
	}
	name := "pvc-" + string(claim.UID)
	path := filepath.Join(p.dir, name)
	// A hostPath does not know fsGroup: everybody may write.
	if err := os.MkdirAll(path, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o777); err != nil {
		return err
	}
	_, err := p.client.CoreV1().PersistentVolumes().Create(ctx, &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "slurm-operator/dev"},
		},
		Spec: core.PersistentVolumeSpec{
			Capacity:                      claim.Spec.Resources.Requests,
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              p.class,
			PersistentVolumeReclaimPolicy: core.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        core.PersistentVolumeSource{HostPath: &core.HostPathVolumeSource{Path: path}},
			ClaimRef: &core.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
		},
	}, meta.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		return nil
	}
	log.Printf("%s/%s: made %s: %v", claim.Namespace, claim.Name, name, err)
	return err
}

func (p *provisioner) reclaim(ctx context.Context, volume *core.PersistentVolume) error {
	if volume.Spec.StorageClassName != p.class || volume.Status.Phase != core.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != core.PersistentVolumeReclaimDelete ||
		volume.Spec.HostPath == nil || filepath.Dir(volume.Spec.HostPath.Path) != p.dir {
		return nil
	}
	if err := os.RemoveAll(volume.Spec.HostPath.Path); err != nil {
		return err
	}
	err := p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name,
		meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &volume.UID}})
	if errors.IsNotFound(err) {
		return nil
	}
	log.Printf("removed %s: %v", volume.Name, err)
	return err
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the cluster")
	class := flag.String("class", "standard", "the storage class to serve")
	dir := flag.String("dir", "", "where the volumes stand")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.UserAgent = "slurm-operator-dev-volumes"
	p := &provisioner{client: kubernetes.NewForConfigOrDie(config), class: *class, dir: filepath.Clean(*dir)}

	ctx := context.Background()
	factory := informers.NewSharedInformerFactory(p.client, 0)
	claims := factory.Core().V1().PersistentVolumeClaims()
	volumes := factory.Core().V1().PersistentVolumes()
	type key struct{ kind, namespace, name string }
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[key](100*time.Millisecond, 10*time.Second))
	handler := func(kind string) cache.ResourceEventHandler {
		add := func(object any) {
			if o, ok := object.(meta.Object); ok {
				queue.Add(key{kind, o.GetNamespace(), o.GetName()})
			}
		}
		return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, object any) { add(object) }}
	}
	for informer, kind := range map[cache.SharedIndexInformer]string{claims.Informer(): "claim", volumes.Informer(): "volume"} {
		if _, err := informer.AddEventHandler(handler(kind)); err != nil {
			log.Fatal(err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for {
		k, _ := queue.Get()
		var err error
		if k.kind == "claim" {
			if claim, e := claims.Lister().PersistentVolumeClaims(k.namespace).Get(k.name); e == nil {
				err = p.provision(ctx, claim)
			}
		} else if volume, e := volumes.Lister().Get(k.name); e == nil {
			err = p.reclaim(ctx, volume)
		}
		if err != nil {
			log.Print(err)
			queue.AddRateLimited(k)
		} else {
			queue.Forget(k)
		}
		queue.Done(k)
	}
}
