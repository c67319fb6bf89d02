package inventory

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// An API server takes no negative amount, none beyond 63 bits, and no fraction
// of an extended resource. One that is met all the same must not become a quiet
// 0: cards would vanish, or look free.
// Source: kubernetes pkg/apis/core/validation, ValidateResourceQuantityValue.

// longExponent is an exponent of four digits and more. Reading such a quantity
// takes as much time and memory as it has digits.
var longExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{3,}$`)

// ReadQuantity reads a quantity that somebody wrote, and does not let a hostile
// one hold the program up.
func ReadQuantity(s string) (resource.Quantity, error) {
	if len(s) > 64 || longExponent.MatchString(s) {
		return resource.Quantity{}, errors.New("is beyond all measure")
	}
	return resource.ParseQuantity(s)
}

// WrongAmount says what is wrong with an amount, "" when nothing is.
func WrongAmount(name string, q resource.Quantity) string {
	switch {
	case q.Sign() < 0:
		return "is negative"
	case q.Sign() > 0 && q.Value() <= 0:
		return "is more than 63 bits hold"
	case !IsPlain(name) && !strings.HasSuffix(name, "."+string(corev1.ResourceStorage)) && q.Cmp(*resource.NewQuantity(q.Value(), q.Format)) != 0:
		return "is no whole number"
	}
	return ""
}

// amounts collects what is wrong with the lists of one object.
type amounts []string

func (a *amounts) check(at string, list corev1.ResourceList) {
	for name, q := range list {
		if wrong := WrongAmount(string(name), q); wrong != "" {
			*a = append(*a, fmt.Sprintf("%s of %s is %q, which %s", at, name, q.String(), wrong))
		}
	}
}

func (a amounts) err(kind, name string) error {
	if len(a) == 0 {
		return nil
	}
	sort.Strings(a)
	return fmt.Errorf("%s %q has amounts that no API server takes: %s; what wrote them is broken", kind, name, strings.Join(a, "; "))
}

// NodeAmounts fails for a Node whose amounts cannot be counted, naming all of them.
func NodeAmounts(n *corev1.Node) error {
	var a amounts
	a.check("capacity", n.Status.Capacity)
	a.check("allocatable", n.Status.Allocatable)
	return a.err("node", n.Name)
}

// PodAmounts fails for a Pod whose requests cannot be counted, naming all of them.
func PodAmounts(p *corev1.Pod) error {
	var a amounts
	a.containers("container", p.Spec.Containers)
	a.containers("init container", p.Spec.InitContainers)
	a.check("overhead", p.Spec.Overhead)
	if r := p.Spec.Resources; r != nil {
		a.check("the pod's request", r.Requests)
	}
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for i := range statuses {
			s := &statuses[i]
			if s.Resources != nil {
				a.check(fmt.Sprintf("the actual request of container %q", s.Name), s.Resources.Requests)
			}
			a.check(fmt.Sprintf("what is allocated to container %q", s.Name), s.AllocatedResources)
		}
	}
	return a.err("pod", p.Namespace+"/"+p.Name)
}

func (a *amounts) containers(what string, list []corev1.Container) {
	for i := range list {
		for name, q := range list[i].Resources.Requests {
			if WrongAmount(string(name), q) != "" {
				a.check(fmt.Sprintf("the request of %s %q", what, list[i].Name), list[i].Resources.Requests)
				break
			}
		}
	}
}

// QuotaAmounts fails for a ResourceQuota whose amounts cannot be counted.
func QuotaAmounts(q *corev1.ResourceQuota) error {
	var a amounts
	for at, list := range map[string]corev1.ResourceList{"spec.hard": q.Spec.Hard, "status.hard": q.Status.Hard, "status.used": q.Status.Used} {
		for name, amount := range list {
			plain := strings.TrimPrefix(strings.TrimPrefix(string(name), "requests."), "limits.")
			if wrong := WrongAmount(plain, amount); wrong != "" {
				a = append(a, fmt.Sprintf("%s of %s is %q, which %s", at, name, amount.String(), wrong))
			}
		}
	}
	return a.err("resource quota", q.Namespace+"/"+q.Name)
}
