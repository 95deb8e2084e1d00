import { describe, expect, it } from 'vitest'
import { explain } from '../../src/record/explanation.ts'
import type { RequestFacts } from '../../src/record/request-facts.ts'

/** A GET that was forwarded, and answered by the device. */
const GET: RequestFacts = {
  id: '0123abc',
  time: Date.UTC(2026, 0, 2, 3, 4, 5, 250),
  duration: 12.34,
  status: 200,
  requestBytes: 0,
  responseBytes: 27,
  lookup: 0,
  waited: 0,
  places: 0,
  sentAfter: 1,
  headAfter: 5.06,
  deviceStatus: 200,
  attempts: 1,
  reused: false,
  tolerant: false,
  deviation: '',
  limit: 60,
  remaining: 57,
  closesIn: 30_000,
  admitted: true,
  shared: false,
  overflow: false,
  kind: 'forward',
  endpoint: 'api',
  per: 'client',
  end: 'complete',
  version: '1.1',
  token: 'valid',
  ownEndpoint: '',
  forwarded: false,
  upgrade: false,
  route: '',
  client: '192.0.2.1',
  grant: 'c0ffee',
  refusal: '',
  description: '',
  endedFor: '',
  wouldRefuse: '',
  failure: '',
  method: 'GET',
  path: '/path',
}

/** What is said of a GET with these facts in place of its own. */
function said(facts: Partial<RequestFacts> = {}): Record<string, string> {
  return Object.fromEntries(explain({ ...GET, ...facts }).findings.map(({ title, text }) => [title, text]))
}

it('H160 of a forwarded GET, each station says a sentence, in the order of the stations', () => {
  expect(Object.entries(said())).toEqual([
    ['Request', 'GET /path over HTTP/1.1: a request for the device.'],
    ['Client', '192.0.2.1, the peer of the connection. No X-Forwarded-For of a trusted proxy was used.'],
    [
      'Window',
      'That of client 192.0.2.1, for the endpoint type api. Request 3 of 60. It closes at 2026-01-02T03:04:36Z. This sidecar counts it.',
    ],
    ['Token', 'Valid, of grant c0ffee.'],
    ['Decision', 'Admitted.'],
    ['Device', 'The main service. Sent once, on a new connection. It answered 200.'],
    ['Response', '200, complete. 0 bytes of body came in, 27 bytes went out.'],
    [
      'Time',
      "12.3 ms in all: 1 ms for other work before it was sent, 4.1 ms until the device's response began, 7.3 ms for the rest of the response.",
    ],
  ])
})

type Row = readonly [what: string, facts: Partial<RequestFacts>, text: string | RegExp]

/** Refused before it reached the device. */
const REFUSED: Partial<RequestFacts> = {
  kind: 'refused',
  token: 'missing',
  grant: '',
  route: 'none',
  status: 401,
  refusal: 'unauthorized: missing',
  ...{ sentAfter: 0, headAfter: 0, attempts: 0, deviceStatus: 0 },
}

/** No request was sent for it. */
const UNSENT: Partial<RequestFacts> = { headAfter: 0, attempts: 0, deviceStatus: 0 }

/** It got the response to another request (upstream.share). */
const SHARED: Partial<RequestFacts> = { attempts: 0, sentAfter: -3, headAfter: 2 }

