package wire

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

func encode(t testing.TB, list runtime.Object) []byte {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := protobuf.NewSerializer(scheme, scheme)
	list.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(strings.TrimPrefix(fmt.Sprintf("%T", list), "*v1.")))
	body, err := runtime.Encode(s, list)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// random fills a pod in every field.
func random(t testing.TB, seed int64) *corev1.Pod {
	scheme := runtime.NewScheme()
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), serializer.NewCodecFactory(scheme)).NilChance(0.2).NumElements(1, 3)
	var p corev1.Pod
	fill.Fill(&p)
	p.TypeMeta = metav1.TypeMeta{}
	p.Annotations = map[string]string{"kept": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
	// As it is after one trip: what the wire form does not tell apart is gone.
	body, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var out corev1.Pod
	if err := out.Unmarshal(body); err != nil {
		t.Fatal(err)
	}
	return &out
}

// without is the pod as it should come out, by the names of its fields.
func without(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	delete(p.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
	for i := range p.ManagedFields {
		p.ManagedFields[i].FieldsV1 = nil
	}
	s := &p.Spec
	s.ImagePullSecrets, s.HostAliases, s.DNSConfig, s.EphemeralContainers = nil, nil, nil, nil
	for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			c := &list[i]
			list[i] = corev1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources, ResizePolicy: c.ResizePolicy,
				RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules, Stdin: c.Stdin, StdinOnce: c.StdinOnce, TTY: c.TTY}
		}
	}
	return p
}

// TestListKeepsAllButWhatIsNamed: of pods filled in every field, exactly the
// named fields are missing, whatever their numbers on the wire are.
func TestListKeepsAllButWhatIsNamed(t *testing.T) {
	for seed := range int64(50) {
		list := &corev1.PodList{ListMeta: metav1.ListMeta{Continue: "more"}}
		for i := range int64(3) {
			list.Items = append(list.Items, *random(t, seed*10+i))
		}
		n := 0
		next, err := List(encode(t, list), "PodList", Pod, func(item []byte) error {
			var got corev1.Pod
			if err := got.Unmarshal(item); err != nil {
				return err
			}
			if want := without(&list.Items[n]); !equality.Semantic.DeepEqual(&got, want) {
				t.Fatalf("seed %d, pod %d: %s", seed, n, cmp.Diff(want, &got))
			}
			n++
			return nil
		})
		if err != nil || n != 3 || next != "more" {
			t.Fatalf("seed %d: %d items, next %q, %v", seed, n, next, err)
		}
	}
}

func TestListRefuses(t *testing.T) {
	whole := encode(t, &corev1.PodList{Items: []corev1.Pod{*random(t, 1)}})
	count := func(body []byte, kind string) (n int, err error) {
		_, err = List(body, kind, Pod, func([]byte) error { n++; return nil })
		return n, err
	}
	if _, err := count([]byte(`{"kind":"PodList"}`), "PodList"); !errors.Is(err, ErrNotProtobuf) {
		t.Errorf("JSON: %v", err)
	}
	if _, err := count(whole, "NodeList"); err == nil || !strings.Contains(err.Error(), `kind "PodList", want "NodeList"`) {
		t.Errorf("another kind: %v", err)
	}
	for n := 4; n < len(whole)-8; n++ { // the last field of the envelope says nothing
		if _, err := count(whole[:n], "PodList"); err == nil {
			t.Fatalf("a body cut after %d of %d bytes is taken as whole", n, len(whole))
		}
	}
}

func FuzzList(f *testing.F) {
	f.Add(encode(f, &corev1.PodList{Items: []corev1.Pod{*random(f, 1)}}))
	f.Add([]byte("k8s\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		total := 0
		_, err := List(body, "PodList", Pod, func(item []byte) error { total += len(item); return nil })
		// Lengths are written in four bytes, so a nested message may grow, but never many times over.
		if err == nil && total > 5*len(body)+64 {
			t.Errorf("%d bytes became %d", len(body), total)
		}
	})
}
