import { NO_FORWARDING, type YamlPart } from '../support/sidecar.ts'
import * as scenarios from './scenarios.ts'

/** What a model of `models/` needs. A row of docs/devices.md. */
export interface ModelRow {
  /** The file of the model. Its docstring says what the device does, and has the report. */
  readonly name: string
  readonly scenario: scenarios.Scenario
  /** What happens by default; undefined: it works. */
  readonly fails?: string
  /** What else is to say of the default. */
  readonly note?: string
  /** The `upstream` keys with which the scenario works, `{}` for none; undefined: nothing helps. `F` is the file of a password. */
  readonly keys?: YamlPart
}

const SESSIONS = '/redfish/v1/SessionService/Sessions'
const file = { file: 'F' }

/** A model that serves pages with the keys only. */
const reads = (name: string, fails: string, keys: YamlPart): ModelRow => ({
  name,
  scenario: scenarios.reads,
  fails,
  keys,
})

export const models: readonly ModelRow[] = [
  { name: 'serves-one-client', scenario: scenarios.crowds, keys: {} },
  {
    name: 'takes-one-connection',
    scenario: scenarios.crowds,
    keys: {},
  },
  {
    name: 'needs-a-pause',
    scenario: scenarios.crowds,
    keys: {},
  },
  {
    name: 'reads-512-bytes',
    scenario: scenarios.browses,
    fails: 'a browser gets 431, as it does directly; curl fits',
    keys: { headers: { ...NO_FORWARDING, Cookie: null, 'Sec-*': null } },
  },
  { name: 'reads-lines-of-128-bytes', scenario: scenarios.reads, keys: {} },
  reads('refuses-forwarded-for', 'every request gets 400', { headers: { 'X-Forwarded-*': null } }),
  reads('refuses-via', 'every request gets 403', { headers: { Via: null } }),
  {
    name: 'compares-case',
    scenario: scenarios.uploads,
    keys: {},
  },
  {
    name: 'ignores-chunks',
    scenario: scenarios.uploadsWithoutLength,
    keys: {},
  },
  {
    name: 'waits-for-a-length',
    scenario: scenarios.uploadsWithoutLength,
    keys: {},
  },
  { name: 'refuses-expect', scenario: scenarios.uploadsExpecting, keys: {} },
  {
    name: 'speaks-http-1-0',
    scenario: scenarios.uploads,
    fails: 'every request gets 505',
    keys: { version: '1.0' },
  },
  { name: 'reads-one-packet', scenario: scenarios.reads, keys: {} },
  { name: 'ends-lines-with-lf', scenario: scenarios.reads, keys: {} },
  { name: 'mixes-line-ends', scenario: scenarios.reads, keys: {} },
  { name: 'omits-the-reason', scenario: scenarios.reads, keys: {} },
  { name: 'sends-two-lengths', scenario: scenarios.reads, keys: {} },
  { name: 'sends-length-and-chunks', scenario: scenarios.reads, keys: {} },
  { name: 'adds-a-body-to-304', scenario: scenarios.revalidates, keys: {} },
  { name: 'announces-too-much', scenario: scenarios.reads, fails: 'the transfer breaks off' },
  { name: 'sends-status-0', scenario: scenarios.reads, fails: '500 `http_protocol_error`' },
  { name: 'sends-no-status-line', scenario: scenarios.reads, fails: '500 `http_protocol_error`' },
  {
    name: 'resets-kept-connections',
    scenario: scenarios.uploads,
    fails: 'a POST after another request gets 500 `connection_terminated`',
    keys: { reuse: 'never' },
  },
  {
    name: 'waits-for-acknowledgements',
    scenario: scenarios.reads,
    note: 'a request on a kept connection waits as it does directly; after 12 such requests, each has a connection of its own and waits no more',
    keys: {},
  },
  {
    name: 'streams-pictures',
    scenario: scenarios.watches,
    note: 'two viewers with `max_in_flight: 2` keep no other request out',
    keys: { max_in_flight: 2, queue: { timeout: '2s' } },
  },
  {
    name: 'compares-origin',
    scenario: scenarios.postsFromItsPage,
    fails: 'a POST of its page over `https` gets 403',
    keys: { host: 'target' },
  },
  reads('knows-its-name-only', 'every request gets 421', { host: 'target' }),
  {
    name: 'wants-a-session-id',
    scenario: scenarios.reads,
    fails: 'every request gets 409',
    keys: {
      auth: {
        kind: 'session',
        session: {
          login: { method: 'GET', path: '/transmission/rpc' },
          token: { header: 'X-Transmission-Session-Id' },
          send: { header: 'X-Transmission-Session-Id' },
          expired: [409],
        },
      },
    },
  },
  {
    name: 'has-four-sessions',
    scenario: scenarios.startsOften,
    fails: 'every request gets 401',
    keys: {
      auth: {
        kind: 'session',
        user: 'admin',
        password: file,
        session: {
          login: { method: 'POST', path: SESSIONS, json: { UserName: '$user', Password: '$password' } },
          token: { header: 'X-Auth-Token' },
          send: { header: 'X-Auth-Token' },
          logout: { method: 'DELETE' },
        },
      },
    },
  },
  reads('renews-its-nonce', 'every request gets 401', {
    auth: { kind: 'digest', user: 'admin', password: file },
  }),
]