const ROWS: Readonly<Record<string, readonly Row[]>> = {
  Client: [['of a Unix socket', { client: 'unix' }, 'A process of this machine, through the Unix socket.']],
  Window: [
    ['of an IPv6 client is that of its /64', { client: '2001:db8::1' }, /^That of client 2001:db8::\/64, /],
    ['of a grant', { per: 'grant' }, /^That of grant c0ffee, /],
    ['of a name', { per: 'name', grant: 'monitor.c0ffee' }, /^That of name monitor, /],
    ['of all', { per: 'device' }, /^That of all clients together, /],
    ['of all, without a token', { ...REFUSED, per: 'device' }, /^That of all clients together, /],
    ['of a grant, without a valid token', { ...REFUSED, per: 'grant' }, /^That of client 192\.0\.2\.1, /],
    ['beyond the keys', { per: 'device', overflow: true }, /^That of all clients beyond limits\.max_keys /],
    ['of a denied address', { ...REFUSED, refusal: 'address-denied' }, /^None: /],
    ['in a shared store', { shared: true, lookup: 1000 }, /:04:37Z\. The shared store counts it, for all/],
    ['that is used up', { ...REFUSED, admitted: false }, / All 60 requests were used\. A refused request /],
    ['that closes in this second', { closesIn: 750 }, / It closes at 2026-01-02T03:04:06Z\. /],
  ],
  Token: [
    ['of a name', { grant: 'monitor.c0ffee' }, 'Valid, of grant monitor.c0ffee, of the password monitor.'],
    ['before the token', { ...REFUSED, token: '' }, 'Not looked up: the limit comes first.'],
    ['of a silent store', { ...REFUSED, token: 'unavailable' }, /^Not known: /],
    [
      'of a refused login',
      { kind: 'own-endpoint', ownEndpoint: 'token', grant: '' },
      'Not asked for: this endpoint takes its credential from the form.',
    ],
    [
      'of a login with a name',
      { kind: 'own-endpoint', ownEndpoint: 'token', grant: 'monitor.c0ffee' },
      / Its tokens belong to grant monitor\.c0ffee, of the password monitor\.$/,
    ],
  ],
  Decision: [
    ['on a public path', { token: 'missing', grant: '' }, /^Admitted without a token: /],
    [
      'with enforce: false',
      { token: 'missing', wouldRefuse: 'rate-limited' },
      /^Admitted\. With enforce: true the refusal would be "rate-limited": The window is used up\. /,
    ],
    ['that the client did not wait for', { ...REFUSED, status: 0 }, /^Refused with a response that the /],
    [
      'with its own sentence',
      { ...REFUSED, status: 400, refusal: 'invalid-request', description: 'The sentence.' },
      'Refused with 400, invalid-request. The sentence.',
    ],
    [
      'for the device, after it was admitted',
      { status: 500, refusal: 'upstream: connection_refused' },
      /^Admitted\. Then refused with 500, upstream: connection_refused\. The device cannot be reached: /,
    ],
    [
      'for the device, which answered something else than HTTP',
      { status: 500, refusal: 'upstream: http_protocol_error' },
      /http_protocol_error\. The device sent no usable response: /,
    ],
  ],
  Device: [
    ['none', { ...UNSENT, route: 'none' }, 'No service was chosen, and the request was not sent.'],
    [
      'of a route',
      { route: '/cam/', reused: true },
      /^The service of upstream\.routes \/cam\/\. Sent once, on a connection that was already /,
    ],
    ['asked again', { attempts: 2 }, / Sent 2 times, at last on a new connection: the device had closed /],
    [
      'that is down',
      { ...UNSENT, sentAfter: 0, failure: 'timeout' },
      / not sent: the device is known not to respond \(timeout\)\.$/,
    ],
    ['not asked', { ...UNSENT, sentAfter: 0 }, 'The main service. The request was not sent.'],
    ['left early', UNSENT, / not sent: it ended before a connection was open\.$/],
    ['not reached', { ...UNSENT, failure: 'timeout' }, / not sent: it got no connection \(timeout\)\.$/],
    [
      'silent',
      { headAfter: 0, deviceStatus: 0, failure: 'timeout' },
      / It sent no response head, and failed: timeout\.$/,
    ],
    ['failed late', { failure: 'timeout' }, / It answered 200, and failed: timeout\.$/],
    ['sloppy', { tolerant: true }, / It answered 200, read by the tolerant rules\.$/],
    ['sloppy, once told', { deviation: 'a fault' }, / 200, read by the tolerant rules because of a fault\.$/],
    [
      'shared with an earlier request',
      SHARED,
      'The main service. Shared: it answered 200 to another request that it saw as the same, and that was sent to it 3 ms before this request came. The response was 5 ms old when it began here: see upstream.share.',
    ],
    [
      'shared with a later request',
      { ...SHARED, sentAfter: 0.5 },
      / sent to it after this request came\. The response was 1\.5 ms old /,
    ],
    ['shared at the same time', { ...SHARED, sentAfter: 0 }, / sent to it after this request came\. /],
  ],
  Response: [
    ['left early', { end: 'aborted', status: 0 }, /^None: the client left before it\. 0 bytes /],
    ['left midway', { end: 'aborted' }, /^200, but the client left before its end\. 0 bytes /],
    [
      'cut by the device',
      { end: 'cut' },
      /^200, broken off by Postern: the device failed, or the client read /,
    ],
    [
      'whose grant has ended',
      { end: 'cut', endedFor: 'unauthorized: expired' },
      /: its grant has expired or was evicted at tokens\.capacity\. 0 bytes /,
    ],
    ['revoked', { end: 'cut', endedFor: 'unauthorized: revoked' }, /: its grant was revoked\. 0 bytes /],
    [
      'no more admitted',
      { end: 'cut', endedFor: 'address-denied' },
      /: a reload admits it no more \(address-denied\)\. /,
    ],
  ],
  Time: [
    [
      'of each wait',
      { duration: 20, lookup: 1, waited: 2, places: 1, sentAfter: 6, headAfter: 10 },
      "20 ms in all: 1 ms waiting for the shared store, 2 ms waiting for a place at the device (its one place was taken), 3 ms for other work before it was sent, 4 ms until the device's response began, 10 ms for the rest of the response.",
    ],
    [
      'with several places',
      { waited: 2, places: 4 },
      / 2 ms waiting for a place at the device \(all 4 were taken\), /,
    ],
    [
      'of less than a millisecond each',
      { duration: 1.25, lookup: 0.3, waited: 0.4, sentAfter: 0.9, headAfter: 0.99 },
      "1.3 ms in all: 0.3 ms waiting for the shared store, 0.4 ms waiting for a place at the device, 0.2 ms for other work before it was sent, 0.1 ms until the device's response began, 0.3 ms for the rest of the response.",
    ],
    ['with places unknown', { waited: 2 }, / 2 ms waiting for a place at the device, /],
    ['refused', REFUSED, '12.3 ms in all.'],
    [
      'without a connection',
      { ...UNSENT, duration: 9 },
      '9 ms in all: 1 ms for other work before it was sent, 8 ms for opening a connection.',
    ],
    [
      'without a response',
      { headAfter: 0, deviceStatus: 0, duration: 9 },
      / before it was sent, 8 ms at the device\.$/,
    ],
    [
      'shared',
      { ...SHARED, duration: 9 },
      '9 ms in all: 2 ms until the shared response began, 7 ms for the rest of the response.',
    ],
    [
      'on a clock that was set back',
      { sentAfter: 6, headAfter: 5 },
      / 0 ms until the device's response began, /,
    ],
  ],
}

describe.each(Object.entries(ROWS))('H160 %s', (title, rows) => {
  it.each(rows)('%s', (_what, facts, text) => {
    const found = said(facts)[title]
    if (typeof text === 'string') expect(found).toBe(text)
    else expect(found).toMatch(text)
  })
})

it('H160 a request that was not forwarded has no device', () => {
  expect(Object.keys(said(REFUSED))).not.toContain('Device')
})

it('H160 a row has whole milliseconds of its time, and no refusal if there was none', () => {
  expect(explain({ ...GET, time: 1.5, duration: 0.495_660_4 }).request).toEqual({
    ...{ id: '0123abc', time: 2, method: 'GET', path: '/path', client: '192.0.2.1', status: 200 },
    ...{ refusal: null, duration: 0.496 },
  })
  expect(explain({ ...GET, ...REFUSED }).request.refusal).toBe('unauthorized: missing')
})
