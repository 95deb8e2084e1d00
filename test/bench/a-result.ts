import { type Check, type Findings, FORMAT, type Result } from '../../bench/figure.ts'

/** A check of a figure, with these properties replaced. */
export function aCheck(part: Partial<Check>): Check {
  return {
    id: 'P1 peer',
    what: 'of the rate of a peer',
    unit: '×',
    better: 'more',
    value: 1,
    comparable: 'anywhere',
    ...part,
  }
}

/** The result of a bench run with one figure. */
export function aResult({
  processor = 'the same',
  ...findings
}: Partial<Findings> & { readonly processor?: string }): Result {
  return {
    format: FORMAT,
    at: '2026-01-02T03:04:05.678Z',
    machine: {
      processor,
      cores: 2,
      memory: '8 GiB',
      kernel: 'Linux 6',
      node: '26.0.0',
      commit: 'abc',
      loadAverage: 0.1,
    },
    loadAfter: 0.2,
    program: 'the bundle',
    device: 'nginx 1',
    tools: ['wrk 4'],
    pinned: true,
    rounds: 3,
    seconds: 4,
    quick: false,
    took: 61,
    figures: [
      {
        id: 'P1',
        title: 'Forwarding',
        about: 'What is measured.',
        took: 5,
        checks: [],
        tables: [],
        notes: [],
        faults: [],
        ...findings,
      },
    ],
  }
}
