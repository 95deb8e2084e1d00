import { X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import tls from 'node:tls'
import type { SomeBounds } from '../../src/compose/bounds.ts'
import { createSidecar } from '../../src/compose/sidecar.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Overview } from '../../src/overview/overview.ts'
import { openLogOn } from '../../src/record/log.ts'
import type { MachineNames } from '../../src/system/machine-names.ts'
import { temporaryDirectory } from './certificate.ts'
import { closeLater } from './cleanup.ts'
import { connect, send } from './client.ts'
import { type MovableClock, passUntil, stillClock } from './clock.ts'
import { type Device, startDevice } from './device.ts'
import { sharedPair } from './made-once.ts'
import type { Connection, Request, Response } from './message.ts'
import type { Transport } from './transports.ts'

/** Part of the configuration, with the keys of the YAML file. */
export type YamlPart = { readonly [key: string]: unknown }

/** The default device password in tests: it has characters that a form must escape, and one outside of ASCII. */
export const PASSWORD = 'näive & 100% +correct= horse'

/** The media type of a form. */
export const FORM_TYPE = 'application/x-www-form-urlencoded'

/** A hash of it, which no warning is about: argon2id, as cheap as that may be. */
export const HASHED_PASSWORD =
  '$argon2id$v=19$m=4096,t=1,p=1$YSBzYWx0IGZvciB0ZXN0cw$h77fx9H5fOIlGfjzmc1hZtAzxNNH1gAFe8erYPsdgIs'
/** The form of a password grant with that password. */
export const PASSWORD_GRANT: string = encodeForm({ grant_type: 'password', password: PASSWORD })

/** The response of the token endpoint (C4). */
export interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
  readonly token_type: string
  readonly expires_in: number
}

/** A request and the bearer token to send with it. */
export interface ApiRequest extends Request {
  readonly token?: string
  /** The local address to connect from: each address of 127.0.0.0/8 is another client. */
  readonly from?: string
}

/** A form body: text is sent as it is, pairs are encoded. */
export type FormBody = string | Readonly<Record<string, string>> | readonly (readonly [string, string])[]

export interface TestSidecar {
  readonly transport: Transport
  /** Without a trailing slash. */
  readonly url: string
  readonly adminUrl: string
  readonly device: Device
  readonly clock: MovableClock
  /** Contains the password file and the state folder. */
  readonly directory: string
  readonly passwordFile: string
  /** Sends one request on its own connection. */
  request(request?: ApiRequest): Promise<Response>
  /** Opens a connection that stays open. */
  connect(options?: { readonly from?: string }): Promise<Connection>
  /** Sends `POST /oauth/token` with a form. */
  postToken(form: FormBody, request?: ApiRequest): Promise<Response>
  /** Gets tokens by the password grant; fails unless the status is 200. */
  grant(): Promise<Tokens>
  /** Gets an access token by the password grant. */
  token(): Promise<string>
  /** Gets tokens by the refresh grant; fails unless the status is 200. */
  refresh(refreshToken: string): Promise<Tokens>
  /** The text of `/metrics`. */
  metrics(): Promise<string>
  /** The sum of the samples of a metric whose labels include these; 0 when there is none. */
  metric(name: string, labels?: Readonly<Record<string, string>>): Promise<number>
  /** Reads `/metrics` once; the returned function reads several metrics of that moment, as `metric` does. */
  figures(): Promise<(name: string, labels?: Readonly<Record<string, string>>) => number>
  /** What the admin listener shows. */
  readonly overview: Overview
  /** The lines of the log so far. */
  logLines(): string[]
  /** The certificates that the listener presents (PEM), for clients that check it. */
  certificate(): Promise<string>
  /** Reloads with these keys over the configuration of the start. */
  reload(change: YamlPart): Promise<unknown>
  /** @param graceMs default: 0; `usual`: that of every stop */
  stop(graceMs?: number | 'usual'): Promise<void>
}

export interface SidecarOptions {
  /** Overrides the defaults below, key by key. */
  readonly config?: YamlPart
  /** The device to forward to; default: `startDevice()`. */
  readonly device?: Pick<Device, 'url'>
  /** Default: cleartext. */
  readonly transport?: Transport
  /** Default: a still clock. */
  readonly clock?: MovableClock
  /** Bounds that no key sets, such as deadlines, to reach them soon. */
  readonly bounds?: SomeBounds
  /** The names for a self-signed certificate; default: those of this machine. */
  readonly machine?: () => MachineNames
  readonly password?: string
  /** Leaves the limits as documented, 60 and 30 per minute; without it, they are too high to be reached. */
  readonly documentedLimits?: boolean
}

function isPart(value: unknown): value is YamlPart {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A configuration whose keys `over` replaces, key by key; `undefined` removes one. */
export function overlay(base: YamlPart, over: YamlPart): YamlPart {
  const result: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(over)) {
    const below = result[key]
    result[key] = isPart(below) && isPart(value) ? overlay(below, value) : value
  }
  return result
}

/** Encodes pairs as a form, as a browser does. */
export function encodeForm(form: FormBody): string {
  if (typeof form === 'string') return form
  const pairs = Array.isArray(form) ? form : Object.entries(form)
  return new URLSearchParams(pairs.map(([name, value]) => [name, value])).toString()
}

function sumSamples(text: string, name: string, labels: Readonly<Record<string, string>>): number {
  let sum = 0
  for (const line of text.split('\n')) {
    if (!line.startsWith(name)) continue
    const match = /^([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})? (\S+)/.exec(line)
    if (match?.[1] !== name) continue
    const shown = new Set((match[2] ?? '').match(/[A-Za-z_]\w*="(?:[^"\\]|\\.)*"/g) ?? [])
    if (Object.entries(labels).every(([key, value]) => shown.has(`${key}="${value}"`)))
      sum += Number(match[3])
  }
  return sum
}

