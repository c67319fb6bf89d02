package page_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"gpuaudit/audit/history"
	"gpuaudit/audit/report"
	"gpuaudit/audit/report/page"
	"gpuaudit/audit/report/sample"
	"gpuaudit/audit/snapshot"
)

func render(t testing.TB, r *report.Report, o page.Options) string {
	t.Helper()
	data, err := page.Render(r, o)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func ptr(n int64) *int64 { return &n }

func trendOf(free ...int64) []page.TrendPoint {
	var out []page.TrendPoint
	for i, n := range free {
		f := snapshot.Figure{Resource: sample.GPU, Capacity: 120, Allocatable: 120, Free: ptr(n), Schedulable: ptr(n / 2)}
		if n < 0 {
			f.Free, f.Schedulable = nil, nil
		}
		out = append(out, page.TrendPoint{At: sample.Now.AddDate(0, 0, i-len(free)), Figures: []snapshot.Figure{f}})
	}
	return out
}

// section gives the page from one heading to the next of its kind.
func section(t *testing.T, html, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(html, from)
	if !ok {
		t.Fatalf("no %q in the page", from)
	}
	part, _, _ := strings.Cut(rest, to)
	return part
}

func TestOrder(t *testing.T) {
	rest := render(t, sample.Partial(), page.Options{})
	for _, heading := range []string{
		">Not seen<", ">What is lost<", ">What to do first<", ">Clusters at a glance<", ">Cluster lost-site", ">Findings<", ">What was looked at<",
		">Cluster no-pods", ">Nodes, a cell a device<", ">When findings were seen<", ">Findings<", ">Waiting pods<", ">Devices<", ">Nodes as read<",
		">What was looked at<", ">Cluster no-leases", ">From free to usable: prod<", ">The checklist<",
	} {
		_, after, ok := strings.Cut(rest, heading)
		if !ok {
			t.Fatalf("no %s behind the headings before it", heading)
		}
		rest = after
	}
	if strings.Contains(render(t, sample.Incident(), page.Options{}), ">Not seen<") {
		t.Error("the incident was seen whole, and the page says that something was not")
	}
}

func TestIncidentSaysWhatMatters(t *testing.T) {
	html := render(t, sample.Incident(), page.Options{})
	for _, want := range []string{
		"≤13 free, 0 usable", "7 lost: node not ready", "5 lost: label missing", "1 lost: label has another value",
		"Of ≤13 free cards, prod pods can use 0", "have the vendor repair or remove node 52ew76fke2", "&#43;7 cards for prod, 3 waiting pods would start",
		"1 held by pods that do no work, 7 free, lost: node not ready", "3 in use, 5 free, lost: label missing",
		"155d ago, 2025-12-27 22:00 UTC", "at least 24h, 2026-05-31 01:00 UTC or earlier",
		"https://audit.example.com/checklist.html#nodes-not-ready", "Which nodes count in the cluster&#39;s total and can give nothing?",
		"kubectl --context C label node ujx4guefbh node_env=prod", "bound to 52ew76fke2, never started", "x-scheduler, 23191 times",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestNodesAreDrawnCellByCell(t *testing.T) {
	html := render(t, sample.Incident(), page.Options{Cluster: "C"})
	cells := func(name string) string {
		box := section(t, section(t, html, `<ul class="grid">`, "</ul>"), `<span class="name">`+name+`</span>`, "</li>")
		var out strings.Builder
		for _, m := range regexp.MustCompile(`<i class="(\w+)">([^<]*)</i>`).FindAllStringSubmatch(box, -1) {
			letter := m[2]
			if letter == "" {
				letter = "#"
			}
			out.WriteString(strings.ReplaceAll(letter, "&lt;", "<"))
		}
		return out.String()
	}
	for name, want := range map[string]string{"52ew76fke2": "HNNNNNNN", "ujx4guefbh": "###LLLLL", "ulvq4g3iqi": "#######O", "525rgh6geb": "########"} {
		if got := cells(name); got != want {
			t.Errorf("node %s is drawn %s, want %s", name, got, want)
		}
	}
}

func TestCellsOfOddNodes(t *testing.T) {
	cases := []struct {
		name string
		d    report.NodeDevice
		lost []report.Lost
		want []string
	}{
		{"use unknown", report.NodeDevice{Capacity: 8, Allocatable: 8}, nil, []string{"8 use unknown"}},
		{"broken", report.NodeDevice{Capacity: 8, Allocatable: 6, Requested: ptr(6), Free: ptr(0)}, nil, []string{"6 in use, 2 not allocatable"}},
		{"over-committed", report.NodeDevice{Capacity: 8, Allocatable: 8, Requested: ptr(11), Free: ptr(0)}, nil, []string{"8 in use, 3 charged beyond what is allocatable"}},
		{"remainder", report.NodeDevice{Capacity: 8, Allocatable: 8, Requested: ptr(1), Free: ptr(7)},
			[]report.Lost{{Reason: report.LostRemainder, Devices: 1, Nodes: []string{"n"}}}, []string{"1 in use, 1 free, lost: left over after whole replicas, 6 free and usable"}},
		{"sum over several nodes only", report.NodeDevice{Capacity: 8, Allocatable: 8, Requested: ptr(1), Free: ptr(7)},
			[]report.Lost{{Reason: report.LostCPU, Devices: 3, Nodes: []string{"m", "n"}}}, []string{"1 in use, 7 free, lost in part: too little CPU"}},
		{"memory as a bar", report.NodeDevice{Capacity: 81920, Allocatable: 81920, Requested: ptr(20480), Free: ptr(61440)}, nil,
			[]string{"20480 in use, 61440 free and usable", `width="75.000%"`}},
	}
	for _, c := range cases {
		r := sample.Incident()
		cluster := &r.Clusters[0]
		cluster.Nodes = cluster.Nodes[:1]
		cluster.Nodes[0].Name = "n"
		cluster.Nodes[0].Devices = map[string]report.NodeDevice{sample.GPU: c.d}
		cluster.Classes[0].Lost = c.lost
		cluster.Classes[0].Requests = map[string]string{sample.GPU: "2"}
		html := section(t, render(t, r, page.Options{Cluster: "A"}), `<ul class="grid">`, "</ul>")
		for _, want := range c.want {
			if !strings.Contains(html, want) {
				t.Errorf("%s: no %q in %s", c.name, want, html)
			}
		}
	}
}

func TestUnknownIsNeverZeroOrEmpty(t *testing.T) {
	html := render(t, sample.Partial(), page.Options{Cluster: "no-pods"})
	devices := section(t, html, "<h3>Devices</h3>", "</table>")
	row := section(t, devices, "<tbody>", "</tbody>")
	if n := strings.Count(row, ">unknown<"); n != 11 {
		t.Errorf("%d unknown values in the row of devices, want 11: %s", n, row)
	}
	if regexp.MustCompile(`<td[^>]*>(<b>)?0?(</b>)?</td>`).MatchString(row) {
		t.Errorf("an unknown value is 0 or empty: %s", row)
	}
	for _, want := range []string{"unknown: pods were not seen", "8 use unknown", "free unknown: pods were not seen", "not evaluated", "pods: forbidden"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(html, "No pod waits") {
		t.Error("pods were not seen and the page says that none waits")
	}
	unreachable := render(t, sample.Partial(), page.Options{Cluster: "lost-site"})
	if !strings.Contains(unreachable, "unknown: nothing was read") || strings.Contains(unreachable, ">clean<") {
		t.Error("a cluster that was not read looks clean")
	}
	if !strings.Contains(render(t, &report.Report{}, page.Options{}), "No cluster was audited") {
		t.Error("an empty report looks fine")
	}
}

func TestOneVendorsPageNamesNoOther(t *testing.T) {
	secret := "secret-node"
	o := page.Options{
		Cluster: "C", Trend: map[string][]page.TrendPoint{"A": {{At: sample.Now.AddDate(0, 0, -2), Figures: []snapshot.Figure{{Resource: "a.example/gpu"}}}}},
		History: map[string][]history.Change{"A": {{Node: secret, What: history.Removed}}},
	}
	html := render(t, sample.Incident(), o)
	for _, other := range []string{"vendor-A", "vendor-B", "gpu-A-", "gpu-B-", secret, "a.example", "kube-system-uid-A", ">A<", ">B<"} {
		if strings.Contains(html, other) {
			t.Errorf("the page for C holds %q", other)
		}
	}
	if _, err := page.Render(sample.Incident(), page.Options{Cluster: "D"}); err == nil || !strings.Contains(err.Error(), `"D"`) {
		t.Errorf("unknown cluster: error %v, want one that names it", err)
	}
}

func TestHostileTextStaysText(t *testing.T) {
	r := sample.Hostile()
	html := render(t, r, page.Options{
		Trend:   map[string][]page.TrendPoint{r.Clusters[0].Name: trendOf(1, 2)},
		History: map[string][]history.Change{r.Clusters[0].Name: {{Node: "<script>n\u202e", What: history.Label, Key: "<img src=x>", SetBy: &snapshot.SetBy{Manager: "<b>\x1b"}}}},
	})
	for _, bad := range []string{
		"<script", "<img", "\x1b", "\u202e", "\u2066", "\u200b", "\x00", "javascript:alert(1)//", "href=\"javascript", "<b>|", "ZgotmplZ", "&lt;b&gt;\x1b", "onerror=alert(1)>&amp;{{",
	} {
		if strings.Contains(html, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if !strings.Contains(html, "&lt;script&gt;alert(1)&lt;/script&gt;") || !strings.Contains(html, `\u202e`) {
		t.Error("hostile text is not shown as text")
	}
	if !strings.Contains(html, "What changed on nodes") || !strings.Contains(html, "Free, usable and lost over time") {
		t.Error("trend and history are not found under a cluster's own name")
	}
}

func TestLinks(t *testing.T) {
	cases := []struct{ own, base, want string }{
		{"https://wiki.example/c#x", "", "https://wiki.example/c#x"},
		{"checklist.html#labels", "", "checklist.html#nodes-not-ready"},
		{"checklist.html#labels", "../checklist.html", "../checklist.html#nodes-not-ready"},
		{"javascript:alert(1)", "", "checklist.html#nodes-not-ready"},
		{"//evil.example/x", "", "checklist.html#nodes-not-ready"},
		{"https://user:password@host/", "", "checklist.html#nodes-not-ready"},
		{"", "https://c.example/list", "https://c.example/list#nodes-not-ready"},
	}
	for _, c := range cases {
		r := sample.Incident()
		r.Clusters = r.Clusters[2:]
		r.Clusters[0].Findings = r.Clusters[0].Findings[:1]
		r.Clusters[0].Findings[0].Link = c.own
		article := section(t, render(t, r, page.Options{ChecklistURL: c.base}), "<article", "</article>")
		if !strings.Contains(article, `href="`+c.want+`"`) {
			t.Errorf("link %q with base %q: no %q in %s", c.own, c.base, c.want, article)
		}
	}
}

func TestSelfContained(t *testing.T) {
	html := render(t, sample.Incident(), page.Options{Trend: map[string][]page.TrendPoint{"C": trendOf(3, 4, 5)}})
	if m := regexp.MustCompile(`(?i)<script|<link [^>]*stylesheet|@import|src=|url\((?:[^#])`).FindString(html); m != "" {
		t.Errorf("the page asks for something outside itself: %q", m)
	}
	if !strings.Contains(html, "default-src 'none'") {
		t.Error("no content security policy")
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if ids[m[1]] {
			t.Errorf("id %q is there twice", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(` href="#([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if !ids[m[1]] {
			t.Errorf("link to #%s leads nowhere", m[1])
		}
	}
}

func TestTrend(t *testing.T) {
	html := render(t, sample.Incident(), page.Options{Cluster: "C", Trend: map[string][]page.TrendPoint{"C": trendOf(4, 6, -1, 8, 2)}})
	figure := section(t, html, `<figure class="trend">`, "</figure>")
	if n := strings.Count(figure, `<polyline class="free"`); n != 2 {
		t.Errorf("free is drawn in %d lines, want 2: it is broken where a run did not see it", n)
	}
	table := section(t, html, "The last runs as a table", "</table>")
	for _, want := range []string{"2026-06-01 00:59 UTC", ">unknown<", ">13<"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %s in the table of the trend", want)
		}
	}
	if strings.Contains(render(t, sample.Incident(), page.Options{}), "<figure class=\"trend\">") {
		t.Error("a trend is drawn of one run")
	}
}

// TestTrendOfEachClass: every class has its own picture, and a run that did not
// know it is a gap in it, no zero.
func TestTrendOfEachClass(t *testing.T) {
	stored := trendOf(4, 6, 8, 9)
	for i := range stored {
		stored[i].Figures[0].Classes = map[string]int64{"prod": 1}
		if i != 1 {
			stored[i].Figures[0].Classes["batch"] = 3
		}
	}
	html := render(t, sample.Incident(), page.Options{Cluster: "C", Trend: map[string][]page.TrendPoint{"C": stored}})
	for _, class := range []string{"prod", "batch"} {
		if !strings.Contains(html, "usable by class "+class+"</span>") {
			t.Errorf("no picture of class %s", class)
		}
	}
	if n := strings.Count(html, `<figure class="trend">`); n != 2 {
		t.Errorf("%d pictures, want one for each of 2 classes", n)
	}
	_, batch, _ := strings.Cut(html, "usable by class batch</span>")
	if table := section(t, batch, "The last runs as a table", "</table>"); strings.Count(table, ">unknown<") != 2 {
		t.Errorf("the run that did not know the class is not unknown: %s", table)
	}
}

func TestSameInputSameBytes(t *testing.T) {
	o := page.Options{Trend: map[string][]page.TrendPoint{"C": trendOf(4, 6, 8)}}
	first := render(t, sample.Incident(), o)
	for range 5 {
		if render(t, sample.Incident(), o) != first {
			t.Fatal("two renderings differ")
		}
	}
}

func TestRenderDoesNotChangeTheReport(t *testing.T) {
	r := sample.Hostile()
	before, err := report.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	render(t, r, page.Options{})
	after, err := report.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Error("rendering changed the report")
	}
}

func fleet(clusters, nodes int) *report.Report {
	r := sample.Large(nodes, 10)
	one := r.Clusters[0]
	r.Clusters = nil
	for i := range clusters {
		c := one
		c.Name = fmt.Sprintf("c-%02d", i)
		r.Clusters = append(r.Clusters, c)
	}
	r.Summary = report.Summarise(r.Clusters)
	return r
}

func TestSizeIsBounded(t *testing.T) {
	const limit = 3 << 20
	cases := map[string]*report.Report{
		"2,000 nodes, 500 findings": sample.Large(2000, 500), "5,000 nodes, 5,000 findings": sample.Large(5000, 5000), "200 clusters": sample.Many(200, 40), "60 clusters of 150 nodes": fleet(60, 150),
	}
	for name, r := range cases {
		html := render(t, r, page.Options{})
		if len(html) > limit {
			t.Errorf("%s: %d bytes, want at most %d", name, len(html), limit)
		}
		if open := r.Summary.New + r.Summary.Ongoing; open > 600 && !strings.Contains(html, "more findings</b> are in the JSON report") && !strings.Contains(html, "no part of their own") {
			t.Errorf("%s: left findings out and does not say so", name)
		}
	}
	long := sample.Large(500, 500)
	for i := range long.Clusters[0].Findings {
		f := &long.Clusters[0].Findings[i]
		f.Detail = strings.Repeat("<", 5000)
		for range 40 {
			f.Evidence = append(f.Evidence, report.Evidence{Object: "x", Value: strings.Repeat("&", 5000)})
		}
	}
	if html := render(t, long, page.Options{}); len(html) > 3*limit || !strings.Contains(html, "more findings</b>") {
		t.Errorf("long texts make a page of %d bytes", len(html))
	}
	many := render(t, sample.Large(2000, 500), page.Options{})
	if n := strings.Count(many, "<article"); n != 500 {
		t.Errorf("%d findings in full, want 500", n)
	}
	if !strings.Contains(many, "1500 nodes") {
		t.Error("healthy full nodes are not drawn as one group")
	}
}

// TestTimeIsLinear renders ten times the nodes and findings and allows for
// thirty times the time: a square would take a hundred times.
func TestTimeIsLinear(t *testing.T) {
	took := func(nodes, findings int) time.Duration {
		r := sample.Large(nodes, findings)
		best := time.Hour
		for range 5 {
			begun := time.Now()
			render(t, r, page.Options{})
			best = min(best, time.Since(begun))
		}
		return best
	}
	small, large := took(500, 50), took(5000, 500)
	if large > 30*small {
		t.Errorf("500 nodes take %v, 5,000 take %v", small, large)
	}
}

func BenchmarkRender(b *testing.B) {
	for _, nodes := range []int{20, 200, 2000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			r := sample.Large(nodes, nodes/4)
			for b.Loop() {
				b.ReportMetric(float64(len(render(b, r, page.Options{}))), "page-bytes")
			}
		})
	}
}
