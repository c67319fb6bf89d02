package collect

import (
	"encoding/json"
	"strings"
	"testing"

	"gpuaudit/audit/inventory"
)

// TestScrub: what may carry secrets is gone wherever it stands, and what checks
// read is there, whatever its keys are called.
func TestScrub(t *testing.T) {
	text := `{"metadata":{"name":"p","labels":{"env":"prod","args":"kept","command":"kept"},"annotations":{"vault/token":"SECRET"},"managedFields":[{"manager":"m"}]},
		"spec":{"nodeSelector":{"env":"prod","template":"kept","metadata":"kept"},"hostAliases":[{"hostnames":["SECRET"]}],"imagePullSecrets":[{"name":"SECRET"}],
			"containers":[{"name":"c","image":"i","env":[{"value":"SECRET"}],"args":["SECRET"],"command":["SECRET"],"newField":"SECRET","resources":{"requests":{"nvidia.com/gpu":"1"}}}],
			"volumes":[{"name":"v","csi":{"driver":"d","volumeAttributes":{"k":"SECRET"}}},{"name":"w","persistentVolumeClaim":{"claimName":"kept"}},{"name":"x","flexVolume":{"options":{"k":"SECRET"}}}],
			"jobTemplate":{"metadata":{"annotations":{"a":"SECRET"}},"spec":{"template":{"metadata":{"annotations":{"a":"SECRET","scheduling.k8s.io/group-name":"kept"}},"spec":{"containers":[{"env":[{"value":"SECRET"}]}]}}}}},
		"status":{"containerStatuses":[{"name":"c","lastState":{"terminated":{"exitCode":1,"message":"SECRET","reason":"Error"}},"state":{"waiting":{"reason":"CrashLoopBackOff","message":"kept"}}}]}}`
	var item map[string]any
	if err := json.Unmarshal([]byte(text), &item); err != nil {
		t.Fatal(err)
	}
	scrub(item, find(inventory.Pods))
	body, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(body); strings.Contains(got, "SECRET") || strings.Contains(got, "vault") {
		t.Errorf("a secret is left in %s", got)
	}
	for _, want := range []string{`"labels":{"args":"kept","command":"kept","env":"prod"}`, `"nodeSelector":{"env":"prod","metadata":"kept","template":"kept"}`, `"nvidia.com/gpu":"1"`, `"csi":{"driver":"d"}`,
		`"claimName":"kept"`, `"group-name":"kept"`, `"exitCode":1`, `"message":"kept"`, `"manager":"m"`} {
		if !strings.Contains(strings.ReplaceAll(string(body), "scheduling.k8s.io/", ""), want) {
			t.Errorf("%s is not in %s", want, body)
		}
	}
}
