import { STATUS_CODES } from 'node:http'
import type { Refusal } from '../http/refusal.ts'

/** Sums since the start, to be read at any time at no cost. The arrays and the record are live: they go on counting. */
export interface Totals {
  /** Ended requests by duration, of each endpoint type. The buckets are those of `BOUNDS`. */
  readonly requests: readonly Series['counts'][]
  /** The device's response heads by duration. */
  readonly device: Series['counts']
  readonly refusals: Readonly<Record<RefusalReason, number>>
  /** Ended requests with a status of 500 and above, the device's or Postern's own. */
  readonly serverErrors: number
  /** At present. */
  readonly connections: number
  readonly tunnels: number
}

type Labels = readonly [endpoint: string, method: string, code: string]

/** Counts requests without building a key from their labels. The registry gets the sums on each scrape. */
export interface Tally {
  add(endpoint: string, method: string, status: number): void
  /** Passes on the counts since the last call. */
  drain(take: (labels: Labels, amount: number) => void): void
}

/** The methods that are counted by name; all others are `other`, so that clients cannot create series. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

type Counts = Map<number, number>

export function createTally(): Tally {
  const byEndpoint = new Map<
    string,
    { readonly named: ReadonlyMap<string, Counts>; readonly other: Counts }
  >()

  function open(endpoint: string) {
    const opened = { named: new Map(METHODS.map((method) => [method, new Map()])), other: new Map() }
    byEndpoint.set(endpoint, opened)
    return opened
  }

  return {
    add(endpoint, method, status) {
      const { named, other } = byEndpoint.get(endpoint) ?? open(endpoint)
      const counts: Counts = named.get(method) ?? other
      counts.set(status, (counts.get(status) ?? 0) + 1)
    },
    drain(take) {
      for (const [endpoint, { named, other }] of byEndpoint)
        for (const [method, counts] of [...named, ['other', other] as const]) {
          for (const [status, amount] of counts) take([endpoint, method, codeLabel(status)], amount)
          counts.clear()
        }
    },
  }
}

/** A registered status by number, `other` for an unregistered one, `none` for no response (the client left). */
function codeLabel(status: number): string {
  if (status === 0) return 'none'
  return STATUS_CODES[status] === undefined ? 'other' : String(status)
}

/** Passes on the counts since the last call. Counting in the registry is slower, because it looks up the labels. */
export function drain<K extends string>(
  counts: Record<K, number>,
  take: (label: K, amount: number) => void,
): void {
  for (const label in counts) {
    take(label, counts[label])
    counts[label] = 0
  }
}

type Underscored<Kind extends string> = Kind extends `${infer Head}-${infer Tail}`
  ? `${Head}_${Underscored<Tail>}`
  : Kind

/** A value of the `reason` label of `postern_refusals_total`: a kind of refusal, with underscores. */
export type RefusalReason = Underscored<Refusal['kind']>

/** The compiler demands that each kind of refusal is here, with its own name. */
const REASONS: { readonly [Kind in Refusal['kind']]: Underscored<Kind> } = {
  malformed: 'malformed',
  'invalid-request': 'invalid_request',
  'invalid-grant': 'invalid_grant',
  'unsupported-grant-type': 'unsupported_grant_type',
  'method-not-allowed': 'method_not_allowed',
  'unsupported-media-type': 'unsupported_media_type',
  'content-too-large': 'content_too_large',
  'length-required': 'length_required',
  'request-timeout': 'request_timeout',
  'expectation-failed': 'expectation_failed',
  'header-too-large': 'header_too_large',
  unauthorized: 'unauthorized',
  'cross-origin': 'cross_origin',
  'insufficient-scope': 'insufficient_scope',
  'rate-limited': 'rate_limited',
  'wrong-passwords': 'wrong_passwords',
  'address-denied': 'address_denied',
  overloaded: 'overloaded',
  upstream: 'upstream',
  'store-unavailable': 'store_unavailable',
  'server-error': 'server_error',
}

export const REFUSAL_REASONS: readonly RefusalReason[] = Object.values(REASONS)

/** Counts refusals since the start. */
export interface RefusalCounts {
  /** Has every reason from the start, and goes on counting. */
  readonly counts: Readonly<Record<RefusalReason, number>>
  add(refusal: Refusal): void
}

export function createRefusalCounts(): RefusalCounts {
  // Proof of the cast: the keys are all reasons.
  const counts = Object.fromEntries(REFUSAL_REASONS.map((reason) => [reason, 0])) as Record<
    RefusalReason,
    number
  >
  return {
    counts,
    add({ kind }) {
      counts[REASONS[kind]] += 1
    },
  }
}

/** A sample of the exposition text. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/**
 * A histogram of durations in the text format of Prometheus. It replaces prom-client's, which looks up the labels on each
 * observation: each request is observed twice.
 */
export interface Histogram {
  /** @param isShown whether the samples are in the text */
  series(labels?: Sample['labels'], isShown?: () => boolean): Series
  /** Buckets, sum and count of each series, with the names of the text. */
  samples(): Sample[]
  text(): string
}

export interface Series {
  observe(seconds: number): void
  /** Observations in each bucket and in no lower one. The last bucket has no bound. The array is live: it goes on counting. */
  readonly counts: readonly number[]
}

/** The upper bounds of the buckets in seconds: from a cached response of a LAN device to the response deadline. */
export const BOUNDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]

export function createHistogram(name: string, help: string): Histogram {
  const all: (() => Sample[])[] = []

  function series(labels: Sample['labels'] = {}, isShown = () => true): Series {
    const counts = new Array<number>(BOUNDS.length + 1).fill(0)
    let sum = 0
    all.push(() => {
      if (!isShown()) return []
      let total = 0
      const buckets = counts.map((count, i) => {
        total += count
        return {
          name: `${name}_bucket`,
          labels: { le: String(BOUNDS[i] ?? '+Inf'), ...labels },
          value: total,
        }
      })
      return [
        ...buckets,
        { name: `${name}_sum`, labels, value: sum },
        { name: `${name}_count`, labels, value: total },
      ]
    })
    return {
      counts,
      observe(seconds) {
        let i = 0
        while (seconds > (BOUNDS[i] ?? Number.POSITIVE_INFINITY)) i += 1
        counts[i] = (counts[i] ?? 0) + 1
        sum += seconds
      },
    }
  }

  const samples = (): Sample[] => all.flatMap((samplesOf) => samplesOf())

  return {
    series,
    samples,
    text: () =>
      [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`, ...samples().map(sampleLine), ''].join('\n'),
  }
}

/** The label values are the sidecar's own and need no escape. */
function sampleLine({ name, labels, value }: Sample): string {
  const pairs = Object.entries(labels).map(([label, of]) => `${label}="${of}"`)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`
}