/** The certificates (PEM) that a TLS server presents: its own, and behind it that of its CA. */
async function presentedCertificate(url: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = tls.connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      const own = socket.getPeerCertificate(true)
      socket.destroy()
      const chain = new Set([own.raw, own.issuerCertificate.raw])
      resolve([...chain].map((der) => new X509Certificate(der).toString()).join(''))
    })
    socket.on('error', reject)
  })
}

/** A machine with much other work is no device that is too slow for those who wait. */
export const PATIENT_QUEUE = { timeout: '30s' }

/** A test's device takes as many requests at once as the test sends; `undefined` in place of it is the default. */
export const MANY_PLACES = 'auto'

/** Starts a complete sidecar, as `postern serve` does, in front of a device. It stops when the test ends. */
export async function startSidecar(options: SidecarOptions = {}): Promise<TestSidecar> {
  const transport = options.transport ?? 'http1'
  const clock = options.clock ?? stillClock()
  const device = options.device ?? (await startDevice())
  const directory = temporaryDirectory()
  const passwordFile = join(directory, 'password')
  writeFileSync(passwordFile, `${options.password ?? PASSWORD}\n`, { mode: 0o600 })
  const limitsOutOfReach = { api: { requests: 1_000_000 }, oauth: { requests: 1_000_000 } }
  const yaml = overlay(
    {
      listen: { address: '127.0.0.1:0', tls: transport === 'http1' ? 'off' : sharedPair() },
      admin: { address: '127.0.0.1:0' },
      upstream: { url: device.url, max_in_flight: MANY_PLACES, queue: PATIENT_QUEUE },
      password: { file: passwordFile },
      // Memory for the default of 10 000 tokens is reserved at the start and takes a fifth of its processor time.
      tokens: { store: 'memory', capacity: 1000 },
      state_dir: join(directory, 'state'),
      log: { level: 'debug', format: 'json', access: true },
      ...(options.documentedLimits ? {} : { limits: limitsOutOfReach }),
    },
    options.config ?? {},
  )
  const fileOf = (content: YamlPart) => ({
    path: join(directory, 'postern.yaml'),
    text: JSON.stringify(content), // JSON is YAML
  })
  let logged = ''
  const sink = {
    write(line: string) {
      logged += line
    },
  }
  const configOf = (content: YamlPart) => loadConfig({ file: fileOf(content), env: {}, sets: [] })
  const config = configOf(yaml)
  const sidecar = await createSidecar(config, {
    clock,
    ...openLogOn(config.log.level, sink),
    bounds: options.bounds,
    ...(options.machine === undefined ? {} : { machine: options.machine }),
  })
  const { public: url, admin } = await sidecar.start()
  let stopping: Promise<void> | undefined
  async function stop(graceMs: number | 'usual' = 0): Promise<void> {
    const stopped = (): Promise<void> => sidecar.stop(graceMs === 'usual' ? undefined : graceMs)
    // Without a grace, what the sidecar would still wait for is over at once.
    stopping ??= graceMs === 0 ? passUntil(clock, stopped()) : stopped()
    await stopping
  }
  closeLater(() => stop())
  const target = { transport, url }

  const self: TestSidecar = {
    transport,
    url,
    adminUrl: admin ?? '',
    device: device as Device, // a test that passes only a URL does not use `sidecar.device`
    clock,
    directory,
    passwordFile,
    request({ token, fields = [], ...request } = {}) {
      const authorization = token === undefined ? [] : ['Authorization', `Bearer ${token}`]
      return send({ ...target, ...request, fields: [...authorization, ...fields] })
    },
    connect: ({ from } = {}) => connect({ ...target, ...(from === undefined ? {} : { from }) }),
    postToken(form, { fields = [], ...request } = {}) {
      return self.request({
        method: 'POST',
        path: '/oauth/token',
        body: encodeForm(form),
        ...request,
        fields: ['Content-Type', FORM_TYPE, ...fields],
      })
    },
    grant: () => tokensOf(self.postToken({ grant_type: 'password', password: options.password ?? PASSWORD })),
    token: async () => (await self.grant()).access_token,
    refresh: (refreshToken) =>
      tokensOf(self.postToken({ grant_type: 'refresh_token', refresh_token: refreshToken })),
    metrics: async () => (await send({ transport: 'http1', url: self.adminUrl, path: '/metrics' })).text,
    metric: async (name, labels) => (await self.figures())(name, labels),
    async figures() {
      const text = await self.metrics()
      return (name, labels = {}) => sumSamples(text, name, labels)
    },
    overview: sidecar.overview,
    logLines: () => logged.split('\n').filter((line) => line !== ''),
    certificate: () => presentedCertificate(url),
    reload: (change) => sidecar.reload(() => configOf(overlay(yaml, change))),
    stop,
  }
  return self
}

async function tokensOf(pending: Promise<Response>): Promise<Tokens> {
  const response = await pending
  if (response.status !== 200) throw new Error(`no tokens: ${response.status} ${response.text}`)
  return response.json() as unknown as Tokens // the tests of C4 check the members
}

/** `upstream.headers` by which the device gets none of Postern's fields about the client and the proxy. */
export const NO_FORWARDING = { 'X-Forwarded-*': null, Via: null, 'X-Request-Id': null } as const

/** With these it gets `X-Forwarded-For` and `X-Request-Id` alone. */
export const LITTLE_FORWARDING = {
  'X-Forwarded-Proto': null,
  'X-Forwarded-Host': null,
  'X-Forwarded-Port': null,
  Via: null,
} as const
