// Command page only pages through nodes and pods, the least that any audit has to do:
// page KUBECONFIG. It is what audit run is compared with.
package main

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		panic(err)
	}
	cfg.QPS = -1
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	c := kubernetes.NewForConfigOrDie(cfg)
	n := 0
	o := metav1.ListOptions{Limit: 500}
	for {
		l, err := c.CoreV1().Pods("").List(context.Background(), o)
		if err != nil {
			panic(err)
		}
		n += len(l.Items)
		if o.Continue = l.Continue; o.Continue == "" {
			break
		}
	}
	nodes := 0
	o = metav1.ListOptions{Limit: 500}
	for {
		l, err := c.CoreV1().Nodes().List(context.Background(), o)
		if err != nil {
			panic(err)
		}
		nodes += len(l.Items)
		if o.Continue = l.Continue; o.Continue == "" {
			break
		}
	}
	fmt.Println(n, nodes)
}
