// Package page renders a report as one HTML file for a browser and for paper:
// no script, no network, light and dark. It says first what could not be seen,
// then what is lost and what to do, then everything that a vendor needs to
// check it: figures, nodes, findings with evidence, waiting pods, checks.
//
// Text from clusters is made one visible line, then escaped by html/template
// for the place where it stands. Colour never carries a meaning alone.
package page

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"time"

	"gpuaudit/audit/history"
	"gpuaudit/audit/report"
	"gpuaudit/audit/snapshot"
)

// Options of a page.
type Options struct {
	// Cluster restricts the page to one cluster; it then names no other. Empty is all.
	Cluster string
	// Trend has, by cluster, the figures of stored runs. The page adds the
	// report's own. Without any, no trend is drawn.
	Trend map[string][]TrendPoint
	// History has, by cluster, what changed on nodes between stored runs.
	History map[string][]history.Change
	// ChecklistURL is where the checklist lies for findings whose own link is
	// relative or unusable: "../checklist.html" for a page in a cluster's
	// folder. Empty is checklist.html beside the page.
	ChecklistURL string
}

// TrendPoint is what one stored run kept of a cluster's figures.
type TrendPoint struct {
	At      time.Time
	Figures []snapshot.Figure
}

// How much of each list is written. The JSON report has all of it; the page
// says how many it left out.
const (
	maxActions       = 12
	maxFindings      = 600     // over all clusters, with all they hold
	maxFindingText   = 1 << 20 // bytes of all these together
	maxAllNodeRows   = 1500    // over all clusters
	maxNodeBoxes     = 60      // a cluster
	maxNodeGroups    = 48
	maxGroupNames    = 400
	maxNodeRows      = 150
	maxWaiting       = 60
	maxClasses       = 30
	maxWaterfalls    = 4
	maxLossLines     = 3
	maxTimeline      = 30
	maxChanges       = 80
	maxObjects       = 30
	maxEvidence      = 25
	maxLostNodes     = 12
	maxTrendPoints   = 400
	maxTrendRows     = 10
	maxTrendClasses  = 6
	maxNotes         = 40
	maxText          = 2000 // columns of one text from a cluster
	maxClusterDetail = 60   // clusters with a part of their own
)

//go:embed *.tmpl style.css
var sources embed.FS

var pages = template.Must(template.ParseFS(sources, "*.tmpl"))

var style = mustRead("style.css")

func mustRead(name string) template.CSS {
	data, err := sources.ReadFile(name)
	if err != nil {
		panic(err) // embedded: a fault of the build
	}
	return template.CSS(data) //nolint:gosec // the program's own embedded text
}

// Render gives the page. An unknown Options.Cluster is an error. The same
// report and options give the same bytes.
func Render(r *report.Report, o Options) ([]byte, error) {
	if o.Cluster != "" {
		one, err := report.Only(r, o.Cluster)
		if err != nil {
			return nil, fmt.Errorf("render page: %w", err)
		}
		r = one
	}
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, "page.html.tmpl", build(r, o)); err != nil {
		return nil, fmt.Errorf("render page of report %q: %w", r.RunID, err)
	}
	return b.Bytes(), nil
}
