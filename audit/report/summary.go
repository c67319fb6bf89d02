package report

import "fmt"

// Summarise counts clusters by status and findings by severity and state, by
// the rules of Summary.
func Summarise(clusters []Cluster) Summary {
	s := Summary{Clusters: len(clusters)}
	for _, c := range clusters {
		switch c.Status {
		case Complete:
			s.Complete++
		case Partial:
			s.Partial++
		case Unreachable:
			s.Unreachable++
		}
		for _, f := range c.Findings {
			s.add(f)
		}
	}
	return s
}

func (s *Summary) add(f Finding) {
	switch f.State {
	case StateResolved:
		s.Resolved++
		return
	case StateAcknowledged:
		s.Acknowledged++
		return
	case StateUnverified:
		s.Unverified++
	case StateOngoing:
		s.Ongoing++
	case StateNew:
		s.New++
	}
	switch f.Severity {
	case Critical:
		s.Critical++
	case Warning:
		s.Warning++
	case Info:
		s.Info++
	}
}

// Open is true for findings that still want action: neither resolved nor acknowledged.
func (f *Finding) Open() bool {
	return f.State != StateResolved && f.State != StateAcknowledged
}

// Only gives the report restricted to one cluster, with its own summary, so
// that what one vendor gets names no other vendor's cluster.
func Only(r *Report, cluster string) (*Report, error) {
	for i := range r.Clusters {
		if r.Clusters[i].Name != cluster {
			continue
		}
		one := *r
		one.Clusters = []Cluster{r.Clusters[i]}
		one.Summary = Summarise(one.Clusters)
		return &one, nil
	}
	return nil, fmt.Errorf("report %q has no cluster %q; list the clusters of a run with `audit reports show`", r.RunID, cluster)
}
