package dump

import (
	"fmt"
	"strings"
	"testing"
)

// TestWrongFields: an amount or a time that is none is an error that names its
// object and field, never a quiet 0, and never endless work.
func TestWrongFields(t *testing.T) {
	node := func(allocatable string) map[string]string {
		return map[string]string{"nodes.json": list("List", named1("Node", "v1", "", "n1", `,"status":{"allocatable":{"nvidia.com/gpu":`+allocatable+`}}`))}
	}
	pod := func(rest string) map[string]string {
		return map[string]string{"pods.json": list("List", named1("Pod", "v1", "prod", "p1", rest))}
	}
	request := func(q string) string {
		return `,"spec":{"containers":[{"name":"main","resources":{"requests":{"nvidia.com/gpu":` + q + `}}}]}`
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"negative":           {node(`"-5"`), []string{`Node "n1"`, "nvidia.com/gpu", `"-5"`, "negative"}},
		"negative number":    {node(`-5`), []string{"nvidia.com/gpu", "negative"}},
		"beyond 63 bits":     {node(`"1e30"`), []string{"nvidia.com/gpu", "63 bits"}},
		"a float's end":      {node(`"1e308"`), []string{"nvidia.com/gpu", "63 bits"}},
		"half a card":        {node(`"500m"`), []string{"nvidia.com/gpu", "no whole number"}},
		"no quantity":        {node(`"eight"`), []string{`status.allocatable["nvidia.com/gpu"] is "eight"`}},
		"two at once":        {map[string]string{"nodes.json": list("List", named1("Node", "v1", "", "n1", `,"status":{"capacity":{"cpu":"x","memory":"y"}}`))}, []string{`status.capacity.cpu is "x"`, `status.capacity.memory is "y"`}},
		"endless":            {node(`"1e-999999999"`), []string{`status.allocatable["nvidia.com/gpu"]`}},
		"endless number":     {node(`1e-999999999`), []string{`status.allocatable["nvidia.com/gpu"]`}},
		"endless, escaped":   {node(`"1\u0065-999999999"`), []string{`status.allocatable["nvidia.com/gpu"]`}},
		"a negative request": {pod(request(`"-1"`)), []string{`Pod "p1"`, "containers[0]", "negative"}},
		"an absurd request":  {pod(request(`"1e40"`)), []string{`Pod "p1"`, "main", "63 bits"}},
		"an init container":  {pod(`,"spec":{"initContainers":[{"name":"warm","resources":{"requests":{"nvidia.com/gpu":"-1"}}}]}`), []string{"initContainers[0]", "negative"}},
		"overhead":           {pod(`,"spec":{"overhead":{"cpu":"-1"}}`), []string{"overhead", "negative"}},
		"a quota":            {map[string]string{"resourcequotas.json": list("List", named1("ResourceQuota", "v1", "prod", "q", `,"status":{"hard":{"requests.nvidia.com/gpu":"-8"}}`))}, []string{`ResourceQuota "q"`, "status.hard", "negative"}},
		"a time":             {pod(`,"status":{"startTime":"yesterday"}`), []string{`status.startTime is "yesterday"`}},
		"a time in a list":   {map[string]string{"nodes.json": list("List", named1("Node", "v1", "", "n1", `,"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":"2026-13-01T00:00:00Z"}]}`))}, []string{`status.conditions[0].lastHeartbeatTime is "2026-13-01T00:00:00Z"`}},
		"a flood of blanks":  {map[string]string{"nodes.json": strings.Repeat(" ", maxBlanks+1) + "{}"}, []string{"nodes.json", "blanks in a row"}},
	} {
		if clusters, _, err := Read(folderOf(t, c.files), Options{}); err == nil || clusters != nil {
			t.Errorf("%s: was taken", name)
		} else {
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error %v does not say %q", name, err, want)
				}
			}
		}
	}
	// What looks alike and is none of it.
	for name, files := range map[string]map[string]string{
		"labels":   {"nodes.json": list("List", strings.Replace(named1("Node", "v1", "", "n1", ""), `"name":"n1"`, `"name":"n1","creationTimestamp":"2026-06-01T08:00:00Z","labels":{"hash":"1e99999","requests":"-5"}`, 1))},
		"nulls":    {"nodes.json": list("List", strings.Replace(named1("Node", "v1", "", "n1", `,"status":{"capacity":null,"allocatable":{"nvidia.com/gpu":null}}`), `"name":"n1"`, `"name":"n1","creationTimestamp":"2026-06-01T08:00:00Z"`, 1))},
		"fraction": {"nodes.json": list("List", strings.Replace(named1("Node", "v1", "", "n1", `,"status":{"capacity":{"cpu":"7500m","memory":"1.5Gi","ephemeral-storage":"1e3"}}`), `"name":"n1"`, `"name":"n1","creationTimestamp":"2026-06-01T08:00:00Z"`, 1))},
	} {
		if _, _, err := Read(folderOf(t, files), Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkEndless(b *testing.B) {
	raw := []byte(strings.Repeat(fmt.Sprintf(`{"name":%q,"uid":"3e120000-1111-4e00-8eee-1234567890ee"},`, "trainer-worker-eee"), 100))
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if endless(raw) {
			b.Fatal("no exponent is in it")
		}
	}
}
