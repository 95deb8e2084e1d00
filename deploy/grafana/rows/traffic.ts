import { chart, heatmap, type Row } from '../panels.ts'
import { events, latencies, quantile, rate, refusedShare } from '../queries.ts'

export const TRAFFIC: Row = {
  title: 'Traffic',
  panels: [
    chart({
      title: 'Requests by status',
      description:
        'Requests per second by the status that the client got, also those of the device. 429 is a rate limit, 401 a missing or void token. 499: the client left before a response.',
      unit: 'reqps',
      stacked: true,
      queries: [{ expr: rate('postern_requests_total', 'code'), legend: '{{code}}' }],
    }),
    chart({
      title: 'Requests by sidecar',
      description:
        'How the load spreads over the sidecars, and over logins and tokens ("oauth"), sessions of browsers ("browser") and everything else ("api").',
      unit: 'reqps',
      queries: [
        { expr: rate('postern_requests_total', 'instance, endpoint'), legend: '{{instance}} {{endpoint}}' },
      ],
    }),
    chart({
      title: 'Bytes',
      description:
        'Bytes per second of bodies and WebSockets, counted when the request has ended: a long transfer appears at once, at its end.',
      unit: 'Bps',
      queries: [
        { expr: rate('postern_request_bytes_total', ''), legend: 'from clients' },
        { expr: rate('postern_response_bytes_total', ''), legend: 'to clients' },
      ],
    }),
    chart({
      title: 'Response time',
      description:
        'From the request head to the end of the response: what a client waits for. If "Time of the device" is much lower, requests queue or clients read slowly.',
      unit: 's',
      queries: latencies('postern_request_duration_seconds', 'endpoint="api"'),
      steps: [[5, 'orange']],
    }),
    chart({
      title: 'Response time by endpoint and sidecar (p95)',
      description:
        'A password takes a tenth of a second to verify (argon2id), so that is normal for "oauth".',
      unit: 's',
      queries: [
        {
          expr: quantile(0.95, 'postern_request_duration_seconds', 'instance, endpoint'),
          legend: '{{instance}} {{endpoint}}',
        },
      ],
    }),
    heatmap({
      title: 'Response times',
      description:
        'How many requests took how long. Two bands mean two kinds of requests, such as pages and downloads, which one quantile would hide.',
      queries: [{ expr: events('postern_request_duration_seconds_bucket', 'le'), legend: '{{le}}' }],
    }),
  ],
}

export const REFUSALS: Row = {
  title: 'Refusals',
  panels: [
    chart({
      title: 'Refusals by reason',
      description:
        'Requests per second that Postern did not pass on, or the device did not answer ("upstream"). "rate_limited" is a 429, "unauthorized" a 401, "overloaded" a full queue, "malformed" broken HTTP. See docs/operating.md.',
      unit: 'reqps',
      stacked: true,
      queries: [{ expr: `${rate('postern_refusals_total', 'reason')} > 0`, legend: '{{reason}}' }],
    }),
    chart({
      title: 'Part of the requests that is refused',
      description:
        'By sidecar. One that refuses more than the others has another configuration, or other clients.',
      unit: 'percentunit',
      max: 1,
      queries: [{ expr: refusedShare('instance'), legend: '{{instance}}' }],
    }),
    chart({
      title: '401s by reason',
      description: 'Why a bearer token was refused. See docs/operating.md#a-client-gets-401.',
      unit: 'reqps',
      stacked: true,
      queries: [{ expr: rate('postern_auth_failures_total', 'reason'), legend: '{{reason}}' }],
    }),
  ],
}
