import { writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { PageFile } from '../../src/admin/page-files.ts'
import { openAdmin } from '../../src/compose/admin.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Condition, GrantRow, Point, TimelineEntry } from '../../src/overview/model.ts'
import type { Overview } from '../../src/overview/overview.ts'
import { createLogOn } from '../../src/record/log.ts'
import { listen } from '../../src/system/listen.ts'
import type { Unavailable } from '../../src/tokens/backend.ts'
import { secondOf } from '../page/calm.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { PAGE_PASSWORD, pagePasswordFile } from '../support/passwords.ts'
import type { YamlPart } from '../support/sidecar.ts'

/** An overview that a test drives. */
export interface FakeOverview extends Overview {
  /** A second passes. */
  tick(): Promise<void>
  ready: boolean
  grantRows: readonly GrantRow[] | 'unavailable'
  /** Default: the number of rows. */
  grantTotal: number | undefined
  /** The texts that were searched for, and what is found. */
  readonly searched: string[]
  found: Awaited<ReturnType<Overview['findGrants']>>
  entries: TimelineEntry[]
  /** How many listen for points. */
  readonly listeners: number
  /** How often the condition was asked for. */
  readonly asked: number
}

export interface Viewed {
  readonly url: string
  readonly port: number
  readonly clock: MovableClock
  readonly overview: FakeOverview
  readonly passwordFile: string
  /** What was revoked. */
  readonly revoked: unknown[]
  /** What the store answers to a revocation. */
  revocation: number | Unavailable
  admin: Awaited<ReturnType<typeof openAdmin>>
  setHosts(hosts: readonly string[]): void
  logged(message: string): Record<string, unknown>[]
  ask(path: string, options?: Ask): Promise<Reply>
  /** Signs in, and returns the value for `Cookie`. */
  signIn(): Promise<string>
  /** Default path: `/page/events`. */
  stream(options?: Ask & { readonly path?: string }): Promise<EventStream>
}

export interface Ask {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string
}

export interface Reply {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

export interface SentEvent {
  readonly id: string | undefined
  readonly name: string
  // biome-ignore lint/suspicious/noExplicitAny: each test knows the event it looks at
  readonly data: any
}

export interface EventStream {
  readonly response: IncomingMessage
  /** Resolves with the next event of this name that was not returned before. */
  next(name: string): Promise<SentEvent>
  readonly received: readonly SentEvent[]
  /** Resolves when the stream has ended, cleanly or not. */
  readonly ended: Promise<void>
  close(): void
}

/** Starts the admin listener alone, with an overview that the test drives. It closes when the test ends. */
export async function startAdmin({
  password = false,
  address = '127.0.0.1:0',
  config = {},
  clock = stillClock(),
}: {
  readonly password?: boolean
  readonly address?: string
  readonly config?: YamlPart
  readonly clock?: MovableClock
} = {}): Promise<Viewed> {
  const directory = temporaryDirectory()
  const passwordFile = pagePasswordFile()
  writeFileSync(join(directory, 'password'), 'device\n', { mode: 0o600 })
  const yaml = {
    listen: { address: '127.0.0.1:0', tls: 'off' },
    upstream: { url: 'http://127.0.0.1:1' },
    password: { file: join(directory, 'password') },
    ...config,
    admin: { address, ...(password ? { password_file: passwordFile } : {}), ...(config.admin as object) },
  }
  const file = { path: join(directory, 'postern.yaml'), text: JSON.stringify(yaml) }
  const loaded = loadConfig({ file, env: {}, sets: [] })
  let hosts = loaded.admin.hosts
  const overview = fakeOverview(clock)
  const revoked: unknown[] = []
  let lines = ''
  const log = createLogOn('debug', {
    write(line: string) {
      lines += line
    },
  })
  const admin = await openAdmin(loaded, {
    clock,
    log,
    overview,
    metrics: { text: async () => 'postern_up 1\n', contentType: 'text/plain; version=0.0.4' },
    readiness: () => ({ ready: true }),
    machine: () => ({ names: ['box', 'box.example.com'], addresses: [] }),
    current: () => ({ ...loaded, admin: { ...loaded.admin, hosts } }),
    requests: { recent: () => [], explain: () => [] },
    tokens: {
      revoke(which, reason) {
        revoked.push({ which, reason })
        return self.revocation
      },
    },
    certificate: { material: undefined, serve() {} },
    files: async () => FILES,
    onBug(error) {
      throw error
    },
  })
  closeLater(() => admin[Symbol.dispose]())
  if (loaded.admin.address === 'off') throw new TypeError('the tests need an address')
  await listen(admin.server, loaded.admin.address)
  const { port } = (admin.server.address() as AddressInfo | null) ?? { port: 0 }
  const at =
    typeof admin.server.address() === 'string' ? { socketPath: String(admin.server.address()) } : { port }

  function open(path: string, { method = 'GET', headers = {}, body }: Ask = {}): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const asked = request({ host: '127.0.0.1', ...at, path, method, headers, agent: false }, resolve)
      asked.once('error', reject)
      asked.end(body)
    })
  }
  const self: Viewed = {
    url: `http://127.0.0.1:${port}`,
    port,
    clock,
    overview,
    passwordFile,
    revoked,
    revocation: 1,
    admin,
    setHosts(next) {
      hosts = next
    },
    logged: (message) =>
      lines
        .split('\n')
        .filter((line) => line.includes(message))
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    async ask(path, options) {
      const response = await open(path, options)
      return { status: response.statusCode ?? 0, headers: response.headers, text: await text(response) }
    },
    async signIn() {
      const { headers } = await self.ask('/page/login', loginForm(self.url))
      return String(headers['set-cookie']?.[0]).split(';', 1)[0] ?? ''
    },
    stream: async ({ path = '/page/events', ...options } = {}) => eventStream(await open(path, options)),
  }
  return self
}

