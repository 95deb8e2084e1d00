import { json, type Reply } from '../exchange.ts'
import type { Fault } from '../fault.ts'
import { changing, withFields, without } from './layers.ts'

const FIELDS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const

const refused = (_request: unknown, { status }: Reply): boolean => status === 429
const every = (): boolean => true

/** Faults of the refusal past the limit (C15). */
export const TOO_MANY_FAULTS: readonly Fault[] = [
  {
    name: 'no-retry-after',
    sentence: 'a 429 has no Retry-After',
    breaks: { C15: /Retry-After/ },
    exchange: changing(refused, (reply) => without(reply, 'Retry-After')),
  },
  {
    name: 'retry-after-0',
    sentence: 'Retry-After is 0',
    breaks: { C15: /Retry-After/ },
    exchange: changing(refused, (reply) => withFields(reply, { 'Retry-After': '0' })),
  },
  {
    name: 'retry-after-early',
    sentence: 'Retry-After ends before the window',
    breaks: { C15: /Retry-After/ },
    run: 'complete',
    exchange: changing(refused, (reply) =>
      withFields(reply, { 'Retry-After': String(Math.ceil(Number(reply.fields['Retry-After']) / 2)) }),
    ),
  },
  {
    name: 'retry-after-late',
    sentence: 'Retry-After is longer than a window',
    breaks: { C15: /Retry-After/ },
    run: 'complete',
    exchange: changing(refused, (reply) => withFields(reply, { 'Retry-After': '3600' })),
  },
  {
    name: 'too-many-503',
    sentence: 'past the limit the status is 503',
    breaks: { C15: /503/, C19: /503/, H125: /503/ },
    run: 'complete',
    exchange: changing(refused, (reply) => ({ ...reply, status: 503 })),
  },
  {
    name: 'too-many-403',
    sentence: 'past the limit the status is 403',
    breaks: { C15: /403/, C19: /403/, H125: /403/ },
    run: 'complete',
    exchange: changing(refused, (reply) => ({ ...reply, status: 403 })),
  },
  {
    name: 'token-before-limit',
    sentence: 'past the limit a request without a token is 401',
    breaks: { C15: /401/ },
    exchange: changing(
      ({ path, fields }, { status }) =>
        status === 429 && path !== '/oauth/token' && !fields.has('authorization'),
      (reply) =>
        json(
          401,
          { error: 'missing_token' },
          {
            ...without(reply, 'Retry-After', 'Content-Type').fields,
            'WWW-Authenticate': 'Bearer realm="device"',
          },
        ),
    ),
  },
]

/** Faults of the three rate-limit fields (C16). */
export const FIELD_FAULTS: readonly Fault[] = [
  ...FIELDS.map((name) => ({
    name: `no-${name.toLowerCase()}`,
    sentence: `no response has ${name}`,
    breaks: { C16: new RegExp(name) },
    exchange: changing(every, (reply) => without(reply, name)),
  })),
  {
    name: 'no-fields-on-401',
    sentence: 'a 401 has no rate-limit fields',
    breaks: { C16: /401/ },
    exchange: changing((_request, { status }) => status === 401, bare),
  },
  {
    name: 'no-fields-on-400',
    sentence: 'a 400 has no rate-limit fields',
    breaks: { C16: /400/ },
    exchange: changing((_request, { status }) => status === 400, bare),
  },
  {
    name: 'no-fields-on-429',
    sentence: 'a 429 has no rate-limit fields',
    breaks: { C16: /429/ },
    exchange: changing(refused, bare),
  },
  {
    name: 'no-fields-on-tokens',
    sentence: 'a token response has no rate-limit fields',
    breaks: { C16: /200/ },
    exchange: changing(({ path }, { status }) => path === '/oauth/token' && status === 200, bare),
  },
  {
    name: 'reset-in-milliseconds',
    sentence: 'X-RateLimit-Reset is in milliseconds',
    breaks: { C16: /Reset/ },
    exchange: changing(every, (reply) => reset(reply, (seconds) => seconds * 1000)),
  },
  {
    name: 'reset-relative',
    sentence: 'X-RateLimit-Reset is the number of seconds that are left',
    breaks: { C16: /Reset/ },
    exchange: changing(every, (reply) => reset(reply, (seconds) => seconds - Math.floor(Date.now() / 1000))),
  },
  {
    name: 'reset-far',
    sentence: 'X-RateLimit-Reset is two minutes too late',
    breaks: { C16: /Reset/ },
    exchange: changing(every, (reply) => reset(reply, (seconds) => seconds + 120)),
  },
  {
    name: 'clock-behind',
    sentence:
      'the clock, and with it Date and X-RateLimit-Reset, is an hour behind, which is no fault of the API',
    breaks: {},
    run: 'windows',
    exchange: changing(every, (reply) =>
      withFields(
        reset(reply, (seconds) => seconds - 3600),
        { Date: new Date(Date.now() - 3_600_000).toUTCString() },
      ),
    ),
  },
  {
    name: 'remaining-off-by-one',
    sentence: 'X-RateLimit-Remaining does not count the request itself',
    breaks: { C16: /Remaining/ },
    run: 'windows',
    exchange: changing(
      (_request, { status }) => status !== 429,
      (reply) => remaining(reply, (left) => left + 1),
    ),
  },
  {
    name: 'remaining-negative',
    sentence: 'X-RateLimit-Remaining is -1 past the limit',
    breaks: { C16: /Remaining/ },
    exchange: changing(refused, (reply) => withFields(reply, { 'X-RateLimit-Remaining': '-1' })),
  },
  {
    name: 'remaining-constant',
    sentence: 'X-RateLimit-Remaining never changes before the limit',
    breaks: { C16: /Remaining/ },
    exchange: changing(
      (_request, { status }) => status !== 429,
      (reply) => remaining(reply, () => 10),
    ),
  },
  {
    name: 'limit-wrong',
    sentence: 'X-RateLimit-Limit is 100',
    breaks: { C16: /Limit/ },
    exchange: changing(every, (reply) => withFields(reply, { 'X-RateLimit-Limit': '100' })),
  },
  {
    name: 'fields-twice',
    sentence: 'each rate-limit field is sent twice',
    breaks: { C16: /twice|2|repeated/ },
    exchange: changing(every, (reply) =>
      withFields(reply, Object.fromEntries(FIELDS.map((name) => [name, twice(reply.fields[name])]))),
    ),
  },
]

function bare(reply: Reply): Reply {
  return without(reply, ...FIELDS)
}

function twice(value: string | readonly string[] | undefined): readonly string[] {
  return [String(value), String(value)]
}

function reset(reply: Reply, change: (seconds: number) => number): Reply {
  const value = String(change(Number(reply.fields['X-RateLimit-Reset'])))
  return withFields(reply, { 'X-RateLimit-Reset': value })
}

function remaining(reply: Reply, change: (left: number) => number): Reply {
  const value = String(change(Number(reply.fields['X-RateLimit-Remaining'])))
  return withFields(reply, { 'X-RateLimit-Remaining': value })
}