/** What a browser sends for the login form. */
export function loginForm(origin: string, password: string = PAGE_PASSWORD): Ask {
  return {
    method: 'POST',
    headers: { Origin: origin, 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ password }).toString(),
  }
}

/** What the page sends to revoke. */
export function revocation(
  origin: string,
  body: object = { all: true },
): Ask & { headers: Record<string, string> } {
  return {
    method: 'POST',
    headers: { Origin: origin, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  }
}

const html = (body: string): PageFile => ({
  type: 'text/html; charset=utf-8',
  body: Buffer.from(body),
  etag: `"${body.length}"`,
})
const FILES: ReadonlyMap<string, PageFile> = new Map([
  ['index.html', html('<!doctype html><title>The page</title>')],
  ['main.js', { type: 'text/javascript', body: Buffer.from('export {}\n'), etag: '"abc"' }],
])

export function grantRow(id: string, usedAt: number | null = null): GrantRow {
  return { id, client: '192.0.2.1', issuedAt: 1, expiresAt: 2, usedAt }
}

function pointAt(time: number): Point {
  return secondOf({ time })
}

function fakeOverview(clock: MovableClock): FakeOverview {
  const listeners = new Set<(point: Point) => void>()
  const points: Point[] = [pointAt(Math.floor(clock.wall()) - 1000)]
  let asked = 0
  const self: FakeOverview = {
    about: { run: 'one', version: '1', node: '26', machine: 'box', startedAt: 0 },
    ready: true,
    grantRows: [],
    grantTotal: undefined,
    searched: [],
    found: { matches: 0, rows: [] },
    entries: [],
    get listeners() {
      return listeners.size
    },
    get asked() {
      return asked
    },
    async tick() {
      await clock.advance(1000)
      const point = pointAt(Math.floor(clock.wall()))
      points.push(point)
      for (const listener of [...listeners]) listener(point)
      // The grants are asked for and sent.
      for (let i = 0; i < 10; i += 1) await Promise.resolve()
    },
    points: (after) => points.filter(({ time }) => time > after),
    condition() {
      asked += 1
      // The tests look at one member only.
      return { ready: self.ready } as Condition
    },
    timeline: (after) => self.entries.filter(({ id }) => id > after),
    grants: () =>
      self.grantRows === 'unavailable'
        ? 'unavailable'
        : { total: self.grantTotal ?? self.grantRows.length, rows: self.grantRows },
    async findGrants(text) {
      self.searched.push(text)
      return self.found
    },
    onPoint(listener) {
      listeners.add(listener)
      return { close: () => listeners.delete(listener) }
    },
  }
  return self
}

function eventStream(response: IncomingMessage): EventStream {
  const received: SentEvent[] = []
  const taken = new Set<SentEvent>()
  const looks = new Set<() => void>()
  let rest = ''
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const blocks = (rest + chunk).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
      received.push({
        id: field('id'),
        name: field('event') ?? '',
        data: JSON.parse(field('data') ?? 'null'),
      })
    }
    for (const look of looks) look()
  })
  const ended = new Promise<void>((resolve) => {
    response.once('close', () => resolve())
    response.on('error', () => {})
  })
  const close = (): void => void response.destroy()
  closeLater(close)
  return {
    response,
    received,
    ended,
    close,
    next: (name) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = received.find((event) => event.name === name && !taken.has(event))
          if (found === undefined) return
          looks.delete(look)
          taken.add(found)
          resolve(found)
        }
        looks.add(look)
        look()
        void ended.then(() => {
          if (looks.has(look)) reject(new Error(`no event ${name}`))
        })
      }),
  }
}
